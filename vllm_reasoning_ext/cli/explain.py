"""Why an output was split as it was: each spelling's reading, what was held, which policy fired."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from vllm_reasoning_ext.cli.paint import LABELS
from vllm_reasoning_ext.conformance.report import counted
from vllm_reasoning_ext.conformance.runner import Fed
from vllm_reasoning_ext.core.events import CONTENT, MARKER, REASONING, TOOL, Event, Kind
from vllm_reasoning_ext.core.families import FAMILIES, Family
from vllm_reasoning_ext.core.splitter import Splitter


class Note(NamedTuple):
    """One line of an explanation.

    Attributes:
        what: "boundary", "text", "held", "policy" or "ids".
        at: where, in characters of the output.
        text: the spelling or the held text; "" for a policy.
        why: in words.
    """

    what: str
    at: int
    text: str
    why: str


class Spelling(NamedTuple):
    """A marker spelling that the lexer met, and how the ids judged it (`Observer.spelling`)."""

    marker: str
    position: int
    real: bool | None


class Hold(NamedTuple):
    """A stretch of output that was kept back for some deltas."""

    at: int
    text: str
    first: int
    last: int


class Recorder:
    """Feeds a splitter and writes down what it says and keeps back.

    Args:
        splitter: a fresh one.

    Attributes:
        events: each event with the number of the delta that released it, counted from 1.
    """

    def __init__(self, splitter: Splitter) -> None:
        self.splitter = splitter
        self.events: list[tuple[Event, int]] = []
        self.spellings: list[Spelling] = []
        self.given_up: list[tuple[int, str]] = []
        self.holds: list[Hold] = []
        self._fed = 0
        self._out = 0
        self._held = ""
        self._heard: Callable[[Event, int], None] | None = None
        splitter.observe(self)

    def run(
        self,
        deltas: Sequence[Fed],
        reason: str | None = None,
        heard: Callable[[Event, int], None] | None = None,
    ) -> None:
        """Feed all deltas and finish.

        Args:
            deltas: the output.
            reason: the finish reason.
            heard: called with each event as it comes, and the number of its delta.
        """
        self._heard = heard
        for number, (text, ids) in enumerate(deltas, 1):
            self._fed += len(text)
            self._held += text
            self._take(self.splitter.feed(text, ids).events, number)
        self._take(self.splitter.finish(reason).events, len(deltas) + 1)

    def spelling(self, marker: str, position: int, real: bool | None) -> None:
        """Hear of a spelling from the lexer."""
        self.spellings.append(Spelling(marker, position, real))

    def text_alone(self, why: str) -> None:
        """Hear from the lexer that the ids no longer count."""
        self.given_up.append((self._fed, why))

    def _take(self, events: Sequence[Event], number: int) -> None:
        self.events.extend((event, number) for event in events)
        if self._heard is not None:
            for event in events:
                self._heard(event, number)
        released = sum(len(event.text) for event in events if not event.synthetic)
        self._out += released
        self._held = held = self._held[released:]
        if not held:
            return
        last = self.holds[-1] if self.holds else None
        if last is not None and last.at == self._out and last.last == number - 1:
            self.holds[-1] = Hold(last.at, held, last.first, number)
        else:
            self.holds.append(Hold(self._out, held, number, number))


def explain(recorder: Recorder, ids: Mapping[str, int] | None = None, record: Family | None = None) -> list[Note]:
    """Explain a finished run, in the order of the output.

    Args:
        recorder: it has run.
        ids: the control tokens' ids, to name them.
        record: the family's, where it has no name that leads to it (a derived one).
    """
    record = record or FAMILIES.get(recorder.splitter.family)
    spans = list(_spans([event for event, _ in recorder.events]))
    spellings = recorder.spellings if record is not None else _tags(spans)
    notes = [*_boundaries(spellings, spans, record, ids or {}), *_holds(recorder.holds, spans)]
    notes += [Note("ids", at, "", f"from here on the text alone decides: {why}") for at, why in recorder.given_up]
    notes += _policies(recorder, spans, record)
    return sorted(notes, key=lambda note: note.at)


def closes_unopened(recorder: Recorder) -> bool:
    """Tell whether a closer is left in an answer without any opener: the prompt held that, most likely."""
    record = FAMILIES.get(recorder.splitter.family)
    real = [spelling for spelling in recorder.spellings if spelling.real is not None]
    if record is None or recorder.splitter.start.kind != "undecided" or any(s.marker == record.opener for s in real):
        return False
    spans = list(_spans([event for event, _ in recorder.events]))
    return any(s.marker == record.closer and _kind_at(s.position, spans) is CONTENT for s in real)


def as_json(notes: Sequence[Note]) -> list[dict[str, Any]]:
    """Give the notes as plain data."""
    return [note._asdict() for note in notes]


_Span = tuple[int, int, Event]


def _spans(events: Sequence[Event]) -> Iterator[_Span]:
    at = 0
    for event in events:
        length = 0 if event.synthetic else len(event.text)
        yield at, at + length, event
        at += length


def _tags(spans: Sequence[_Span]) -> list[Spelling]:
    """Read the inline tags that counted off the events: that grammar has no lexer to tell of the others."""
    tags = []
    for start, _, event in spans:
        bare = event.text.lstrip()
        if event.kind is MARKER and bare:
            tags.append(Spelling(bare, start + len(event.text) - len(bare), False))
    return tags


def _start(span: _Span) -> int:
    return span[0]


def _kind_at(position: int, spans: Sequence[_Span]) -> Kind | None:
    last = bisect_right(spans, position, key=_start) - 1
    return spans[last][2].kind if last >= 0 and position < spans[last][1] else None


def _boundaries(
    spellings: Sequence[Spelling], spans: Sequence[_Span], record: Family | None, ids: Mapping[str, int]
) -> Iterator[Note]:
    for marker, position, real in spellings:
        kind = _kind_at(position, spans)
        role = _role(marker, record)
        by = f"by its token id {ids.get(marker, '')}".rstrip() if real else "by its text"
        if real is None:
            yield Note("text", position, marker, f"{role}, but spelled from ordinary tokens: it is text")
        elif kind is None:
            yield Note("boundary", position, marker, f"{role}, {by}; its text never came (a trimmed stop token)")
        elif kind is MARKER:
            yield Note("boundary", position, marker, f"{role}, {by}")
        elif kind is TOOL or (record is not None and marker == record.tool_marker and kind is CONTENT):
            yield Note("boundary", position, marker, f"{role}, {by}; part of a call, handed on to the tool parser")
        else:
            yield Note("text", position, marker, f"{role}, {by}, {_why_text(marker, kind, record)}")


def _role(marker: str, record: Family | None) -> str:
    if record is None:
        return "tag"
    if marker == record.opener:
        return "opener"
    if marker == record.closer:
        return "closer"
    if marker == record.tool_marker:
        return "tool marker"
    if marker in record.tool_closers:
        return "closing tag of a call"
    return "end of sequence" if marker in record.end_of_sequence else "control token"


def _why_text(marker: str, kind: Kind, record: Family | None) -> str:
    where = f"stays in the {LABELS[kind.value]}"
    if record is None or record.channels:
        return f"{where}: it opens or ends nothing here"
    if marker == record.opener:
        return f"{where}: an opener counts only before the answer and outside a block"
    if marker == record.closer:
        return f"{where}: no block is open"
    if kind is REASONING:
        return f"{where}: the model quoted it, or wrote a draft; no call followed that counts"
    return f"{where}: it ends nothing here"


def _holds(holds: Sequence[Hold], spans: Sequence[_Span]) -> Iterator[Note]:
    for at, text, first, last in holds:
        first_span = max(bisect_right(spans, at, key=_start) - 1, 0)
        over = spans[first_span : bisect_left(spans, at + len(text), key=_start)]
        kinds = [event.kind for _, end, event in over if end > at]
        shown = ", ".join(dict.fromkeys(LABELS[kind.value] for kind in kinds))
        when = f"after delta {first}" if first == last else f"after deltas {first} to {last}"
        yield Note("held", at, text, f"{counted(len(text), 'character')} kept back {when}, then released as {shown}")


def _policies(recorder: Recorder, spans: Sequence[_Span], record: Family | None) -> Iterator[Note]:
    splitter = recorder.splitter
    block, tail = splitter.start.kind == "reasoning", ""
    for start, _, event in spans:
        if event.synthetic:
            yield Note("policy", start, event.text, _added(event, splitter))
        elif event.kind is MARKER and event.text.isspace():
            yield Note("policy", start, event.text, "blanks around a boundary: dropped (a MARKER event)")
        if event.kind is REASONING:
            block, tail = True, event.text
        elif event.kind is not MARKER:
            block = False
    end = spans[-1][1] if spans else 0
    if record is not None:
        if splitter.ended_by == "tool":
            yield Note("policy", end, "", "a tool call ended the block without its closer")
        elif block and tail and not splitter.ended_by:
            yield Note("policy", end, "", "the block was never closed: what it held is reasoning")


def _added(event: Event, splitter: Splitter) -> str:
    if event.kind is TOOL:
        return "added: the tool parser needs it, and the prompt or a trimmed stop token holds it"
    if splitter.floored and event.kind is CONTENT:
        return "floor: the reply had no answer, so its reasoning is the answer too"
    return f"joiner: added between two {'blocks' if event.kind is REASONING else 'answers'}"
