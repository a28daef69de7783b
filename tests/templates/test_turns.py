"""Where the templates' turns begin and end, outside the assistant's last one."""

import re
from collections.abc import Mapping

import pytest

pytest.importorskip("transformers")
pytest.importorskip("jinja2")

from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tests.support.byte_tokenizer import FAMILIES, byte_tokenizer, template_text
from tests.support.conversations import CONVERSATIONS

SYSTEM: Mapping[str, tuple[str, str]] = {
    "deepseekv32": ("<｜begin▁of▁sentence｜>Sys.", "Sys.<｜User｜>Hi<｜Assistant｜></think>"),
    "qwen3": ("<|im_start|>system\nSys.", "<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"),
    "glm": ("[gMASK]<sop><|system|>Sys.", "Sys.<|user|>Hi<|assistant|>"),
    "minimax": ("]~!b[]~b]system\nSys.", "Sys.[e~[\n]~b]user\nHi[e~[\n]~b]ai\n<think>\n"),
    "minimax_m3": (
        "]~b]system\n<thinking_instructions>\n",
        "\n</thinking_instructions>[e~[\n]~b]developer\nSys.[e~[\n]~b]user\nHi[e~[\n]~b]ai\n",
    ),
    "gemma4": (
        "<bos><|turn>system\nSys.",
        "<turn|>\n<|turn>user\nHi<turn|>\n<|turn>model\n<|channel>thought\n<channel|>",
    ),
    "gpt_oss": (
        "<|start|>system<|message|>",
        "\nReasoning: medium\n\nChannels: analysis, commentary, final.<|end|>"
        "<|start|>developer<|message|># Instructions\n\nSys.<|end|><|start|>user<|message|>Hi<|end|><|start|>assistant",
    ),
    "muse_glimmer": (
        "<|begin_of_text|><|start|>system<|message|>Sys.\n\nReasoning strength: high.\n\n",
        '# Valid recipients: "self", "user".<|eot|><|start|>user<|message|>Hi<|eot|><|start|>assistant',
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_system_turn(family: str) -> None:
    rendered = byte_tokenizer(family).apply_chat_template(
        CONVERSATIONS["system_user"], tokenize=False, add_generation_prompt=True
    )
    begin, end = SYSTEM[family]
    assert rendered[: len(begin)] == begin
    assert rendered[-len(end) :] == end
    assert rendered.count("Sys.") == 1


CLOSED: Mapping[str, str] = {
    "deepseekv32": "</think>Hello.<｜end▁of▁sentence｜>",
    "qwen3": "<think>\nprior thought\n</think>\n\nHello.<|im_end|>\n",
    "glm": "<think>prior thought</think>\nHello.",
    "minimax": "<think>\nprior thought\n</think>\n\nHello.[e~[\n",
    "minimax_m3": "<mm:think>prior thought</mm:think>Hello.[e~[\n",
    "gemma4": "<|channel>thought\nprior thought\n<channel|>Hello.<turn|>\n",
    "gpt_oss": "<|channel|>analysis<|message|>prior thought<|end|>"
    "<|start|>assistant<|channel|>final<|message|>Hello.<|return|>",
    "muse_glimmer": " to=self<|message|>prior thought<|eom|><|start|>assistant to=user<|message|>Hello.<|eot|>",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_finished_answer_is_closed_when_no_prompt_is_asked_for(family: str) -> None:
    rendered = byte_tokenizer(family).apply_chat_template(CONVERSATIONS["assistant_last_reason(agp)"], tokenize=False)
    assert rendered[-len(CLOSED[family]) :] == CLOSED[family]


@pytest.mark.parametrize("family", FAMILIES)
def test_no_helper_of_an_engine_is_needed(family: str) -> None:
    """A bare sandbox has no `strftime_now` and trims no blocks: only the date line may be missing."""
    asked = CONVERSATIONS["multi_turn_reasoning"]
    bare = ImmutableSandboxedEnvironment().from_string(template_text(family))
    full = byte_tokenizer(family).apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    undated = re.sub(r"\n?Current date: \d{4}-\d\d-\d\d\.?", "", full)
    assert bare.render(messages=asked, add_generation_prompt=True) == undated


@pytest.mark.parametrize("family", FAMILIES)
def test_an_engine_finds_the_documented_variables(family: str) -> None:
    """Engines hand on only those request variables that the template reads from outside."""
    text = template_text(family)
    comment = text[: text.index("-#}")]
    documented = set(re.findall(r"^    (?:thinking or )?([a-z_]+)(?: \(.*?\))?: ", comment, re.MULTILINE))
    read = find_undeclared_variables(ImmutableSandboxedEnvironment().parse(text))
    assert "continue_reasoning" in documented
    assert documented <= read
