"""The record of a model family: everything that the core knows of it is data (SPEC 5.5)."""

from dataclasses import dataclass
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
        engine_names: what the engines call their own parsers of these models; library and commands know them, but an
            engine's registry keeps its own under them.
        opener, closer: the block's markers (marker grammar).
        more_pairs: further pairs; the first opener that comes decides, and only its closers close.
        text_pairs: further pairs that are ordinary text in every tokenizer, also where `control_markers` says that the
            family's other markers are not.
        label: text that may follow the opener and is part of it (gemma4).
        always_open: without any prompt evidence the output starts inside the block.
        turn_openers: texts after which the assistant's turn begins in a rendered prompt.
        answer: pairs of texts around the answer; either text of a pair may be empty, and both are optional.
        tool_marker, call_shapes, tool_closers, ends_thought: the first `Tool`, see there.
        more_tools: further ones.
        control_markers: the markers are control tokens, never shown when real; an opener counts in the answer too.
        further_markers: control tokens that have no job in the output but are never shown (a message's opener).
        suffixes: what checkpoints are known to write into every marker (`:opensource` in `<think:opensource>`); the
            record has each marker once for each, and a vocabulary tells which one its checkpoint writes.
        parts: of a marker that is several tokens, those of its pieces that are control tokens.
        end_of_sequence: texts that are no output when they stand at the very end.
        required: control tokens without which the family cannot be told apart (channel grammars).
        thinking_switch: text with which the prompt's first turn begins when thinking is on; without it thinking is off.
        reasoning_start_str, reasoning_end_str: what an engine's thinking budget looks for and forces.
    """

    name: str
    grammar: Grammar = "marker"
    aliases: tuple[str, ...] = ()
    engine_names: tuple[str, ...] = ()
    opener: str = ""
    closer: str = ""
    more_pairs: tuple[MarkerPair, ...] = ()
    text_pairs: tuple[MarkerPair, ...] = ()
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
    suffixes: tuple[str, ...] = ()
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
        return ((self.opener, self.closer), *self.more_pairs, *self.text_pairs) if self.opener else ()

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
        pairs = self.pairs[: len(self.pairs) - len(self.text_pairs)]
        return self.required or tuple(dict.fromkeys(marker for pair in pairs for marker in pair))

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


NO_REASONING: Final = Family(name="none")
"""The record of a model without reasoning: all of its output is content, verbatim. No name leads to it but `auto`."""
