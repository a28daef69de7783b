"""Every wire through a real vLLM API server: what the client receives, streamed and not."""

import pytest

from tests.live.conftest import Scripted, Start
from tests.support.wires import of_family
from vllm_reasoning_ext.serve.chat_reply import from_body, from_events, wanted
from vllm_reasoning_ext.serve.wires import Wire

pytestmark = [pytest.mark.vllm, pytest.mark.live]

FLAGS = {
    "muse_glimmer": ("--reasoning-parser", "muse_glimmer", "--tool-call-parser", "muse_glimmer"),
    "qwen3": ("--reasoning-parser", "qwen3", "--tool-call-parser", "hermes"),
}
CHAT = "/v1/chat/completions"


def served(start_vllm: Start, family: str, *, engine: bool = False) -> Scripted:
    return start_vllm(family, *FLAGS[family], "--enable-auto-tool-choice", engine=engine)


def check(scripted: Scripted, wire: Wire, step: int) -> None:
    body = scripted.body(wire, step)
    whole = from_body(scripted.server.post(CHAT, body))
    options = {"stream_options": {"include_usage": True, "continuous_usage_stats": step == 1}}
    streamed = from_events(scripted.server.stream(CHAT, body | options))
    assert whole.shown == wanted(wire)
    assert streamed.shown == wanted(wire)
    assert whole.finish == streamed.finish == ("length" if wire.cut else "tool_calls" if wire.cities else "stop")
    assert whole.tokens == streamed.tokens > 0
    assert whole.reasoning_tokens == streamed.reasoning_tokens
    assert bool(whole.reasoning_tokens) is bool(wire.reasoning)


@pytest.mark.parametrize("step", [1, 2, 5, 500])
@pytest.mark.parametrize("family", sorted(FLAGS))  # the outer loop: one server start a family
def test_wires_on_the_real_api_server(start_vllm: Start, family: str, step: int) -> None:
    scripted = served(start_vllm, family)
    for wire in of_family(family):
        check(scripted, wire, step)


@pytest.mark.parametrize("family", sorted(FLAGS))
def test_wires_on_the_real_cpu_engine(start_vllm: Start, family: str) -> None:
    scripted = served(start_vllm, family, engine=True)
    for wire in of_family(family):
        check(scripted, wire, 1)
