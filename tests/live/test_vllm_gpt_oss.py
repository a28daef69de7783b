"""`--reasoning-parser gpt_oss` on a model of vLLM's type gpt_oss: scripted engine core, then the real CPU engine."""

import json
from typing import Any

import pytest

from tests.live.conftest import Scripted, Start
from tests.live.test_vllm_engine import ask
from tests.live.test_vllm_surfaces import Seen, openai_client, read_items, responses_tools, script
from tests.support.harmony_outputs import HARMONY_OUTPUTS
from vllm_reasoning_ext.demo.chat_reply import from_body, from_events

pytestmark = [pytest.mark.vllm, pytest.mark.live]

TOOLS = ("--tool-call-parser", "openai", "--enable-auto-tool-choice")
FLAGS = ("--reasoning-parser", "gpt_oss", *TOOLS)
CHAT = "/v1/chat/completions"


ENGINE = ("--load-format", "dummy")
"""A random gpt-oss model: nothing but its type and its tokenizer matters, its output is dictated."""


@pytest.fixture(scope="module", params=["scripted core", "CPU engine"])
def served(request: pytest.FixtureRequest, start_vllm: Start) -> Scripted:
    engine = request.param == "CPU engine"
    flags = (*FLAGS, *ENGINE) if engine else ("--reasoning-parser", "auto", *TOOLS)
    return start_vllm("gpt_oss", *flags, engine=engine)


@pytest.fixture(scope="module")
def engine(start_vllm: Start) -> Scripted:
    return start_vllm("gpt_oss", *FLAGS, *ENGINE, engine=True)


@pytest.mark.parametrize("step", [1, 3, 500])
def test_chat(served: Scripted, step: int, request: pytest.FixtureRequest) -> None:
    if step > 1 and request.node.callspec.params["served"] == "CPU engine":
        pytest.skip("the CPU engine makes one token a step")
    for output in HARMONY_OUTPUTS:
        body = served.body(output, step)
        whole = from_body(served.server.post(CHAT, body))
        streamed = from_events(served.server.stream(CHAT, body | {"stream_options": {"include_usage": True}}))
        want = (output.reasoning, output.content, tuple(("weather", {"city": city}) for city in output.cities))
        assert whole.shown == want, output.name
        assert streamed.shown == want, output.name
        assert whole.reasoning_tokens == streamed.reasoning_tokens
        assert bool(whole.reasoning_tokens) is bool(output.reasoning), output.name


@pytest.mark.parametrize("stream", [False, True])
def test_responses(served: Scripted, stream: bool) -> None:
    for output in HARMONY_OUTPUTS:
        made = openai_client(served).responses.create(
            model="tiny",
            input="What is six times seven?",
            max_output_tokens=served.body(output)["max_tokens"],
            extra_body=script(served, output),
            stream=stream,
            **responses_tools(output),
        )
        # Each message is an item of its own here, so no joiner stands between two.
        want = Seen(output.reasoning.replace("\n", ""), output.content.replace("\n", ""), output.cities)
        if not stream:
            assert read_items(made.output) == want, output.name
            continue
        seen = Seen("", "")
        for event in made:
            seen = _read(seen, event)
            if event.type in ("response.completed", "response.incomplete"):
                assert read_items(event.response.output) == want, output.name
        assert seen == want, output.name


def _read(seen: Seen, event: Any) -> Seen:
    if event.type == "response.reasoning_text.delta":
        return seen._replace(reasoning=seen.reasoning + event.delta)
    if event.type == "response.output_text.delta":
        return seen._replace(answer=seen.answer + event.delta)
    if event.type == "response.function_call_arguments.done":
        return seen._replace(cities=(*seen.cities, json.loads(event.arguments)["city"]))
    return seen


THOUGHT = "<|channel|>analysis<|message|>"
FINAL = "<|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize("stream", [False, True])
def test_the_grammar_covers_the_channels(engine: Scripted, stream: bool) -> None:
    """vLLM's structural tag for this type spells the channels out; what it dictates in the last one is the answer."""
    script = f"{THOUGHT}Hm, maybe.<|end|>{FINAL}"
    reply = ask(engine, script, {}, stream=stream, structured_outputs={"choice": ["yes", "no"]})
    assert reply.reasoning == "Hm, maybe."
    # The random model may spell `<|end|>` in letters, which the tag allows; that is text then.
    assert reply.answer.partition("<|end|>")[0] in ("yes", "no")


@pytest.mark.parametrize("stream", [False, True])
def test_a_thinking_budget_ends_the_thought(engine: Scripted, stream: bool) -> None:
    script = f"{THOUGHT}{'x' * 20}?{FINAL}It is 42.<|return|>"
    reply = ask(engine, script, {}, stream=stream, thinking_token_budget=20)
    assert (reply.reasoning, reply.answer, reply.finish) == ("x" * 20, "It is 42.", "stop")
