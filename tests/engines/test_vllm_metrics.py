"""Counters and warnings: created at zero, counted once an output, one warning a cause."""

from typing import Any

import pytest

pytest.importorskip("vllm", reason="needs vLLM: bash tests/envs/vllm.sh builds its environment")

from prometheus_client import REGISTRY, generate_latest

from tests.support.outputs import OUTPUTS
from tests.support.vllm_drive import Case, Reply, compose
from vllm_reasoning_ext.demo.outputs import TOOLS, Output
from vllm_reasoning_ext.engines import register
from vllm_reasoning_ext.engines.vllm import metrics as vllm_metrics

pytestmark = pytest.mark.vllm

register.register_vllm()

ENDS = {
    "thought then answer": "closer",
    "a call in an open block": "tool",
    "cut by max_tokens mid-thought": "unclosed",
    "plain answer": "none",
}


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def named(name: str) -> Output:
    return next(output for output in OUTPUTS if output.family == "qwen3" and output.name == name)


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("name", ENDS)
def test_an_output_is_counted_once(name: str, streaming: bool) -> None:
    case = Case(named(name))
    compose("qwen3", None, case.tokenizer)
    labels: dict[str, Any] = {"family": "qwen3", "surface": "chat", "start": "undecided", "end": ENDS[name]}
    before = value("reasoning_ext_splits_total", **labels)
    unclosed = value("reasoning_ext_unclosed_total", family="qwen3")
    assert before is not None
    assert unclosed is not None
    case.streamed("qwen3", "hermes") if streaming else case.full("qwen3", "hermes")
    assert value("reasoning_ext_splits_total", **labels) == before + 1
    assert value("reasoning_ext_unclosed_total", family="qwen3") == unclosed + (ENDS[name] == "unclosed")


def test_every_series_is_there_at_zero() -> None:
    compose("qwen3", None, Case(named("plain answer")).tokenizer)
    assert value("reasoning_ext_splits_total", family="qwen3", surface="chat", start="header", end="tool") == 0
    vllm_metrics.prepare("another")
    for name in ("unclosed_total", "floored_total", "starved_total", "largest_hold_characters"):
        assert value(f"reasoning_ext_{name}", family="another") == 0
    assert b"vllm:reasoning_ext" not in generate_latest(REGISTRY)  # vLLM would unregister it


def test_a_reply_starved_of_its_answer_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    vllm_metrics._warn_starved.cache_clear()
    output = named("cut by max_tokens mid-thought")
    limit = len(Case(output).ids)
    for _ in range(2):
        Case(output, max_tokens=limit).streamed("qwen3")
        Case(output, max_tokens=limit).full("qwen3")
    warnings = [record for record in caplog.records if record.name == register.vllm_log.name]
    assert len(warnings) == 1
    assert "max_tokens" in warnings[0].getMessage()
    assert output.reasoning not in caplog.text  # no model text in a log


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(
    ("name", "fields", "content"),
    [
        ("plain answer", {}, "It is 42."),
        ("cut by max_tokens mid-thought", {"max_tokens": 10_000}, "Let me think about"),
        ("cut by max_tokens mid-thought", {"max_tokens": 1}, ""),  # cut by the limit: no floor
        ("a call in an open block", {}, ""),  # a call is an answer
        ("thought then answer", {}, "It is 42."),
    ],
)
def test_the_floor_on_request(name: str, fields: dict[str, Any], content: str, streaming: bool) -> None:
    output = named(name)
    for asked in (True, False):
        case = Case(output, chat_template_kwargs={"force_nonempty_content": asked}, **fields)
        reply = case.streamed("qwen3", "hermes", 2) if streaming else case.full("qwen3", "hermes")
        assert reply.content == (content if asked or output.content else "")
        assert reply.reasoning == output.reasoning


@pytest.mark.parametrize("width", [None, 1, 1000])
def test_the_floor_makes_no_call_of_a_draft(width: int | None) -> None:
    """A thought that is given as the answer is shown; the tool parser does not see it."""
    draft = named("a call in an open block").raw
    thought = f"Maybe {draft} or not."
    output = Output("draft", "qwen3", f"<think>\n{thought}\n</think><|im_end|>", thought, thought)
    case = Case(output, tools=TOOLS, chat_template_kwargs={"force_nonempty_content": True})
    reply = case.streamed("qwen3", "hermes", width) if width else case.full("qwen3", "hermes")
    assert reply == Reply(thought, thought)


def test_an_output_that_ends_at_its_limit_was_not_cut() -> None:
    output = Output("exact", "qwen3", "<think>\nT<|im_end|>", "T", "T")
    limit = len(Case(output).ids)
    case = Case(output, max_tokens=limit, chat_template_kwargs={"force_nonempty_content": True})
    assert [case.full("qwen3"), case.streamed("qwen3"), case.streamed("qwen3", width=1000)] == [Reply("T", "T")] * 3
