"""The template's own form of an assistant turn, as an output; and the way back: a split rendered again.

A template writes finished turns too. What it writes is what the model was trained to write, so it must be split into
the very fields it was rendered from; and the split's fields, put into messages, must render to the same prompt.
"""

import json
from typing import Final, NamedTuple

from vllm_reasoning_ext.conformance.modes import CITY, FUNCTION, PARTIAL, THOUGHT, Message, Mode, assistant, call
from vllm_reasoning_ext.conformance.outputs import Output
from vllm_reasoning_ext.conformance.render import Renderer, RenderError
from vllm_reasoning_ext.conformance.runner import Piece
from vllm_reasoning_ext.core.families import Family
from vllm_reasoning_ext.core.state import StartState

PLAIN: Final = "own form"
CALL: Final = "own form, call"

ANSWER: Final = "It is 42.\n\n- `a < b`, naïve 六"
MORE: Final = " is 42."
"""How a continued answer goes on."""


class Form(NamedTuple):
    """A turn as the template writes it.

    Attributes:
        name: the column.
        prompt: the prompt before it.
        output: what the template writes after that prompt, and the fields it was rendered from.
        rendered: prompt and turn, whole.
        before: the messages before the turn.
        mode: tools and variables of the rendering.
        thought: the thought it was rendered from, whether or not the template wrote it.
        said: what of the answer the prompt already held.
        note: what is worth knowing: a dropped thought, a prompt that is no prefix.
        problem: why the turn is none of this family's; then there is nothing to split.
    """

    name: str
    prompt: str
    output: Output
    rendered: str
    before: tuple[Message, ...]
    mode: Mode
    thought: str
    said: str
    note: str
    problem: str = ""

    def put_back(self, renderer: Renderer, split: tuple[Piece, ...]) -> tuple[str, ...]:
        """Render the split's fields again; say what differs.

        A call stays in the content until a tool parser has taken it out, so its form is only split.
        """
        if self.name == CALL:
            return ()
        reasoning = "".join(text for kind, text in split if kind.lstrip("+") == "reasoning")
        content = "".join(text for kind, text in split if kind.lstrip("+") in ("content", "tool"))
        # A thought that the template drops, or that the prompt held, cannot come back out of the output.
        message = assistant(self.said + content, reasoning if self.output.reasoning else self.thought)
        try:
            again = renderer.render(
                (*self.before, message), tools=self.mode.tools, kwargs=self.mode.kwargs, generate=False
            )
        except RenderError as error:
            return (f"put back into messages, the template refuses it: {error}",)
        if again == self.rendered:
            return ()
        least = min(len(again), len(self.rendered))
        at = next((n for n in range(least) if again[n] != self.rendered[n]), least)
        return (f"put back and rendered again it has {again[at:][:60]!r} in place of {self.rendered[at:][:60]!r}",)


def forms_of(renderer: Renderer, family: Family, mode: Mode, prompt: str, start: StartState) -> list[Form]:
    """List the template's own forms of the turn that follows a prompt; those it refuses are left out."""
    forms = [_plain(renderer, family, mode, prompt, start)]
    if mode.tools and not mode.go_on:
        forms.append(_call(renderer, family, mode, prompt, start))
    return [form for form in forms if form is not None]


def _plain(renderer: Renderer, family: Family, mode: Mode, prompt: str, start: StartState) -> Form | None:
    before, said, answer = mode.messages, "", ANSWER
    thought = "" if start.kind == "content" else THOUGHT
    if mode.go_on == "content":
        before, said, answer = mode.messages[:-1], PARTIAL, MORE
        thought = str(mode.messages[-1].get("reasoning_content", ""))
    elif mode.go_on:
        before, thought = mode.messages[:-1], str(mode.messages[-1][mode.go_on])
    return _form(
        PLAIN, renderer, family, mode, prompt, before, assistant(said + answer, thought), thought, said, answer
    )


def _call(renderer: Renderer, family: Family, mode: Mode, prompt: str, start: StartState) -> Form | None:
    thought = "" if start.kind == "content" else THOUGHT
    for arguments in ({"city": CITY}, json.dumps({"city": CITY})):  # templates want the one or the other
        message = assistant("", thought, (call(arguments),))
        form = _form(CALL, renderer, family, mode, prompt, mode.messages, message, thought, "", "")
        if form is not None:
            return form
    return None


def _form(
    name: str,
    renderer: Renderer,
    family: Family,
    mode: Mode,
    prompt: str,
    before: tuple[Message, ...],
    message: Message,
    thought: str,
    said: str,
    answer: str,
) -> Form | None:
    try:
        rendered = renderer.render((*before, message), tools=mode.tools, kwargs=mode.kwargs, generate=False)
    except RenderError:
        return None
    note = ""
    if not rendered.startswith(prompt):
        cut = _opened(prompt, family)
        if mode.go_on or not cut or not rendered.startswith(cut):
            return None
        prompt, note = cut, "the generation prompt is no prefix of the finished turn: prefix caches miss it"
    text = _ended(rendered[len(prompt) :], family)
    if answer and answer not in text:
        return None
    if thought and thought not in text and thought not in prompt:
        note = "; ".join(filter(None, [note, "the template drops the thought of a finished turn"]))
    # Of a continued thought the output holds nothing: it is in the prompt.
    reasoning = thought if thought and not mode.go_on and thought in text else ""
    if name == CALL:
        if FUNCTION not in text or CITY not in text:
            return None
        at = 0 if not family.channels else text.find(_recipient(family))
        if at < 0:
            problem = (
                f"the template writes the call without {_recipient(family)!r}, which names a tool in {family.name}"
            )
            return Form(name, prompt, Output(name, text), rendered, before, mode, thought, said, note, problem)
        content = _slice(family, text, at) if family.channels else _said(family, text, mode)
    else:
        content = _said(family, text, mode)
        if content.strip() != answer.strip():
            content = answer
        elif content != answer:
            note = "; ".join(filter(None, [note, "the template writes blanks of its own around the answer"]))
    output = Output(name, text, reasoning, content)
    return Form(name, prompt, output, rendered, before, mode, thought, said, note)


def _said(family: Family, text: str, mode: Mode) -> str:
    """Cut what is content out of a turn: after the thought, without the turn's end; blanks as SPEC section 5 has it."""
    if family.channels:
        body = text.rpartition("<|message|>")[2]
        return next((body.removesuffix(end) for end in _TERMINATORS if body.endswith(end)), body)
    if mode.go_on == "content":
        return _without_end(text, family)
    rest = _without_end(text.partition(family.closer)[2] if family.closer in text else text, family)
    rest = _without_answer_markers(rest, family)
    visible = rest.lstrip()
    lead = rest[: len(rest) - len(visible)]
    return lead[lead.rfind("\n") + 1 :] + visible


def _without_answer_markers(text: str, family: Family) -> str:
    """Cut markers of the answer off the head: before a call they frame an answer that is empty (SPEC 5.5).

    Where each message of a turn has a header, as in Solar, the call's header is there as well.
    """
    markers = [marker for pair in family.answer for marker in pair if marker]
    if markers:
        markers += family.turn_openers
    while found := next((marker for marker in markers if text.lstrip().startswith(marker)), ""):
        text = text.lstrip().removeprefix(found)
    return text


def _recipient(family: Family) -> str:
    return f"to={FUNCTION}" if family.framed_calls else f"to=functions.{FUNCTION}"


def _slice(family: Family, text: str, at: int) -> str:
    """Cut the tool slice whose recipient stands at `at` out of a channel family's turn: header, body, terminator."""
    begin = max(text.rfind("<|channel|>", 0, at), text.rfind("<|start|>", 0, at))
    if begin >= 0:
        return text[begin:]
    return f"<|start|>{text}" if family.framed_calls else text


def _opened(prompt: str, family: Family) -> str:
    """Cut a prompt right after its last turn opener."""
    return prompt[: max((prompt.rfind(o) + len(o) for o in family.turn_openers if o in prompt), default=0)]


_TERMINATORS: Final = ("<|return|>", "<|end|>", "<|call|>", "<|eot|>", "<|eom|>")


def _ended(text: str, family: Family) -> str:
    """Cut off what the template writes after the turn's end: a newline, mostly."""
    ends = (*_TERMINATORS, *family.end_of_sequence) if family.channels else family.end_of_sequence
    last = max((text.rfind(end) + len(end) for end in ends if end in text), default=0)
    return text[:last] if last and not text[last:].strip() else text


def _without_end(text: str, family: Family) -> str:
    return next((text.removesuffix(end) for end in family.end_of_sequence if text.endswith(end)), text)
