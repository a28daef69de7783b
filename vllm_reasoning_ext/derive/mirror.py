"""The marker that mirrors another one: `</think>` of `<think>`, `<|END_X|>` of `<|START_X|>`."""

import re
from collections.abc import Iterator
from typing import Final

_SLASHED: Final = re.compile(r"([<\[◁⟦«‹【〔⟨⟪「『][|｜]?)/(.*)", re.DOTALL)
_PLAIN: Final = re.compile(r"([<\[◁⟦«‹【〔⟨⟪「『][|｜]?)([^/].*)", re.DOTALL)
_WORDS: Final = (
    ("start", "end"),
    ("begin", "end"),
    ("open", "close"),
    ("prefix", "suffix"),
)


def openers_of(closer: str) -> Iterator[str]:
    """List what could open what `closer` closes, the likeliest first."""
    slashed = _SLASHED.fullmatch(closer)
    if slashed:
        yield slashed[1] + slashed[2]
    if re.fullmatch(r"<[^|｜].*[|｜]>", closer):
        yield "<|" + closer[1:-2] + ">"
    for first, last in _WORDS:
        yield from _with_word(closer, last, first)


def slashed(closer: str) -> bool:
    """Tell a closer whose slash says what opens it."""
    return _SLASHED.fullmatch(closer) is not None


def closers_of(opener: str) -> Iterator[str]:
    """List what could close what `opener` opens, the likeliest first."""
    plain = _PLAIN.fullmatch(opener)
    for first, last in _WORDS:
        yield from _with_word(opener, first, last)
    if re.fullmatch(r"<[|｜].*[^|｜]>", opener):
        yield "<" + opener[2:-1] + "|>"
    if plain:
        yield plain[1] + "/" + plain[2]


def mirrored(first: str, second: str) -> bool:
    """Tell whether `second` mirrors the opener `first`."""
    return first in openers_of(second) or second in closers_of(first)


def _with_word(marker: str, word: str, other: str) -> Iterator[str]:
    """Replace a whole word of a marker, in its own case."""
    for found in re.finditer(r"[A-Za-z]+", marker):
        if found[0].lower() == word:
            spelled = other.upper() if found[0].isupper() else other.title() if found[0].istitle() else other
            yield marker[: found.start()] + spelled + marker[found.end() :]
