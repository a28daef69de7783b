"""From renderings to a record: pairs, answer, tools, turns and ends, each with what proves it."""

from dataclasses import dataclass, field
from typing import Final

from vllm_reasoning_ext.derive import scenes as s
from vllm_reasoning_ext.derive.lexicon import Units, common_end, common_start, has_marker, joined, stripped
from vllm_reasoning_ext.derive.mirror import closers_of, mirrored, openers_of, slashed
from vllm_reasoning_ext.derive.reading import Prompt, Reading, Thought, same_start, stripped_left
from vllm_reasoning_ext.derive.scenes import EOS, Scene

SHOWN: Final = 160
"""Characters of a rendering that a proof shows."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Why a field has its value.

    Attributes:
        field: the record's field.
        value: its value, as text.
        why: the conversation that was rendered, or the rule that was applied.
        shown: the piece of the rendering; "" where there is none.
    """

    field: str
    value: str
    why: str
    shown: str = ""


@dataclass(slots=True)
class Deduced:
    """What was found so far.

    Attributes:
        opener, closer, label: the pair; "" until found.
        turn: the turn opener.
        tool_turns: what the turn opens with after a tool's result.
        answers: alternatives of answer opener and closer.
        ends: end-of-sequence texts.
        starts: mode -> start state.
        proofs, warnings, unseen: what proves a field, what is doubtful, what no rendering showed.
    """

    reading: Reading
    opener: str = ""
    closer: str = ""
    label: str = ""
    turn: str = ""
    tool_turns: list[str] = field(default_factory=list)
    answers: list[tuple[str, str]] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    end: Units = ()
    answer_rest: Units = ()
    call_rest: Units = ()
    starts: dict[str, str] = field(default_factory=dict)
    proofs: list[Proof] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)

    def prove(self, name: str, value: str, why: str, shown: str = "") -> None:
        """Note why a field has its value."""
        self.proofs.append(Proof(name, value, why, shown if len(shown) <= SHOWN else shown[: SHOWN - 1] + "…"))

    def units(self, text: str) -> Units:
        return self.reading.units(text)

    def within_turn(self, text: str) -> Units | None:
        """Cut the end of the user's turn and the turn opener off the front; None where the opener is not there."""
        for candidate in (text.lstrip(), opened(self, text)):
            for turn in (self.turn.lstrip(), self.turn.strip()):
                if candidate.startswith(turn):
                    return self.units(candidate[len(turn) :])
        return None

    def within_prompt(self, prompt: Prompt) -> Units | None:
        """Cut a prompt down to what stands after the turn opener; None where that is not there."""
        units = self.within_turn(prompt.tail)
        return self.within_turn(prompt.tail[len(prompt.closed) :]) if units is None else units

    def without_thought(self, units: Units) -> Units:
        """Drop blanks, openers, closers and a label from the front."""
        text = joined(units).lstrip()
        known = [m for m in (self.opener + self.label, self.opener, self.closer) if m]
        while True:
            found = next((m for m in known if text.startswith(m)), None)
            if found is None:
                return self.units(text)
            text = text[len(found) :].lstrip()


def opened(found: Deduced, text: str) -> str:
    """Drop what ends the user's turn from the front of `text`."""
    text = text.lstrip()
    default = found.reading.prompts[0] if found.reading.prompts else None
    closed = default.closed.strip() if default else ""
    if closed and text.startswith(closed):
        return text[len(closed) :].lstrip()
    end = joined(found.end).strip()
    return text[len(end) :].lstrip() if end and text.startswith(end) else text


def find_ends(found: Deduced) -> None:
    """Find what ends the assistant's turn, and what stands before it after an answer and after calls."""
    reading = found.reading
    last = found.units(reading.last.after(s.ANSWER) or "") if reading.last else None
    middle = found.units(reading.plain.between(s.ANSWER, s.NEXT_USER) or "") if reading.plain else None
    bodies = [body for body in (last, middle) if body is not None]
    body = stripped(_before_turn(found, common_start(bodies[0], *bodies[1:]) if bodies else ()))
    calls = stripped(_before_turn(found, found.units(reading.calls.after))) if reading.calls else ()
    if not has_marker(body):
        marker = next((unit for unit in middle or () if unit.marker), None)
        body = (marker,) if marker else ()
        found.end, found.call_rest = body, calls
        _cut_call_end(found, body)
        _note_ends(found, [body], reading.plain, "what follows an answer")
        return
    shared = stripped(common_end(body, calls)) if calls else ()
    found.end = shared if has_marker(shared) else body
    found.answer_rest = stripped(body[: len(body) - len(shared)]) if has_marker(shared) else body
    found.call_rest = stripped(calls[: len(calls) - len(shared)]) if has_marker(shared) else calls
    _note_ends(found, [found.end], reading.last or reading.plain, "what follows an answer")


def _cut_call_end(found: Deduced, end: Units) -> None:
    calls = found.call_rest
    if end and calls[-len(end) :] == end:
        found.call_rest = stripped(calls[: -len(end)])


def _before_turn(found: Deduced, units: Units) -> Units:
    """Cut off what opens a further turn: the marker with which every rendering begins."""
    scene = found.reading.last or found.reading.plain
    if scene is None:
        return units
    start = next(iter(stripped(found.units(scene.text.removeprefix(found.reading.scenes.tokens["bos_token"])))), None)
    if start is None or not start.marker:
        return units
    at = next((number for number, unit in enumerate(units) if number and unit == start), len(units))
    return units[:at]


def _note_ends(found: Deduced, ends: list[Units], scene: Scene | None, why: str) -> None:
    for units in ends:
        for text in _runs(units):
            if EOS in text:
                found.warnings.append(
                    "the turn ends in the tokenizer's eos_token, whose text is not known without the tokenizer"
                )
            elif text not in found.ends:
                found.ends.append(text)
                found.prove("end_of_sequence", text, f"{scene.said if scene else 'rendering'}: {why}", joined(units))


def _runs(units: Units) -> list[str]:
    """List the runs of markers in `units`; of a run of several, its last marker too."""
    found: list[str] = []
    run: list[str] = []
    for unit in (*units, None):
        if unit is not None and unit.marker and unit.text != EOS:
            run.append(unit.text)
            continue
        if run:
            found += ["".join(run), *run[-1:]]
        run = []
        if unit is not None and unit.text == EOS:
            found.append(EOS)
    return list(dict.fromkeys(found))


def find_turn(found: Deduced) -> None:
    """Find the turn opener, possibly with an opener at its end, which `find_pair` takes off."""
    reading = found.reading
    texts = [prompt.tail[len(prompt.closed) :] for prompt in reading.prompts]
    plain = reading.plain.between(s.USER, s.ANSWER) if reading.plain else None
    further = [plain, *(thought.before for thought in (reading.thought, reading.thought_call) if thought)]
    texts += [opened(found, text) for text in further if text is not None]
    units = same_start(reading, [opened(found, text) for text in texts])
    if not has_marker(units) and reading.default:
        # Words alone open no turn: anybody may write them. What stands before them belongs to it.
        closed = stripped(found.units(reading.default.closed))
        units = (closed[-1:] if has_marker(closed[-1:]) else ()) + units
        if not has_marker(units):
            blank = reading.default.tail[: len(reading.default.tail) - len(reading.default.tail.lstrip())]
            units = found.units(blank) + units
    found.turn = joined(units)


def find_pair(found: Deduced) -> None:
    """Find the opener and the closer: from a rendered thought, else from prompts and from the template's tests."""
    reading = found.reading
    ends = [(prompt, found.within_prompt(prompt)) for prompt in reading.prompts]
    extras = [(prompt, stripped(units)) for prompt, units in ends if units is not None]
    thought = reading.thought or reading.thought_call
    rest = found.within_turn(thought.before) if thought else None
    if thought is not None:
        found.closer = _closer(found, thought, rest or ())
        found.prove("closer", found.closer, thought.scene.said, _excerpt(thought.scene, s.THOUGHT))
        _opener_by_history(found, thought, rest or (), extras)
        if not found.opener:
            _mirror_opener(found)
        return
    tested = _tested_closers(found)
    if tested:
        _pair_by_test(found, tested, extras)
    else:
        _pair_by_prompts(found, extras)


def _excerpt(scene: Scene, word: str) -> str:
    at = scene.text.find(word)
    return scene.text[max(0, at - 60) : at + len(word) + 60]


def _closer(found: Deduced, thought: Thought, rest: Units) -> str:
    """Take the first marker after the thought, or where there is none the whole phrase."""
    units = stripped(found.units(thought.after))
    at = next((number for number, unit in enumerate(units) if unit.marker), None)
    if at is None:
        return joined(units)
    first = units[at].text
    # A prefix that the template's markers share is no marker on its own: the opener begins with it too.
    opening = stripped(rest)
    if len(opening) > 1 and opening[0].text == first and units[at + 1 : at + 2] and units[at + 1].marker:
        first += units[at + 1].text
    return first


def _opener_by_history(found: Deduced, thought: Thought, rest: Units, extras: list[tuple[Prompt, Units]]) -> None:
    shown = _excerpt(thought.scene, s.THOUGHT)
    if stripped(rest):
        found.opener, found.label = _split_opener(rest)
        found.prove("opener", found.opener, thought.scene.said, shown)
        return
    for prompt, extra in extras:
        text = joined(extra)
        if text and not text.startswith(found.closer) and not thought.after.strip().endswith(text):
            found.opener = _split_opener(extra)[0] if has_marker(extra) else text
            found.prove("opener", found.opener, prompt.scene.said, prompt.tail)
            return
    _opener_off_turn(found, thought.scene.said, shown)


def _opener_off_turn(found: Deduced, why: str, shown: str) -> None:
    """Take the opener off the end of the turn opener, with which all renderings seemed to begin."""
    turn = found.units(found.turn)
    markers = [number for number, unit in enumerate(turn) if unit.marker]
    if len(markers) > 1 or (markers and stripped(turn[: markers[-1]])):
        at = markers[-1]
        if mirrored(turn[at].text, found.closer) or len(markers) > 1:
            found.opener, found.turn = turn[at].text, joined(turn[:at])
            found.prove("opener", found.opener, why, shown)


def _split_opener(rest: Units) -> tuple[str, str]:
    """Split what stands before a thought into the opener and its label."""
    units = stripped_left(rest)
    if not has_marker(units):
        return joined(stripped(units)), ""
    last = max(number for number, unit in enumerate(units) if unit.marker)
    first = last
    while first > 0 and not units[first - 1].blank:
        first -= 1
    label = joined(units[last + 1 :])
    return joined(units[first : last + 1]), label if label.strip() else ""


def _mirror_opener(found: Deduced) -> None:
    known = _template_text(found)
    guesses = list(openers_of(found.closer))
    seen = next((guess for guess in guesses if guess in known), None)
    found.opener = seen or next(iter(guesses), "")
    if not found.opener:
        found.warnings.append(f"no rendering shows what opens the thought that {found.closer!r} closes")
        return
    found.prove("opener", found.opener, f"mirrors the closer {found.closer!r}")
    if seen is None:
        found.warnings.append(f"the opener {found.opener!r} is a guess: it mirrors the closer and stands nowhere")


def _template_text(found: Deduced) -> str:
    seen = found.reading.scenes.sandbox.seen
    return "\n".join((*seen.texts, *seen.constants, *found.reading.lexicon.known))


def _tested_closers(found: Deduced) -> list[str]:
    """List the markers behind which the template cuts a past answer off: `content.split('</think>')`."""
    reading = found.reading
    constants = [text.strip() for text in reading.scenes.sandbox.seen.constants]
    markers = [text for text in dict.fromkeys(constants) if text and reading.lexicon.markers(text) == [text]]
    tested = []
    for marker in markers:
        message = s.assistant(None, f"{s.THOUGHT}{marker}{s.ANSWER}")
        again = s.user(s.NEXT_USER)
        for messages in (
            [s.user(), message, again],
            [s.user(), message],
            [s.user(), message, again, s.assistant(None, "Zqlast1")],
        ):
            scene = next(reading.scenes.either(messages, f"answer with {marker!r} in it"), None)
            body = scene.after(s.USER) if scene else None
            if body is not None and s.ANSWER in body and s.THOUGHT not in body:
                tested.append(marker)
                break
    return tested


def _pair_by_test(found: Deduced, tested: list[str], extras: list[tuple[Prompt, Units]]) -> None:
    written = {unit.text: prompt for prompt, extra in reversed(extras) for unit in extra if unit.marker}
    turn = [unit.text for unit in found.units(found.turn) if unit.marker]
    shown = [*written, *turn]
    ranked = sorted(
        tested,
        key=lambda m: (not any(mirrored(other, m) for other in shown), m not in shown, not slashed(m)),
    )
    found.closer = ranked[0]
    if len(tested) > 1:
        found.warnings.append(
            f"the template cuts past answers behind {tested}; {found.closer!r} is taken for the closer"
        )
    found.prove("closer", found.closer, "the template cuts a past answer off behind it")
    others = [m for m in written if m != found.closer]
    opener = next((m for m in others if mirrored(m, found.closer)), None)
    if opener is None and found.closer in written:
        _opener_off_turn(found, written[found.closer].scene.said, written[found.closer].tail)
    if opener is None and not found.opener and others and not slashed(found.closer):
        opener = others[0]
        found.warnings.append(f"only their places say that {opener!r} and {found.closer!r} are a pair")
    if opener is not None:
        found.opener = opener
        found.prove("opener", opener, written[opener].scene.said, written[opener].tail)
    elif not found.opener:
        _mirror_opener(found)


def _pair_by_prompts(found: Deduced, extras: list[tuple[Prompt, Units]]) -> None:
    """Find a pair that only generation prompts show: closed in one mode, open in another."""
    marked = [(prompt, [unit.text for unit in extra if unit.marker]) for prompt, extra in extras]
    marked = [(prompt, markers) for prompt, markers in marked if markers]
    closed = next(((prompt, m) for prompt, m in marked if len(m) > 1 and m[0] != m[-1]), None)
    if closed is not None:
        prompt, markers = closed
        found.opener, found.closer = markers[0], markers[-1]
        sure = mirrored(*markers[:: len(markers) - 1]) or any(m == markers[:1] for _, m in marked)
        if not sure:
            found.warnings.append(f"only a prompt shows {found.opener!r} and {found.closer!r}, closed at once")
        found.prove("opener, closer", f"{found.opener} {found.closer}", prompt.scene.said, prompt.tail)
        return
    lone = {m[0]: prompt for prompt, m in marked if len(m) == 1}
    for opener, prompt in lone.items():
        closer = next((other for other in lone if mirrored(opener, other) and other != opener), None)
        if closer is not None and opener in openers_of(closer):
            found.opener, found.closer = opener, closer
            found.prove("opener", opener, prompt.scene.said, prompt.tail)
            found.prove("closer", closer, lone[closer].scene.said, lone[closer].tail)
            return
    if lone:
        opener, prompt = next(iter(lone.items()))
        known = _template_text(found)
        closer = next((guess for guess in closers_of(opener) if guess in known), "")
        if closer:
            found.opener, found.closer = opener, closer
            found.prove("opener", opener, prompt.scene.said, prompt.tail)
            found.prove("closer", closer, f"mirrors the opener {opener!r}")
        else:
            found.warnings.append(f"a prompt ends in {opener!r}, but nothing shows what closes it")


def find_answer(found: Deduced) -> None:
    """Find what stands around the answer: after the closer, and before a past answer without a thought."""
    reading = found.reading
    shown: list[tuple[str, Scene]] = []
    if reading.thought is not None:
        units = found.without_thought(found.units(reading.thought.after))
        shown.append((joined(stripped(units)), reading.thought.scene))
    before = reading.plain.between(s.USER, s.ANSWER) if reading.plain else None
    if before is not None and reading.plain is not None:
        units = found.without_thought(found.within_turn(before) or ())
        shown.append((joined(stripped(units)), reading.plain))
    closing = found.answer_rest or found.end
    closer = next((unit.text for unit in closing if unit.marker), "")
    for opener, scene in shown:
        if opener and has_marker(found.units(opener)) and (opener, closer) not in found.answers:
            found.answers.append((opener, closer))
            found.prove("answer", f"{opener} … {closer}", scene.said, _excerpt(scene, s.ANSWER))
    if not found.answers:
        _answer_by_test(found)
    if not found.answers and found.answer_rest and found.answer_rest != found.end:
        # Nothing opens the answer: what follows it belongs to the end of the turn.
        _note_ends(found, [(*found.answer_rest, *found.end)], reading.last, "what follows an answer")


def _answer_by_test(found: Deduced) -> None:
    """Find a pair of which the template keeps only what stands inside, in past answers."""
    reading = found.reading
    constants = [
        text for text in reading.scenes.sandbox.seen.constants if len(reading.lexicon.markers(text.strip())) == 1
    ]
    for opener in constants:
        for closer in constants:
            if not mirrored(opener.strip(), closer.strip()) or opener.strip() in (found.opener, found.closer):
                continue
            message = s.assistant(None, f"{s.THOUGHT}{opener}{s.ANSWER}{closer}Zqrest1")
            messages = [s.user(), message, s.user(s.NEXT_USER)]
            scene = next(reading.scenes.either(messages, f"answer in {opener!r} and {closer!r}"), None)
            body = (scene.after(s.USER) if scene else None) or ""
            if s.ANSWER in body and s.THOUGHT not in body and "Zqrest1" not in body and opener.strip() not in body:
                found.answers.append((opener.strip(), closer.strip()))
                found.prove("answer", f"{opener} … {closer}", "the template keeps of a past answer what they hold")
                return


def note_prose(found: Deduced) -> None:
    """Where nothing was found: say which pairs the system text names, which no rendering puts into place."""
    scenes, lexicon = found.reading.scenes, found.reading.lexicon
    own = [{"role": "system", "content": s.SYSTEM}, s.user(), s.assistant(None), s.user(s.NEXT_USER)]
    framed = next(scenes.either(own, "system, user, answer, user"), None)
    frame = set(lexicon.markers(framed.text)) if framed else set()
    for prompt in found.reading.prompts:
        named = lexicon.markers(prompt.scene.text.partition(s.USER)[0])
        markers = [marker for marker in dict.fromkeys(named) if marker not in frame]
        if ", tools" in prompt.scene.said:
            continue
        pair = next(((a, b) for a in markers for b in markers if a != b and b in closers_of(a)), None)
        if pair is not None:
            found.warnings.append(
                f"the system text of mode {prompt.mode} names {pair[0]!r} and {pair[1]!r}, but no rendering puts a "
                "thought between them"
            )
            return


def find_starts(found: Deduced) -> None:
    """Say for each mode which state its prompt leaves the model in."""
    openers = [found.opener]
    closers = [found.closer, *(opener for opener, _ in found.answers)]
    odd: dict[str, str] = {}
    for prompt in found.reading.prompts:
        units = found.within_prompt(prompt)
        if units is None:
            continue
        text = joined(units)
        opened_at = max((text.rfind(m) for m in openers if m), default=-1)
        closed_at = max((text.rfind(m) for m in closers if m), default=-1)
        state = "undecided" if opened_at < 0 and closed_at < 0 else "content" if closed_at > opened_at else "reasoning"
        found.starts[str(prompt.mode)] = state
        if state == "undecided" and text.strip():
            odd.setdefault(text.strip(), str(prompt.mode))
    found.warnings += [
        f"the prompt of mode {mode} goes on with {text!r}, which has no job" for text, mode in odd.items()
    ]
    if found.reading.default is not None and "default" in found.starts:
        found.prove(
            "always_open", str(found.starts["default"] == "reasoning"), "generation prompt", found.reading.default.tail
        )
