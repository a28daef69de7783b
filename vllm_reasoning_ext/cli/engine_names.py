"""Names that are no reasoning parser's but tell a family all the same: a model's, a tool-call parser's."""

from typing import Final

from vllm_reasoning_ext.core.families import infer_by_name

FAMILY_OF: Final = {"deepseek_v31": "deepseek_v3", "deepseek_v32": "deepseekv32"}
"""Tool-call parsers of vLLM whose names look like a reasoning parser's."""


def family_for(name: str) -> tuple[str, str] | None:
    """Find the family behind a name that is none of a family.

    Returns:
        the family and what the name is instead; None where nobody knows.
    """
    family = FAMILY_OF.get(name.lower())
    if family is not None:
        return family, "an engine's tool-call parser"
    family, _ = infer_by_name(name)
    return (family, "a model") if family is not None else None
