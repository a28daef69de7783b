"""Cutting template text into markers, words and blanks."""

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

_SHAPES: Final = re.compile(
    r"<[|｜][^<>\n]{1,80}[|｜]>"  # <|im_start|>
    r"|</?[|｜][^<>\n\"'={}\[\](),;]{1,80}>"  # <|channel>, <｜DSML｜ calls>
    r"|</?[^\s<>\"'={}\[\](),;]{1,80}>"  # <think>, </seed:think>, <|channel>
    r"|\[/?[A-Z][A-Z0-9_]*(?: [A-Z0-9_]+)*\]"  # [THINK], [/INST], [BEGIN FINAL RESPONSE]
    r"|[\[\]][^\s\w\[\]{}<>\"',:()][^\s\[\]{}<>\"',:()]{0,30}[\[\]]"  # ]~b]
    r"|[\[\]][^\s\[\]{}<>\"',:()]{0,30}[^\s\w\[\]{}<>\"',:()][\[\]]"  # [e~[
    r"|(?P<fence>([@#$%^&~§|!])\2+)[\w:/.-]{1,80}(?P=fence)"  # @@think@@
    r"|[◁⟦«‹【〔⟨⟪「『][^\s◁⟦«‹【〔⟨⟪「『]{1,80}[▷⟧»›】〕⟩⟫」』]"  # ◁think▷
)
"""Forms that markers take; a tokenizer's added tokens and a template's own constants come beside them."""

_OPENING: Final = "<[◁⟦«‹【〔⟨⟪「『]"
_CLOSING: Final = ">]▷⟧»›】〕⟩⟫」』["
_SYMBOLS: Final = "@#$%^&*~|§¤!?+_"
_NO_MARKER: Final = re.compile(r"[\s\"'{}=,;()\\]")
_BARE_WORD: Final = re.compile(r"[A-Za-z_]{1,24}")
_OTHER: Final = re.compile(r"\s+|\w+|[^\w\s]")


class Unit(NamedTuple):
    """A piece of text: a marker, a run of blanks, or a word (or one punctuation character)."""

    text: str
    marker: bool

    @property
    def blank(self) -> bool:
        return self.text.isspace()


Units = tuple[Unit, ...]


class Lexicon:
    """Cuts text into units.

    Args:
        tokens: markers known as such: a tokenizer's added tokens.
        constants: a template's literal texts; those with the form of a marker count as one.
    """

    def __init__(self, tokens: Iterable[str], constants: Iterable[str]) -> None:
        known = {token for token in tokens if token.strip() and len(token) > 1}
        known |= {word for text in constants for word in text.split() if _is_marker(word)}
        longest = sorted(known, key=len, reverse=True)
        self.known = tuple(longest)
        self._known = re.compile("|".join(map(re.escape, longest)) if longest else r"(?!)")

    def units(self, text: str) -> Units:
        """Cut `text` up; a bare word between two markers belongs to them (`<|open|>think<|sep|>`)."""
        found: list[Unit] = []
        at = 0
        while at < len(text):
            ends = [m.end() for m in (self._known.match(text, at), _SHAPES.match(text, at)) if m is not None]
            end = max(ends, default=0)
            if not end:
                other = _OTHER.match(text, at)
                end = other.end() if other else at + 1
            found.append(Unit(text[at:end], bool(ends)))
            at = end
        return _fused(found)

    def markers(self, text: str) -> list[str]:
        """List the markers in `text`."""
        return [unit.text for unit in self.units(text) if unit.marker]


def _is_marker(word: str) -> bool:
    if len(word) > 4 and word[0] in _SYMBOLS and word[-1] in _SYMBOLS:
        return any(c.isalnum() for c in word) and not _NO_MARKER.search(word) and len(list(_SHAPES.finditer(word))) <= 1
    if not 2 < len(word) <= 80 or word[0] not in _OPENING or word[-1] not in _CLOSING or _NO_MARKER.search(word):
        return False
    tags = list(_SHAPES.finditer(word))
    if not tags:
        return any(c.isalnum() for c in word)
    # A tag with a bracket of JSON on one side is no marker, one with brackets on both sides is (`]<]name[>[`).
    return len(tags) == 1 and (tags[0].start() == 0) == (tags[0].end() == len(word))


def _fused(units: Sequence[Unit]) -> Units:
    found: list[Unit] = []
    at = 0
    while at < len(units):
        three = units[at : at + 3]
        if (
            len(three) == 3
            and three[0].marker
            and three[2].marker
            and not three[1].marker
            and _BARE_WORD.fullmatch(three[1].text)
        ):
            found.append(Unit("".join(unit.text for unit in three), True))
            at += 3
        else:
            found.append(units[at])
            at += 1
    return tuple(found)


def joined(units: Iterable[Unit]) -> str:
    """Put units together again."""
    return "".join(unit.text for unit in units)


def stripped(units: Sequence[Unit]) -> Units:
    """Drop blanks at both ends."""
    start, end = 0, len(units)
    while start < end and units[start].blank:
        start += 1
    while end > start and units[end - 1].blank:
        end -= 1
    return tuple(units[start:end])


def has_marker(units: Iterable[Unit]) -> bool:
    """Tell whether a marker is among the units."""
    return any(unit.marker for unit in units)


def solid(units: Iterable[Unit]) -> Units:
    """Drop every blank."""
    return tuple(unit for unit in units if not unit.blank)


def common_start(first: Sequence[Unit], *others: Sequence[Unit]) -> Units:
    """Find the units with which all begin."""
    length = sum(1 for _ in takewhile(lambda same: len(set(same)) == 1, zip(first, *others, strict=False)))
    return tuple(first[:length])


def common_end(first: Sequence[Unit], *others: Sequence[Unit]) -> Units:
    """Find the units with which all end."""
    backward = common_start(tuple(reversed(first)), *(tuple(reversed(other)) for other in others))
    return tuple(reversed(backward))
