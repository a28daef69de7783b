"""Grammar-constrained sampling on the real CPU engine: the thought is free, the answer is the grammar's.

The thought is dictated, then the random model is let go: only xgrammar makes JSON of it, and only if vLLM's engine
core heard from our parser where the answer begins.
"""

import json
from typing import Any

import pytest

from tests.live.conftest import Scripted, Start
from vllm_reasoning_ext.serve.chat_reply import from_body, from_events

pytestmark = [pytest.mark.vllm, pytest.mark.live]

CHAT = "/v1/chat/completions"
ANSWER = {"answer": "yes"}
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"enum": ["yes"]}},
    "required": ["answer"],
    "additionalProperties": False,
}
THOUGHTS = {
    "qwen3": '<think>\nHm, {"no": 1}.\n</think>',
    "gemma4": '<|channel>thought\nHm, {"no": 1}.\n<channel|>',
    "muse_glimmer": ' to=self<|message|>Hm, {"no": 1}.<|eom|><|start|>assistant to=user<|message|>',
}
ON = {"gemma4": {"enable_thinking": True}}
OFF = {"qwen3": {"enable_thinking": False}, "gemma4": {"enable_thinking": False}}


@pytest.fixture(scope="module", params=sorted(THOUGHTS))
def served(request: pytest.FixtureRequest, start_vllm: Start) -> tuple[str, Scripted]:
    compact = json.dumps({"backend": "xgrammar", "disable_any_whitespace": True})
    flags = ("--reasoning-parser", request.param, "--structured-outputs-config", compact)
    return request.param, start_vllm(request.param, *flags, engine=True)


def body(scripted: Scripted, script: str, kwargs: dict[str, Any], **fields: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "Is it?"}],
        "max_tokens": 200,
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
        "chat_template_kwargs": kwargs,
        **fields,
    }
    if script:
        asked["vllm_xargs"] = {"script": ",".join(map(str, scripted.ids(script)))}
    return asked


@pytest.mark.parametrize("stream", [False, True])
def test_the_grammar_begins_with_the_answer(served: tuple[str, Scripted], stream: bool) -> None:
    family, scripted = served
    asked = body(scripted, THOUGHTS[family], ON.get(family, {}))
    post = scripted.server
    reply = from_events(post.stream(CHAT, asked)) if stream else from_body(post.post(CHAT, asked))
    assert reply.reasoning == 'Hm, {"no": 1}.'
    assert json.loads(reply.answer) == ANSWER
    assert reply.finish == "stop"


def test_it_begins_at_once_where_the_prompt_closed_the_block(served: tuple[str, Scripted]) -> None:
    family, scripted = served
    if family not in OFF:
        pytest.skip("this family's thinking cannot be switched off")
    reply = from_body(scripted.server.post(CHAT, body(scripted, "", OFF[family])))
    assert (reply.reasoning, json.loads(reply.answer)) == ("", ANSWER)


def test_it_begins_at_once_where_reasoning_is_hidden(served: tuple[str, Scripted]) -> None:
    """vLLM then applies the grammar from the first token: the output is bare JSON, without any channel."""
    _, scripted = served
    reply = from_body(scripted.server.post(CHAT, body(scripted, "", {}, include_reasoning=False)))
    assert (reply.reasoning, json.loads(reply.answer)) == ("", ANSWER)


def test_a_thinking_budget_is_accepted(served: tuple[str, Scripted]) -> None:
    """Without the parser's start and end strings vLLM refuses such a request."""
    family, scripted = served
    asked = body(scripted, THOUGHTS[family], ON.get(family, {}), thinking_token_budget=100)
    del asked["response_format"]
    asked["max_tokens"] = len(scripted.ids(THOUGHTS[family]))
    assert from_body(scripted.server.post(CHAT, asked)).reasoning == 'Hm, {"no": 1}.'
