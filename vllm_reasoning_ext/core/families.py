"""The model families: one data record each, and their names (SPEC section 5, markers: format documentation)."""

import difflib
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal

Grammar = Literal["marker", "harmony", "atem"]

BLANKS: Final = "blanks"
ONE_SPACE: Final = "one space"
NAME: Final = "name"
WORD: Final = "word"
QUOTED_NAME: Final = "quoted name"
ID: Final = "id"
TEXT: Final = "text"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a call's beginning that is not literal text.

    Attributes:
        what: BLANKS (any number); ONE_SPACE (one or none); NAME (a letter or `_`, then letters, digits and `_.-`, at
            most 64 characters); WORD (1 to 32 of `a-z` and `_`; a closing tag may repeat it as `{name}`);
            QUOTED_NAME (a NAME between double quotes); ID (letters, digits and `_.:-`, at most 128); TEXT (anything
            up to the literal that follows it in the shape, at most 128 characters).
    """

    what: str


Shape = tuple[str | Part, ...]
"""How a call begins right after its tool marker: literal text and parts, in order."""

MarkerPair = tuple[str, str]
"""An opener and a closer."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One way in which a family writes tool calls.

    Attributes:
        marker: what a call begins with.
        shapes: what must follow the marker for a call to be possible; one of them is enough.
        closers: the closing tags; `{name}` in one stands for the WORD or the literal that the shape began with. None:
            the call runs to the next tool marker, the block's closer, an end-of-sequence text or the end.
        ends_thought: a call inside a block ends the block; False: the thought goes on after it.
    """

    marker: str
    shapes: tuple[Shape, ...]
    closers: tuple[str, ...] = ()
    ends_thought: bool = True


@dataclass(frozen=True, slots=True)
class Family:
    """Everything the core knows of one family; a new `<think>`-like family is one new record.

    Attributes:
        name: the parser name (`--reasoning-parser NAME`).
        grammar: "marker" (openers and closers), "harmony" or "atem" (channels).
        aliases: further parser names of the same record.
        opener, closer: the block's markers (marker grammar).
        more_pairs: further pairs; the first opener that comes decides, and only its closers close.
        label: text that may follow the opener and is part of it (gemma4).
        always_open: without any prompt evidence the output starts inside the block.
        turn_openers: texts after which the assistant's turn begins in a rendered prompt.
        answer: pairs of texts around the answer; either text of a pair may be empty, and both are optional.
        tool_marker, call_shapes, tool_closers, ends_thought: the first `Tool`, see there.
        more_tools: further ones.
        control_markers: the markers are control tokens, never shown when real; an opener counts in the answer too.
        further_markers: control tokens that have no job in the output but are never shown (a message's opener).
        parts: of a marker that is several tokens, those of its pieces that are control tokens.
        end_of_sequence: texts that are no output when they stand at the very end.
        required: control tokens without which the family cannot be told apart (channel grammars).
        thinking_switch: text with which the prompt's first turn begins when thinking is on; without it thinking is off.
        reasoning_start_str, reasoning_end_str: what an engine's thinking budget looks for and forces.
    """

    name: str
    grammar: Grammar = "marker"
    aliases: tuple[str, ...] = ()
    opener: str = ""
    closer: str = ""
    more_pairs: tuple[MarkerPair, ...] = ()
    label: str = ""
    always_open: bool = False
    turn_openers: tuple[str, ...] = ()
    answer: tuple[MarkerPair, ...] = ()
    tool_marker: str = ""
    call_shapes: tuple[Shape, ...] = ()
    tool_closers: tuple[str, ...] = ()
    ends_thought: bool = True
    more_tools: tuple[Tool, ...] = ()
    control_markers: bool = False
    further_markers: tuple[str, ...] = ()
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    end_of_sequence: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    thinking_switch: str = ""
    reasoning_start_str: str = ""
    reasoning_end_str: str = ""

    def __hash__(self) -> int:
        # Records are dictionary keys on every request's path; the names tell them apart.
        return hash(self.name)

    @property
    def pairs(self) -> tuple[MarkerPair, ...]:
        """The pairs of opener and closer of a marker family, the main one first."""
        return ((self.opener, self.closer), *self.more_pairs) if self.opener else ()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The ways in which the family writes tool calls, the main one first."""
        if not self.tool_marker:
            return self.more_tools
        first = Tool(self.tool_marker, self.call_shapes, self.tool_closers, self.ends_thought)
        return (first, *self.more_tools)

    @property
    def channels(self) -> bool:
        """True for a grammar of channels: a body is addressed, and only tool slices hold calls."""
        return self.grammar != "marker"

    @property
    def framed_calls(self) -> bool:
        """True where an engine's tool parser reads the channels' frames in the text."""
        return self.grammar == "atem"

    @property
    def boundaries(self) -> tuple[str, ...]:
        """The markers without which a block's beginning or end cannot be told by a token id."""
        return self.required or tuple(dict.fromkeys(marker for pair in self.pairs for marker in pair))

    @property
    def markers(self) -> tuple[str, ...]:
        """Every spelling that the splitter looks for in the output."""
        return _markers(self)

    @property
    def closing(self) -> tuple[str, ...]:
        """Markers that end something; an engine may trim the text of one as a stop token."""
        return _closing(self)

    @property
    def control(self) -> tuple[str, ...]:
        """Every spelling that may be one control token in a tokenizer of the family."""
        return _control(self)


def tag_prefix(closer: str) -> str:
    """Give the fixed beginning of a closing tag, up to its `{name}`."""
    return closer.partition("{name}")[0].rstrip(" ")


@lru_cache(maxsize=256)
def _markers(record: Family) -> tuple[str, ...]:
    found = [marker for pair in (*record.pairs, *record.answer) for marker in pair]
    for tool in record.tools:
        found += [tool.marker, *map(tag_prefix, tool.closers)]
    found += [*record.required, *record.further_markers, *record.end_of_sequence]
    return tuple(dict.fromkeys(m for m in found if m))


@lru_cache(maxsize=256)
def _closing(record: Family) -> tuple[str, ...]:
    opening = ("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>")
    found = [closer for _, closer in (*record.pairs, *record.answer)]
    found += [m for m in record.required if m not in opening]
    found += [closer for tool in record.tools for closer in tool.closers if "{name}" not in closer]
    return tuple(dict.fromkeys(m for m in [*found, *record.end_of_sequence] if m))


@lru_cache(maxsize=256)
def _control(record: Family) -> tuple[str, ...]:
    pieces = [piece for _, pieces in record.parts for piece in pieces]
    return tuple(dict.fromkeys([*record.markers, *pieces]))


_SPACE, _BLANKS, _NAME, _WORD = Part(ONE_SPACE), Part(BLANKS), Part(NAME), Part(WORD)

_CHATML: Final = "<|im_start|>assistant\n"
_GLM: Final = "<|assistant|>"
_MINIMAX: Final = "]~b]ai\n"
# DeepSeek's V3.2 renders tool results without a new assistant token, V3.1 ends them with a token of their own.
_DEEPSEEK: Final = (
    "<｜Assistant｜>",
    "</function_results>",
    "<｜tool▁output▁end｜>",
    "<｜tool▁outputs▁end｜>",
)
_DSML: Final = "｜DSML｜"
_M3: Final = "]<]minimax[>["

_RECORDS: Final = (
    Family(
        name="deepseekv32",
        opener="<think>",
        closer="</think>",
        always_open=True,
        turn_openers=_DEEPSEEK,
        tool_marker=f"<{_DSML}",
        # Models garble the wrapper's name ("toolcalls"); the closing tag repeats what they wrote.
        call_shapes=((_SPACE, "invoke "), (_SPACE, _WORD, ">")),
        tool_closers=(f"</{_DSML}{{name}}>", f"</{_DSML} {{name}}>"),
        parts=((f"<{_DSML}", (_DSML,)), (f"</{_DSML}", (_DSML,))),
        end_of_sequence=("<｜end▁of▁sentence｜>",),
        reasoning_start_str="<think>",
        reasoning_end_str="</think>",
    ),
    Family(
        name="qwen3",
        aliases=("glm",),
        opener="<think>",
        closer="</think>",
        turn_openers=(_CHATML, _GLM, _MINIMAX, *_DEEPSEEK),
        tool_marker="<tool_call>",
        call_shapes=(
            (_BLANKS, "{", _BLANKS, '"'),
            (_BLANKS, "<function="),
            (_BLANKS, _NAME, _BLANKS, "<arg_key>"),
            (_BLANKS, _NAME, _BLANKS, "</tool_call>"),
        ),
        tool_closers=("</tool_call>",),
        end_of_sequence=("<|im_end|>", "<|endoftext|>", "<｜end▁of▁sentence｜>", "<|user|>", "<|observation|>"),
        reasoning_start_str="<think>",
        reasoning_end_str="</think>",
    ),
    Family(
        name="minimax",
        opener="<think>",
        closer="</think>",
        always_open=True,
        turn_openers=(_MINIMAX,),
        tool_marker="<minimax:tool_call>",
        call_shapes=((_BLANKS, "<invoke name="),),
        tool_closers=("</minimax:tool_call>",),
        end_of_sequence=("[e~[",),
        reasoning_start_str="<think>",
        reasoning_end_str="</think>",
    ),
    Family(
        name="minimax_m3",
        opener="<mm:think>",
        closer="</mm:think>",
        turn_openers=(_MINIMAX,),
        tool_marker=f"{_M3}<tool_call>",
        call_shapes=((_BLANKS, f"{_M3}<invoke name="),),
        tool_closers=(f"{_M3}</tool_call>",),
        parts=(
            (f"{_M3}<tool_call>", (_M3, "<tool_call>")),
            (f"{_M3}</tool_call>", (_M3, "</tool_call>")),
        ),
        end_of_sequence=("[e~[",),
        reasoning_start_str="<mm:think>",
        reasoning_end_str="</mm:think>",
    ),
    Family(
        name="gemma4",
        opener="<|channel>",
        closer="<channel|>",
        label="thought\n",
        control_markers=True,
        thinking_switch="<|turn>system\n<|think|>",
        turn_openers=("<|turn>model\n", "<tool_response|>"),
        tool_marker="<|tool_call>",
        call_shapes=((_BLANKS, "call:"),),
        tool_closers=("<tool_call|>",),
        end_of_sequence=("<turn|>", "<eos>", "<|tool_response>"),
        reasoning_start_str="<|channel>thought\n",
        reasoning_end_str="<channel|>",
    ),
    Family(
        name="gpt_oss",
        grammar="harmony",
        aliases=("gpt-oss",),
        turn_openers=("<|start|>",),
        required=(
            "<|start|>",
            "<|channel|>",
            "<|message|>",
            "<|constrain|>",
            "<|end|>",
            "<|return|>",
            "<|call|>",
        ),
        end_of_sequence=("<|endoftext|>",),
        reasoning_start_str="<|channel|>analysis<|message|>",
        reasoning_end_str="<|end|>",
    ),
    Family(
        name="muse_glimmer",
        grammar="atem",
        turn_openers=("<|start|>",),
        required=("<|start|>", "<|message|>", "<|eom|>", "<|eot|>"),
        end_of_sequence=("<|end_of_text|>",),
        reasoning_start_str=" to=self<|message|>",
        reasoning_end_str="<|eom|>",
    ),
)

FAMILIES: Final[dict[str, Family]] = {record.name: record for record in _RECORDS}
"""The families by name; `register_family` adds to it."""


def names() -> list[str]:
    """List every parser name, aliases included."""
    return [name for record in FAMILIES.values() for name in (record.name, *record.aliases)]


def get_family(name: str) -> Family:
    """Look a family up by its name or one of its aliases.

    Raises:
        ValueError: the name is unknown; the message lists the names and suggests the nearest.
    """
    record = FAMILIES.get(name)
    if record is not None:
        return record
    for record in FAMILIES.values():
        if name in record.aliases:
            return record
    if name == "inline":
        raise ValueError("'inline' is no family with markers of its own; only Splitter and split() take it.")
    known = [*names(), "inline"]
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"unknown reasoning family {name!r}.{hint} Known names: {', '.join(sorted(known))}.")


def register_family(record: Family) -> Family:
    """Add a marker family at run time (SPEC section 3).

    Args:
        record: the new family; `dataclasses.replace` of an existing record is the short way to one.

    Returns:
        the record as registered, its budget strings filled in.

    Raises:
        ValueError: it is no marker family, lacks a marker, or its name is taken by another record.
    """
    if record.grammar != "marker":
        raise ValueError(f"{record.name!r}: only marker families can be registered; use grammar='marker'.")
    if not (record.name and record.opener and record.closer) or record.opener == record.closer:
        raise ValueError(f"{record.name!r}: a marker family needs a name and two different markers.")
    if record.tool_marker and not (record.call_shapes and record.tool_closers):
        raise ValueError(f"{record.name!r}: a tool_marker needs call_shapes and tool_closers beside it.")
    filled = replace(
        record,
        reasoning_start_str=record.reasoning_start_str or record.opener,
        reasoning_end_str=record.reasoning_end_str or record.closer,
    )
    for name in (record.name, *record.aliases):
        if name == "inline" or (name in names() and FAMILIES.get(record.name) != filled):
            raise ValueError(f"the family name {name!r} is taken; choose another.")
    FAMILIES[record.name] = filled
    return filled


# Order matters: a special case stands before the family it is a case of. Every pattern of a row must match.
_INFERENCE: Final = (
    ((r"gpt[-_]?oss",), "gpt_oss"),
    ((r"muse", r"glimmer"), "muse_glimmer"),
    ((r"deepseek", r"v4|v3\.2|v32"), "deepseekv32"),
    ((r"deepseek", r"r1|v3\.1|v31"), "qwen3"),
    ((r"qwen[-_ ]?3",), "qwen3"),
    ((r"qwq",), "qwen3"),
    ((r"glm",), "qwen3"),
    ((r"minimax[-_]?m3",), "minimax_m3"),
    ((r"minimax",), "minimax"),
    ((r"gemma[-_ ]?4",), "gemma4"),
)


def infer_by_name(name: str) -> tuple[str | None, str]:
    """Decide the family from a model's name.

    Returns:
        the family name (None when unknown) and the reason in words.
    """
    lowered = name.lower()
    for patterns, family in _INFERENCE:
        if all(re.search(pattern, lowered) for pattern in patterns):
            return family, f"the name {name!r} matches {' and '.join(map(repr, patterns))}"
    return None, f"the name {name!r} matches no known family"
