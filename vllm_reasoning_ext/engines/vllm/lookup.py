"""Where vLLM keeps the names we need: the one place that knows that they moved between versions."""

import importlib
from typing import Any


def find(name: str, *modules: str) -> Any:
    """Import a name from the first module that has it.

    Args:
        name: the attribute looked for.
        modules: module paths, newest vLLM first.

    Raises:
        ImportError: none has it; the message names all places that were tried.
    """
    for module in modules:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"this vLLM has no {name} in any of {', '.join(modules)}; 0.24 to 0.33 are known to have it")


DeltaMessage: Any = find(
    "DeltaMessage",
    "vllm.entrypoints.generate.base.protocol",  # 0.30 on
    "vllm.entrypoints.openai.engine.protocol",  # 0.24 to 0.28
    "vllm.entrypoints.openai.protocol",
)
ReasoningParser: Any = find("ReasoningParser", "vllm.reasoning.abs_reasoning_parsers", "vllm.reasoning")


def find_tool_parser(name: str) -> type | None:
    """Import a tool-call parser by its name; None where this vLLM has none of the name."""
    manager = find("ToolParserManager", "vllm.tool_parsers", "vllm.entrypoints.openai.tool_parsers")
    try:
        found: type = manager.get_tool_parser(name)
    except (KeyError, ImportError):
        return None
    return found


def delegating_parser() -> Any:
    """Import vLLM's DelegatingParser, late: it pulls in the whole API protocol, which engine processes need not."""
    return find("DelegatingParser", "vllm.parser.abstract_parser")
