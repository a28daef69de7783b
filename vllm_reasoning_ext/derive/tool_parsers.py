"""Which of the engines' tool-call parsers reads calls of a record's form (names of vLLM 0.33 and SGLang 0.5.23)."""

from typing import Final, NamedTuple

from vllm_reasoning_ext.core.record import Family, Part, Tool


class ToolParsers(NamedTuple):
    """Parser names for each engine, the best first; () where an engine has none."""

    vllm: tuple[str, ...]
    sglang: tuple[str, ...]


_NONE: Final = ToolParsers((), ())

# Tool marker, and a literal that the call's beginning holds, "" for any.
_BY_FORM: Final[tuple[tuple[str, str, ToolParsers], ...]] = (
    ("<tool_call>", "<function=", ToolParsers(("qwen3_xml", "qwen3_coder"), ("qwen3_coder",))),
    ("<tool_call>", "<arg_key>", ToolParsers(("glm47", "glm45"), ("glm47", "glm45"))),
    ("<tool_call>", "{", ToolParsers(("hermes",), ("qwen25", "qwen", "hermes"))),
    ("<minimax:tool_call>", "", ToolParsers(("minimax_m2",), ("minimax-m2",))),
    ("]<]minimax[>[<tool_call>", "", ToolParsers(("minimax_m3",), ("minimax-m3",))),
    ("<｜DSML｜function_calls>", "", ToolParsers(("deepseek_v32",), ("deepseekv32",))),
    # SGLang refuses to start with its own V4 tool parser beside a reasoning parser that is not its own.
    ("<｜DSML｜tool_calls>", "", ToolParsers(("deepseek_v4",), ())),
    ("<｜DSML｜", "", ToolParsers(("deepseek_v32",), ("deepseekv32",))),
    ("<｜tool▁calls▁begin｜>", "function<｜tool▁sep｜>", ToolParsers(("deepseek_v3",), ("deepseekv3",))),
    ("<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>", ToolParsers(("deepseek_v31",), ("deepseekv31",))),
    ("<|tool_calls_section_begin|>", "", ToolParsers(("kimi_k2",), ("kimi_k2",))),
    ("<|open|>tools<|sep|>", "", ToolParsers(("kimi_k3",), ("kimi_k3",))),
    ("<seed:tool_call>", "", ToolParsers(("seed_oss",), ())),
    ("[TOOL_CALLS]", "", ToolParsers(("mistral",), ("mistral",))),
    ("<|START_ACTION|>", "", ToolParsers(("cohere_command3",), ("cohere_command4",))),
    ("<|tool_call_start|>", "", ToolParsers(("lfm2",), ("lfm2",))),
    ("<|tools_prefix|>", "", ToolParsers(("apertus",), ())),
    ('<function name="', "", ToolParsers(("minicpm5",), ("minicpm5",))),
    ("<|tool_call>", "call:", ToolParsers(("gemma4",), ("gemma4",))),
)

_BY_FAMILY: Final = {
    "gpt_oss": ToolParsers(("openai",), ("gpt-oss",)),
    "muse_glimmer": ToolParsers(("muse_glimmer",), ("muse",)),
}


def tool_parsers(family: Family) -> ToolParsers:
    """Choose the tool-call parsers that read a record's calls; empty where no engine has one.

    Args:
        family: a record; the form of its calls decides, for families of channels the name.
    """
    if family.channels:
        return _BY_FAMILY.get(family.name, _NONE)
    found = [row for tool in family.tools for row in _BY_FORM if _fits(tool, row[0], row[1])]
    return found[0][2] if found else _NONE


def _fits(tool: Tool, marker: str, literal: str) -> bool:
    literals = "".join(piece for shape in tool.shapes for piece in shape if not isinstance(piece, Part))
    return tool.marker == marker and literal in literals
