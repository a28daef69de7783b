"""Which of an engine's tool-call parsers reads the calls of a family (names of vLLM 0.33 and SGLang 0.5.23)."""

import re
from collections.abc import Collection
from typing import Final, NamedTuple


class Calls(NamedTuple):
    """A family's call syntax, and who reads it.

    Attributes:
        family: the family.
        name: a pattern the model's name must match; "" for any.
        mark: a text its chat template must hold; "" for any.
        vllm, sglang: names of parsers that read it, the best first.
    """

    family: str
    name: str
    mark: str
    vllm: tuple[str, ...]
    sglang: tuple[str, ...]


_CALLS: Final = (
    Calls("muse_glimmer", "", "", ("muse_glimmer",), ("muse",)),
    Calls("gpt_oss", "", "", ("openai",), ("gpt-oss",)),
    Calls("gemma4", "", "", ("gemma4",), ("gemma4",)),
    Calls("minimax", "", "", ("minimax_m2",), ("minimax-m2",)),
    Calls("minimax_m3", "", "", ("minimax_m3",), ("minimax-m3",)),
    # SGLang refuses to start with its own V4 tool parser beside a reasoning parser that is not its own.
    Calls("deepseekv32", r"v4\.1", "", ("deepseek_v41",), ()),
    Calls("deepseekv32", r"v4", "", ("deepseek_v4",), ()),
    Calls("deepseekv32", "", "", ("deepseek_v32",), ("deepseekv32",)),
    Calls("qwen3", r"glm.*4\.[56]", "", ("glm45",), ("glm45", "glm")),
    Calls("qwen3", r"glm", "", ("glm47", "glm45"), ("glm47", "glm45")),
    Calls("qwen3", "", "<arg_key>", ("glm47", "glm45"), ("glm47", "glm45")),
    Calls("qwen3", r"deepseek.*v3\.?1", "", ("deepseek_v31",), ("deepseekv31",)),
    Calls("qwen3", "", "<｜tool▁calls▁begin｜>", ("deepseek_v3",), ("deepseekv3",)),
    Calls("qwen3", r"distill", "", (), ()),
    Calls("qwen3", r"qwen-?3\.\d|coder", "", ("qwen3_xml", "qwen3_coder"), ("qwen3_coder",)),
    Calls("qwen3", "", "<function=", ("qwen3_xml", "qwen3_coder"), ("qwen3_coder",)),
    Calls("qwen3", "", "", ("hermes",), ("qwen25", "qwen", "hermes")),
)
"""Most telling first: name and mark must both fit."""


def tool_parser(engine: str, family: str, name: str, template: str, known: Collection[str] | None) -> str | None:
    """Choose a tool-call parser.

    Args:
        engine: "vllm" or "sglang".
        family: the model's family.
        name: the model's name or path.
        template: its chat template; "" when unknown.
        known: the parsers the installed engine has; None where there is none to ask.

    Returns:
        its name; None when the model has no call syntax of its own, or the engine no parser for it.
    """
    for row in _CALLS:
        if row.family == family and re.search(row.name, name.lower()) and row.mark in template:
            wanted = row.vllm if engine == "vllm" else row.sglang
            return next((parser for parser in wanted if known is None or parser in known), None)
    return None
