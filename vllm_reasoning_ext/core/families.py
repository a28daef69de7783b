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


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a call's beginning that is not literal text: blanks, one optional space, or a name."""

    what: str


Shape = tuple[str | Part, ...]
"""How a call begins right after its tool marker: literal text and parts, in order."""


@dataclass(frozen=True, slots=True)
class Family:
    """Everything the core knows of one family; a new `<think>`-like family is one new record.

    Attributes:
        name: the parser name (`--reasoning-parser NAME`).
        grammar: "marker" (an opener and a closer), "harmony" or "atem" (channels).
        aliases: further parser names of the same record.
        opener, closer: the block's markers (marker grammar).
        label: text that may follow the opener and is part of it (gemma4).
        always_open: without any prompt evidence the output starts inside the block.
        turn_openers: texts after which the assistant's turn begins in a rendered prompt.
        tool_marker: what a tool call begins with.
        call_shapes: what must follow the tool marker for a call to be possible.
        tool_closers: a call's closing tags; `{name}` stands for the literal that its shape began with.
        parts: of a marker that is several tokens, those of its pieces that are control tokens.
        end_of_sequence: texts that are no output when they stand at the very end.
        required: control tokens without which the family cannot be told apart (channel grammars).
        reasoning_start_str, reasoning_end_str: what an engine's thinking budget looks for and forces.
    """

    name: str
    grammar: Grammar = "marker"
    aliases: tuple[str, ...] = ()
    opener: str = ""
    closer: str = ""
    label: str = ""
    always_open: bool = False
    turn_openers: tuple[str, ...] = ()
    tool_marker: str = ""
    call_shapes: tuple[Shape, ...] = ()
    tool_closers: tuple[str, ...] = ()
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    end_of_sequence: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    reasoning_start_str: str = ""
    reasoning_end_str: str = ""

    def __hash__(self) -> int:
        # Records are dictionary keys on every request's path; the names tell them apart.
        return hash(self.name)

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


@lru_cache(maxsize=64)
def _markers(record: Family) -> tuple[str, ...]:
    found = [record.opener, record.closer, record.tool_marker, *record.tool_closers, *record.required]
    return tuple(dict.fromkeys(m for m in [*found, *record.end_of_sequence] if m))


@lru_cache(maxsize=64)
def _closing(record: Family) -> tuple[str, ...]:
    opening = ("<|start|>", "<|channel|>", "<|message|>", "<|constrain|>")
    found = [record.closer, *(m for m in record.required if m not in opening), *record.end_of_sequence]
    return tuple(m for m in found if m)


@lru_cache(maxsize=64)
def _control(record: Family) -> tuple[str, ...]:
    pieces = [piece for _, pieces in record.parts for piece in pieces]
    return tuple(dict.fromkeys([*record.markers, *pieces]))


_SPACE, _BLANKS, _NAME = Part(ONE_SPACE), Part(BLANKS), Part(NAME)

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
_DSML_NAMES: Final = ("function_calls", "tool_calls", "calls", "invoke")
_M3: Final = "]<]minimax[>["

_RECORDS: Final = (
    Family(
        name="deepseekv32",
        opener="<think>",
        closer="</think>",
        always_open=True,
        turn_openers=_DEEPSEEK,
        tool_marker=f"<{_DSML}",
        call_shapes=(
            (_SPACE, "function_calls>"),
            (_SPACE, "tool_calls>"),
            (_SPACE, "calls>"),
            (_SPACE, "invoke "),
        ),
        tool_closers=tuple(f"</{_DSML}{space}{name}>" for name in _DSML_NAMES for space in ("", " ")),
        parts=(
            (f"<{_DSML}", (_DSML,)),
            *((f"</{_DSML}{space}{name}>", (_DSML,)) for name in _DSML_NAMES for space in ("", " ")),
        ),
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
        end_of_sequence=("<|im_end|>", "<|endoftext|>", "<｜end▁of▁sentence｜>"),
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
