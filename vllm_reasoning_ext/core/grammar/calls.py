"""Could this text be the beginning of a tool call? Matching call shapes on text that is still arriving."""

import re
from enum import Enum
from typing import Final, NamedTuple

from vllm_reasoning_ext.core.record import BLANKS, ID, NAME, ONE_SPACE, QUOTED_NAME, TEXT, WORD, Shape, Tool

NAME_MAX: Final = 64
ID_MAX: Final = 128
TEXT_MAX: Final = 128
_PATTERNS: Final = {
    NAME: (re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*"), NAME_MAX),
    WORD: (re.compile(r"[a-z_]+"), 32),
    ID: (re.compile(r"[A-Za-z0-9_.:-]+"), ID_MAX),
}
_QUOTED: Final = re.compile(r'"(?:[A-Za-z_][A-Za-z0-9_.-]*)?\Z')
_QUOTED_WHOLE: Final = re.compile(r'"[A-Za-z_][A-Za-z0-9_.-]*"')


class Verdict(Enum):
    NO = "cannot be a call any more"
    MAYBE = "too early to say"
    YES = "is a call"


class Match(NamedTuple):
    """What the text after a tool marker is.

    Attributes:
        verdict: whether it is a call.
        closers: the closing tags that end this call, once it is one; none where the family's calls have none.
    """

    verdict: Verdict
    closers: tuple[str, ...] = ()


_NO, _MAYBE = Match(Verdict.NO), Match(Verdict.MAYBE)


def match_call(tool: Tool, text: str) -> Match:
    """Match the text after a tool marker with the tool's call shapes (SPEC 5.1, "viable").

    Args:
        tool: whose shapes and closing tags apply.
        text: what has arrived after the marker; may end anywhere.

    Returns:
        YES with the closing tags that end this call, as soon as one shape is there whole; MAYBE while one can
        still come; else NO.
    """
    maybe = False
    for shape in tool.shapes:
        verdict, name = _match_shape(shape, text)
        if verdict is Verdict.YES:
            return Match(verdict, tuple(closer.replace("{name}", name) for closer in tool.closers))
        maybe = maybe or verdict is Verdict.MAYBE
    return _MAYBE if maybe else _NO


def _match_shape(shape: Shape, text: str) -> tuple[Verdict, str]:
    """Match one shape; with the name that its closing tag may repeat."""
    at, name = 0, ""
    for number, piece in enumerate(shape):
        if isinstance(piece, str):
            name = name or piece.strip(" <>")
            if not text.startswith(piece, at):
                return (Verdict.MAYBE if piece.startswith(text[at:]) else Verdict.NO), name
            at += len(piece)
            continue
        begun = at
        verdict, at = _match_part(piece.what, text, at, shape[number + 1 : number + 2])
        if verdict is not Verdict.YES:
            return verdict, name
        if piece.what == WORD:
            name = text[begun:at]
    return Verdict.YES, name


def _match_part(what: str, text: str, at: int, following: Shape) -> tuple[Verdict, int]:
    """Match one part at `at`; return where it ends."""
    if what == ONE_SPACE:
        return Verdict.YES, at + text.startswith(" ", at)
    if what == BLANKS:
        return Verdict.YES, len(text) - len(text[at:].lstrip())
    if what == TEXT:
        end = text.find(str(following[0]), at, at + TEXT_MAX + len(str(following[0])))
        if end >= 0:
            return Verdict.YES, end
        return (Verdict.MAYBE if len(text) - at < TEXT_MAX + len(str(following[0])) else Verdict.NO), at
    if what == QUOTED_NAME:
        whole = _QUOTED_WHOLE.match(text, at)
        if whole is not None:
            return (Verdict.YES if whole.end() - at <= NAME_MAX + 2 else Verdict.NO), whole.end()
        begun = _QUOTED.match(text, at) if at < len(text) else None
        open_yet = at == len(text) or (begun is not None and len(text) - at <= NAME_MAX + 1)
        return (Verdict.MAYBE if open_yet else Verdict.NO), at
    pattern, longest = _PATTERNS[what]
    found = pattern.match(text, at)
    if found is None:
        return (Verdict.MAYBE if at == len(text) else Verdict.NO), at
    return (Verdict.YES if found.end() - at <= longest else Verdict.NO), found.end()
