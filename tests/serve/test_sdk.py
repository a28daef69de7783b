"""The official SDKs through the proxy: all three surfaces, streaming and not."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.serve.servers import ALL, Upstream, proxied
from vllm_reasoning_ext.serve.settings import Settings
from vllm_reasoning_ext.wire.translation import Translation

TEXTS = [
    ("<think>why é</think>so ◁", "why é", "so ◁"),
    ("plain", "", "plain"),
    ("a<think>never closed", "", "a<think>never closed"),
    ("<think>all</think>", "all", ""),
]


@pytest.fixture(scope="module")
def openai_client(proxy: str) -> Iterator[Any]:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{proxy}/v1", api_key="k", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def anthropic_client(proxy: str) -> Iterator[Any]:
    anthropic = pytest.importorskip("anthropic")
    with anthropic.Anthropic(base_url=proxy, api_key="k", max_retries=0) as client:
        yield client


def say(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize(("text", "reasoning", "content"), TEXTS)
def test_chat(openai_client: Any, text: str, reasoning: str, content: str) -> None:
    reply = openai_client.chat.completions.create(model="m", messages=say(text), n=2)
    for choice in reply.choices:
        assert choice.message.content == content
        assert getattr(choice.message, "reasoning_content", "") == reasoning
        assert choice.message.own == 1


@pytest.mark.parametrize(("text", "reasoning", "content"), TEXTS)
def test_chat_stream(openai_client: Any, text: str, reasoning: str, content: str) -> None:
    deltas = []
    finish = []
    usage = None
    for chunk in openai_client.chat.completions.create(model="m", messages=say(text), stream=True):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            deltas.append(choice.delta)
            assert not finish
            finish += [choice.finish_reason] if choice.finish_reason else []
    assert "".join(delta.content or "" for delta in deltas) == content
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == reasoning
    assert finish == ["stop"]
    assert deltas[0].role == "assistant"
    assert usage.total_tokens == 3


def shown(output: Any) -> tuple[str, str]:
    thoughts = [part.text for item in output if item.type == "reasoning" for part in item.content]
    texts = [part.text for item in output if item.type == "message" for part in item.content]
    return "".join(thoughts), "".join(texts)


@pytest.mark.parametrize(("text", "reasoning", "content"), TEXTS)
def test_responses(openai_client: Any, text: str, reasoning: str, content: str) -> None:
    reply = openai_client.responses.create(model="m", input=text)
    assert shown(reply.output) == (reasoning, content)
    assert reply.output_text == content


@pytest.mark.parametrize(("text", "reasoning", "content"), TEXTS)
def test_responses_stream(openai_client: Any, text: str, reasoning: str, content: str) -> None:
    # The SDK's own accumulator raises where an event does not fit the items before it.
    with openai_client.responses.stream(model="m", input=text) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert shown(final.output) == (reasoning, content)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    done = {event.output_index: event.item for event in events if event.type == "response.output_item.done"}
    assert [done[index].id for index in range(len(final.output))] == [item.id for item in final.output]
    deltas = "".join(event.delta for event in events if event.type == "response.reasoning_text.delta")
    assert deltas == reasoning


@pytest.mark.parametrize(("text", "reasoning", "content"), TEXTS)
def test_messages(anthropic_client: Any, text: str, reasoning: str, content: str) -> None:
    reply = anthropic_client.messages.create(model="m", max_tokens=9, messages=say(text))
    assert blocks_of(reply) == blocks(reasoning, content)


@pytest.mark.parametrize(("text", "reasoning", "content"), TEXTS)
def test_messages_stream(anthropic_client: Any, text: str, reasoning: str, content: str) -> None:
    with anthropic_client.messages.stream(model="m", max_tokens=9, messages=say(text)) as stream:
        final = stream.get_final_message()
    assert blocks_of(final) == blocks(reasoning, content)
    assert final.stop_reason == "end_turn"


def blocks_of(message: Any) -> list[tuple[str, str]]:
    return [(block.type, block.thinking if block.type == "thinking" else block.text) for block in message.content]


def blocks(reasoning: str, content: str) -> list[tuple[str, str]]:
    return [(kind, text) for kind, text in (("thinking", reasoning), ("text", content)) if text]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Translation(messages_policy="redacted"), [("redacted_thinking", "why"), ("text", "so")]),
        (Translation(messages_policy="unsigned"), [("thinking", "why"), ("text", "so")]),
        (Translation(messages_policy="drop"), [("text", "so")]),
        (Translation(), [("text", "<think>why</think>so")]),
    ],
)
def test_message_policies(upstream_at: tuple[Upstream, str], policy: Translation, expected: list[Any]) -> None:
    anthropic = pytest.importorskip("anthropic")
    with (
        proxied(upstream_at[1], Settings(translation=policy)) as base,
        anthropic.Anthropic(base_url=base, api_key="k", max_retries=0) as client,
    ):
        whole = client.messages.create(model="m", max_tokens=9, messages=say("<think>why</think>so"))
        with client.messages.stream(model="m", max_tokens=9, messages=say("<think>why</think>so")) as stream:
            streamed = stream.get_final_message()
    for message in (whole, streamed):
        fields = [block.model_dump() for block in message.content]
        seen = [(f["type"], f.get("data") or f.get("thinking") or f.get("text")) for f in fields]
        assert seen == expected
        # No signature is made up, and none is left behind as an empty string.
        assert not any(f.get("signature") for f in fields)


def test_a_surface_that_is_off_is_passed_through(upstream_at: tuple[Upstream, str]) -> None:
    openai = pytest.importorskip("openai")
    for settings in (Settings(chat_enabled=False), Settings(enabled=False, translation=ALL.translation)):
        with (
            proxied(upstream_at[1], settings) as base,
            openai.OpenAI(base_url=f"{base}/v1", api_key="k", max_retries=0) as client,
        ):
            reply = client.chat.completions.create(model="m", messages=say("<think>w</think>x"))
            assert reply.choices[0].message.content == "<think>w</think>x"
