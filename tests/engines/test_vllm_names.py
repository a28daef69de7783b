"""Every parser name of the installed vLLM is known or left out with its reason, and the tool parsers named exist."""

import pytest

pytest.importorskip("vllm", reason="needs vLLM: bash tests/envs/vllm.sh builds its environment")

from vllm.reasoning import ReasoningParserManager
from vllm.tool_parsers import ToolParserManager

from vllm_reasoning_ext.core.families import FAMILIES, LEFT_OUT, names
from vllm_reasoning_ext.derive.tool_parsers import tool_parsers, tool_parsers_by_model

pytestmark = pytest.mark.vllm


def own_names() -> set[str]:
    """List the engine's own reasoning parsers, whatever else this process has registered."""
    lazy = {name for name, (module, _) in ReasoningParserManager.lazy_parsers.items() if module.startswith("vllm.")}
    loaded = ReasoningParserManager.reasoning_parsers.items()
    return lazy | {name for name, parser in loaded if parser.__module__.startswith("vllm.")}


def test_no_parser_of_the_engine_is_forgotten() -> None:
    own = own_names()
    assert len(own) > 30
    assert own - {*names(), *LEFT_OUT} == set()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_tool_parsers_exist(family: str) -> None:
    known = {*ToolParserManager.tool_parsers, *ToolParserManager.lazy_parsers}
    told = [tool_parsers(FAMILIES[family]), *(parsers for _, parsers in tool_parsers_by_model(FAMILIES[family]))]
    assert {name for parsers in told for name in parsers.vllm} <= known
