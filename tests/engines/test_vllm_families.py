"""Every family beyond the seven through vLLM's own composed parsers, with the tool parser that the table names."""

import pytest

pytest.importorskip("vllm", reason="needs vLLM: bash tests/envs/vllm.sh builds its environment")

from tests.support.family_outputs import FAMILY_OUTPUTS
from tests.support.vllm_drive import Case, Reply, expected
from vllm_reasoning_ext.core.families import FAMILIES
from vllm_reasoning_ext.demo.outputs import Output
from vllm_reasoning_ext.derive.tool_parsers import tool_parsers
from vllm_reasoning_ext.engines import register

pytestmark = pytest.mark.vllm

register.register_vllm()

WIDTHS = {"step3": (), "hunyuan_a13b": (), "deepseek_r1": (1,), "deepseek_v3": (1,), "holo2": (1,)}
"""Tokens a delta at which vLLM's own tool parser reads a family's calls from a stream; any where nothing is said."""

NOT_AT_ONCE = {"deepseek_r1", "deepseek_v3", "holo2", "kimi_k3"}
"""Families whose tool parser leaves a call in the content that comes in one delta at the end, as a late one does."""

LATE_CALL = "a call in an open block"

OTHER_TOKENIZER = {"mistral"}
"""Families whose tool parser reads the calls of today's models with the model's own kind of tokenizer only."""


@pytest.mark.parametrize("tools", ["no-tool-parser", "tool-parser"])
@pytest.mark.parametrize("output", FAMILY_OUTPUTS, ids=lambda output: f"{output.family}-{output.name}")
def test_streaming_equals_full_equals_expected(output: Output, tools: str) -> None:
    name = f"{output.family}_ext"
    named = tool_parsers(FAMILIES[output.family]).vllm
    tool = named[0] if tools == "tool-parser" and named and output.family not in OTHER_TOKENIZER else None
    if tool is not None and "cohere" in tool:
        pytest.importorskip("cohere_melody", reason="vLLM's tool parser needs cohere_melody")
    plain = Reply(output.reasoning, output.content if output.raw is None else output.raw)
    wanted = plain if tool is None else expected(output)
    case = Case(output)
    assert case.full(name, tool) == wanted
    widths = WIDTHS.get(output.family, (1, 3, 1000)) if tool and output.cities else (1, 3, 1000)
    if tool and output.name == LATE_CALL and output.family in NOT_AT_ONCE:
        widths, wanted = (1,), plain
    for width in widths:
        assert case.streamed(name, tool, width) == wanted, f"{width} tokens a delta"
