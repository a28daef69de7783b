"""What comes out of the splitter: events, and the delta that carries them."""

from enum import StrEnum
from typing import Final, NamedTuple


class Kind(StrEnum):
    """What a piece of the output is (SPEC section 3)."""

    REASONING = "reasoning"
    CONTENT = "content"
    TOOL = "tool"
    MARKER = "marker"


REASONING: Final = Kind.REASONING
CONTENT: Final = Kind.CONTENT
TOOL: Final = Kind.TOOL
MARKER: Final = Kind.MARKER


class Event(NamedTuple):
    """One piece of output.

    Attributes:
        kind: REASONING, CONTENT, TOOL (a tool call's text, verbatim) or MARKER (shown nowhere).
        text: the characters, exactly as fed; or, when `synthetic`, as added by the splitter.
        synthetic: True for text the model did not write (a joiner, a terminator a tool parser needs).
        recipient: of a TOOL event in a channel grammar, the tool it is addressed to.
        begins: of a TOOL event, True where a tool slice begins.
        ends: of a TOOL event, True where the slice ends by itself: at its closing tag or terminator, or because the
            next header begins (then an event without text may tell it). A slice that something else cut has no end.
    """

    kind: Kind
    text: str
    synthetic: bool = False
    recipient: str | None = None
    begins: bool = False
    ends: bool = False


class Delta:
    """What one `feed` or `finish` released.

    Attributes:
        reasoning: the REASONING texts, in order.
        content: the CONTENT and TOOL texts, in order (a tool parser downstream reads them there).
        events: every event, MARKER events included, in the order of the output.

    A delta is true when it holds any event.
    """

    # A __slots__ class with lazily built parts: a frozen dataclass costs more than the whole split.
    __slots__ = ("_events", "content", "reasoning")

    def __init__(self, events: tuple[Event, ...] = ()) -> None:
        self._events: tuple[Event, ...] | None = events
        if len(events) == 1:
            event = events[0]
            self.reasoning = event.text if event.kind is REASONING else ""
            self.content = event.text if event.kind is CONTENT or event.kind is TOOL else ""
        elif events:
            self.reasoning = "".join([e.text for e in events if e.kind is REASONING])
            self.content = "".join([e.text for e in events if e.kind is CONTENT or e.kind is TOOL])
        else:
            self.reasoning = self.content = ""

    @classmethod
    def of_reasoning(cls, text: str) -> "Delta":
        """Build the delta of one piece of reasoning; its event is made only if somebody asks."""
        delta = cls.__new__(cls)
        delta._events, delta.reasoning, delta.content = None, text, ""
        return delta

    @classmethod
    def of_content(cls, text: str) -> "Delta":
        """Build the delta of one piece of content; its event is made only if somebody asks."""
        delta = cls.__new__(cls)
        delta._events, delta.reasoning, delta.content = None, "", text
        return delta

    @classmethod
    def of_tool(cls, text: str, recipient: str | None) -> "Delta":
        """Build the delta of one piece of a tool slice, neither its beginning nor its end."""
        delta = _ToolPiece.__new__(_ToolPiece)
        delta._events, delta.reasoning, delta.content = None, "", text
        delta._recipient = recipient
        return delta

    @property
    def plain(self) -> bool:
        """True for one piece of reasoning or content and nothing else, which is cheaper to ask than `events`."""
        return self._events is None

    @property
    def events(self) -> tuple[Event, ...]:
        if self._events is None:
            kind, text = (REASONING, self.reasoning) if self.reasoning else (CONTENT, self.content)
            self._events = (Event(kind, text),)
        return self._events

    def __bool__(self) -> bool:
        return self._events is None or bool(self._events)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Delta) and self.events == other.events

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Delta(reasoning={self.reasoning!r}, content={self.content!r}, events={self.events!r})"


class _ToolPiece(Delta):
    """A piece of a tool slice; a class of its own, so that the other deltas carry no field for it."""

    __slots__ = ("_recipient",)
    _recipient: str | None

    @property
    def plain(self) -> bool:
        return False

    @property
    def events(self) -> tuple[Event, ...]:
        if self._events is None:
            self._events = (Event(TOOL, self.content, False, self._recipient),)
        return self._events
