"""Counting reasoning tokens from ids alone, by the same grammar that splits the text.

Theory of operation. In the middle of a body every id counts alike, so nothing is decoded there: ids only wait in a
short queue. As soon as a control id comes, the waiting ids and that one are decoded one by one and fed to the
family's grammar, and each token takes the kind of its characters. So headers, labels, calls inside a block and
headerless switches are counted as they are split.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import chain

from vllm_reasoning_ext.core.events import REASONING, Event
from vllm_reasoning_ext.core.families import get_family
from vllm_reasoning_ext.core.grammar.choose import make_grammar
from vllm_reasoning_ext.core.grammar.roles import only_real
from vllm_reasoning_ext.core.grammar.sink import Sink
from vllm_reasoning_ext.core.reading.decode import Decode
from vllm_reasoning_ext.core.reading.ids import IdTrack, make_plan
from vllm_reasoning_ext.core.reading.lexer import Lexer
from vllm_reasoning_ext.core.reading.markers import marker_set
from vllm_reasoning_ext.core.record import Family
from vllm_reasoning_ext.core.state import StartState

_WAITING = 160
"""Ids that wait undecoded in a body: a switch or a run of blanks before a boundary is shorter."""


class ReasoningTokenCounter:
    """Counts the reasoning tokens of one output, incrementally.

    Args:
        family: the family or its name.
        marker_ids: control token text -> id, from `core.ids.marker_ids`.
        start: where the output starts.
        decode: ids -> text; without it only the markers themselves are told apart.
        tools: False where a tool marker in a block is reasoning text.
    """

    __slots__ = (
        "_by_id",
        "_decode",
        "_done",
        "_grammar",
        "_lengths",
        "_lexer",
        "_open",
        "_sink",
        "_skips",
        "_waiting",
    )

    def __init__(
        self,
        family: str | Family,
        marker_ids: Mapping[str, int],
        start: StartState,
        decode: Decode | None = None,
        tools: bool = True,
    ) -> None:
        record = get_family(family) if isinstance(family, str) else family
        self._decode: Decode = decode or (lambda ids: "\0" * len(ids))
        self._by_id = {number: text for text, number in marker_ids.items()}
        self._sink = Sink(joiner="")
        self._grammar = make_grammar(record, start, self._sink, tools)
        markers = marker_set(record.markers)
        track = IdTrack(markers, make_plan(record, marker_ids), self._decode) if marker_ids else None
        self._lexer = Lexer(markers, self._grammar, track, only_real=only_real(record))
        # A marker that is no single token hides among ordinary ids: then every id has to be read.
        self._skips = not record.text_pairs and all(marker in marker_ids for marker in record.boundaries)
        self._waiting: deque[int] = deque()
        self._open: deque[list[int]] = deque()  # tokens read: characters not decided yet, 1 if any was reasoning
        self._done = 0
        self._lengths: dict[int, int] = {}

    @property
    def total(self) -> int:
        """The number of reasoning tokens so far; held text counts where it stands, a header or a call not yet."""
        undecided = len(self._waiting) + len(self._open) if self._grammar.plain == "reasoning" else 0
        return self._done + undecided

    def undecided(self, characters: int) -> int:
        """Count the tokens of `total` that make up the last characters, which a splitter keeps back.

        They may be reasoning yet, or a blank before a closer, or the beginning of a header.
        """
        found = 0
        if self._grammar.plain == "reasoning":
            lengths = chain(
                (self._length(number) for number in reversed(self._waiting)),
                (length for length, _ in reversed(self._open)),
            )
            for length in lengths:
                if characters <= 0:
                    break
                characters -= length
                found += 1
        return found

    def _length(self, number: int) -> int:
        found = self._lengths.get(number)
        if found is None:
            found = self._lengths[number] = len(self._decode([number]))
        return found

    def feed(self, ids: Iterable[int]) -> int:
        """Take the next ids; return `total`."""
        for number in ids:
            if self._skips and number not in self._by_id and self._grammar.plain and not self._open:
                self._waiting.append(number)
                if len(self._waiting) > _WAITING:
                    self._waiting.popleft()
                    self._done += self._grammar.plain == "reasoning"
                continue
            while self._waiting:
                self._read(self._waiting.popleft())
            self._read(number)
        return self.total

    def finish(self) -> int:
        """End the output: what was undecided is decided; return `total`. Nothing may be fed any more."""
        while self._waiting:
            self._read(self._waiting.popleft())
        self._lexer.finish()
        self._grammar.finish()
        for event in self._sink.take():
            self._settle(event)
        return self._done

    def _read(self, number: int) -> None:
        """Feed one token to the grammar and settle the tokens whose characters are decided."""
        try:
            text = self._by_id.get(number) or self._decode([number])
        except Exception:  # an id that no vocabulary has: it has no text
            text = ""
        if not text:
            return
        self._open.append([len(text), 0])
        self._lexer.feed(text, (number,))
        for event in self._sink.take():
            self._settle(event)

    def _settle(self, event: Event) -> None:
        left = 0 if event.synthetic else len(event.text)
        while left:
            token = self._open[0]
            taken = min(left, token[0])
            token[0] -= taken
            token[1] |= event.kind is REASONING
            left -= taken
            if not token[0]:
                self._done += token[1]
                self._open.popleft()
