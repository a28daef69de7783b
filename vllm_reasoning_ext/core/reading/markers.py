"""Finding markers in text that arrives in pieces: the next whole marker, or the tail that may become one."""

import re
from collections.abc import Iterable
from functools import lru_cache


class MarkerSet:
    """A fixed set of marker spellings, prepared for incremental search.

    The longest spelling wins where one is a prefix of another. The search never looks at a character twice
    but for the last `longest - 1` of the text, which is what keeps a stream linear.
    """

    __slots__ = ("_prefixes", "_search", "alone", "firsts", "longest", "spellings")

    def __init__(self, spellings: Iterable[str]) -> None:
        ordered = sorted(set(spellings), key=lambda s: (-len(s), s))
        if "" in ordered:
            raise ValueError("no spelling of a marker set may be empty")
        self.spellings: tuple[str, ...] = tuple(ordered)
        self.longest = len(ordered[0]) if ordered else 0
        self.firsts = tuple(sorted({s[0] for s in ordered}))
        self._prefixes = frozenset(s[:n] for s in ordered for n in range(1, len(s)))
        # A text that is one of these is that marker, and cannot become another.
        self.alone = frozenset(s for s in ordered if s not in self._prefixes)
        self._search = re.compile("|".join(map(re.escape, ordered)) or r"(?!)").search

    def absent(self, text: str) -> bool:
        """Tell whether `text` holds no character that a marker begins with (C speed: nothing to look for)."""
        for first in self.firsts:  # noqa: SIM110 - a plain loop costs a quarter of all() with a generator
            if first in text:
                return False
        return True

    def find(self, text: str, start: int = 0) -> tuple[int, int]:
        """Find the first whole marker at or after `start`.

        Returns:
            its span in characters, or (-1, -1).
        """
        found = self._search(text, start)
        return found.span() if found else (-1, -1)

    def partial(self, text: str, start: int = 0) -> int:
        """Find where the tail begins that may still grow into a marker.

        Returns:
            the index in characters; `len(text)` when nothing has to be held. Only the last `longest - 1`
            characters at or after `start` are looked at.
        """
        end = len(text)
        for index in range(max(start, end - self.longest + 1), end):
            if text[index] in self.firsts and text[index:] in self._prefixes:
                return index
        return end


@lru_cache(maxsize=64)
def marker_set(spellings: tuple[str, ...]) -> MarkerSet:
    """Give the prepared set of these spellings; it is made once, not per output."""
    return MarkerSet(spellings)
