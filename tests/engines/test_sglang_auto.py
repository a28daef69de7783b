"""`--reasoning-parser auto` in SGLang: who answers, and that it is the family that tokenizer and template show."""

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("sglang")

from sglang.srt.parser.reasoning_parser import ReasoningParser

from tests.engines.replay import tokenizer_of
from tests.engines.sglang_drive import joined, parser_for, streamed, whole
from tests.support.byte_tokenizer import byte_tokenizer
from tests.support.more_outputs import ALL_OUTPUTS
from vllm_reasoning_ext.demo.outputs import Output
from vllm_reasoning_ext.engines import auto
from vllm_reasoning_ext.engines.names import KEEP_BUILTIN
from vllm_reasoning_ext.engines.register import register_sglang
from vllm_reasoning_ext.engines.sglang import auto as sglang_auto
from vllm_reasoning_ext.engines.sglang import hooks as sglang_hooks
from vllm_reasoning_ext.engines.sglang import output as sglang_output
from vllm_reasoning_ext.engines.sglang.detector import AutoDetector, detector_class, family_of
from vllm_reasoning_ext.errors import SetupError

pytestmark = pytest.mark.sglang

register_sglang()


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    auto._said.clear()
    monkeypatch.delenv(KEEP_BUILTIN, raising=False)
    monkeypatch.setenv(auto.SERVED_TEMPLATE, "")
    yield
    sglang_output.set_current(None)


def settings(monkeypatch: pytest.MonkeyPatch, tokenizer: Any, **fields: Any) -> SimpleNamespace:
    """Settings as SGLang resolves them; `declared` is what this package answers."""
    given = SimpleNamespace(reasoning_parser="auto", tool_call_parser=None, chat_template=None, declared=None)
    vars(given).update(fields)
    monkeypatch.setattr(sglang_auto, "_view", lambda args: args)
    monkeypatch.setattr(sglang_auto, "_declare", lambda args, parser: setattr(args, "declared", parser))
    monkeypatch.setattr(sglang_auto, "_tokenizer", lambda args: tokenizer)
    return given


def said(caplog: pytest.LogCaptureFixture, level: str) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "sglang.reasoning_ext" and r.levelname == level]


@pytest.mark.parametrize("output", ALL_OUTPUTS, ids=lambda output: f"{output.family}-{output.name}")
def test_auto_behaves_as_the_family_does(output: Output) -> None:
    named, chosen = parser_for(output), parser_for(output, name="auto_ext")
    assert type(chosen.detector) is type(named.detector)
    assert whole(chosen, output) == whole(named, output)
    for width in (1, 3, 1000):
        sglang_output.set_current(None)
        got = joined(streamed(parser_for(output, name="auto_ext"), output, width))
        sglang_output.set_current(None)
        assert got == joined(streamed(parser_for(output), output, width))


def test_a_server_that_asks_for_auto_gets_auto_ext(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sglang.reasoning_ext")
    args = settings(monkeypatch, tokenizer_of("qwen3"))
    sglang_hooks.around_resolve(lambda args: None, args)
    assert args.declared == "auto_ext"
    first, second = said(caplog, "INFO")
    assert f"{KEEP_BUILTIN}=auto keeps SGLang's own" in first
    assert "auto took family qwen3" in second
    assert "--tool-call-parser qwen25 reads its calls" in second
    assert not said(caplog, "WARNING")


def test_the_operator_may_keep_sglangs_own_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEEP_BUILTIN, "auto")
    args = settings(monkeypatch, tokenizer_of("qwen3"))
    asked = []
    sglang_hooks.around_resolve(asked.append, args)
    assert (args.declared, asked) == (None, [args])


@pytest.mark.parametrize("name", ["qwen3", None])
def test_another_parser_is_left_alone(monkeypatch: pytest.MonkeyPatch, name: str | None) -> None:
    args = settings(monkeypatch, tokenizer_of("qwen3"), reasoning_parser=name)
    sglang_hooks.around_resolve(lambda args: None, args)
    assert args.declared is None


def test_a_tool_parser_of_other_calls_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sglang_auto.take_auto(settings(monkeypatch, tokenizer_of("qwen3"), tool_call_parser="minimax-m2"))
    (line,) = said(caplog, "WARNING")
    assert "reads; this server's is minimax-m2" in line
    assert "qwen25" in line


def test_the_servers_template_reaches_the_processes_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    sglang_auto.take_auto(settings(monkeypatch, None, chat_template=template))
    assert auto.served_template() == template


def test_a_template_that_cannot_be_rendered_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    args = settings(monkeypatch, tokenizer_of("qwen3"), chat_template="{% for message in %}")
    with pytest.raises(SetupError, match="chat template"):
        sglang_hooks.around_resolve(lambda args: None, args)


def test_the_name_is_bound_and_the_detector_is_the_familys() -> None:
    assert ReasoningParser.DetectorMap["auto_ext"] is AutoDetector
    assert "auto" not in ReasoningParser.DetectorMap
    for family in ("qwen3", "gpt_oss", "gemma4"):
        tokenizer = tokenizer_of(family)
        detector = ReasoningParser("auto_ext", tokenizer=tokenizer).detector
        assert type(detector) is detector_class(family)
        assert family_of("auto_ext", tokenizer) is detector.family
        assert family_of("auto_ext") is detector.family  # what this process chose last


def test_a_checkpoints_suffix_is_the_detectors_too() -> None:
    tokenizer = byte_tokenizer.__wrapped__("gpt_oss")
    tokenizer.add_tokens(["<think:lab>", "</think:lab>"])
    detector = ReasoningParser("hunyuan_ext", tokenizer=tokenizer).detector
    assert (detector.think_start_token, detector.think_end_token) == ("<think:lab>", "</think:lab>")
    record = family_of("hunyuan_ext", tokenizer)
    assert record is not None
    assert record.opener == "<think:lab>"
