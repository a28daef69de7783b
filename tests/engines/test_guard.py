"""After a fault in the splitter the reply goes on as content: nothing is repeated, nothing is lost."""

import logging
from typing import Any

import pytest

from vllm_reasoning_ext.core.splitter import Splitter
from vllm_reasoning_ext.engines import guard
from vllm_reasoning_ext.engines.guard import GuardedSplitter

LOG = logging.getLogger("test_guard")
OUTPUTS = {
    "qwen3": "<think>Six \n\n times <tool_call> quoted.</think>\n\nIt is <b>42</b>. <tool_call>\n{}</tool_call>",
    "gpt_oss": "<|channel|>analysis<|message|>Six.<|end|><|channel|>final<|message|>It is 42.<|return|>",
    "muse_glimmer": " to=self<|message|>Six to=x.<|eom|><|start|>assistant to=user<|message|>It is 42.<|eot|>",
    "gemma4": "<|channel>thought\nSix.  \n<channel|>It is <|channel> 42.",
}


class InjectedError(Exception):
    """What is injected."""


@pytest.fixture(autouse=True)
def _said_anew() -> None:
    guard._logged.clear()


def raw(deltas: list[Any]) -> str:
    return "".join(event.text for delta in deltas for event in delta.events if not event.synthetic)


def run(family: str, pieces: list[str], **options: Any) -> tuple[str, list[Any]]:
    splitter = GuardedSplitter(LOG, family, prompt="", **options)
    deltas = [splitter.feed(piece) for piece in pieces]
    deltas.append(splitter.finish())
    return raw(deltas), deltas


class Faulty:
    """Makes one call of a splitter fail.

    Args:
        bad: which call, `finish` included.
        late: the splitter has done its part of the work by then.
    """

    def __init__(self, bad: int, *, late: bool) -> None:
        self._bad, self._late, self._calls = bad, late, 0

    def around(self, real: Any) -> Any:
        def call(splitter: Splitter, *args: Any, **kwargs: Any) -> Any:
            self._calls += 1
            if self._calls - 1 != self._bad:
                return real(splitter, *args, **kwargs)
            if self._late and args and args[0]:
                splitter._reader._lexer.feed(args[0], None)  # type: ignore[attr-defined]
            raise InjectedError

        return call


@pytest.mark.parametrize("stream_reasoning", [True, False])
@pytest.mark.parametrize("width", [1, 3, 1000])
@pytest.mark.parametrize("family", OUTPUTS)
@pytest.mark.parametrize("late", [False, True], ids=["before its work", "after it"])
def test_a_fault_at_any_call_loses_and_repeats_nothing(
    caplog: pytest.LogCaptureFixture, family: str, width: int, *, stream_reasoning: bool, late: bool
) -> None:
    text = OUTPUTS[family]
    pieces = [text[at : at + width] for at in range(0, len(text), width)]
    right = Splitter(family, prompt="", stream_reasoning=stream_reasoning)
    sound = [*(right.feed(piece) for piece in pieces), right.finish()]
    assert raw(sound) == text
    for bad in range(len(pieces) + 1):
        fault = Faulty(bad, late=late)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Splitter, "feed", fault.around(Splitter.feed))
            patch.setattr(Splitter, "finish", fault.around(Splitter.finish))
            shown, deltas = run(family, pieces, stream_reasoning=stream_reasoning)
        assert shown == text, f"call {bad}"
        assert deltas[:bad] == sound[:bad]  # what came before the fault is as it was
    assert "reasoning parser: internal fault (InjectedError" in caplog.text
    assert text[:12] not in caplog.text  # no model text in the log


def test_the_kept_texts_stay_few() -> None:
    splitter = GuardedSplitter(LOG, "qwen3", force_reasoning=True)
    for _ in range(10_000):
        splitter.feed("word ")
    assert len(splitter._texts) <= guard.TEXTS_MAX + 1
    assert splitter._splitter is not None
    assert splitter._splitter.unreleased == 1  # the blank, which the closer may drop


def test_a_fault_is_told_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: Any) -> Any:
        raise InjectedError

    monkeypatch.setattr(Splitter, "feed", fail)
    for _ in range(3):
        assert raw([GuardedSplitter(LOG, "qwen3").feed("Hello")]) == "Hello"
    assert len(caplog.records) == 1


def test_an_unknown_family_shows_the_text(caplog: pytest.LogCaptureFixture) -> None:
    splitter = GuardedSplitter(LOG, "no such family")
    assert splitter.feed("a</think>b").content == "a</think>b"
    assert not splitter.finish()
    assert len(caplog.records) == 1
