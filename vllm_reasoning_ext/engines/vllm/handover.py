"""Which token ids belong to a text that is handed to a tool parser.

An engine's tool parser takes a control token for one only if its id comes along with its text. The splitter
holds text back and swallows markers, so the ids of a delta are not the ids of what it released.
"""

from collections import deque
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Final

from vllm_reasoning_ext.core.events import CONTENT, MARKER, TOOL, Delta
from vllm_reasoning_ext.core.limits import TEXT_LAG_MAX
from vllm_reasoning_ext.engines.vocabulary import Vocabulary

WINDOW: Final = 1024
"""Deltas remembered: more than the characters that can be held and lag behind, one a delta at the least."""


class IdWindow:
    """Remembers the last deltas until content begins; from then on only the ids not handed on yet."""

    __slots__ = ("_deltas", "_held", "_pending", "_taken", "_vocabulary")

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._deltas: deque[tuple[str, tuple[int, ...]]] = deque(maxlen=WINDOW)
        self._held = 0
        self._taken = False
        self._pending: list[int] = []

    def track(self, text: str, ids: Sequence[int], delta: Delta) -> None:
        """Note what was fed and what the splitter released for it."""
        if self._taken:
            self._pending += ids
            if delta.content != text:
                self._drop_markers(delta)
            return
        self._deltas.append((text, tuple(ids)))
        if self._held or delta.reasoning != text:
            self._held += len(text) - sum(len(e.text) for e in delta.events if not e.synthetic)

    def take(self, delta: Delta) -> list[int]:
        """Give the ids of the content in `delta`, which was just tracked, and of text still to come."""
        if self._taken:
            ids, self._pending = self._pending, []
            return ids
        self._taken = True
        events = iter(delta.events)
        length = self._held
        for event in events:
            if event.kind is CONTENT or event.kind is TOOL:
                rest = chain((event,), events)
                length += sum(len(e.text) for e in rest if not e.synthetic)
        ids = self._last(length)
        self._deltas.clear()
        return ids

    def _drop_markers(self, delta: Delta) -> None:
        for event in delta.events:
            number = self._vocabulary.ids.get(event.text) if event.kind is MARKER else None
            if number in self._pending:
                self._pending.remove(number)

    def _last(self, length: int) -> list[int]:
        """Give the ids of the last `length` fed characters: whole runs between added tokens."""
        text = "".join(text for text, _ in self._deltas)
        runs = self._runs([number for _, ids in self._deltas for number in ids])
        decoded = [self._vocabulary.decode(run) for run in runs]
        joined = "".join(decoded)
        lag = next((n for n in range(TEXT_LAG_MAX) if _agree(text[n:], joined)), None)
        if lag is None:
            return list(chain.from_iterable(runs))
        start = len(text) - length - lag
        ends = accumulate(map(len, decoded))
        return [number for run, end in zip(runs, ends, strict=True) if end > start for number in run]

    def _runs(self, ids: list[int]) -> list[list[int]]:
        """Cut ids at added tokens; each of those is a run of its own."""
        runs: list[list[int]] = []
        plain = False
        for number in ids:
            added = number in self._vocabulary.added
            if added or not plain:
                runs.append([number])
            else:
                runs[-1].append(number)
            plain = not added
        return runs


def _agree(text: str, decoded: str) -> bool:
    """Tell whether the text, which may lag, is the beginning of what the ids decode to."""
    # A character whose bytes are not complete yet is a replacement character in the decoded ids only.
    return decoded.startswith(text) or text.startswith(decoded.rstrip("\ufffd"))
