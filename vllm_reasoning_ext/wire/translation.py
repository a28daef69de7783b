"""What a translation is set to, and the split of one text under it (SPEC sections 5.4 and 6)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from vllm_reasoning_ext.core.events import MARKER, REASONING, Delta, Event
from vllm_reasoning_ext.core.grammar.inline import BUFFER_BYTES, DEFAULT_TAGS
from vllm_reasoning_ext.core.grammar.tags import TagPair
from vllm_reasoning_ext.core.splitter import Splitter

INLINE: Final = "inline"
REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "both")
MESSAGES_POLICIES: Final = ("off", "drop", "unsigned", "redacted")
SIGNATURES: Final = ("omit", "empty")
RESPONSES_EVENTS: Final = ("full", "seed")


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
        tags: pairs of opener and closer.
        where: where a tag counts: "prose", "anywhere" or "head".
        unclosed: "content" keeps a block back until its closer; "reasoning" streams it.
        max_buffer_bytes: most UTF-8 bytes of a block that is kept back.
        family: "inline", or one of the seven grammars.
        implicit_open: the prompt's template has opened the block: the text starts inside it.
        reasoning_field: which field of a chat message gets the reasoning.
        messages_policy: what becomes of the reasoning in an Anthropic message.
        signature: whether an unsigned thinking block has no signature field or an empty one.
        responses_events: "full" is the whole life of a reasoning item; "seed" the three events of seed 000.
        joiner: text between two blocks.
        observe: called with the outcome of each text.
    """

    tags: tuple[TagPair, ...] = DEFAULT_TAGS
    where: Literal["prose", "anywhere", "head"] = "prose"
    unclosed: Literal["content", "reasoning"] = "content"
    max_buffer_bytes: int = BUFFER_BYTES
    family: str = INLINE
    implicit_open: bool = False
    reasoning_field: str = "reasoning_content"
    messages_policy: str = "off"
    signature: str = "omit"
    responses_events: str = "full"
    joiner: str = "\n\n"
    observe: Callable[[Outcome], None] | None = None

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
