"""Every parser name of the installed SGLang is known or left out with its reason, and the tool parsers named exist."""
# ruff: noqa: E402

import pytest

sglang = pytest.importorskip("sglang")

from sglang.srt.function_call.function_call_parser import FunctionCallParser
from sglang.srt.parser.reasoning_parser import ReasoningParser

from vllm_reasoning_ext.core.families import AUTO, FAMILIES, LEFT_OUT, names
from vllm_reasoning_ext.derive.tool_parsers import tool_parsers, tool_parsers_by_model

pytestmark = pytest.mark.sglang

_NEW_ENOUGH = tuple(map(int, sglang.__version__.split(".")[:3])) >= (0, 5, 23)


def own_names() -> set[str]:
    """List the engine's own reasoning parsers, whatever else this process has registered."""
    from sglang.srt.parser.reasoning_parser_names import REASONING_PARSER_NAMES

    bound = {name for name, cls in ReasoningParser.DetectorMap.items() if not cls.__module__.startswith("sglang.")}
    return {*REASONING_PARSER_NAMES, *ReasoningParser.DetectorMap} - bound - set(AUTO)


@pytest.mark.skipif(not _NEW_ENOUGH, reason="the list of names came with 0.5.23")
def test_no_parser_of_the_engine_is_forgotten() -> None:
    own = own_names()
    assert len(own) > 20
    assert own - {*names(), *LEFT_OUT} == set()


@pytest.mark.skipif(not _NEW_ENOUGH, reason="the tool parsers are those of 0.5.23")
@pytest.mark.parametrize("family", FAMILIES)
def test_the_tool_parsers_exist(family: str) -> None:
    known = set(FunctionCallParser.ToolCallParserEnum)
    told = [tool_parsers(FAMILIES[family]), *(parsers for _, parsers in tool_parsers_by_model(FAMILIES[family]))]
    assert {name for parsers in told for name in parsers.sglang} <= known
