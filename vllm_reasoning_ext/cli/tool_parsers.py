"""Which of an engine's tool-call parsers reads the calls of a model, told from its name and chat template."""

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from vllm_reasoning_ext.core.families import FAMILIES
from vllm_reasoning_ext.derive.tool_parsers import (
    DSML,
    DSML_V4,
    DSML_V41,
    GLM45,
    GLM47,
    HERMES,
    NONE,
    QWEN_XML,
    R1,
    V31,
    ToolParsers,
    tool_parsers,
)


class Calls(NamedTuple):
    """A call syntax, and who reads it.

    Attributes:
        family: the family whose models write it.
        name: a pattern the model's name matches; "" for every model of the family.
        marks: texts that a chat template with this syntax holds.
        parsers: those that read it.
    """

    family: str
    name: str
    marks: tuple[str, ...]
    parsers: ToolParsers


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
    Calls("deepseekv32", r"v4\.1", ("｜DSML｜",), DSML_V41),
    Calls("deepseekv32", r"v4", ("｜DSML｜",), DSML_V4),
    Calls("deepseekv32", "", ("｜DSML｜",), DSML),
    # The distills took their template from R1, but were not trained to call.
    Calls("qwen3", r"distill", (_V3,), NONE),
    Calls("qwen3", r"deepseek.*r1", (_V3, "```json"), R1),
    Calls("qwen3", r"deepseek.*v3\.?[12]", (_V3,), V31),
    Calls("qwen3", r"glm.*4\.[56]", ("<arg_key>",), GLM45),
    Calls("qwen3", r"glm", ("<arg_key>",), GLM47),
    Calls("qwen3", r"qwen-?3\.\d|coder|nemotron-?3|granite-?4|step-?[35]", ("<function=",), QWEN_XML),
    Calls("qwen3", r"mimo", ("<function=",), ToolParsers(("mimo", *QWEN_XML.vllm), ("mimo", *QWEN_XML.sglang))),
    Calls("qwen3", r"qwen-?3|qwq", ("<tool_call>", '"name"'), HERMES),
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
    parsers = _parsers(family, name, template)
    if parsers is None:
        return Choice(None, "this model's way of writing calls is not known, so no tool-call parser is named")
    wanted = parsers.vllm if engine == "vllm" else parsers.sglang
    if not wanted:
        return Choice(None, "no tool-call parser for this model's calls there: they stay in the content")
    found = next((parser for parser in wanted if known is None or parser in known), None)
    if found is None:
        return Choice(None, f"no tool-call parser for this model's calls there (it would be {wanted[0]})")
    return Choice(found)


def _parsers(family: str, name: str, template: str) -> ToolParsers | None:
    rows = [row for row in _CALLS if row.family == family]
    if not rows:
        # All models of the family write their calls alike.
        return tool_parsers(FAMILIES[family])
    row = _row(rows, name, template)
    return row.parsers if row is not None else None


def _row(rows: Collection[Calls], name: str, template: str) -> Calls | None:
    named = [row for row in rows if re.search(row.name, name.lower())]
    if not template:
        return next(iter(named), None)
    fitting = [row for row in rows if all(mark in template or _escaped(mark) in template for mark in row.marks)]
    return next((row for row in fitting if row in named), next((row for row in fitting if row.name != "distill"), None))


def _escaped(mark: str) -> str:
    """Write a mark as it stands in a string of the template's own."""
    return mark.replace('"', '\\"')
