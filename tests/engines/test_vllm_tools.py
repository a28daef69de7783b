"""Every family with vLLM's own tool parsers: reasoning, answer and calls, streaming equal to full."""

import inspect
import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("vllm", reason="needs vLLM: bash tests/envs/vllm.sh builds its environment")

from vllm.parser.parser_manager import ParserManager
from vllm.tool_parsers import ToolParserManager

from tests.support.byte_tokenizer import VOCABULARIES
from tests.support.dialects import ATEM_OUTPUTS, DIALECTS, UNREADABLE, Dialect
from tests.support.vllm_drive import WIDTHS, Case, Reply, expected, needs_tool_parser
from vllm_reasoning_ext.core.families import get_family
from vllm_reasoning_ext.demo.outputs import FUNCTION, TOOLS, Output
from vllm_reasoning_ext.engines import guard, register

pytestmark = pytest.mark.vllm

register.register_vllm()

from_032 = pytest.mark.skipif(
    "tokenizer" not in inspect.signature(ParserManager.get_parser).parameters,
    reason="vLLM before 0.32 loses or reorders calls and text of one large delta in its own tool parsers",
)

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
        for output in dialect.outputs():
            yield pytest.param(dialect, output, id=f"{dialect.name}-{output.name}")


@pytest.mark.parametrize(("dialect", "output"), rows())
def test_auto(dialect: Dialect, output: Output) -> None:
    check(Case(output, dialect.vocabulary), dialect.family, dialect.tool, expected(output))


@pytest.mark.parametrize("choice", ["auto", "required", "named"])
@pytest.mark.parametrize("output", ATEM_OUTPUTS, ids=lambda output: output.name)
def test_atem(output: Output, choice: str) -> None:
    case = Case(output, tool_choice=NAMED if choice == "named" else choice)
    check(case, "muse_glimmer", "muse_glimmer", expected(output))


@pytest.mark.parametrize("output", UNREADABLE, ids=lambda output: output.name)
def test_a_slice_that_holds_no_call_is_shown(output: Output) -> None:
    """vLLM's muse_glimmer tool parser reads text only and streams nothing of what it cannot read."""
    case = Case(output, tools=TOOLS)
    check(case, "muse_glimmer", "muse_glimmer", Reply(output.reasoning, output.raw or "", expected(output).calls))


def forced_rows() -> Iterator[Any]:
    """Give what a model can write where it is made to call: its own syntax."""
    for dialect in DIALECTS:
        for output in dialect.outputs():
            for choice in ("required", "named") if output.cities else ():
                yield pytest.param(dialect, choice, output, id=f"{dialect.name}-{choice}-{output.name}")


@pytest.mark.parametrize(("dialect", "choice", "output"), forced_rows())
def test_required_and_named(dialect: Dialect, choice: str, output: Output) -> None:
    if ToolParserManager.get_tool_parser(dialect.tool).supports_required_and_named:
        pytest.skip("this vLLM dictates JSON there")
    case = Case(output, dialect.vocabulary, tools=TOOLS, tool_choice=NAMED if choice == "named" else choice)
    check(case, dialect.family, dialect.tool, expected(output))


@from_032
@pytest.mark.parametrize("cities", [("Oslo",), ("Oslo", "Rome")], ids=len)
@pytest.mark.parametrize("choice", ["required", "named"])
@pytest.mark.parametrize("family", ["qwen3", "minimax", "muse_glimmer"])
@pytest.mark.parametrize("tool", ["pythonic", "seed_oss"])  # a legacy one and an engine-based one
def test_required_and_named_as_json(tool: str, family: str, choice: str, cities: tuple[str, ...]) -> None:
    """With such a tool parser vLLM's grammar makes the answer the JSON of the call."""
    needs_tool_parser(tool)
    if not ToolParserManager.get_tool_parser(tool).supports_required_and_named:
        pytest.skip("this vLLM searches the answer for calls there")
    if choice == "named":
        cities = cities[:1]  # it is one call
    calls = [{"name": FUNCTION, "parameters": {"city": city}} for city in cities]
    forced = json.dumps(calls[0]["parameters"] if choice == "named" else calls)
    before = {
        "qwen3": "<think>\nHm.\n</think>\n\n",
        "minimax": "Hm.\n</think>\n\n",
        "muse_glimmer": " to=self<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>",
    }[family]
    output = Output("forced", family, before + forced + VOCABULARIES[family].eos, "Hm.", "", cities)
    case = Case(output, tool_choice=NAMED if choice == "named" else choice)
    check(case, family, tool, expected(output))


@pytest.mark.parametrize("choice", ["auto", "required", "none"])
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_markers_quoted_in_the_answer_stay_there(dialect: Dialect, choice: str) -> None:
    """vLLM's newer tool parsers read reasoning markers as well, and would cut them out of the answer."""
    family = get_family(dialect.family)
    for marker in (family.opener, family.closer):
        script = f"{dialect.opener}Hm.{dialect.closer}Write ‹{marker}› first, ok.{dialect.end}"
        output = Output("quoted", dialect.family, script, "Hm.", f"Write {marker} first, ok.", kwargs=dialect.on)
        case = Case(output, dialect.vocabulary, tools=TOOLS, tool_choice=choice)
        check(case, dialect.family, dialect.tool, expected(output))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_call_cut_off_is_not_lost(dialect: Dialect) -> None:
    """Wherever the limit ends the output: it is text, or a call as far as it came."""
    call = dialect.calls(("Oslo",))
    engine_based = getattr(ToolParserManager.get_tool_parser(dialect.tool), "engine_based_streaming", False)
    for at in range(1, len(call)):
        script = f"{dialect.opener}Hm.{dialect.closer}Looking.{call[:at]}✂{call[at:]}{dialect.end}"
        case = Case(Output("cut", dialect.family, script, "Hm.", kwargs=dialect.on), dialect.vocabulary, tools=TOOLS)
        full, *streamed = [case.full(dialect.family, dialect.tool)] + [
            case.streamed(dialect.family, dialect.tool, width) for width in (1, 1000)
        ]
        for reply in (full, *streamed):
            if engine_based:  # hermes streams a name before it knows that the call is whole
                assert bool(reply.calls) is bool(full.calls), call[:at]
            assert reply.content == ("Looking." if reply.calls else f"Looking.{call[:at]}")
            assert len(reply.calls) <= 1


TAGS = {
    "deepseek_v32": ("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
    "deepseek_v4": ("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
    "gemma4": ("<|tool_call>", "<tool_call|>"),
    "minimax_m2": ("<minimax:tool_call>", "</minimax:tool_call>"),
    "minimax_m3": ("]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>"),
    **dict.fromkeys(("glm47", "hermes", "qwen3_xml"), ("<tool_call>", "</tool_call>")),
}


@from_032
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_what_is_no_call_is_shown(dialect: Dialect) -> None:
    """Text between the tags of a call, or a lone tag: a tool parser may swallow it and go on with what follows."""
    first, last = TAGS[dialect.tool]
    for text in (f"Use {first} foo {last} then.", f"Use {last} then.", f"Use {first}{last} so."):
        script = f"{dialect.opener}Hm.{dialect.closer}{text}{dialect.end}"
        output = Output("no call", dialect.family, script, "Hm.", text, kwargs=dialect.on)
        check(Case(output, dialect.vocabulary, tools=TOOLS), dialect.family, dialect.tool, expected(output))


BOTH_HALVES_ALIKE = ("hermes", "deepseek_v32", "deepseek_v4", "minimax_m3")
"""The tool parsers that leave out what stands after a call, streaming or not (docs/vllm.md lists the others too)."""


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@from_032
def test_text_around_a_call(dialect: Dialect) -> None:
    call = dialect.calls(("Oslo",))
    script = f"{dialect.opener}Hm.{dialect.closer}  Look. {call} After.{dialect.end}"
    case = Case(Output("around", dialect.family, script, "Hm.", kwargs=dialect.on), dialect.vocabulary, tools=TOOLS)
    full = case.full(dialect.family, dialect.tool)
    streamed = full._replace(content="  Look. " if dialect.tool in BOTH_HALVES_ALIKE else "  Look.  After.")
    assert (full.reasoning, full.calls) == ("Hm.", ((FUNCTION, {"city": "Oslo"}),))
    assert full.content == ("  Look. " if dialect.tool in BOTH_HALVES_ALIKE else "Look.")
    assert [case.streamed(dialect.family, dialect.tool, width) for width in WIDTHS] == [streamed] * len(WIDTHS)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_no_tools_means_text(dialect: Dialect) -> None:
    """Without tools in the request, call markup is what the model wrote: text, never lost."""
    for output in dialect.outputs():
        if output.name == "thought, then a call":
            case = Case(output, dialect.vocabulary, tools=None)
            check(case, dialect.family, dialect.tool, Reply(output.reasoning, output.raw or ""))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_tool_choice_none_means_text(dialect: Dialect) -> None:
    """A call that the model writes all the same is its answer, whatever the tool parser."""
    for output in dialect.outputs():
        if output.cities:
            case = Case(output, dialect.vocabulary, tools=TOOLS, tool_choice="none")
            full = case.full(dialect.family, dialect.tool)
            assert full.calls == ()
            assert output.raw in full.reasoning + full.content
            for width in WIDTHS:
                assert case.streamed(dialect.family, dialect.tool, width) == full
