"""What this package says where a vLLM has moved what it looks for: one WARNING, and the plain contract serves."""

import importlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="needs vLLM: bash tests/envs/vllm.sh builds its environment")

from tests.support.byte_tokenizer import byte_tokenizer
from tests.support.vllm_drive import compose
from vllm_reasoning_ext.engines import register
from vllm_reasoning_ext.engines.names import KEEP_BUILTIN
from vllm_reasoning_ext.engines.vllm import compose as vllm_compose
from vllm_reasoning_ext.engines.vllm import lookup
from vllm_reasoning_ext.engines.vllm.parser import Composable

pytestmark = pytest.mark.vllm

register.register_vllm()

REQUEST = SimpleNamespace(tools=None, tool_choice=None)


@pytest.fixture(autouse=True)
def _said_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    lookup.warn_moved.cache_clear()
    monkeypatch.setattr(Composable, "composed", Composable.composed)
    yield
    lookup.warn_moved.cache_clear()


def warned(caplog: pytest.LogCaptureFixture) -> str:
    (line,) = [r.getMessage() for r in caplog.records if r.name == register.vllm_log.name and r.levelname == "WARNING"]
    assert KEEP_BUILTIN in line
    return line


def qwen3() -> Any:
    from vllm.reasoning import ReasoningParserManager

    return ReasoningParserManager.get_reasoning_parser("qwen3_ext")(byte_tokenizer("qwen3"))


def test_a_delta_message_that_moved_is_found_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    known = lookup.DeltaMessage
    monkeypatch.setattr(lookup, "find", _nowhere)
    assert lookup.delta_message() is known


def test_without_any_delta_message_one_warning_and_the_same_fields(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lookup, "find", _nowhere)
    monkeypatch.setattr(lookup.sys, "modules", {})
    made = lookup.delta_message()(reasoning="a")
    assert (made.reasoning, made.content, made.tool_calls) == ("a", None, [])
    assert "no DeltaMessage" in warned(caplog)


@pytest.mark.parametrize("name", vllm_compose.NEEDED)
def test_a_private_method_that_is_gone_is_told_and_the_plain_contract_serves(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    base = lookup.delegating_parser()
    monkeypatch.delattr(base, name)
    composed = compose("qwen3_ext", None, byte_tokenizer("qwen3"))
    assert composed.parse is base.parse
    line = warned(caplog)
    assert name in line
    assert "may be lost" in line


def test_a_composition_that_moved_is_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(vllm_compose, "delegating_parser", _nowhere)
    compose("qwen3_ext", None, byte_tokenizer("qwen3"))
    assert "composes its parsers elsewhere" in warned(caplog)


@pytest.mark.parametrize("stream", [False, True])
def test_a_hook_that_is_never_called_is_told_once(caplog: pytest.LogCaptureFixture, *, stream: bool) -> None:
    Composable.composed = False
    for _ in range(2):
        parser = qwen3()
        if stream:
            message = parser.extract_reasoning_streaming("", "<think>a", "<think>a", [], [1], [1])
            assert message.reasoning == "a"
        else:
            assert parser.extract_reasoning("<think>a</think>b", REQUEST) == ("a", "b")
    assert "does not compose its parsers" in warned(caplog)


def test_a_hook_that_works_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    compose("qwen3_ext", None, byte_tokenizer("qwen3"))
    assert qwen3().extract_reasoning("<think>a</think>b", REQUEST) == ("a", "b")
    assert not [record for record in caplog.records if record.name == register.vllm_log.name]


def _nowhere(*_: str) -> Any:
    raise ImportError


def test_the_modules_still_import() -> None:
    assert importlib.import_module("vllm_reasoning_ext.engines.vllm.lookup") is lookup
