"""Could this text be the beginning of a tool call? Matching call shapes on text that is still arriving."""

import re
from enum import Enum
from typing import NamedTuple

from vllm_reasoning_ext.core.families import BLANKS, ONE_SPACE, Family, Shape

NAME_MAX = 64
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NAMES = re.compile(r"[A-Za-z0-9_.:-]+")


class Verdict(Enum):
    NO = "cannot be a call any more"
    MAYBE = "too early to say"
    YES = "is a call"


class Match(NamedTuple):
    verdict: Verdict
    closers: tuple[str, ...]  # the closing tags that end this call, once it is one


_NO, _MAYBE = Match(Verdict.NO, ()), Match(Verdict.MAYBE, ())


def match_call(family: Family, text: str) -> Match:
    """Match the text after a tool marker with the family's call shapes (SPEC 5.1, "viable").

    Args:
        family: whose shapes and closing tags apply.
        text: what has arrived after the marker; may end anywhere.

    Returns:
        YES with the closing tags that end this call, as soon as one shape is there whole; MAYBE while one can
        still come; else NO.
    """
    maybe = False
    for shape in family.call_shapes:
        verdict, first = _match_shape(shape, text)
        if verdict is Verdict.YES:
            return Match(verdict, _closers(family, first))
        maybe = maybe or verdict is Verdict.MAYBE
    return _MAYBE if maybe else _NO


def _closers(family: Family, literal: str) -> tuple[str, ...]:
    """Choose the closing tags that name what the call began with; all of them where none does."""
    word = literal.strip(" <>")
    named = tuple(closer for closer in family.tool_closers if _NAMES.findall(closer)[-1:] == [word])
    return named or family.tool_closers


def _match_shape(shape: Shape, text: str) -> tuple[Verdict, str]:
    at, end = 0, len(text)
    literal = ""
    for piece in shape:
        if isinstance(piece, str):
            literal = literal or piece
            if text.startswith(piece, at):
                at += len(piece)
            elif piece.startswith(text[at:]):
                return Verdict.MAYBE, literal
            else:
                return Verdict.NO, literal
        elif piece.what == ONE_SPACE:
            at += text.startswith(" ", at)
        elif piece.what == BLANKS:
            at = end - len(text[at:].lstrip())
        else:
            found = _NAME.match(text, at)
            if found is None:
                return (Verdict.MAYBE if at == end else Verdict.NO), literal
            if found.end() - at > NAME_MAX:
                return Verdict.NO, literal
            at = found.end()
    return Verdict.YES, literal
