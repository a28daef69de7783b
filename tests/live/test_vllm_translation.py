"""Translation before and inside a real vLLM server started WITHOUT a reasoning parser, seen by the official SDKs."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.live.conftest import Scripted, Start
from tests.serve.servers import proxied
from tests.support.patience import LOCAL_SECONDS, REPLY_SECONDS
from tests.wire.streams import decoded
from vllm_reasoning_ext.serve.settings import Settings
from vllm_reasoning_ext.wire.translation import Translation

pytestmark = [pytest.mark.vllm, pytest.mark.live]

MIDDLEWARE = "vllm_reasoning_ext.serve.middleware.ReasoningMiddleware"
POLICY = (("THINK_EXTRACT_MESSAGES_POLICY", "unsigned"), ("THINK_EXTRACT_SIGNATURE", "empty"))
SETTINGS = Settings(translation=Translation(messages_policy="unsigned", signature="empty"))

# The tags are spelled with ordinary tokens, so that the server leaves them in the text. Script, reasoning, answer.
SCRIPTS = [
    ("‹<think>›\nWhy é?\n‹</think>›\n\nSo.", "Why é?", "So."),
    ("Just an answer, a < b.", "", "Just an answer, a < b."),
    ("See ‹<think>› never closed", "", "See <think> never closed"),
    ("A‹<thought>›one‹</thought>›B‹[THINK]›two‹[/THINK]›C", "one\n\ntwo", "ABC"),
]


@pytest.fixture(scope="module", params=["proxy", "middleware"])
def translated(request: pytest.FixtureRequest, start_vllm: Start) -> Iterator[tuple[Scripted, str]]:
    if request.param == "middleware":
        scripted = start_vllm("qwen3", "--middleware", MIDDLEWARE, env=POLICY)
        yield scripted, scripted.server.url
        return
    scripted = start_vllm("qwen3")
    with proxied(scripted.server.url, SETTINGS) as base:
        yield scripted, base


def xargs(scripted: Scripted, script: str, step: int = 1) -> dict[str, Any]:
    # The end-of-sequence token ends the output; its text is not shown.
    return {"vllm_xargs": {"script": ",".join(map(str, scripted.ids(script + "<|im_end|>"))), "step": step}}


def say() -> list[Any]:
    return [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize("step", [1, 5])
def test_chat(translated: tuple[Scripted, str], step: int) -> None:
    openai = pytest.importorskip("openai")
    scripted, base = translated
    with openai.OpenAI(base_url=f"{base}/v1", api_key="k", max_retries=0, timeout=REPLY_SECONDS) as client:
        for script, reasoning, content in SCRIPTS:
            asked: dict[str, Any] = {"model": "tiny", "messages": say(), "extra_body": xargs(scripted, script, step)}
            choice = client.chat.completions.create(**asked).choices[0]
            assert (getattr(choice.message, "reasoning_content", ""), choice.message.content) == (reasoning, content)
            assert choice.finish_reason == "stop"
            chunks = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
            deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
            assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == reasoning
            assert "".join(delta.content or "" for delta in deltas) == content
            finish = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
            assert finish == ["stop"]
            assert chunks[-1].usage.completion_tokens > 0


def test_responses(translated: tuple[Scripted, str]) -> None:
    openai = pytest.importorskip("openai")
    scripted, base = translated
    with openai.OpenAI(base_url=f"{base}/v1", api_key="k", max_retries=0, timeout=REPLY_SECONDS) as client:
        for script, reasoning, content in SCRIPTS:
            asked: dict[str, Any] = {"model": "tiny", "input": "hello", "extra_body": xargs(scripted, script)}
            assert items_of(client.responses.create(**asked).output) == (reasoning, content)
            # The SDK's accumulator raises where an event does not fit the items before it.
            with client.responses.stream(**asked) as stream:
                events = list(stream)
                final = stream.get_final_response()
            thoughts = "".join(event.delta for event in events if event.type == "response.reasoning_text.delta")
            texts = "".join(event.delta for event in events if event.type == "response.output_text.delta")
            # Blocks with text between them are items of their own: no joiner stands between those.
            assert (thoughts, texts) == (reasoning.replace("\n\n", ""), content)
            assert items_of(final.output) == (thoughts, content)
            assert [event.sequence_number for event in events] == list(range(len(events)))


def items_of(output: Any) -> tuple[str, str]:
    thoughts = "".join(part.text for item in output if item.type == "reasoning" for part in item.content)
    texts = "".join(part.text for item in output if item.type == "message" for part in item.content)
    return thoughts, texts


def test_messages(translated: tuple[Scripted, str]) -> None:
    anthropic = pytest.importorskip("anthropic")
    scripted, base = translated
    with anthropic.Anthropic(base_url=base, api_key="k", max_retries=0, timeout=REPLY_SECONDS) as client:
        for script, reasoning, content in SCRIPTS:
            asked: dict[str, Any] = {
                "model": "tiny",
                "max_tokens": 500,
                "messages": say(),
                "extra_body": xargs(scripted, script),
            }
            assert blocks_of(client.messages.create(**asked)) == (reasoning, content)
            with client.messages.stream(**asked) as stream:
                final = stream.get_final_message()
            assert blocks_of(final) == (reasoning.replace("\n\n", ""), content)
            assert final.stop_reason == "end_turn"


def blocks_of(message: Any) -> tuple[str, str]:
    thoughts = "".join(block.thinking for block in message.content if block.type == "thinking")
    return thoughts, "".join(block.text for block in message.content if block.type == "text")


def test_several_choices(translated: tuple[Scripted, str]) -> None:
    scripted, base = translated
    body = {"model": "tiny", "messages": say(), "n": 2, **xargs(scripted, SCRIPTS[0][0])}
    body["stream"] = True
    events = decoded(
        httpx.post(f"{base}/v1/chat/completions", json=body, trust_env=False, timeout=REPLY_SECONDS).content
    )
    for index in (0, 1):
        deltas = [c["delta"] for e in events if e != "[DONE]" for c in e["choices"] if c["index"] == index]
        assert "".join(delta.get("reasoning_content") or "" for delta in deltas) == "Why é?"
        assert "".join(delta.get("content") or "" for delta in deltas) == "So."
    assert events[-1] == "[DONE]"


def test_errors_of_the_server_come_through(translated: tuple[Scripted, str]) -> None:
    _, base = translated
    body = {"model": "no such model", "messages": say()}
    answer = httpx.post(f"{base}/v1/chat/completions", json=body, trust_env=False, timeout=REPLY_SECONDS)
    assert answer.status_code == 404
    assert "no such model" in answer.text


def test_the_middleware_counts_on_the_servers_own_metrics_page(start_vllm: Start) -> None:
    scripted = start_vllm("qwen3", "--middleware", MIDDLEWARE, env=POLICY)
    body = {"model": "tiny", "messages": say(), **xargs(scripted, SCRIPTS[0][0])}
    scripted.server.post("/v1/chat/completions", body)
    page = httpx.get(f"{scripted.server.url}/metrics", trust_env=False, timeout=LOCAL_SECONDS).text
    line = next(line for line in page.splitlines() if 'end="closed",mode="body",surface="chat"' in line)
    assert float(line.rpartition(" ")[2]) >= 1
