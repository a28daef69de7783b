"""What a chat template shows of its model's output: thought, answer, calls, turns (SPEC section 8, step 2)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from vllm_reasoning_ext.derive import scenes as s
from vllm_reasoning_ext.derive.lexicon import (
    Lexicon,
    Units,
    common_end,
    common_start,
    has_marker,
    joined,
    stripped,
)
from vllm_reasoning_ext.derive.scenes import DEFAULT, Carrier, Mode, Scene, Scenes

_THOUGHT_MODES_MAX: Final = 12


@dataclass(frozen=True, slots=True)
class Prompt:
    """How a prompt ends in one mode.

    Attributes:
        mode: template variables.
        tail: everything after the user's text.
        closed: the part of it that ends the user's turn, as far as the template shows it.
        scene: the rendering.
    """

    mode: Mode
    tail: str
    closed: str
    scene: Scene


@dataclass(frozen=True, slots=True)
class Thought:
    """A rendering with a thought in it.

    Attributes:
        before: from the user's text to the thought.
        after: from the thought to the answer, or to the first word of a call.
        answered: whether an answer follows; else a call.
        carrier: how the thought was handed over.
        scene: the rendering.
    """

    before: str
    after: str
    answered: bool
    carrier: Carrier
    scene: Scene


@dataclass(frozen=True, slots=True)
class Calls:
    """A rendering with calls in it, the assistant's turn being the last.

    Attributes:
        before: from the user's text to the first name or id.
        first: what stands there: the function's name or the call's id.
        inner: from there to the first argument's value.
        middle: from the first call's last argument to the second call's name or id; None with one call.
        after: what follows the last argument.
        scene: the rendering.
        message, count: the assistant's message, and how many calls it has.
    """

    before: str
    first: str
    inner: str
    middle: str | None
    after: str
    scene: Scene
    message: s.Message
    count: int


@dataclass(slots=True)
class Reading:
    """The renderings that tell something, of one template."""

    scenes: Scenes
    lexicon: Lexicon
    prompts: list[Prompt] = field(default_factory=list)
    plain: Scene | None = None  # user, answer, user
    last: Scene | None = None  # user, answer
    thought: Thought | None = None
    thought_call: Thought | None = None
    calls: Calls | None = None
    changed: bool = False  # the calls were rendered only where a template may change lists

    def units(self, text: str) -> Units:
        return self.lexicon.units(text)

    @property
    def refused_tools(self) -> str:
        """The error with which the template refuses past calls while functions are on offer; "" where it does not."""
        if self.calls is None or ", tools" in self.calls.scene.said:
            return ""
        words = f"{self.calls.scene.said}, tools"
        return self.scenes.errors.get(words, "")

    @property
    def default(self) -> Prompt | None:
        return self.prompts[0] if self.prompts and self.prompts[0].mode == DEFAULT else None


def read(scenes: Scenes, lexicon: Lexicon) -> Reading:
    """Render every conversation that can tell something, and keep the ones that do."""
    found = Reading(scenes, lexicon)
    found.prompts = _prompts(scenes)
    turn = [s.user(), s.assistant(None)]
    found.last = next(scenes.either(turn, "user, answer"), None)
    again = [*turn, s.user(s.NEXT_USER)]
    found.plain = next(scenes.either(again, "user, answer, user", generate=True), None)
    found.calls = _calls(scenes)
    if found.calls is None and any("SecurityError" in error for error in scenes.errors.values()):
        scenes.mutable = True
        found.calls = _calls(scenes)
        found.changed = found.calls is not None
    modes = _telling(found.prompts)
    found.thought = next(_answered(found, modes), None)
    found.thought_call = next(_called(found, modes), None)
    return found


def _prompts(scenes: Scenes) -> list[Prompt]:
    """Render the generation prompt in every mode that makes one."""
    made = [prompt for mode in scenes.modes() if (prompt := _prompt(scenes, mode)) is not None]
    assigned = scenes.sandbox.seen.assigned
    default = made[0].tail if made else ""
    # A variable that the template sets itself is one that callers set only if it changes how the prompt ends.
    changing = {name for prompt in made if prompt.tail != default for name, _ in prompt.mode.values}
    return [p for p in made if all(name in changing or name not in assigned for name, _ in p.mode.values)]


def _prompt(scenes: Scenes, mode: Mode) -> Prompt | None:
    for scene in scenes.either([s.user()], "user", mode=mode, generate=True):
        tail = scene.after(s.USER)
        ended = scenes.render([s.user()], "user", mode=mode, tools=", tools" in scene.said)
        closed = (ended.after(s.USER) if ended else None) or ""
        if tail is not None and tail.strip():
            return Prompt(mode, tail, closed if tail.startswith(closed) and len(closed) < len(tail) else "", scene)
    return None


def _telling(prompts: list[Prompt]) -> list[Mode]:
    """List one mode for each different prompt, the default one first."""
    different: dict[str, Mode] = {}
    for prompt in prompts:
        different.setdefault(prompt.tail, prompt.mode)
    return list(dict.fromkeys([DEFAULT, *different.values()]))[:_THOUGHT_MODES_MAX]


def _answered(found: Reading, modes: list[Mode]) -> Iterator[Thought]:
    """Render a thought and an answer, in the last turn and in an earlier one."""
    for carrier in found.scenes.carriers():
        turn = [s.user(), s.assistant(carrier)]
        for mode in modes:
            for messages in (turn, [*turn, s.user(s.NEXT_USER)]):
                for scene in found.scenes.either(messages, f"thought as {carrier}, answer", mode=mode):
                    before, after = scene.between(s.USER, s.THOUGHT), scene.between(s.THOUGHT, s.ANSWER)
                    if before is not None and after is not None and _read_not_printed(found, before, after):
                        yield Thought(before, after, True, carrier, scene)


def _called(found: Reading, modes: list[Mode]) -> Iterator[Thought]:
    """Render a thought and a call."""
    if found.calls is None:
        return
    for carrier in found.scenes.carriers():
        for mode in modes:
            for as_text, content in ((t, c) for t in (False, True) for c in ("", None)):
                calls = s.calls_of(1, as_text=as_text)
                turn = [s.user(), s.assistant(carrier, content, calls)]
                for messages in (turn, [*turn, *s.results_of(1)]):
                    for scene in found.scenes.either(messages, f"thought as {carrier}, call", mode=mode):
                        thought = _before_call(found, scene, carrier)
                        if thought is not None and not _is_content(found, thought, mode, calls):
                            yield thought


def _before_call(found: Reading, scene: Scene, carrier: Carrier) -> Thought | None:
    before, rest = scene.between(s.USER, s.THOUGHT), scene.between(s.THOUGHT, s.ARGUMENTS[0])
    if before is None or rest is None or s.DUMPED in scene.text:
        return None
    after = rest.partition(_first_word(rest) or s.FUNCTION)[0]
    return Thought(before, after, False, carrier, scene) if _read_not_printed(found, before, after) else None


def _is_content(found: Reading, thought: Thought, mode: Mode, calls: list[s.Message]) -> bool:
    """Tell a thought that the template prints where a message's content stands: a part that it did not know."""
    turn = [s.user(), s.assistant(None, s.ANSWER, calls)]
    for scene in found.scenes.either(turn, "answer, call", mode=mode):
        if scene.between(s.USER, s.ANSWER) == thought.before:
            return True
    return False


def _read_not_printed(found: Reading, before: str, after: str) -> bool:
    """Tell a thought between markers from a message that was printed whole."""
    if s.DUMPED in before + after or not after.strip():
        return False
    return has_marker(found.units(after)) or not any(quoted in after for quoted in ("'", '"'))


def _calls(scenes: Scenes) -> Calls | None:
    variants = [
        (count, as_text, content, carrier)
        for count in (2, 1)
        for carrier in (None, Carrier("blocks", "blocks"))
        for as_text in (False, True)
        for content in ("", None, s.ANSWER)
    ]
    for count, as_text, content, carrier in variants:
        message = s.assistant(carrier, content, s.calls_of(count, as_text=as_text))
        said = f"{count} call{'s' * (count > 1)} with {'text' if as_text else 'mapping'} arguments, content {content!r}"
        # With tools first: templates that need them write nothing without.
        for tools in (True, False):
            scene = scenes.render([s.user(), message], said, tools=tools)
            if scene is None or s.DUMPED in scene.text:
                continue
            found = _cut_calls(scene, message, count)
            if found is not None:
                return found
    return None


def _cut_calls(scene: Scene, message: s.Message, count: int) -> Calls | None:
    body = scene.after(s.USER)
    if body is None or any(argument not in body for argument in s.ARGUMENTS[:count]):
        return None
    first = _first_word(body)
    if first is None:
        return None
    before, _, rest = body.partition(first)
    inner, _, rest = rest.partition(s.ARGUMENTS[0])
    middle = None
    if count > 1:
        second = s.IDS[1] if first == s.IDS[0] else first
        middle, _, rest = rest.partition(second)
        rest = rest.partition(s.ARGUMENTS[1])[2]
    if s.ANSWER in before:
        before = before.rpartition(s.ANSWER)[2]
    return Calls(before, first, inner, middle, rest, scene, message, count)


def _first_word(text: str) -> str | None:
    """Find which comes first, the function's name or the call's id."""
    places = {word: text.find(word) for word in (s.FUNCTION, s.IDS[0]) if word in text}
    return min(places, key=lambda word: places[word]) if places else None


def same_start(found: Reading, texts: list[str]) -> Units:
    """Find the units with which all of `texts` begin, leaving out a text that shares none."""
    texts = [text.lstrip() for text in texts]
    shortest = min(texts, key=len, default="")
    if shortest and all(text.startswith(shortest) for text in texts):
        return found.units(shortest)
    common: Units | None = None
    for text in texts:
        units = stripped_left(found.units(text))
        if common is None:
            common = units
            continue
        shared = common_start(common, units)
        if stripped(shared):
            common = shared
    return common or ()


def stripped_left(units: Units) -> Units:
    """Drop blanks at the beginning."""
    start = 0
    while start < len(units) and units[start].blank:
        start += 1
    return units[start:]


__all__ = [
    "Calls",
    "Prompt",
    "Reading",
    "Thought",
    "common_end",
    "joined",
    "read",
    "same_start",
    "stripped_left",
]
