"""The adapter through vLLM's own ParserManager: hook on and off, streaming and full, with and without tools."""

import pytest

pytest.importorskip("vllm", reason="needs vLLM: bash tests/envs/vllm.sh builds its environment")

from tests.support.vllm_drive import WIDTHS, Case, Reply, compose, expected
from tests.support.wires import WIRES
from vllm_reasoning_ext.engines import register, vllm_compose
from vllm_reasoning_ext.serve.wires import Wire

pytestmark = pytest.mark.vllm

TOOL_PARSERS = {"muse_glimmer": "muse_glimmer", "qwen3": "hermes"}

register.register_vllm()


@pytest.fixture(params=["hook", "plain"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test through the composed-parser hook, and with the hook off."""
    if request.param == "plain":
        monkeypatch.setattr(vllm_compose, "compose", lambda owner: None)
    return str(request.param)


def ids(wire: Wire) -> str:
    return f"{wire.family}-{wire.name.replace(' ', '-')}"


@pytest.mark.parametrize("wire", WIRES, ids=ids)
@pytest.mark.parametrize("tools", ["no-tool-parser", "tool-parser"])
def test_streaming_equals_full_equals_expected(wire: Wire, tools: str, mode: str) -> None:
    case = Case(wire)
    tool = TOOL_PARSERS[wire.family] if tools == "tool-parser" else None
    want = expected(wire) if tool else Reply(wire.reasoning, wire.content if wire.raw is None else wire.raw)
    assert case.full(wire.family, tool) == want
    for width in WIDTHS:
        assert case.streamed(wire.family, tool, width) == want, f"{width} tokens a delta"
