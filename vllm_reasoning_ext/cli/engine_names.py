"""The engines' own parser names, and the family that serves the same models here (docs/migration.md)."""

from typing import Final

from vllm_reasoning_ext.core.families import infer_by_name

FAMILY_OF: Final = {
    "deepseek_r1": "qwen3",
    "deepseek-r1": "qwen3",
    "deepseek_v3": "qwen3",
    "deepseek-v3": "qwen3",
    "deepseek_v31": "qwen3",
    "deepseek_v32": "deepseekv32",
    "deepseek_v4": "deepseekv32",
    "deepseek-v4": "deepseekv32",
    "deepseek_v41": "deepseekv32",
    "deepseek-v41": "deepseekv32",
    "glm45": "qwen3",
    "glm47": "qwen3",
    "qwen3-thinking": "qwen3",
    "nanbeige": "qwen3",
    "interns1": "qwen3",
    "dots": "qwen3",
    "openai_gptoss": "gpt_oss",
    "minimax_m2": "minimax",
    "minimax_m2_append_think": "minimax",
    "minimax-append-think": "minimax",
    "minimax-m3": "minimax_m3",
    "muse": "muse_glimmer",
}
"""vLLM 0.32's and SGLang 0.5.23's names that are no names here; the rest of theirs have no family of their own yet."""


def family_for(name: str) -> tuple[str, str] | None:
    """Find the family behind a name that is none of a family.

    Returns:
        the family and what the name is instead; None where nobody knows.
    """
    family = FAMILY_OF.get(name.lower())
    if family is not None:
        return family, "an engine's own parser"
    family, _ = infer_by_name(name)
    return (family, "a model") if family is not None else None
