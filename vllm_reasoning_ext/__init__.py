"""Reasoning parsers for vLLM and SGLang, and the engine-free library behind them."""

from vllm_reasoning_ext._version import __version__
from vllm_reasoning_ext.core.events import CONTENT, MARKER, REASONING, TOOL, Delta, Event, Kind
from vllm_reasoning_ext.core.families import FAMILIES, Family, register_family
from vllm_reasoning_ext.core.splitter import Splitter, split
from vllm_reasoning_ext.core.start import StartState, start_state
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
    "extract_openai_delta",
    "infer_family",
    "register_family",
    "split",
    "start_state",
]
