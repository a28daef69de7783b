"""What a translation is set to, and the split of one text under it (SPEC sections 5.4 and 6)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

from vllm_reasoning_ext.core.events import MARKER, REASONING, Delta, Event
from vllm_reasoning_ext.core.families import Family, names
from vllm_reasoning_ext.core.grammar.inline import BUFFER_BYTES, DEFAULT_TAGS, Unclosed, Where
from vllm_reasoning_ext.core.grammar.tags import TagPair, parse_tags
from vllm_reasoning_ext.core.splitter import Splitter

INLINE: Final = "inline"

ReasoningField = Literal["reasoning_content", "reasoning", "both"]
MessagesPolicy = Literal["off", "drop", "unsigned", "redacted"]
Signature = Literal["omit", "empty"]
ResponsesEvents = Literal["full", "seed"]

CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "where": get_args(Where),
    "unclosed": get_args(Unclosed),
    "reasoning_field": get_args(ReasoningField),
    "messages_policy": get_args(MessagesPolicy),
    "signature": get_args(Signature),
    "responses_events": get_args(ResponsesEvents),
}
"""The settings that are one of several words, and those words."""


class Outcome(NamedTuple):
    """How the split of one text ended; what metrics count.

    Attributes:
        surface: "chat", "messages" or "responses".
        mode: "body" or "stream".
        end: "plain" (no block), "closed", or "unterminated".
        reasoning_chars, answer_chars: characters given as each.
    """

    surface: str
    mode: str
    end: str
    reasoning_chars: int
    answer_chars: int


@dataclass(frozen=True, slots=True)
class Translation:
    """The settings of a translation.

    Attributes:
        tags: pairs of opener and closer, or their string form, `open...close,open...close`.
        where: where a tag counts: "prose", "anywhere" or "head".
        unclosed: "content" keeps a block back until its closer; "reasoning" streams it.
        max_buffer_bytes: most UTF-8 bytes of a block that is kept back.
        family: "inline", a family's name, or a record.
        implicit_open: the prompt's template has opened the block: the text starts inside it.
        reasoning_field: which field of a chat message gets the reasoning.
        messages_policy: what becomes of the reasoning in an Anthropic message.
        signature: whether an unsigned thinking block has no signature field or an empty one.
        responses_events: "full" is the whole life of a reasoning item; "seed" the three events of seed 000.
        joiner: text between two blocks.
        observe: called with the outcome of each text.

    Raises:
        ValueError: a value is none of those allowed; it names them.
    """

    tags: tuple[TagPair, ...] = DEFAULT_TAGS
    where: Where = "prose"
    unclosed: Unclosed = "content"
    max_buffer_bytes: int = BUFFER_BYTES
    family: str | Family = INLINE
    implicit_open: bool = False
    reasoning_field: ReasoningField = "reasoning_content"
    messages_policy: MessagesPolicy = "off"
    signature: Signature = "omit"
    responses_events: ResponsesEvents = "full"
    joiner: str = "\n\n"
    observe: Callable[[Outcome], None] | None = None

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r} is unknown: use one of {', '.join(allowed)}")
        if not isinstance(self.family, Family) and self.family != INLINE and self.family not in names():
            raise ValueError(f"family={self.family!r} is unknown: use one of {', '.join((INLINE, *names()))}")
        if type(self.max_buffer_bytes) is not int or self.max_buffer_bytes < 1:
            raise ValueError(f"max_buffer_bytes={self.max_buffer_bytes!r} is no number of bytes: use 1 or more")
        if type(self.implicit_open) is not bool:
            raise ValueError(f"implicit_open={self.implicit_open!r} is neither True nor False")
        if not isinstance(self.joiner, str):
            raise TypeError(f"joiner={self.joiner!r} is no text")
        object.__setattr__(self, "tags", parse_tags(self.tags, strict=True))

    def text(self, surface: str, mode: str) -> "TextSplit":
        """Begin the split of one text: one choice, one content block, one output part."""
        return TextSplit(self, surface, mode)

    def once(self, text: str, surface: str, reason: str | None = None) -> Delta:
        """Split a whole text."""
        split = self.text(surface, "body")
        first = split.feed(text)
        return Delta(first.events + split.finish(reason).events)

    def cleaned(self, text: str) -> str:
        """Give the answer of a whole text that has been split, and counted, before."""
        silent = TextSplit(self, "", "")
        return silent.feed(text).content + silent.finish().content


def _splitter(settings: Translation) -> Splitter:
    # No prompt is at hand here: the switch is all that is known about where the output starts.
    force = True if settings.implicit_open else None
    if settings.family != INLINE:
        return Splitter(settings.family, force_reasoning=force, joiner=settings.joiner)
    return Splitter(
        INLINE,
        force_reasoning=force,
        joiner=settings.joiner,
        tags=settings.tags,
        where=settings.where,
        unclosed=settings.unclosed,
        max_buffer_bytes=settings.max_buffer_bytes,
    )


class TextSplit:
    """The split of one text, counted."""

    __slots__ = ("_answer", "_last", "_reasoning", "_settings", "_splitter", "_surface", "closed", "found")

    def __init__(self, settings: Translation, surface: str, mode: str) -> None:
        self._settings = settings
        self._surface = (surface, mode)
        self._splitter = _splitter(settings)
        self._reasoning = self._answer = 0
        self._last: Event | None = None  # the last event with a visible character
        self.found = False  # a marker was taken out
        self.closed = False

    def feed(self, text: str) -> Delta:
        """Take the next characters."""
        return self._counted(self._splitter.feed(text))

    def finish(self, reason: str | None = None) -> Delta:
        """Release what is held; nothing after the first call."""
        if self.closed:
            return Delta()
        self.closed = True
        delta = self._counted(self._splitter.finish(reason))
        if self._settings.observe is not None and self._surface[0]:
            unterminated = self._last is not None and self._last.kind is REASONING
            if self._settings.family == INLINE and self._settings.unclosed == "content":
                unterminated = delta.content.lstrip().startswith(tuple(opener for opener, _ in self._settings.tags))
            end = "unterminated" if unterminated else "closed" if self.found else "plain"
            self._settings.observe(Outcome(*self._surface, end, self._reasoning, self._answer))
        return delta

    def _counted(self, delta: Delta) -> Delta:
        self._reasoning += len(delta.reasoning)
        self._answer += len(delta.content)
        for event in delta.events:
            if event.text.strip():
                self._last = event
                self.found = self.found or event.kind is MARKER
        return delta


class Run(NamedTuple):
    """Neighbouring events of one kind, as the surfaces send them.

    Attributes:
        reasoning: True for reasoning, False for the answer (tool slices included).
        text: the text the model wrote.
        joiner: a synthetic text before it.
    """

    reasoning: bool
    text: str
    joiner: str = ""


def runs(events: Iterable[Event]) -> list[Run]:
    """Merge events into runs, in the order of the output; markers are left out."""
    out: list[Run] = []
    pieces: list[str] = []
    joiner = ""
    shown = [event for event in events if event.kind is not MARKER]
    for place, event in enumerate(shown, start=1):
        following = shown[place] if place < len(shown) else None
        reasoning = event.kind is REASONING
        if event.synthetic and reasoning and not pieces:
            joiner = event.text
        else:
            pieces.append(event.text)
        if following is None or (following.kind is REASONING) is not reasoning:
            out.append(Run(reasoning, "".join(pieces), joiner))
            pieces, joiner = [], ""
    return out
