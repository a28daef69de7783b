"""Answers and calls in any order on a real SGLang server: every surface shows the same, and no frame is shown."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import httpx
import pytest

from tests.engines.sglang_dialects import DIALECTS, THINKING, Dialect, drawn, expected, written
from tests.live.sglang.conftest import SETUPS, Served, Servers, Setup, arguments
from tests.live.sglang.server import running
from tests.live.sglang.surfaces import SURFACES, chat, chat_stream
from tests.live.sglang.test_sglang_server import ask, header
from tests.support.patience import REPLY_SECONDS
from vllm_reasoning_ext.demo.outputs import FUNCTION, TOOLS, Output
from vllm_reasoning_ext.demo.tiny_model import encode

pytestmark = [pytest.mark.live, pytest.mark.sglang]

SETUP: Final = pytest.mark.parametrize("served", SETUPS, indirect=True, ids=lambda setup: setup.name)

_SCHEMA: Final = {
    "type": "object",
    "properties": {"city": {"enum": ["a", "b"]}},
    "required": ["city"],
    "additionalProperties": False,
}
FEW: Final = [{"type": "function", "function": {**TOOLS[0]["function"], "strict": True, "parameters": _SCHEMA}}]


def played(dialect: Dialect, seed: int) -> tuple[Output, str, tuple[tuple[str, dict[str, str]], ...]]:
    """Draw an output that a server plays to its end; with what a client gets of it."""
    pieces = drawn(dialect, seed)
    if dialect.family == "gpt_oss":
        # A server stops at the first <|call|>: further calls come where the next header ends the one before.
        pieces = [piece._replace(shown=piece.shown.removesuffix("<|call|>")) for piece in pieces]
    output = written(dialect, pieces)
    shown, calls = expected(dialect, pieces)
    script = output.script.replace("<|call|><|start|>", "<|start|>")
    if dialect.family == "muse_glimmer":
        script = script.removesuffix("<|eom|>") + "<|eot|>"  # the stop token
    return output._replace(script=script), shown, tuple((FUNCTION, call) for call in calls)


def dialect_of(setup: Setup) -> Dialect:
    return next(dialect for dialect in DIALECTS if dialect[:2] == setup)


def on_every_surface(served: Served, output: Output, **fields: Any) -> dict[str, Any]:
    """Ask for an output with tools offered; give what each surface shows, but for the count of reasoning tokens."""
    with ThreadPoolExecutor(len(SURFACES)) as pool:
        found = pool.map(lambda surface: ask(served, surface, output, tools=TOOLS, **fields), SURFACES.values())
        return dict(zip(SURFACES, (reply[:3] for reply in found), strict=True))


@SETUP
def test_answers_and_calls_in_any_order(served: Served) -> None:
    for seed in range(8):
        output, shown, calls = played(dialect_of(served.setup), seed)
        reply = "Six.", shown, calls
        assert on_every_surface(served, output) == dict.fromkeys(SURFACES, reply), f"seed {seed}: {output.script!r}"


CUT_SHORT: Final = {
    "muse_glimmer": (
        " to=self<|message|>Six.<|eom|><|start|>assistant to=weather<|message|>✂",
        " to=user<|message|>Look.<|eom|><|start|>assistant to=weather<|message|><atem:function_calls✂",
        " to=user<|message|>use <atem:x> here<|eot|>",
    ),
    "gpt_oss": (
        '<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"a": "b✂',
        '<|channel|>commentary to=functions.weather<|message|>{"a": <|call|>',
        "<|channel|>analysis to=python<|message|>print(1)<|call|>",
        "<|channel|>final<|message|>the ‹<|channel|>›commentary part<|return|>",
        '<|channel|>commentary to=functions.weather<|message|>{"city": "Oslo"}<|start|>assistant'
        '<|channel|>commentary to=functions.weather<|message|>{"city": "Rome"}<|call|>',
    ),
    "qwen3": ('<think>Six.</think>x<b>a{"k": 1}<tool_call>\n{"na✂',),
    "gemma4": ("Look.<|tool_call>call:wea✂",),
    "deepseekv32": ('Six.</think>Look.<｜DSML｜function_calls>\n<｜DSML｜invoke name="wea✂',),
    "minimax_m3": ('<mm:think>Six.</mm:think>Look.]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="wea✂',),
}
SHOWN: Final = {
    "muse_glimmer": (
        ("<|start|>assistant to=weather<|message|>", []),
        ("Look.<|start|>assistant to=weather<|message|><atem:function_calls", []),
        ("use <atem:x> here", []),
    ),
    "gpt_oss": (
        ('<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"a": "b', []),
        ('<|channel|>commentary to=functions.weather<|message|>{"a": ', []),
        ("<|channel|>analysis to=python<|message|>print(1)", []),
        ("the <|channel|>commentary part", []),
        ("", ["Oslo", "Rome"]),
    ),
    "qwen3": (('x<b>a{"k": 1}<tool_call>\n{"na', []),),
    "gemma4": (("Look.<|tool_call>call:wea", []),),
    "deepseekv32": (('Look.<｜DSML｜function_calls>\n<｜DSML｜invoke name="wea', []),),
    "minimax_m3": (('Look.]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="wea', []),),
}


@SETUP
def test_what_comes_to_nothing_is_shown_as_the_model_wrote_it(served: Served) -> None:
    family = served.setup.family
    for script, (shown, cities) in zip(CUT_SHORT[family], SHOWN[family], strict=True):
        replies = on_every_surface(served, Output("cut", family, script, kwargs=THINKING))
        reply = shown, tuple((FUNCTION, {"city": city}) for city in cities)
        assert {name: found[1:] for name, found in replies.items()} == dict.fromkeys(SURFACES, reply), script


def test_intervals_of_eight_tokens(servers: Servers, models: Any, tmp_path_factory: Any) -> None:
    servers.stop()
    setup = next(setup for setup in SETUPS if setup.family == "qwen3")
    model, tokenizer = models(setup.family)
    args = [*arguments(setup.family, setup.tool_parser), "--stream-interval", "8"]
    with running(tmp_path_factory.mktemp("interval"), model, *args) as server:
        served = Served(setup, server, tokenizer)
        pieces = [piece for seed in range(4) for piece in drawn(dialect_of(setup), seed)]
        output = written(dialect_of(setup), pieces)
        shown, calls = expected(dialect_of(setup), pieces)
        reply = "Six.", shown, tuple((FUNCTION, call) for call in calls)
        assert on_every_surface(served, output) == dict.fromkeys(SURFACES, reply)


GPT_OSS: Final = pytest.mark.parametrize(
    "served", [setup for setup in SETUPS if setup.family == "gpt_oss"], indirect=True
)


CALL_HEADER: Final = re.compile(
    rf"<.channel.>commentary to=functions\.{FUNCTION}<| to=functions\.{FUNCTION}<.channel.>commentary "
)


@GPT_OSS
@pytest.mark.parametrize("begun", ["<|channel|>analysis<|message|>Six.<|end|><|start|>assistant", "<|channel|>c"])
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": FUNCTION}}])
def test_a_forced_call_is_begun(served: Served, begun: str, choice: Any) -> None:
    # The script writes a thought, or no more than a header's beginning; then the model is free but for the grammar.
    # It is a random model: it may fill its JSON with blanks up to max_tokens, and spell a control token with ordinary
    # ones, which the splitter takes for a quotation. So what it wrote is judged, not what is shown of it.
    ids = encode(served.tokenizer, begun)
    request = {
        "model": str(served.server.model),
        "messages": [{"role": "user", "content": "Six?"}],
        "tools": FEW,
        "tool_choice": choice,
        "max_tokens": len(ids) + 90,
        "logprobs": True,
    }
    url = f"{served.server.url}/v1/chat/completions"
    for stream in (False, True):
        reply = httpx.post(
            url, json={**request, "stream": stream}, headers=header(ids, free=True), timeout=REPLY_SECONDS
        )
        written = "".join(_tokens(reply.text))
        assert written.startswith(begun)
        assert CALL_HEADER.search(written.removeprefix("<|channel|>analysis<|message|>Six.<|end|>")), written


def _tokens(body: str) -> Iterator[str]:
    """List what the model wrote, token by token, from a reply or from a stream of server-sent events."""
    documents = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith(("data: {", "{"))]
    for document in map(json.loads, documents):
        for choice in document["choices"]:
            for token in (choice.get("logprobs") or {}).get("content") or ():
                yield token["token"]


@GPT_OSS
@pytest.mark.parametrize("stop", ["fo", "four", " f"])
def test_a_stop_string_cuts_whole_and_stream_alike(served: Served, stop: str) -> None:
    output = Output("stopped", "gpt_oss", "<|channel|>final<|message|>three four five<|return|>")
    shown = "three four five".partition(stop)[0]
    for tools in ({}, {"tools": TOOLS}):
        for surface in (chat, chat_stream):
            assert ask(served, surface, output, **tools, stop=[stop])[:3] == ("", shown, ())
