"""The adapter through vLLM's own ParserManager: hook on and off, streaming and full, with and without tools."""

from collections.abc import Iterator

import pytest

pytest.importorskip("vllm", reason="needs vLLM: bash tests/envs/vllm.sh builds its environment")

from tests.support.more_outputs import ALL_OUTPUTS, TOOL_PARSERS
from tests.support.vllm_drive import WIDTHS, Case, Reply, expected
from vllm_reasoning_ext import split
from vllm_reasoning_ext.conformance.script import QUOTED
from vllm_reasoning_ext.demo.outputs import Output
from vllm_reasoning_ext.engines import guard, register
from vllm_reasoning_ext.engines.vllm import compose as vllm_compose

pytestmark = pytest.mark.vllm

LATE_CALL = "a call in an open block"
"""Only the end of the output decides that this is a call, and then no tool parser is asked any more."""

register.register_vllm()


@pytest.fixture(autouse=True)
def no_fault_of_ours(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test in which the guard had to step in: its reply may look right by luck."""
    guard._logged.clear()
    yield
    assert not [record.getMessage() for record in caplog.records if record.name == register.vllm_log.name]


@pytest.fixture
def hook_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose as a vLLM would that our hook does not know."""
    monkeypatch.setattr(vllm_compose, "compose", lambda owner: None)


def name(output: Output) -> str:
    return f"{output.family}-{output.name.replace(' ', '-')}"


def wanted(output: Output, tool: str | None) -> Reply:
    if tool is not None:
        return expected(output)
    return Reply(output.reasoning, output.content if output.raw is None else output.raw)


@pytest.mark.parametrize("output", ALL_OUTPUTS, ids=name)
@pytest.mark.parametrize("tools", ["no-tool-parser", "tool-parser"])
def test_streaming_equals_full_equals_expected(output: Output, tools: str) -> None:
    tool = TOOL_PARSERS.get(output.family) if tools == "tool-parser" else None
    case = Case(output)
    assert case.full(output.family, tool) == wanted(output, tool)
    for width in WIDTHS:
        assert case.streamed(output.family, tool, width) == wanted(output, tool), f"{width} tokens a delta"


@pytest.mark.usefixtures("hook_off")
@pytest.mark.parametrize("output", ALL_OUTPUTS, ids=name)
def test_the_plain_contract(output: Output) -> None:
    """Without the hook the same, but for what vLLM's plain contract cannot express."""
    case = Case(output)
    tool = TOOL_PARSERS.get(output.family)
    if QUOTED.search(output.script):
        # It hands no token ids to the non-streaming path; gemma4's tool parser would then read the marker once more.
        assert case.full(output.family) == by_text_rules(case)
    else:
        assert case.full(output.family, tool) == wanted(output, tool)
    for width in WIDTHS:
        streamed = case.streamed(output.family, tool, width)
        if output.name == LATE_CALL:
            assert streamed == Reply(output.reasoning, output.raw or "")
        else:
            assert streamed == wanted(output, tool), f"{width} tokens a delta"


def by_text_rules(case: Case) -> Reply:
    prompt = case.tokenizer.decode(case.prompt, skip_special_tokens=False)
    text = "".join(text for text, _ in case.deltas(1000))
    found = split(text, case.output.family, prompt=prompt)
    return Reply(found.reasoning, found.content)
