"""Answers on token ids alone, for an engine's gates: has reasoning ended, and how many tokens was it?

Both read the same family records as the splitter. They decode nothing but headers and the few ids around a
boundary, so that an engine may ask at every step.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from vllm_reasoning_ext.core import atem, harmony
from vllm_reasoning_ext.core.events import CONTENT, REASONING, Kind
from vllm_reasoning_ext.core.families import Family, get_family
from vllm_reasoning_ext.core.limits import TOOL_HOLD_MAX
from vllm_reasoning_ext.core.state import StartState

Decode = Callable[[list[int]], str]

HEADER_IDS = 160
"""Token ids of a header that are looked at: a header's span in characters is no longer, and an id is one at least."""


def reasoning_ended(
    family: str | Family,
    ids: Sequence[int],
    delta_ids: Iterable[int],
    marker_ids: Mapping[str, int],
    decode: Decode | None = None,
) -> bool:
    """Tell whether reasoning ended anywhere inside the new ids (a grammar may constrain what comes after).

    Pure: the answer depends on the arguments only. What a delta of several ids has opened and closed again
    counts too.

    Args:
        family: the family or its name.
        ids: all ids so far, with or without the prompt's, the new ones included.
        delta_ids: the new ones.
        marker_ids: control token text -> id, from `core.ids.marker_ids`.
        decode: ids -> text, for the words of a channel's header; without it no channel family has an answer.

    Returns:
        True when the new ids close a block, or begin a body that is not reasoning.
    """
    record = get_family(family) if isinstance(family, str) else family
    new = list(delta_ids)
    if record.grammar == "marker":
        closer = marker_ids.get(record.closer)
        if closer is not None:
            return closer in new
        return decode is not None and _spelled(record.closer, ids, len(new), decode)
    message = marker_ids.get(atem.MESSAGE)
    if message is None or decode is None or message not in new:
        return False
    first = max(len(ids) - len(new), 0)
    return any(
        _opens_answer(record, ids, index, marker_ids, decode)
        for index in range(first, len(ids))
        if ids[index] == message
    )


def _spelled(closer: str, ids: Sequence[int], new: int, decode: Decode) -> bool:
    """Look for a closer that the tokenizer has no single id for, ending inside the new ids."""
    tail = list(ids[-(new + len(closer)) :])
    before = decode(tail[: len(tail) - new])
    return decode(tail).count(closer) > before.count(closer)


def _opens_answer(
    record: Family, ids: Sequence[int], index: int, marker_ids: Mapping[str, int], decode: Decode
) -> bool:
    """Tell whether the `<|message|>` at `index` begins a body that is no reasoning."""
    by_id = {number: text for text, number in marker_ids.items()}
    at = index
    inner = (harmony.CHANNEL, harmony.CONSTRAIN) if record.grammar == "harmony" else ()
    while at > 0 and index - at < HEADER_IDS and by_id.get(ids[at - 1], "") in ("", *inner):
        at -= 1
    before = by_id.get(ids[at - 1]) if at else None
    header = decode(list(ids[at:index]))
    if record.grammar == "harmony":
        kind, recipient = harmony_kind(header)
        return kind is CONTENT and recipient is None
    # The output alone begins inside the prompt's header, so no `<|start|>` stands before it.
    in_header = before in (atem.START, None)
    return atem_kind(header, in_header) not in (None, REASONING)


def harmony_kind(header: str) -> tuple[Kind, str | None]:
    """Say what a harmony header's body is, and the tool it is addressed to."""
    channel = header.partition(harmony.CHANNEL)[2].split()
    return harmony.kind_of(channel[0] if channel else ""), harmony.tool_recipient(header)


def atem_kind(header: str, in_header: bool) -> Kind | None:
    """Say what begins at an ATEM `<|message|>`; None where it is one without a role.

    Args:
        header: the text before it, back to the last control token.
        in_header: that control token is a `<|start|>`; else only a headerless switch begins a body.
    """
    if in_header:
        return atem.kind_of(atem.recipient_of(header))
    switch = atem.SWITCH.search(header)
    return atem.kind_of(switch.group(1)) if switch else None


class ReasoningTokenCounter:
    """Counts the reasoning tokens of one output, incrementally.

    Args:
        family: the family or its name.
        marker_ids: control token text -> id.
        start: where the output starts.
        decode: ids -> text, for headers, labels and blanks at a boundary.
        tools: False where a tool marker in a block is reasoning text.
    """

    def __init__(
        self,
        family: str | Family,
        marker_ids: Mapping[str, int],
        start: StartState,
        decode: Decode | None = None,
        tools: bool = True,
    ) -> None:
        record = get_family(family) if isinstance(family, str) else family
        self._record = record
        self._by_id = {number: text for text, number in marker_ids.items()}
        self._decode: Decode = decode or (lambda ids: "\0" * len(ids))
        self._tools = tools
        self.total = 0
        self._inside = start.kind == "reasoning"
        self._open = not start.answer_begun  # a block may still be opened
        self._label = "" if start.header or start.body_begun else record.label
        self._label_seen: list[int] = []
        self._call: list[int] | None = None  # ids from a tool marker inside a block on
        self._call_done = False
        self._kept = start.header if start.kind == "header" else ""
        self._in_header = start.kind == "header"
        self._recent: list[int] = []  # ids since the last control token
        self._step = self._marker if record.grammar == "marker" else self._channel

    def feed(self, ids: Iterable[int]) -> int:
        """Take the next ids; return the number of reasoning tokens so far."""
        for number in ids:
            self._step(number, self._by_id.get(number, ""))
        return self.total

    # Marker families

    def _marker(self, number: int, text: str) -> None:
        record = self._record
        if self._call is not None:
            self._in_call(number, text)
        elif self._inside:
            if text == record.closer:
                self._inside = False
                self._label_seen = []
            elif self._tools and text and self._is_tool_marker(text):
                self._call, self._call_done = [number], False
            elif text not in record.end_of_sequence and not (text == record.opener and self._label_at_start()):
                self._count(number)
        elif self._open and text == record.opener:
            self._inside = True
            self._label = record.label
        elif self._open and text != record.closer and self._decode([number]).strip():
            self._open = False

    def _label_at_start(self) -> bool:
        return self.total == 0 and not self._label_seen

    def _is_tool_marker(self, text: str) -> bool:
        marker = self._record.tool_marker
        return bool(marker) and (text == marker or text in dict(self._record.parts).get(marker, ())[:1])

    def _count(self, number: int) -> None:
        if self._label:
            self._label_seen.append(number)
            seen = self._decode(self._label_seen)
            if self._label.startswith(seen) and seen != self._label:
                return
            count = 0 if seen.startswith(self._label) else len(self._label_seen)
            self._label, self._label_seen = "", []
            self.total += count
            return
        self.total += 1

    def _in_call(self, number: int, text: str) -> None:
        """Inside a block, after a tool marker: a call if it is whole and nothing but a boundary follows."""
        assert self._call is not None
        record = self._record
        ends = (record.closer, record.tool_marker, *record.end_of_sequence)
        if self._call_done and (text in ends or self._is_tool_marker(text)):
            self._call, self._inside, self._open = None, False, False
        elif text == record.closer:
            self.total += len(self._call)
            self._call, self._inside = None, False
        elif len(self._call) > TOOL_HOLD_MAX:
            self._call, self._inside, self._open = None, False, False
        elif self._call_done and self._decode([number]).strip():
            self.total += len(self._call) + 1
            self._call = None
        else:
            self._call.append(number)
            self._call_done = self._call_done or text in record.tool_closers

    # Channel families

    def _channel(self, number: int, text: str) -> None:
        if not text:
            self._recent.append(number)
            if self._inside:
                self.total += 1
            elif len(self._recent) > HEADER_IDS:
                del self._recent[: -HEADER_IDS // 2]
            if self._inside and len(self._recent) > 2 * HEADER_IDS:
                del self._recent[:-HEADER_IDS]
            return
        if text == atem.MESSAGE:
            self._message()
        elif text == harmony.CHANNEL and self._record.grammar == "harmony":
            if not self._in_header:
                self._inside, self._recent = False, []
            self._in_header = True
            self._recent.append(number)
            return
        elif text == harmony.CONSTRAIN:
            self._recent.append(number)
            return
        else:
            self._inside = False
            self._in_header = text == atem.START
            self._kept = ""
        self._recent = []

    def _message(self) -> None:
        header = self._kept + self._decode(self._recent)
        if self._record.grammar == "harmony":
            if self._in_header:
                kind, recipient = harmony_kind(header)
                self._inside = kind is REASONING and recipient is None
        else:
            kind_or_none = atem_kind(header, self._in_header)
            if kind_or_none is None:
                return
            if self._inside and not self._in_header:
                self.total -= self._switch_length()
            self._inside = kind_or_none is REASONING
        self._in_header, self._kept = False, ""

    def _switch_length(self) -> int:
        """Count the last ids that spell `to=name`: they were counted as reasoning before they were a header."""
        counts = range(1, len(self._recent) + 1)
        return next((count for count in counts if "to=" in self._decode(self._recent[-count:])), 0)
