"""Where a grammar puts what it has decided: events in order, joiners between bodies, blocks held whole."""

from vllm_reasoning_ext.core.events import CONTENT, MARKER, REASONING, TOOL, Event, Kind

_new = tuple.__new__


class Sink:
    """Collects the events of one output.

    Args:
        joiner: text between two reasoning bodies, and between two answer bodies of a channel grammar.
        stream_reasoning: False keeps a block's events back until the block closes.

    Attributes:
        withheld: the events that are kept back so.
    """

    __slots__ = (
        "_answer_open",
        "_reasoning_open",
        "_slice_open",
        "_summed",
        "_to",
        "_withheld_size",
        "answer_last",
        "events",
        "joiner",
        "reasoning_last",
        "stream_reasoning",
        "withheld",
    )

    def __init__(self, joiner: str = "\n", stream_reasoning: bool = True) -> None:
        self.joiner = joiner
        self.stream_reasoning = stream_reasoning
        self.events: list[Event] = []
        self.withheld: list[Event] = []
        self._to = self.events
        # The last character of the last non-empty body, "" when there was none; `_open` when a new body has
        # begun and holds nothing yet.
        self.reasoning_last = ""
        self._reasoning_open = False
        self.answer_last = ""
        self._answer_open = False
        self._slice_open = False
        self._summed = 0  # how many of the withheld events `withheld_size` has counted, and their characters
        self._withheld_size = 0

    @property
    def withheld_size(self) -> int:
        """How many characters of the model are withheld; each event is counted once."""
        new = self.withheld[self._summed :]
        self._summed += len(new)
        self._withheld_size += sum([len(event.text) for event in new if not event.synthetic])
        return self._withheld_size

    def put(self, kind: Kind, text: str) -> None:
        if text:
            self._to.append(_new(Event, (kind, text, False, None, False, False)))

    def add(self, kind: Kind, text: str) -> None:
        """Put text that the model did not write."""
        if text:
            self._to.append(_new(Event, (kind, text, True, None, False, False)))

    def marker(self, text: str) -> None:
        if text:
            self._to.append(_new(Event, (MARKER, text, False, None, False, False)))

    def open_reasoning(self) -> None:
        """Begin a reasoning body (a block, or a reasoning channel's body)."""
        self._reasoning_open = True
        if not self.stream_reasoning:
            self._to = self.withheld

    def reasoning(self, text: str) -> None:
        if not text:
            return
        if self._reasoning_open:
            self._reasoning_open = False
            if self.reasoning_last and self.reasoning_last != "\n":
                self.add(REASONING, self.joiner)
        self.reasoning_last = text[-1]
        self._to.append(_new(Event, (REASONING, text, False, None, False, False)))

    def close_reasoning(self) -> None:
        """End the reasoning body: what was held because of `stream_reasoning=False` goes out."""
        if self.withheld:
            self.events.extend(self.withheld)
            self.withheld.clear()
            self._summed = self._withheld_size = 0
        self._to = self.events

    def open_answer(self) -> None:
        """Begin an answer body of a channel grammar."""
        self._answer_open = True

    def answer(self, text: str) -> None:
        if self._answer_open:
            self._answer_open = False
            if self.answer_last and self.answer_last != "\n":
                self.add(CONTENT, self.joiner)
        self.answer_last = text[-1]
        self._to.append(_new(Event, (CONTENT, text, False, None, False, False)))

    def loose(self, text: str) -> None:
        """Put content that stands in no body: it neither needs nor causes a joiner."""
        self.put(CONTENT, text)

    # Tool slices. The sink knows whether one is open, so that the first text of each says that it begins.

    def tool(self, text: str, recipient: str | None = None, *, ends: bool = False, synthetic: bool = False) -> None:
        """Put a tool slice's text; two answers with a call between them are not joined.

        Args:
            text: the characters; may be empty where only the end is told.
            recipient: the tool that a channel's header names.
            ends: the slice ends with this text.
            synthetic: the model did not write the text.
        """
        self.answer_last = ""
        if text or (ends and self._slice_open):
            self._to.append(_new(Event, (TOOL, text, synthetic, recipient, not self._slice_open, ends)))
            self._slice_open = not ends

    def next_slice(self, recipient: str | None = None) -> None:
        """End the slice that is open, if any, because the next one or another message begins."""
        if self._slice_open:
            self.tool("", recipient, ends=True, synthetic=True)

    def cut_slice(self) -> None:
        """Leave the slice that is open, if any: something that is no end of its own follows it."""
        self._slice_open = False

    def passes(self, kind: str) -> bool:
        """Tell whether text of a kind needs nothing before it: no joiner, no holding back of a block, no beginning."""
        if kind == "reasoning":
            return self.stream_reasoning and not self._reasoning_open
        if kind == "content":
            return not self._answer_open
        return kind == "loose" or self._slice_open

    def take(self) -> tuple[Event, ...]:
        """Hand over what has been put since the last time."""
        out = tuple(self.events)
        self.events.clear()
        return out
