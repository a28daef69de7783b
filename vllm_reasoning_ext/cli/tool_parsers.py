"""Which of an engine's tool-call parsers reads the calls of a model (names of vLLM 0.33 and SGLang 0.5.23)."""

import re
from collections.abc import Collection
from typing import Final, NamedTuple


class Calls(NamedTuple):
    """A call syntax, and who reads it.

    Attributes:
        family: the family whose models write it.
        name: a pattern the model's name matches; "" for every model of the family.
        marks: texts that a chat template with this syntax holds.
        vllm, sglang: names of parsers that read it, the best first.
    """

    family: str
    name: str
    marks: tuple[str, ...]
    vllm: tuple[str, ...]
    sglang: tuple[str, ...]


class Choice(NamedTuple):
    """A tool-call parser, or why there is none.

    Attributes:
        parser: its name; None for none.
        why: why there is none, in words; "" where there is one.
    """

    parser: str | None
    why: str = ""


_V3: Final = "<｜tool▁calls▁begin｜>"

_CALLS: Final = (
    Calls("muse_glimmer", "", (), ("muse_glimmer",), ("muse",)),
    Calls("gpt_oss", "", (), ("openai",), ("gpt-oss",)),
    Calls("gemma4", "", (), ("gemma4",), ("gemma4",)),
    Calls("minimax", "", (), ("minimax_m2",), ("minimax-m2",)),
    Calls("minimax_m3", "", (), ("minimax_m3",), ("minimax-m3",)),
    # SGLang refuses to start with its own V4 tool parser beside a reasoning parser that is not its own.
    Calls("deepseekv32", r"v4\.1", ("｜DSML｜",), ("deepseek_v41",), ()),
    Calls("deepseekv32", r"v4", ("｜DSML｜",), ("deepseek_v4",), ()),
    Calls("deepseekv32", "", ("｜DSML｜",), ("deepseek_v32",), ("deepseekv32",)),
    # The distills took their template from R1, but were not trained to call.
    Calls("qwen3", r"distill", (_V3,), (), ()),
    Calls("qwen3", r"deepseek.*r1", (_V3, "```json"), ("deepseek_v3",), ("deepseekv3",)),
    Calls("qwen3", r"deepseek.*v3\.?[12]", (_V3,), ("deepseek_v31",), ("deepseekv31",)),
    Calls("qwen3", r"glm.*4\.[56]", ("<arg_key>",), ("glm45",), ("glm45", "glm")),
    Calls("qwen3", r"glm", ("<arg_key>",), ("glm47", "glm45"), ("glm47", "glm45")),
    Calls("qwen3", r"qwen-?3\.\d|coder", ("<function=",), ("qwen3_xml", "qwen3_coder"), ("qwen3_coder",)),
    Calls("qwen3", r"qwen-?3|qwq", ("<tool_call>", '"name"'), ("hermes",), ("qwen25", "qwen", "hermes")),
)
"""Most telling first."""


def tool_parser(engine: str, family: str, name: str, template: str, known: Collection[str] | None) -> Choice:
    """Choose a tool-call parser that reads what the model writes.

    Args:
        engine: "vllm" or "sglang".
        family: the model's family.
        name: the model's name or path.
        template: its chat template; "" when unknown. It outranks the name, which only chooses among what fits it.
        known: the parsers the installed engine has; None where there is none to ask.
    """
    row = _row(family, name, template)
    if row is None:
        return Choice(None, "this model's way of writing calls is not known, so no tool-call parser is named")
    wanted = row.vllm if engine == "vllm" else row.sglang
    if not wanted:
        return Choice(None, "no tool-call parser for this model's calls there: they stay in the content")
    found = next((parser for parser in wanted if known is None or parser in known), None)
    if found is None:
        return Choice(None, f"no tool-call parser for this model's calls there (it would be {wanted[0]})")
    return Choice(found)


def _row(family: str, name: str, template: str) -> Calls | None:
    rows = [row for row in _CALLS if row.family == family]
    named = [row for row in rows if re.search(row.name, name.lower())]
    if not template:
        return next(iter(named), None)
    fitting = [row for row in rows if all(mark in template or _escaped(mark) in template for mark in row.marks)]
    return next((row for row in fitting if row in named), next((row for row in fitting if row.name != "distill"), None))


def _escaped(mark: str) -> str:
    """Write a mark as it stands in a string of the template's own."""
    return mark.replace('"', '\\"')
