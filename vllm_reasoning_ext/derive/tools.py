"""How a template writes tool calls: marker, shape, closing tag, and where the turn goes on after a result."""

import re
from typing import Final

from vllm_reasoning_ext.core.record import BLANKS, ID, NAME, Part, Shape, Tool
from vllm_reasoning_ext.derive import scenes as s
from vllm_reasoning_ext.derive.deduce import Deduced, opened
from vllm_reasoning_ext.derive.lexicon import Unit, Units, common_end, common_start, has_marker, joined, stripped
from vllm_reasoning_ext.derive.reading import Calls, stripped_left

_JSON: Final = re.compile(r"[\s\[{\"'`]")


def find_tools(found: Deduced) -> list[Tool]:
    """Find the tools of a record; none where the template writes no calls, or calls without a marker."""
    calls = found.reading.calls
    if calls is None:
        errors = sorted(set(found.reading.scenes.errors.values()))
        found.unseen.append(f"tool calls: the template renders none{f' ({errors[0]})' if errors else ''}")
        return []
    before = stripped(_call_text(found, calls))
    marker_units, wrapped = _marker(found, calls, before)
    if not marker_units:
        found.unseen.append("tool calls: they begin with no marker, so none can be told from text")
        return []
    marker = joined(marker_units)
    rest = joined(before)[len(marker) :]
    closer = _closer(found, calls, marker_units, wrapped)
    shapes = _shapes(found, calls, rest, closer)
    ends_thought = _ends_thought(found)
    found.prove("tool_marker", marker, calls.scene.said, calls.before[-60:] + calls.first + calls.inner[:40])
    if closer:
        found.prove("tool_closers", closer, calls.scene.said, calls.after)
    elif wrapped or calls.count > 1:
        found.prove("tool_closers", "none", calls.scene.said, (calls.middle or "") + calls.after)
    if calls.count == 1:
        found.warnings.append("the template renders one call only; what closes several is not known")
    if found.reading.changed:
        found.warnings.append("calls were rendered only where a template may change lists; transformers refuses that")
    failed = found.reading.refused_tools
    if failed:
        found.warnings.append(
            f"with functions on offer the template fails on past calls, so that was not seen: {failed}"
        )
    if not ends_thought:
        found.prove(
            "ends_thought", "False", found.reading.thought_call.scene.said if found.reading.thought_call else ""
        )
    tools = [Tool(marker, shapes, (closer,) if closer else (), ends_thought)]
    thought = found.reading.thought_call
    text = stripped_text(found, thought.after) if thought else ""
    if found.turn.strip() and text.startswith(found.turn.strip()) and marker in text:
        # A turn that opens anew for the call: after a thought the call's marker has the turn opener before it.
        tools.append(Tool(text.partition(marker)[0] + marker, shapes, tools[0].closers, ends_thought))
    return tools


def stripped_text(found: Deduced, text: str) -> str:
    """Drop the thought's markers from the front."""
    return joined(found.without_thought(found.units(text)))


def _call_text(found: Deduced, calls: Calls) -> Units:
    """Cut the text before a call's name down to what belongs to the call."""
    units = found.within_turn(calls.before) or found.units(opened(found, calls.before))
    while True:
        text = joined(found.without_thought(units))
        around = next((m for pair in found.answers for m in pair if m and text.startswith(m)), None)
        if around is None:
            return found.units(text)
        units = found.units(text[len(around) :])


def _marker(found: Deduced, calls: Calls, before: Units) -> tuple[Units, bool]:
    """Find the tool marker: the first marker of what wraps all calls, else of each call."""
    middle = found.units(calls.middle or "")
    each = common_end(before, middle) if calls.middle is not None else ()
    wrapper = stripped(before[: len(before) - len(each)]) if calls.middle is not None else ()
    if wrapper and wrapper[0].marker:
        return _leading(wrapper), True
    if before and before[0].marker:
        return _leading(before), False
    text = joined(before)
    if text and not _JSON.match(text):
        return (Unit(text, False),), False
    return (), False


def _leading(units: Units) -> Units:
    """Take the first marker; a prefix that ends in an opening bracket takes the marker after it along."""
    count = 2 if len(units) > 1 and units[1].marker and units[0].text[-1:] in "[<" else 1
    return units[:count]


def _closer(found: Deduced, calls: Calls, marker: Units, wrapped: bool) -> str:
    """Find the closing tag: what ends all calls, or where nothing wraps them what ends each."""
    units = _own_rest(found)
    if not wrapped and calls.middle is not None:
        shared = common_start(found.units(calls.middle), units)
        units = shared if has_marker(shared) else units
    last = max((number for number, unit in enumerate(units) if unit.marker), default=-1)
    if last < 0:
        return ""
    first = last - 1 if last > 0 and units[last - 1] in marker else last
    following = next((unit.text for unit in found.call_rest[last + 1 :] if unit.marker), "")
    if following and following not in found.ends:
        found.ends.append(following)
        found.prove("end_of_sequence", following, f"{calls.scene.said}: what follows calls", calls.after)
    return joined(units[first : last + 1])


def _own_rest(found: Deduced) -> Units:
    """Cut what follows the last argument where another turn begins or this one ends."""
    turn = found.turn.strip()
    stops = {unit.text for unit in found.units(turn) if unit.marker} | set(found.ends)
    at = next((n for n, unit in enumerate(found.call_rest) if n and unit.text in stops), len(found.call_rest))
    return stripped(found.call_rest[:at])


def _ends_thought(found: Deduced) -> bool:
    """A call within the block: the closer stands between thought and answer, but not between thought and call."""
    answer, call = found.reading.thought, found.reading.thought_call
    if answer is None or call is None or not found.closer:
        return True
    return found.closer not in answer.after or found.closer in call.after


def _shapes(found: Deduced, calls: Calls, rest: str, closer: str) -> tuple[Shape, ...]:
    """Describe how a call begins right after its marker."""
    name = Part(NAME) if calls.first == s.FUNCTION else Part(ID)
    if "{" in rest or '"' in rest[:3]:
        return (_json_shape(rest),)
    if rest.strip() == "[":
        return ((*_json_shape(rest), Part(BLANKS), name, calls.inner[:1]),)
    before = _tag_shape(rest)
    if calls.first == s.FUNCTION and rest.rstrip().endswith(("=", '="', "='")):
        return (before,)
    units = stripped_left(found.units(calls.inner))
    following = units[0] if units else None
    if following is None:
        return ((*before, name),)
    head = (*before, name, Part(BLANKS))
    if following.marker:
        shapes: list[Shape] = [(*head, following.text)]
        if not stripped(found.units(rest)) and closer:
            shapes.append((*head, closer))
        return tuple(shapes)
    return ((*head, following.text),)


def _json_shape(rest: str) -> Shape:
    """Describe brackets and the first quote, with blanks allowed between them."""
    shape: list[str | Part] = []
    for char in rest:
        if char.isspace():
            continue
        shape += [Part(BLANKS), char]
        if char in "\"'":
            break
    return tuple(shape)


def _tag_shape(rest: str) -> Shape:
    """Describe tags: blanks as blanks, the rest literally."""
    shape: list[str | Part] = [Part(BLANKS)]
    for piece in re.split(r"(\s*\n\s*)", rest):
        if piece.strip():
            shape.append(piece.strip("\n"))
        elif piece and shape[-1] != Part(BLANKS):
            shape.append(Part(BLANKS))
    return tuple(shape)


def find_tool_turns(found: Deduced, closer: str) -> None:
    """Find with what the assistant's turn goes on after a tool's result, where that is no turn opener.

    Args:
        found: what is known; gets the result.
        closer: the closing tag of calls, or "".
    """
    calls = found.reading.calls
    if calls is None:
        return
    messages = [s.user(), calls.message, *s.results_of(calls.count)]
    for scene in found.reading.scenes.either(messages, "calls and their results", generate=True):
        tail = scene.after(s.RESULTS[calls.count - 1])
        if tail is None:
            continue
        if not found.turn.strip() or found.turn.strip() not in tail:
            text = tail.rstrip()
            for marker in (m for m in (found.closer, found.opener + found.label.rstrip(), found.opener) if m):
                text = text.removesuffix(marker).rstrip()
            marker = next((unit.text for unit in reversed(found.units(text)) if unit.marker), "")
            if marker and marker not in found.ends:
                found.tool_turns.append(marker)
                found.prove("turn_openers", marker, scene.said, tail)
        _further_end(found, scene, calls, closer)
        return


def _further_end(found: Deduced, scene: s.Scene, calls: Calls, closer: str) -> None:
    """Where no marker of its own ends a turn, the next turn's opener does, after calls too."""
    if found.reading.last is None or has_marker(found.units(found.reading.last.after(s.ANSWER) or "")):
        return
    after = scene.between(s.ARGUMENTS[calls.count - 1], s.RESULTS[0]) or ""
    if not closer or closer not in after:
        return
    following = next(iter(found.reading.lexicon.markers(after.rpartition(closer)[2])), "")
    if following and following not in found.ends:
        found.ends.append(following)
        found.prove("end_of_sequence", following, f"{scene.said}: what follows calls", after)
