"""Decoding token ids as they come: a character whose bytes are not all there yet waits, nothing else does."""

from collections.abc import Callable, Iterable
from typing import Final

Decode = Callable[[list[int]], str]

REPLACEMENT: Final = "\ufffd"
_INCOMPLETE: Final = 3
"""Replacement characters that an incomplete character decodes to at the most: a decoder may give one a byte."""
_CONTEXT: Final = 8
"""Ids kept before the next ones: a character has four bytes at the most, and an id stands for one at least."""


class TextOfIds:
    """Decodes a run of ids incrementally; joined, the pieces are the text of the whole run.

    Tokens may end within characters, many in a row, so the ids are decoded together with the last ones before them.

    Args:
        decode: ids -> text.
    """

    __slots__ = ("_decode", "_ids", "_shown")

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._ids: list[int] = []  # the context and what was not decoded yet
        self._shown = 0  # characters of their text that have been given

    def push(self, ids: Iterable[int]) -> str:
        """Take the next ids.

        Returns:
            the characters that are whole now.
        """
        self._ids.extend(ids)
        if not self._ids:
            return ""
        text = self._decode(self._ids)
        end = len(text)
        while end > self._shown and len(text) - end < _INCOMPLETE and text[end - 1] == REPLACEMENT:
            end -= 1
        piece = text[self._shown : end]
        self._shown = max(end, self._shown)
        self._forget(text)
        return piece

    @property
    def waits(self) -> bool:
        """True when ids of the run may still have text to give."""
        return bool(self._ids)

    def end(self, ids: Iterable[int] = ()) -> str:
        """Take the last ids of the run and end it: give what waits, as the decoder writes it."""
        self._ids.extend(ids)
        text = self._decode(self._ids) if self._ids else ""
        piece, self._ids, self._shown = text[self._shown :], [], 0
        return piece

    def _forget(self, text: str) -> None:
        """Keep the context only; what waits is found again at the end of its text."""
        if len(self._ids) <= 2 * _CONTEXT:
            return
        ids = self._ids[-_CONTEXT:]
        waiting = text[self._shown :]
        context = self._decode(ids)
        # Ids without text (or a decoder that joins over longer distances) need more of it.
        if len(context) > len(waiting) and context.endswith(waiting):
            self._ids, self._shown = ids, len(context) - len(waiting)
