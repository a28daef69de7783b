"""Tag pairs of inline reasoning, and the search for tags in order of preference."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from vllm_reasoning_ext.core.reading.markers import MarkerSet

TagPair = tuple[str, str]

DEFAULT_TAGS: Final[tuple[TagPair, ...]] = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("<reason>", "</reason>"),
    ("<thought>", "</thought>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("◁think▷", "◁/think▷"),
    ("[THINK]", "[/THINK]"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
)
"""The pairs models are known to write; a name that could be real markup in an answer is not here."""


def parse_tags(value: str | Iterable[Sequence[str]] | None, *, strict: bool = False) -> tuple[TagPair, ...]:
    """Read tag pairs from the `open...close,open...close` form, or check a sequence of pairs.

    Args:
        value: the string form (blanks around an entry are cut; a tag holds neither a comma nor `...`), or
            pairs of opener and closer, or None.
        strict: refuse a malformed entry of the string form instead of passing over it.

    Returns:
        the pairs, in order; `DEFAULT_TAGS` when there is none.

    Raises:
        ValueError: a pair in a sequence, or with `strict` in the string, is no two non-empty strings.
    """
    if value is None:
        return DEFAULT_TAGS
    if not isinstance(value, str):
        return tuple(_checked(pair) for pair in value) or DEFAULT_TAGS
    pairs: list[TagPair] = []
    for entry in filter(None, (part.strip() for part in value.split(","))):
        opener, _, closer = (side.strip() for side in entry.partition("..."))
        if opener and closer:
            pairs.append((opener, closer))
        elif strict:
            raise ValueError(f"{entry!r} is no tag pair: write opener...closer, e.g. <think>...</think>")
    if strict and not pairs and value:
        raise ValueError(f"{value!r} holds no tag pair: write opener...closer, e.g. <think>...</think>")
    return tuple(pairs) or DEFAULT_TAGS


def _checked(pair: Sequence[str]) -> TagPair:
    if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(side, str) and side for side in pair):
        raise ValueError(f"{pair!r} is no tag pair: give (opener, closer), both non-empty strings")
    return pair[0], pair[1]


class Needles:
    """Spellings in order of preference: the leftmost place wins, at one place the first listed."""

    __slots__ = ("_absent", "_partial", "_search", "spellings")

    def __init__(self, spellings: Sequence[str]) -> None:
        self.spellings = tuple(spellings)
        markers = MarkerSet(spellings)
        self._absent, self._partial = markers.absent, markers.partial
        # No groups: only then does the engine skip to the first characters at C speed.
        self._search = re.compile("|".join(map(re.escape, self.spellings))).search

    def find(self, text: str, start: int, *, final: bool) -> tuple[int, int]:
        """Find the next spelling.

        Returns:
            its place and its number; or, with number -1, the place from which the text has to be held.
        """
        if start == 0 and self._absent(text):
            return len(text), -1  # at C speed; later starts would look at the same text again
        hold = len(text) if final else self._partial(text, start)
        found = self._search(text, start)
        if found is None or hold < found.start():
            return hold, -1
        place, number = found.start(), self.spellings.index(found[0])
        if hold == place:
            rest = text[place:]
            if any(s.startswith(rest) and s != rest for s in self.spellings[:number]):
                return hold, -1
        return place, number


@lru_cache(maxsize=256)
def needles(spellings: tuple[str, ...]) -> Needles:
    """Give the prepared search for these spellings; it is made once, not per output."""
    return Needles(spellings)
