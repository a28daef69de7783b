"""Where vLLM keeps the names we need: the one place that knows that they moved between versions."""

import importlib
import sys
from functools import cache
from types import SimpleNamespace
from typing import Any

from vllm_reasoning_ext.engines.logs import vllm_log
from vllm_reasoning_ext.engines.names import KEEP_BUILTIN


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


@cache
def warn_moved(what: str, lost: str) -> None:
    """Say once that this vLLM has moved something, what that costs, and the way back."""
    vllm_log.warning(
        "vllm-reasoning-ext: %s, so %s. 0.24 to 0.33 are known; %s=NAME (or all) keeps vLLM's own parser. (Said once.)",
        what,
        lost,
        KEEP_BUILTIN,
    )


ReasoningParser: Any = find("ReasoningParser", "vllm.reasoning.abs_reasoning_parsers", "vllm.reasoning")


class _Delta(SimpleNamespace):
    """Stands in for vLLM's DeltaMessage where that cannot be found: the same fields."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**{"role": None, "content": None, "reasoning": None, "tool_calls": [], **fields})


def delta_message() -> Any:
    """Find vLLM's DeltaMessage: where it is known to be, else in whatever module of vLLM has it."""
    try:
        return find(
            "DeltaMessage",
            "vllm.entrypoints.generate.base.protocol",  # 0.30 on
            "vllm.entrypoints.openai.engine.protocol",  # 0.24 to 0.28
            "vllm.entrypoints.openai.protocol",
        )
    except ImportError:
        pass
    loaded = [module for name, module in tuple(sys.modules.items()) if name.startswith("vllm.")]
    found = next((known for module in loaded if isinstance(known := vars(module).get("DeltaMessage"), type)), None)
    if found is None:
        warn_moved("this vLLM has no DeltaMessage where one was", "streamed replies may be refused by its server")
    return found or _Delta


DeltaMessage: Any = delta_message()


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
