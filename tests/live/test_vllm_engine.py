"""The real CPU engine: every family's outputs, grammar-constrained sampling, thinking budgets.

For a grammar the thought is dictated, then the random model is let go: only xgrammar makes JSON of it, and only if
vLLM's engine core heard from our parser where the answer begins.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from tests.live.chat_outputs import CHAT, check, flags
from tests.live.conftest import Scripted, Start
from tests.support.more_outputs import TOOL_PARSERS, outputs_of
from vllm_reasoning_ext.core.families import get_family
from vllm_reasoning_ext.demo.chat_reply import ChatReply, from_body, from_events

pytestmark = [pytest.mark.vllm, pytest.mark.live]

ANSWER = {"answer": "yes"}
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"enum": ["yes"]}},
    "required": ["answer"],
    "additionalProperties": False,
}
COMPACT = ("--structured-outputs-config", json.dumps({"backend": "xgrammar", "disable_any_whitespace": True}))


class Frame(NamedTuple):
    """What a family's model writes around a thought.

    Attributes:
        before: what opens it; "" where the prompt does.
        after: what follows its end up to the first character of the answer; the end itself is the budget's string.
        end: what stops the output.
        on, off: chat_template_kwargs for thinking, and for none (None: it cannot be switched off).
        counted: tokens of the prompt that vLLM's budget counts: what follows the opener there.
    """

    before: str
    after: str
    end: str
    on: Mapping[str, Any] = {}
    off: Mapping[str, Any] | None = None
    counted: int = 0


FRAMES = {
    "deepseekv32": Frame("", "", "<｜end▁of▁sentence｜>", {"thinking": True}, {"thinking": False}),
    "gemma4": Frame("<|channel>thought\n", "", "<turn|>", {"enable_thinking": True}, {"enable_thinking": False}),
    "minimax": Frame("", "", "[e~[", {}, {"revision": "no-think"}, counted=1),
    "minimax_m3": Frame("<mm:think>", "", "[e~[", {}, {"thinking_mode": "disabled"}),
    "muse_glimmer": Frame(" to=self<|message|>", "<|start|>assistant to=user<|message|>", "<|eot|>"),
    "qwen3": Frame("<think>", "", "<|im_end|>", {}, {"enable_thinking": False}),
}


@pytest.fixture(scope="module", params=sorted(TOOL_PARSERS))
def served(request: pytest.FixtureRequest, start_vllm: Start) -> tuple[str, Scripted]:
    return request.param, start_vllm(request.param, *flags(request.param), *COMPACT, engine=True)


def ask(
    scripted: Scripted, script: str, kwargs: Mapping[str, Any], *, stream: bool = False, **fields: Any
) -> ChatReply:
    body: dict[str, Any] = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "Is it?"}],
        "max_tokens": 200,
        "chat_template_kwargs": dict(kwargs),
        **fields,
    }
    if script:
        body["vllm_xargs"] = {"script": ",".join(map(str, scripted.ids(script)))}
    if stream:
        return from_events(scripted.server.stream(CHAT, body))
    return from_body(scripted.server.post(CHAT, body))


def schema() -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}}


def test_outputs(served: tuple[str, Scripted]) -> None:
    family, scripted = served
    for output in outputs_of(family):
        check(scripted, output, 1)


@pytest.mark.parametrize("stream", [False, True])
def test_the_grammar_begins_with_the_answer(served: tuple[str, Scripted], stream: bool) -> None:
    family, scripted = served
    frame = FRAMES[family]
    script = f'{frame.before}Hm, {{"no": 1}}.{get_family(family).reasoning_end_str}{frame.after}'
    reply = ask(scripted, script, frame.on, stream=stream, **schema())
    assert reply.reasoning == 'Hm, {"no": 1}.'
    assert json.loads(reply.answer) == ANSWER
    assert reply.finish == "stop"


def test_it_begins_at_once_where_the_prompt_closed_the_block(served: tuple[str, Scripted]) -> None:
    family, scripted = served
    off = FRAMES[family].off
    if off is None:
        pytest.skip("this family's thinking cannot be switched off")
    reply = ask(scripted, "", off, **schema())
    assert (reply.reasoning, json.loads(reply.answer)) == ("", ANSWER)


def test_it_begins_at_once_where_reasoning_is_hidden(served: tuple[str, Scripted]) -> None:
    """vLLM then applies the grammar from the first token, inside a block that the prompt opened too."""
    family, scripted = served
    for stream in (False, True):
        reply = ask(scripted, "", FRAMES[family].on, stream=stream, include_reasoning=False, **schema())
        assert (reply.reasoning, json.loads(reply.answer)) == ("", ANSWER)


@pytest.mark.parametrize("stream", [False, True])
def test_a_thinking_budget_ends_the_thought(served: tuple[str, Scripted], stream: bool) -> None:
    """vLLM counts from our start string and forces our end string; the script goes on behind it."""
    family, scripted = served
    frame, closer = FRAMES[family], get_family(family).reasoning_end_str
    over = "?" * len(scripted.ids(closer))  # dictated where the closer is forced
    script = f"{frame.before}{'x' * 20}{over}{frame.after}It is 42.{frame.end}"
    reply = ask(scripted, script, frame.on, stream=stream, thinking_token_budget=20 + frame.counted)
    assert (reply.reasoning, reply.answer, reply.finish) == ("x" * 20, "It is 42.", "stop")


@pytest.mark.parametrize("stream", [False, True])
def test_a_grammar_that_binds_in_reasoning_too(start_vllm: Start, stream: bool) -> None:
    """`enable_in_reasoning`: the JSON comes at once, inside the block that the prompt opened, and is the answer."""
    settings = json.dumps({"backend": "xgrammar", "disable_any_whitespace": True, "enable_in_reasoning": True})
    given = (*flags("deepseekv32"), "--structured-outputs-config", settings)
    scripted = start_vllm("deepseekv32", *given, engine=True)
    reply = ask(scripted, "", FRAMES["deepseekv32"].on, stream=stream, **schema())
    assert (reply.reasoning, json.loads(reply.answer), reply.finish) == ("", ANSWER, "stop")
