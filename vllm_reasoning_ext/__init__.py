"""Reasoning parsers for vLLM and SGLang, and the engine-free library behind them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from vllm_reasoning_ext._version import __version__

if TYPE_CHECKING:
    from vllm_reasoning_ext.core.events import CONTENT, MARKER, REASONING, TOOL, Delta, Event, Kind
    from vllm_reasoning_ext.core.families import FAMILIES, Family, get_family, register_family
    from vllm_reasoning_ext.core.splitter import Splitter, split
    from vllm_reasoning_ext.core.start import StartState, start_state
    from vllm_reasoning_ext.derive.derivation import derive_family
    from vllm_reasoning_ext.inference import infer_family
    from vllm_reasoning_ext.wire.accumulate import StreamTextAccumulator, extract_openai_delta

__all__ = [
    "CONTENT",
    "FAMILIES",
    "MARKER",
    "REASONING",
    "TOOL",
    "Delta",
    "Event",
    "Family",
    "Kind",
    "Splitter",
    "StartState",
    "StreamTextAccumulator",
    "__version__",
    "derive_family",
    "extract_openai_delta",
    "get_family",
    "infer_family",
    "register_family",
    "split",
    "start_state",
]

_HOMES: Final = {
    "core.events": ("CONTENT", "MARKER", "REASONING", "TOOL", "Delta", "Event", "Kind"),
    "core.families": ("FAMILIES", "Family", "get_family", "register_family"),
    "core.splitter": ("Splitter", "split"),
    "core.start": ("StartState", "start_state"),
    "derive.derivation": ("derive_family",),
    "inference": ("infer_family",),
    "wire.accumulate": ("StreamTextAccumulator", "extract_openai_delta"),
}
_HOME: Final = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    # On first use: a command that prints a version, or a plug-in that an engine only lists, loads no splitter.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _HOME[name].startswith("core."):
        import_module(f"{__name__}.core.families").use_chooser(_choose)
    globals()[name] = value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return value


def _choose(tokenizer: Any, chat_template: str | None) -> "Family":
    """Decide what `auto` means; loaded when somebody says it."""
    from vllm_reasoning_ext.derive.served import family_for

    return family_for(tokenizer, chat_template)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
