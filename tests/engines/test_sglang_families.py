"""Every family beyond the seven through SGLang's own parsers, with the tool parser that the table names."""
# ruff: noqa: E402

import pytest

sglang = pytest.importorskip("sglang")

from sglang.srt.function_call.function_call_parser import FunctionCallParser

from tests.engines.sglang_drive import joined, parser_for, streamed, streamed_reply, whole, whole_reply
from tests.support.family_outputs import FAMILY_OUTPUTS
from vllm_reasoning_ext.core.families import FAMILIES
from vllm_reasoning_ext.demo.outputs import Output
from vllm_reasoning_ext.derive.tool_parsers import tool_parsers
from vllm_reasoning_ext.engines.register import register_sglang

pytestmark = pytest.mark.sglang

register_sglang()

EVERY = pytest.mark.parametrize("output", FAMILY_OUTPUTS, ids=lambda output: f"{output.family}-{output.name}")


@EVERY
def test_streaming_equals_whole_equals_expected(output: Output) -> None:
    wanted = (output.reasoning, output.content if output.raw is None else output.raw)
    assert whole(parser_for(output, stream_reasoning=False), output) == wanted
    for width in (1, 3, 1000):
        assert joined(streamed(parser_for(output), output, width)) == wanted, f"{width} tokens a delta"


@EVERY
def test_calls_reach_the_tool_parser(output: Output) -> None:
    named = tool_parsers(FAMILIES[output.family]).sglang
    if not named or not output.cities:
        pytest.skip("no call, or SGLang has no tool parser for this family")
    if named[0] not in FunctionCallParser.ToolCallParserEnum:
        pytest.skip(f"this SGLang has no tool parser {named[0]}")
    arguments = [{"city": city} for city in output.cities]
    reply = whole_reply(output, named[0])
    assert (reply.reasoning, reply.arguments) == (output.reasoning, arguments)
    for width in (1, 3, 1000):
        reply = streamed_reply(output, named[0], width)
        assert (reply.reasoning, reply.arguments) == (output.reasoning, arguments), f"{width} tokens a delta"
