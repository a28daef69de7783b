"""How the families are served for the live tests, and what an output's chat reply has to be."""

import time
import urllib.request
from collections.abc import Callable
from typing import Final

from tests.live.conftest import Scripted
from tests.support.more_outputs import SERVED_BY_AUTO, TOOL_PARSERS, reasoning_tokens
from tests.support.patience import LOCAL_SECONDS
from vllm_reasoning_ext.demo.chat_reply import from_body, from_events, wanted
from vllm_reasoning_ext.demo.outputs import Output

CHAT: Final = "/v1/chat/completions"


def flags(family: str) -> tuple[str, ...]:
    """Give the server flags of a family."""
    parser = "auto" if family in SERVED_BY_AUTO else family
    return "--reasoning-parser", parser, "--tool-call-parser", TOOL_PARSERS[family], "--enable-auto-tool-choice"


def check(scripted: Scripted, output: Output, step: int) -> None:
    """Send an output as a chat request, whole and streamed, and compare all that the client gets."""
    body = scripted.body(output, step)
    whole = from_body(scripted.server.post(CHAT, body))
    options = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    events = scripted.server.stream(CHAT, body | options)
    streamed = from_events(events)
    assert whole.shown == wanted(output)
    assert streamed.shown == wanted(output)
    assert whole.finish == streamed.finish == ("length" if output.cut else "tool_calls" if output.cities else "stop")
    assert whole.tokens == streamed.tokens > 0
    assert whole.reasoning_tokens == streamed.reasoning_tokens == reasoning_tokens(output)
    # Each chunk's usage: never less than before, and no token that was shown is missing.
    before = 0
    for at in range(1, len(events)):
        so_far = from_events(events[:at])
        assert so_far.reasoning_tokens is not None
        assert max(before, len(so_far.reasoning.replace("\n", "").encode())) <= so_far.reasoning_tokens, output.name
        before = so_far.reasoning_tokens


def splits(scripted: Scripted, **labels: str) -> float:
    """Read our counter on the server's metrics page: the sum over the series with these labels."""
    with urllib.request.urlopen(f"{scripted.server.url}/metrics", timeout=LOCAL_SECONDS) as page:
        lines = page.read().decode().splitlines()
    labelled = [f'{name}="{value}"' for name, value in labels.items()]
    found = [
        line for line in lines if line.startswith("reasoning_ext_splits_total{") and all(w in line for w in labelled)
    ]
    assert found
    return sum(float(line.rpartition(" ")[2]) for line in found)


def wait_until(holds: Callable[[], bool], seconds: float = LOCAL_SECONDS) -> None:
    """Wait for what a server does after its reply; the caller asserts it then."""
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.1)
