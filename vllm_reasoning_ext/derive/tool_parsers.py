"""Which of the engines' tool-call parsers reads calls of a record's form (names of vLLM 0.33 and SGLang 0.5.23)."""

from typing import Final, NamedTuple

from vllm_reasoning_ext.core.record import Family, Part, Tool


class ToolParsers(NamedTuple):
    """Parser names for each engine, the best first; () where an engine has none."""

    vllm: tuple[str, ...]
    sglang: tuple[str, ...]


NONE: Final = ToolParsers((), ())
HERMES: Final = ToolParsers(("hermes",), ("qwen25", "qwen", "hermes"))
QWEN_XML: Final = ToolParsers(("qwen3_xml", "qwen3_coder"), ("qwen3_coder",))
GLM47: Final = ToolParsers(("glm47", "glm45"), ("glm47", "glm45"))
GLM45: Final = ToolParsers(("glm45",), ("glm45", "glm"))
DSML: Final = ToolParsers(("deepseek_v32",), ("deepseekv32",))
# SGLang refuses to start with its own V4 tool parser beside a reasoning parser that is not its own.
DSML_V4: Final = ToolParsers(("deepseek_v4",), ())
DSML_V41: Final = ToolParsers(("deepseek_v41",), ())
R1: Final = ToolParsers(("deepseek_v3",), ("deepseekv3",))
V31: Final = ToolParsers(("deepseek_v31",), ("deepseekv31",))

# Tool marker, and a literal that the call's beginning holds, "" for any.
_BY_FORM: Final[tuple[tuple[str, str, ToolParsers], ...]] = (
    ("<tool_call>", "<function=", QWEN_XML),
    ("<tool_call>", "<arg_key>", GLM47),
    ("<tool_call>", "{", HERMES),
    ("<minimax:tool_call>", "", ToolParsers(("minimax_m2",), ("minimax-m2",))),
    ("]<]minimax[>[<tool_call>", "", ToolParsers(("minimax_m3",), ("minimax-m3",))),
    ("<｜DSML｜function_calls>", "", DSML),
    ("<｜DSML｜tool_calls>", "", DSML_V4),
    ("<｜DSML｜", "", DSML),
    ("<｜tool▁calls▁begin｜>", "function<｜tool▁sep｜>", R1),
    ("<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>", V31),
    ("<|tool_calls_section_begin|>", "", ToolParsers(("kimi_k2",), ("kimi_k2",))),
    ("<|open|>tools<|sep|>", "", ToolParsers(("kimi_k3",), ("kimi_k3",))),
    ("<seed:tool_call>", "", ToolParsers(("seed_oss",), ())),
    ("[TOOL_CALLS]", "", ToolParsers(("mistral",), ("mistral",))),
    ("<|tool_call_start|>", "", ToolParsers(("lfm2",), ("lfm2",))),
    ("<|tools_prefix|>", "", ToolParsers(("apertus",), ("apertus2509",))),
    ('<function name="', "", ToolParsers(("minicpm5",), ("minicpm5",))),
    ("<|tool_call>", "call:", ToolParsers(("gemma4",), ("gemma4",))),
)

_BY_FAMILY: Final = {
    "gpt_oss": ToolParsers(("openai",), ("gpt-oss",)),
    "muse_glimmer": ToolParsers(("muse_glimmer",), ("muse",)),
    # What these models write as their template says it; R1's distills, its base models' form.
    "deepseek_r1": R1,
    "ling3": ToolParsers(("ling3",), ("ling3",)),
    "poolside_v1": ToolParsers(("poolside_v1",), ("poolside_v1",)),
    "spark25": ToolParsers(("glm47", "glm45"), ("spark25",)),
    "ernie45": ToolParsers(("ernie45",), ("qwen25", "qwen", "hermes")),
    "hunyuan": ToolParsers(("hy_v3",), ("hunyuan",)),
    "hunyuan_a13b": ToolParsers(("hunyuan_a13b",), ()),
    "step3": ToolParsers(("step3",), ("step3",)),
    "interns1": ToolParsers((), ("interns1",)),
    "dots": ToolParsers(("dots",), ("dots",)),
    "olmo3": ToolParsers(("olmo3",), ()),
    "k2_horizon": ToolParsers(("k2_horizon",), ("k2_horizon",)),
    "plamo3": ToolParsers(("plamo3",), ()),
    "gigachat35": ToolParsers((), ("gigachat35",)),
    "iquest_q1": ToolParsers((), ("iquest_q1",)),
    "inkling": ToolParsers(("inkling",), ("inkling",)),
    "granite": ToolParsers(("granite",), ()),
    "granite33": ToolParsers(("granite",), ()),
}

_COHERE: Final = "<|START_ACTION|>"


_BY_MODEL: Final = {
    "qwen3": (("JSON", HERMES), ("`<function=`", QWEN_XML), ("`<arg_key>`", GLM47), ("DeepSeek R1", R1), ("V3.1", V31)),
    "deepseekv32": (("V3.2", DSML), ("V4", DSML_V4), ("V4.1", DSML_V41)),
    "cohere": (
        ("third generation", ToolParsers(("cohere_command3",), ("cohere_command4",))),
        ("fourth", ToolParsers(("cohere_command4",), ("cohere_command4",))),
    ),
    "hunyuan": (
        ("Hunyuan 3", ToolParsers(("hy_v3",), ("hunyuan",))),
        ("Hunyuan 4", ToolParsers(("hy_v4",), ("hunyuan",))),
    ),
}
"""Families whose models write calls in several forms: what tells them, and who reads them."""


def tool_parsers_by_model(family: Family) -> tuple[tuple[str, ToolParsers], ...]:
    """List a family's tool-call parsers with what tells which to take; "" where all its models write calls alike."""
    return _BY_MODEL.get(family.name) or (("", tool_parsers(family)),)


def tool_parsers(family: Family, written: Family | None = None) -> ToolParsers:
    """Choose the tool-call parsers that read a family's calls; empty where no engine has one.

    Args:
        family: the family that was chosen.
        written: the record that its chat template writes, where one was rendered: a family may know several forms of
            calls, of which a template writes one.
    """
    if family.name in _BY_FAMILY:
        return _BY_FAMILY[family.name]
    form = written or family
    if any(tool.marker == _COHERE for tool in form.tools):
        # The third generation answers between START_RESPONSE and END_RESPONSE, the fourth in TEXT.
        third = any("RESPONSE" in opener for opener, _ in form.answer) and written is not None
        return ToolParsers(("cohere_command3",) if third else ("cohere_command4",), ("cohere_command4",))
    found = [row for tool in form.tools for row in _BY_FORM if _fits(tool, row[0], row[1])]
    return found[0][2] if found else NONE


def _fits(tool: Tool, marker: str, literal: str) -> bool:
    literals = "".join(piece for shape in tool.shapes for piece in shape if not isinstance(piece, Part))
    return tool.marker == marker and literal in literals
