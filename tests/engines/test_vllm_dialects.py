"""Answers and calls in any order, through the composed parser and vLLM's own tool parsers: whole and streaming alike.

The outputs are those of `sglang_dialects`, drawn with seeds. What a tool parser of vLLM makes of a call that it cannot
read, or of a function that was not offered, is its own affair for marker families, so those outputs have neither; the
channel families' slices are told apart here, so theirs have both.
"""

from typing import Any, Final

import pytest

pytest.importorskip("vllm", reason="needs vLLM: bash tests/envs/vllm.sh builds its environment")

from tests.engines.sglang_dialects import DIALECTS, Dialect, Piece, drawn, expected, written
from tests.engines.test_vllm_harmony import HarmonyCase
from tests.support.vllm_drive import Case
from vllm_reasoning_ext.demo.outputs import TOOLS
from vllm_reasoning_ext.engines import register

pytestmark = pytest.mark.vllm

register.register_vllm()

TOOL_PARSERS: Final = {
    "qwen25": "hermes",
    "minimax-m2": "minimax_m2",
    "minimax-m3": "minimax_m3",
    "deepseekv32": "deepseek_v32",
    "gpt-oss": "openai",
    "muse": "muse_glimmer",
}
"""SGLang's name -> vLLM's, where they differ."""

EVERY: Final = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: f"{dialect.family}-{dialect.parser}")
CHANNELS: Final = ("gpt_oss", "muse_glimmer")


def pieces_of(dialect: Dialect, seed: int) -> list[Piece]:
    pieces = drawn(dialect, seed)
    if dialect.family in CHANNELS:
        # vLLM passes an unknown function on as a call, and the input of a built-in tool too.
        return [piece for piece in pieces if "stocks" not in piece.script and "to=python" not in piece.script]
    return [piece for piece in pieces if piece.city is not None or not piece.script.startswith(("<", "]<]"))]


@EVERY
def test_whole_and_streaming_are_what_the_core_says(dialect: Dialect) -> None:
    tool = TOOL_PARSERS.get(dialect.parser, dialect.parser)
    tried = 0
    for seed in range(25):
        pieces = pieces_of(dialect, seed)
        if not pieces:
            continue
        tried += 1
        output = written(dialect, pieces)
        case: Any = (HarmonyCase if dialect.family == "gpt_oss" else Case)(output, tools=TOOLS)
        whole = case.full(dialect.family, tool)
        where = f"seed {seed}: {output.script!r}"
        for width in (1, 3, 8, 1000):
            streamed = case.streamed(dialect.family, tool, width)
            assert (streamed.reasoning, streamed.calls) == (whole.reasoning, whole.calls), where
            # A tool parser of vLLM may trim the answer of a whole reply at its ends.
            assert streamed.content.strip() == whole.content.strip(), where
        shown, calls = expected(dialect, pieces)
        assert whole.reasoning == "Six.", where
        assert [arguments for _, arguments in whole.calls] == calls, where
        if not calls:
            # A joiner stands between two answers; SPEC 5.3 ends a cut Muse slice with its terminator.
            content = whole.content.removesuffix("<|eom|>") if not shown.endswith("<|eom|>") else whole.content
            assert content.replace("\n", "") == shown.replace("\n", ""), where
    assert tried > 10
