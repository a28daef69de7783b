"""Every family with vLLM's own tool parsers: reasoning, answer and calls, streaming equal to full."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("vllm", reason="needs vLLM: bash tests/envs/vllm.sh builds its environment")

from vllm.tool_parsers import ToolParserManager

from tests.support.dialects import ATEM_WIRES, DIALECTS, UNREADABLE, Dialect
from tests.support.vllm_drive import WIDTHS, Case, Reply, expected
from vllm_reasoning_ext.engines import guard, register
from vllm_reasoning_ext.serve.wires import FUNCTION, TOOLS, Wire

pytestmark = pytest.mark.vllm

register.register_vllm()

NAMED = {"type": "function", "function": {"name": FUNCTION}}


@pytest.fixture(autouse=True)
def no_fault_of_ours(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    guard._logged.clear()
    yield
    assert not [record.getMessage() for record in caplog.records if record.name == register.vllm_log.name]


def check(case: Case, name: str, tool: str, want: Reply) -> None:
    assert case.full(name, tool) == want
    for width in WIDTHS:
        for trail in (True, False):
            got = case.streamed(name, tool, width, trail=trail)
            assert got == want, f"{width} tokens a delta, end as a delta of its own: {trail}"


def rows() -> Iterator[Any]:
    for dialect in DIALECTS:
        for wire in dialect.wires():
            yield pytest.param(dialect, wire, id=f"{dialect.name}-{wire.name}")


@pytest.mark.parametrize(("dialect", "wire"), rows())
def test_auto(dialect: Dialect, wire: Wire) -> None:
    check(Case(wire, dialect.vocabulary), dialect.family, dialect.tool, expected(wire))


@pytest.mark.parametrize("wire", ATEM_WIRES, ids=lambda wire: wire.name)
def test_atem(wire: Wire) -> None:
    check(Case(wire), "muse_glimmer", "muse_glimmer", expected(wire))


@pytest.mark.parametrize("wire", UNREADABLE, ids=lambda wire: wire.name)
def test_a_slice_that_holds_no_call_is_shown(wire: Wire) -> None:
    """vLLM's muse_glimmer tool parser reads text only and streams nothing of what it cannot read."""
    case = Case(wire, tools=TOOLS)
    check(case, "muse_glimmer", "muse_glimmer", Reply(wire.reasoning, wire.raw or "", expected(wire).calls))


@pytest.mark.parametrize("choice", ["required", "named"])
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_required_and_named(dialect: Dialect, choice: str) -> None:
    """The model is made to call: in its own syntax, or in the JSON that vLLM's grammar dictates."""
    wire = next(wire for wire in dialect.wires() if wire.name == "thought, then a call")
    if ToolParserManager.get_tool_parser(dialect.tool).supports_required_and_named:
        forced = (
            '{"city": "Oslo"}' if choice == "named" else f'[{{"name": "{FUNCTION}", "parameters": {{"city": "Oslo"}}}}]'
        )
        wire = wire._replace(script=wire.script.replace(wire.raw or "", forced))
    case = Case(wire, dialect.vocabulary, tools=TOOLS, tool_choice=NAMED if choice == "named" else choice)
    check(case, dialect.family, dialect.tool, expected(wire))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_no_tools_means_text(dialect: Dialect) -> None:
    """Without tools in the request, call markup is what the model wrote: text, never lost."""
    for wire in dialect.wires():
        if wire.name == "thought, then a call":
            case = Case(wire, dialect.vocabulary, tools=None)
            check(case, dialect.family, dialect.tool, Reply(wire.reasoning, wire.raw or ""))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_tool_choice_none_makes_no_call(dialect: Dialect) -> None:
    for wire in dialect.wires():
        if wire.cities:
            case = Case(wire, dialect.vocabulary, tools=TOOLS, tool_choice="none")
            full = case.full(dialect.family, dialect.tool)
            assert full.calls == ()
            for width in WIDTHS:
                assert case.streamed(dialect.family, dialect.tool, width) == full
