"""The adapter through vLLM's own ParserManager: hook on and off, streaming and full, with and without tools."""

from collections.abc import Iterator

import pytest

pytest.importorskip("vllm", reason="needs vLLM: bash tests/envs/vllm.sh builds its environment")

from tests.support.vllm_drive import WIDTHS, Case, Reply, expected
from tests.support.wires import WIRES
from vllm_reasoning_ext import split
from vllm_reasoning_ext.engines import guard, register, vllm_compose
from vllm_reasoning_ext.serve.wires import QUOTED, Wire

pytestmark = pytest.mark.vllm

TOOL_PARSERS = {"muse_glimmer": "muse_glimmer", "qwen3": "hermes"}

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


def name(wire: Wire) -> str:
    return f"{wire.family}-{wire.name.replace(' ', '-')}"


def wanted(wire: Wire, tool: str | None) -> Reply:
    if tool is not None:
        return expected(wire)
    return Reply(wire.reasoning, wire.content if wire.raw is None else wire.raw)


@pytest.mark.parametrize("wire", WIRES, ids=name)
@pytest.mark.parametrize("tools", ["no-tool-parser", "tool-parser"])
def test_streaming_equals_full_equals_expected(wire: Wire, tools: str) -> None:
    tool = TOOL_PARSERS[wire.family] if tools == "tool-parser" else None
    case = Case(wire)
    assert case.full(wire.family, tool) == wanted(wire, tool)
    for width in WIDTHS:
        assert case.streamed(wire.family, tool, width) == wanted(wire, tool), f"{width} tokens a delta"


@pytest.mark.usefixtures("hook_off")
@pytest.mark.parametrize("wire", WIRES, ids=name)
def test_the_plain_contract(wire: Wire) -> None:
    """Without the hook the same, but for what vLLM's plain contract cannot express."""
    case = Case(wire)
    full = case.full(wire.family, TOOL_PARSERS[wire.family])
    if QUOTED.search(wire.script):
        assert full == by_text_rules(case)  # it hands no token ids to the non-streaming path
    else:
        assert full == expected(wire)
    for width in WIDTHS:
        streamed = case.streamed(wire.family, TOOL_PARSERS[wire.family], width)
        if wire.name == "a call in an open block":
            # Only the end of the output decides that this is a call, and then no tool parser is asked any more.
            assert streamed == Reply(wire.reasoning, wire.raw or "")
        else:
            assert streamed == expected(wire), f"{width} tokens a delta"


def by_text_rules(case: Case) -> Reply:
    prompt = case.tokenizer.decode(case.prompt, skip_special_tokens=False)
    text = "".join(text for text, _ in case.deltas(1000))
    found = split(text, case.wire.family, prompt=prompt)
    return Reply(found.reasoning, found.content)
