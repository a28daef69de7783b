"""`--reasoning-parser auto`: the family that tokenizer and template show, and what is said about it."""

import json
import logging
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="needs vLLM: bash tests/envs/vllm.sh builds its environment")

from tests.support.byte_tokenizer import FAMILIES, byte_tokenizer
from tests.support.more_outputs import ALL_OUTPUTS, TOOL_PARSERS
from tests.support.vllm_drive import WIDTHS, Case, compose
from vllm_reasoning_ext.demo.outputs import Output
from vllm_reasoning_ext.engines import auto, register
from vllm_reasoning_ext.engines.vllm import compose as vllm_compose
from vllm_reasoning_ext.engines.vllm.auto import AutoParser
from vllm_reasoning_ext.engines.vllm.harmony import GptOssParser
from vllm_reasoning_ext.errors import SetupError

pytestmark = pytest.mark.vllm

register.register_vllm()

PLAIN = "{% for message in messages %}{{ message.content }}\n{% endfor %}"
THOUGHTS = """{%- for message in messages -%}
<|open|>{{ message.role }}<|sep|>
{%- if message.role == 'assistant' and message.reasoning_content -%}
<muse>{{ message.reasoning_content }}</muse>
{%- endif -%}
{{ message.content }}<|shut|>
{%- endfor -%}
{%- if add_generation_prompt -%}<|open|>assistant<|sep|>{%- endif -%}"""


@pytest.fixture(autouse=True)
def _said_anew() -> None:
    auto._said.clear()
    vllm_compose._check_calls.cache_clear()


def tokenizer_with(template: str | None, family: str = "qwen3") -> Any:
    """Build a tokenizer of a family with another chat template: a fresh object, so that nothing is remembered."""
    tokenizer = byte_tokenizer.__wrapped__(family)
    tokenizer.chat_template = template
    return tokenizer


def said(caplog: pytest.LogCaptureFixture, level: str) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == register.vllm_log.name and r.levelname == level]


@pytest.mark.parametrize("output", ALL_OUTPUTS, ids=lambda output: f"{output.family}-{output.name}")
def test_auto_behaves_as_the_family_does(output: Output) -> None:
    case, tool = Case(output), TOOL_PARSERS.get(output.family)
    assert case.full("auto", tool) == case.full(output.family, tool)
    for width in WIDTHS:
        assert case.streamed("auto_ext", tool, width) == case.streamed(output.family, tool, width)


def test_every_family_of_the_seven_is_among_them() -> None:
    assert {output.family for output in ALL_OUTPUTS} >= {*FAMILIES} - {"glm"}


def test_a_gpt_oss_model_keeps_vllms_composition() -> None:
    from vllm.parser.harmony import HarmonyParser

    class Composed(HarmonyParser):  # type: ignore[misc]
        reasoning_parser_cls = AutoParser

    parser = Composed(byte_tokenizer("gpt_oss"))
    assert isinstance(parser._reasoning_parser, GptOssParser)


def test_a_template_of_no_family_gives_a_record_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, register.vllm_log.name)
    parser = AutoParser(tokenizer_with(THOUGHTS))
    assert (parser.reasoning_start_str, parser.reasoning_end_str) == ("<muse>", "</muse>")
    assert parser.extract_reasoning("<muse>a</muse>b", SimpleNamespace(tools=None)) == ("a", "b")
    (line,) = said(caplog, "INFO")
    assert "auto took family derived" in line
    assert "'<muse>' … '</muse>'" in line


def test_renamed_markers_are_found_as_well() -> None:
    renamed = THOUGHTS.replace("muse", "ponder").replace("open", "begin").replace("shut", "over")
    parser = AutoParser(tokenizer_with(renamed))
    assert parser.extract_reasoning("<ponder>a</ponder>b", SimpleNamespace(tools=None)) == ("a", "b")


def test_a_model_without_reasoning_is_all_content_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, register.vllm_log.name)
    tokenizer = tokenizer_with(PLAIN, "gpt_oss")
    tokenizer = _without_added_tokens(tokenizer)
    for _ in range(2):
        parser = AutoParser(tokenizer)
        text = "\n\n<think>a</think>b <|im_end|>"
        assert parser.extract_reasoning(text, SimpleNamespace(tools=None)) == (None, text)
        assert parser.is_reasoning_end([1, 2, 3])
        assert not parser.reasoning_start_str
    (line,) = said(caplog, "WARNING")
    assert "everything is content" in line
    assert "--reasoning-parser NAME" in line
    assert not said(caplog, "INFO")


def _without_added_tokens(tokenizer: Any) -> Any:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    state = json.loads(tokenizer.backend_tokenizer.to_str())
    state["added_tokens"] = []
    names = {text for text in state["model"]["vocab"] if text.startswith("<|")}
    state["model"]["vocab"] = {text: number for text, number in state["model"]["vocab"].items() if text not in names}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(state)), chat_template=tokenizer.chat_template
    )


def test_the_choice_is_said_once_with_the_tool_parser(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, register.vllm_log.name)
    tokenizer = tokenizer_with(byte_tokenizer("glm").chat_template, "glm")
    for _ in range(3):
        AutoParser(tokenizer)
    (line,) = said(caplog, "INFO")
    assert "family qwen3" in line
    assert "--tool-call-parser glm47 reads its calls" in line


def test_a_tool_parser_that_reads_other_calls_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    output = next(output for output in ALL_OUTPUTS if output.family == "qwen3" and output.cities)
    case = Case(output)
    for _ in range(2):
        case.full("auto", "minimax_m2")
    (line,) = said(caplog, "WARNING")
    assert "whose calls --tool-call-parser hermes reads" in line
    caplog.clear()
    case.full("auto", "hermes")
    assert not said(caplog, "WARNING")


def test_a_template_that_cannot_be_rendered_is_a_start_up_error() -> None:
    with pytest.raises(SetupError, match="chat template"):
        AutoParser(tokenizer_with("{% for message in %}"))


def test_a_requests_own_template_decides_for_it(caplog: pytest.LogCaptureFixture) -> None:
    case = Case(_own())
    case.request.chat_template = THOUGHTS
    assert case.full("auto") == ("a", "b", ())
    assert case.streamed("auto", width=1) == ("a", "b", ())
    (line,) = said(caplog, "WARNING")
    assert "a request's own chat template writes what family derived reads" in line
    case.request.chat_template = None
    assert case.full("auto") == ("", "<muse>a</muse>b", ())


def _own() -> Output:
    return Output("own", "qwen3", "<muse>a</muse>b<|im_end|>")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["serve", "m", "--chat-template", "{file}"], PLAIN),
        (["serve", "m", "--chat-template={file}"], PLAIN),
        (["serve", "m", "--chat-template", PLAIN], PLAIN),
        (["serve", "m", "--chat-template", "llama_3"], None),
        (["serve", "m", "--chat-template"], None),
        (["serve", "m"], None),
    ],
)
def test_the_servers_own_template_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, arguments: list[str], text: str | None
) -> None:
    (tmp_path / "t.jinja").write_text(PLAIN)
    given = [argument.replace("{file}", str(tmp_path / "t.jinja")) for argument in arguments]
    monkeypatch.setattr("sys.argv", ["vllm", *given])
    monkeypatch.delenv(auto.SERVED_TEMPLATE, raising=False)
    assert auto.served_template() == text


def test_composition_knows_no_family_yet() -> None:
    composed = compose("auto", None, byte_tokenizer("qwen3"))
    assert composed.reasoning_parser_cls is AutoParser
