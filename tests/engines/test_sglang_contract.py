"""Our detectors against SGLang's own ReasoningParser and tool parsers, without a server (0.5.20, 0.5.23)."""
# ruff: noqa: E402

import argparse
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final

import pytest

sglang = pytest.importorskip("sglang")

from sglang.srt.parser.reasoning_parser import BaseReasoningFormatDetector, ReasoningParser
from sglang.srt.server_args import ServerArgs

from tests.engines.replay import raw, start_of, tokenizer_of
from tests.engines.sglang_drive import (
    TOOL_PARSERS,
    joined,
    parser_for,
    set_output,
    streamed,
    streamed_reply,
    whole,
    whole_reply,
)
from tests.support.more_outputs import ALL_OUTPUTS, outputs_of
from vllm_reasoning_ext import split
from vllm_reasoning_ext.core.families import FAMILIES
from vllm_reasoning_ext.demo.outputs import FUNCTION, Output
from vllm_reasoning_ext.engines.names import KEEP_BUILTIN, parser_names
from vllm_reasoning_ext.engines.register import register_sglang
from vllm_reasoning_ext.engines.sglang import output as sglang_output
from vllm_reasoning_ext.engines.sglang import register as sglang_register
from vllm_reasoning_ext.engines.sglang.detector import PromptFacts, SglangDetector, detector_class, family_of
from vllm_reasoning_ext.errors import SetupError

pytestmark = pytest.mark.sglang

register_sglang()

NAMES: Final = sorted({known.name.lower() for known in parser_names() if known.replaces and known.name != "auto"})
ALL: Final = pytest.mark.parametrize("output", ALL_OUTPUTS, ids=lambda output: f"{output.family}-{output.name}")
EVERY: Final = pytest.mark.parametrize("family", FAMILIES)


@pytest.fixture(autouse=True)
def _no_output_left_over() -> Iterator[None]:
    yield
    sglang_output.set_current(None)


# Names


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_ours_is_ours(name: str) -> None:
    detector = ReasoningParser(name).detector
    assert isinstance(detector, SglangDetector)
    assert isinstance(detector, BaseReasoningFormatDetector)
    assert family_of(name) is detector.family


def test_the_command_line_offers_every_name() -> None:
    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    (action,) = [a for a in parser._actions if "--reasoning-parser" in a.option_strings]
    assert action.choices is not None
    assert set(NAMES) <= set(action.choices)


@pytest.mark.parametrize(
    ("kept", "lost"),
    [("", {"qwen3", "gemma4"}), ("qwen3", {"gemma4"}), ("qwen3, gemma4", set()), ("all", set())],
)
def test_the_operator_may_keep_the_builtin(monkeypatch: pytest.MonkeyPatch, kept: str, lost: set[str]) -> None:
    class Builtin(BaseReasoningFormatDetector): ...

    monkeypatch.setenv(KEEP_BUILTIN, kept)
    table: dict[str, Any] = {"qwen3": Builtin, "gemma4": Builtin, "kimi": Builtin}
    assert set(sglang_register.bind_names(table)) == lost
    assert {name for name, found in table.items() if found is Builtin} == {"qwen3", "gemma4", "kimi"} - lost
    assert table["qwen3_ext"] is detector_class("qwen3")
    assert sglang_register.bind_names(table) == []


def test_other_parsers_of_sglang_are_untouched() -> None:
    assert family_of("kimi_k2") is None
    assert family_of(None) is None
    assert ReasoningParser("deepseek-r1").parse_non_stream("a</think>b") == ("a", "b")


# The split


@ALL
def test_whole(output: Output) -> None:
    assert whole(parser_for(output, stream_reasoning=False), output) == (output.reasoning, raw(output))


@ALL
@pytest.mark.parametrize("width", [1, 2, 3, 8, 1000])
def test_streamed(output: Output, width: int) -> None:
    assert joined(streamed(parser_for(output), output, width)) == (output.reasoning, raw(output))


@ALL
def test_reasoning_in_one_piece_on_request(output: Output) -> None:
    got = streamed(parser_for(output, stream_reasoning=False), output, 1)
    assert joined(got) == (output.reasoning, raw(output))
    assert len([reasoning for reasoning, _ in got if reasoning]) <= 1


@ALL
def test_without_hooks_the_text_decides(output: Output) -> None:
    options: dict[str, Any] = {"start": start_of(output), "tools": bool(output.cities)}
    expected = split(output.text, output.family, **options)
    parser = ReasoningParser(output.family)
    parser.detector.bind(PromptFacts(options["start"], options["tools"]))
    got = [parser.parse_stream_chunk(char) for char in output.text] + [parser.parse_stream_end()]
    assert joined([(r or "", c or "") for r, c in got]) == (expected.reasoning, expected.content)
    assert parser.parse_non_stream(output.text) == (expected.reasoning, expected.content)


@EVERY
@pytest.mark.parametrize("force", [None, True, False])
def test_without_a_request_sglangs_guess_decides(family: str, force: bool | None) -> None:
    expected = split("one two", family, force_reasoning=force)
    got = ReasoningParser(f"{family}_ext", force_reasoning=force)
    assert got.parse_non_stream("one two") == (expected.reasoning, expected.content)


@pytest.mark.parametrize("force", [None, True, False])
def test_a_name_that_sglang_forces_open_is_open(force: bool | None) -> None:
    got = ReasoningParser("minimax", force_reasoning=force)
    assert got.parse_non_stream("one two") == ("one two", "")


# What SGLang asks of a detector


@EVERY
def test_constructor_arguments_are_found_by_name(family: str) -> None:
    request = type("Request", (), {"chat_template_kwargs": {"force_nonempty_content": True}})()
    tokenizer = tokenizer_of(family)
    detector = ReasoningParser(
        f"{family}_ext", stream_reasoning=False, request=request, tokenizer=tokenizer, tool_call_parser_active=True
    ).detector
    assert detector._tokenizer is tokenizer
    assert detector._tool_parser_active
    assert detector._floor == "promote"
    assert detector.stream_reasoning is False
    assert detector.thinks_internally


@EVERY
def test_the_scheduler_gets_its_ids(family: str) -> None:
    tokenizer = tokenizer_of(family)
    detector = ReasoningParser(f"{family}_ext", tokenizer=tokenizer).detector
    decoded = tokenizer.decode(detector.get_think_end_token_ids(tokenizer), skip_special_tokens=False)
    assert decoded in (FAMILIES[family].closer, " to=user<|message|>", "<|channel|>final<|message|>")
    own = detector.get_self_opened_think_start_token_ids(tokenizer)
    assert own is None or tokenizer.decode(own, skip_special_tokens=False) == FAMILIES[family].opener


@pytest.mark.parametrize("family", ["gpt_oss", "muse_glimmer"])
def test_a_foreign_tokenizer_is_a_setup_error(family: str) -> None:
    with pytest.raises(SetupError, match=r"no single token for <\|start\|>.*Remedy"):
        ReasoningParser(family, tokenizer=tokenizer_of("qwen3"))


@pytest.mark.parametrize("family", sorted({output.family for output in ALL_OUTPUTS}))
@pytest.mark.parametrize("content", ["", " \n"])
def test_an_empty_answer_is_the_reasoning_on_request(family: str, content: str) -> None:
    output = next(output for output in outputs_of(family) if output.reasoning and not output.cut and not output.cities)
    request = SimpleNamespace(chat_template_kwargs={"force_nonempty_content": True})
    cut = output._replace(script=output.script.replace(output.content, content), content="")
    assert whole(parser_for(cut, request=request), cut)[1].strip() == output.reasoning
    sglang_output.set_current(None)
    assert joined(streamed(parser_for(cut, request=request), cut, 1))[1].strip() == output.reasoning


@EVERY
def test_plain_text_is_not_held(family: str) -> None:
    # An abort never calls finish: what is held then is lost, so nothing may be that could not be a marker.
    parser = ReasoningParser(f"{family}_ext", force_reasoning=False)
    parser.parse_stream_chunk("An answer")
    assert parser.parse_stream_chunk(", of words.") == ("", ", of words.")


def test_a_tokenizer_that_fails_does_not_end_the_reply(caplog: pytest.LogCaptureFixture) -> None:
    class Failing:
        def convert_tokens_to_ids(self, text: str) -> int:
            return {"<think>": 7, "</think>": 8}.get(text, 0)

        def decode(self, ids: list[int], **_: Any) -> str:
            if len(ids) != 1:
                raise RuntimeError("out of vocabulary")
            return {7: "<think>", 8: "</think>"}.get(ids[0], "?")

    parser = ReasoningParser("qwen3", tokenizer=Failing())
    set_output([7, 1, 2, 8, 3, 4, 5])
    with caplog.at_level(logging.DEBUG):
        first = parser.parse_stream_chunk("<think>a</think>")
        rest = [parser.parse_stream_chunk("b </think> c"), parser.parse_stream_end()]
    assert "".join((r or "") + (c or "") for r, c in [first, *rest]).endswith("b </think> c")
    assert "out of vocabulary" not in caplog.text


# Together with SGLang's own tool parsers


WITH_CALLS: Final = [output for output in ALL_OUTPUTS if output.family in TOOL_PARSERS]
TOOL_OUTPUTS: Final = pytest.mark.parametrize("output", WITH_CALLS, ids=lambda output: f"{output.family}-{output.name}")


@TOOL_OUTPUTS
def test_with_sglangs_tool_parser(output: Output) -> None:
    parser = TOOL_PARSERS[output.family]
    for reply in (whole_reply(output, parser), *(streamed_reply(output, parser, width) for width in (1, 3, 1000))):
        assert (reply.reasoning, reply.content) == (output.reasoning, output.content)
        assert {name for name, _ in reply.calls} <= {FUNCTION}
        assert reply.arguments == [{"city": city} for city in output.cities]
