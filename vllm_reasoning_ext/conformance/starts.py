"""Judging the start state of one rendered prompt: turn openers, quoted markers, continued messages, switches."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from vllm_reasoning_ext.conformance.modes import Mode
from vllm_reasoning_ext.core.families import Family
from vllm_reasoning_ext.core.state import StartState

_SLACK: Final = 8
"""Characters by which the end of a prompt may be longer than a turn opener and still be a misspelled one."""


class Seen(NamedTuple):
    """One mode as it was rendered.

    Attributes:
        mode: the mode.
        prompt: its rendering.
        start: the start state read from it.
    """

    mode: Mode
    prompt: str
    start: StartState


def start_problems(family: Family, seen: Seen, plain: StartState | None) -> Iterator[str]:
    """Say what is wrong with a start.

    Args:
        family: whose openers count.
        seen: the mode in question.
        plain: the start of the same turn without quoted markers; None where that is not to be compared.
    """
    mode, prompt, start = seen
    near = "" if mode.go_on else near_miss(prompt, family.turn_openers)
    if near:
        yield near
    elif not any(opener in prompt for opener in family.turn_openers):
        yield (
            f"the prompt holds none of the turn openers that {family.name} knows "
            f"({', '.join(map(repr, family.turn_openers))}): is it a template of this family? "
            "Splitter takes turn_openers=[...]"
        )
    if plain is not None and (plain.kind, plain.header) != (start.kind, start.header):
        yield f"a user who quotes markers turns the start from {plain.kind} to {start.kind}"
    if mode.go_on == "content" and not (start.kind == "content" and (start.answer_begun or start.body_begun)):
        yield f"the prompt ends inside the answer, but the start is {start.kind}"
    if mode.go_on and mode.go_on != "content" and start.kind != "reasoning":
        yield f"the prompt ends inside the thought, but the start is {start.kind}"


def near_miss(prompt: str, openers: Sequence[str]) -> str:
    """Name the turn opener that a prompt ends in but for blanks or the case of letters.

    Returns:
        what differs, in words; "" where the prompt ends in no such thing.
    """
    for opener in openers:
        tail = prompt[-len(opener) - _SLACK :]
        ending = next((tail[n:] for n in range(len(tail)) if _bare(tail[n:]) == _bare(opener)), "")
        ending = ending.lstrip() if opener == opener.lstrip() else ending
        if ending and not any(known in ending for known in openers):
            return f"the prompt ends in {ending!r}, {_difference(ending, opener)} the turn opener {opener!r}"
    return ""


def _bare(text: str) -> str:
    return "".join(text.split()).lower()


def _difference(ending: str, opener: str) -> str:
    if opener.startswith(ending):
        rest = opener[len(ending) :]
        what = "newline" if set(rest) == {"\n"} else "blank"
        return f"{'one' if len(rest) == 1 else len(rest)} {what}{'' if len(rest) == 1 else 's'} short of"
    return "which is not"


def switch_note(seen: Seen, others: Sequence[Seen]) -> str:
    """Say that a switch which the template reads does nothing.

    Args:
        seen: a mode with a switch set.
        others: the same conversation with the switch's other values, as far as the template renders them.
    """
    mode, prompt, start = seen
    if mode.go_on or not mode.kwargs:
        return ""
    name = next(iter(mode.kwargs))
    if mode.asked == "off" and start.kind == "reasoning":
        return "thinking was switched off, yet the prompt opens a block: the template ignores the switch"
    if others and all(other.prompt == prompt for other in others):
        return f"the prompt is the same with every {name}: the template reads it, but ignores the switch here"
    return ""


def siblings(mode: Mode, modes: Sequence[Mode]) -> list[Mode]:
    """List the modes that differ from one in the value of its switch alone, and ask for something else by it."""
    return [
        other
        for other in modes
        if mode.kwargs
        and (other.base, other.kwargs.keys()) == (mode.base, mode.kwargs.keys())
        and other.kwargs != mode.kwargs
        and (not mode.asked or other.asked != mode.asked)
    ]
