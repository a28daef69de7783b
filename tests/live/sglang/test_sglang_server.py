"""A real SGLang server splits the shared outputs on every surface, with SGLang's own tool parsers beside us."""

import json
import re
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import openai
import pytest

from tests.live.sglang.conftest import SETUPS, Served, Servers, arguments
from tests.live.sglang.server import running
from tests.live.sglang.surfaces import SURFACES, Reply, Surface, chat, chat_all, chat_stream, chat_stream_all
from tests.support.more_outputs import outputs_of
from tests.support.patience import REPLY_SECONDS, START_SECONDS
from vllm_reasoning_ext import split
from vllm_reasoning_ext.conformance.script import cut_at, script_ids
from vllm_reasoning_ext.demo.outputs import FUNCTION, Output
from vllm_reasoning_ext.demo.tiny_model import encode

pytestmark = [pytest.mark.live, pytest.mark.sglang]

BODY_HEADERS: Final = {"muse_glimmer": " to=user<|message|>", "gpt_oss": "<|channel|>final<|message|>"}
"""SGLang appends a continued answer to the generation prompt: a channel family's header has to come along."""


def ids_of(served: Served, output: Output) -> list[int]:
    return script_ids(output.script, lambda text: encode(served.tokenizer, text))


def ask(served: Served, surface: Surface, output: Output, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    """Send an output's request through a surface; the server answers with the output's script."""
    request = {**request_of(served, output), **fields}
    model = str(served.server.model)
    return surface(served.server.url, model, request, headers or header(ids_of(served, output)))


def header(ids: list[int], *, free: bool = False) -> dict[str, str]:
    return {"x-script": ",".join(map(str, ids)), **({"x-free": "1"} if free else {})}


def request_of(served: Served, output: Output) -> dict[str, Any]:
    """Build the request of an output; what `max_tokens` does not cut ends by its stop token."""
    fields = output.request()
    fields.pop("add_generation_prompt", None)
    if output.prompt == "answer":
        messages = fields["messages"]
        prefill = BODY_HEADERS.get(output.family, "") + messages[-1]["content"]
        fields["messages"] = [*messages[:-1], {"role": "assistant", "content": prefill}]
    cut = cut_at(output.script, lambda text: encode(served.tokenizer, text))
    return {**fields, "max_tokens": cut or len(ids_of(served, output)) + 4}


def expected(output: Output) -> Reply:
    return Reply(output.reasoning, output.content, tuple((FUNCTION, {"city": city}) for city in output.cities))


def visible(reply: Reply) -> Reply:
    """Drop what SGLang's tool parsers trim on their own: blanks around an answer beside a call."""
    content = reply.content.strip() if reply.calls else reply.content
    return Reply(reply.reasoning, content, reply.calls)


def can_ask(output: Output, surface: str) -> bool:
    """Tell whether a surface has a way to ask for this output's prompt."""
    if output.prompt != "turn":
        return surface.startswith("chat")  # nothing else continues a final message
    # Anthropic's requests carry no template arguments but the thinking switch.
    return not (surface.startswith("messages") and "thinking_mode" in output.kwargs)


OUTPUTS: Final = [
    pytest.param(setup, output, id=f"{setup.name}-{output.name}")
    for setup in SETUPS
    for output in outputs_of(setup.family)
]


@pytest.mark.parametrize(("served", "output"), OUTPUTS, indirect=["served"])
def test_output(served: Served, output: Output) -> None:
    # All surfaces are asked at once: that must not matter either.
    names = [name for name in SURFACES if can_ask(output, name)]
    with ThreadPoolExecutor(len(names)) as pool:
        replies = list(pool.map(lambda name: ask(served, SURFACES[name], output), names))
    assert {name: visible(reply) for name, reply in zip(names, replies, strict=True)} == {
        name: visible(expected(output)) for name in names
    }


SETUP: Final = pytest.mark.parametrize("served", SETUPS, indirect=True, ids=lambda setup: setup.name)


def thought(served: Served) -> Output:
    return outputs_of(served.setup.family)[0]


@SETUP
@pytest.mark.parametrize("surface", [chat_all, chat_stream_all])
def test_two_choices(served: Served, surface: Any) -> None:
    output = thought(served)
    replies = ask(served, surface, output, n=2)
    assert [visible(reply) for reply in replies] == [expected(output)] * 2


@SETUP
def test_parallel_streams_do_not_mix(served: Served) -> None:
    outputs = [output for output in outputs_of(served.setup.family) if output.prompt == "turn"]
    chosen = [outputs[index % len(outputs)] for index in range(8)]
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda output: ask(served, chat_stream, output), chosen))
    assert [visible(reply) for reply in replies] == [visible(expected(output)) for output in chosen]


@SETUP
@pytest.mark.parametrize("surface", [chat, chat_stream])
def test_reasoning_tokens_are_counted_by_the_split(served: Served, surface: Surface) -> None:
    output = thought(served)
    count = ask(served, surface, output).reasoning_tokens
    # One token a byte: at least the thought's own, and never the answer's.
    least, answer = (len(encode(served.tokenizer, text)) for text in (output.reasoning, output.content))
    assert count is not None
    assert least <= count <= len(ids_of(served, output)) - answer


@SETUP
def test_a_plain_answer_has_no_reasoning_tokens(served: Served) -> None:
    plain = [w for w in outputs_of(served.setup.family) if w.prompt == "turn" and not w.reasoning and not w.cities]
    assert [ask(served, chat, output).reasoning_tokens for output in plain] == [0] * len(plain)


@SETUP
def test_a_hang_up_leaves_the_server_well(served: Served) -> None:
    output = thought(served)
    client = openai.OpenAI(base_url=f"{served.server.url}/v1", api_key="none", max_retries=0, timeout=REPLY_SECONDS)
    with client.chat.completions.create(
        model=str(served.server.model),
        messages=output.messages(),  # type: ignore[arg-type]
        stream=True,
        max_tokens=1500,
        extra_headers=header(encode(served.tokenizer, "x")),
    ) as stream:
        for _ in zip(range(3), stream, strict=False):
            pass
    assert visible(ask(served, chat, output)) == expected(output)
    log = served.server.log.read_text()
    assert "vllm-reasoning-ext: the hook" not in log
    assert "internal fault" not in log


@SETUP
def test_separate_reasoning_splits_by_the_text_alone(served: Served) -> None:
    output = thought(served)
    body = {"text": output.text, "reasoning_parser": served.setup.family}
    asked = urllib.request.Request(
        f"{served.server.url}/separate_reasoning", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=REPLY_SECONDS) as answer:
        got = json.loads(answer.read())
    expected_split = split(output.text, output.family)
    assert (got["reasoning_text"], got["text"]) == (expected_split.reasoning, expected_split.content)


SCHEMA: Final = {
    "type": "object",
    "properties": {"answer": {"enum": ["yes", "no"]}},
    "required": ["answer"],
    "additionalProperties": False,
}
ANSWERS: Final = ({"answer": "yes"}, {"answer": "no"})


@SETUP
@pytest.mark.parametrize("surface", [chat, chat_stream])
def test_structured_output_begins_after_the_thought(served: Served, surface: Surface) -> None:
    # Where the request asks for no thought and the prompt opens none (MiniMax M3 by default), SGLang holds the
    # output to the grammar from its first token; so take an output whose thought is asked for, if there is one.
    asked = [w for w in outputs_of(served.setup.family) if w.name == "thought opened by the prompt"]
    output = next((w for w in asked if w.prompt == "turn"), thought(served))
    # The script writes the thought and opens the answer; then the model is free but for the grammar.
    script = output.script[: output.script.rindex(output.content)].rstrip("\n")
    ids = script_ids(script, lambda text: encode(served.tokenizer, text))
    schema = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
    headers = header(ids, free=True)
    reply = ask(served, surface, output, headers, max_tokens=len(ids) + 64, response_format=schema)
    assert reply.reasoning == output.reasoning
    assert json.loads(reply.content) in ANSWERS


@SETUP
def test_one_line_tells_that_the_plugin_is_there(served: Served) -> None:
    log = served.server.log.read_text()
    said = re.findall(r"vllm-reasoning-ext \S+: reasoning parsers registered.*", log)
    # The server, the scheduler and the detokenizer: one line each.
    assert len(said) == 3, log[-3000:]
    assert "Not found in this SGLang" not in said[0]


def test_two_tokenizer_workers(servers: Servers, models: Any, tmp_path_factory: Any) -> None:
    servers.stop()
    setup = SETUPS[0]
    model, tokenizer = models(setup.family)
    args = [*arguments(setup.family, setup.tool_parser), "--tokenizer-worker-num", "2"]
    # Two workers import at once on few cores; SGLang's own ten seconds of patience would restart them for ever.
    patience = {"SGLANG_UVICORN_WORKER_HEALTHCHECK_TIMEOUT": str(int(START_SECONDS))}
    with running(tmp_path_factory.mktemp("workers"), model, *args, env=patience) as server:
        served = Served(setup, server, tokenizer)
        outputs = [output for output in outputs_of(setup.family) if output.prompt == "turn"]
        # Each request is a connection of its own, so that both workers get some.
        for output in outputs * 2:
            for surface in (chat, chat_stream):
                assert visible(ask(served, surface, output)) == visible(expected(output)), output.name


def test_increments_of_several_tokens(servers: Servers, models: Any, tmp_path_factory: Any) -> None:
    servers.stop()
    setup = SETUPS[0]
    model, tokenizer = models(setup.family)
    # Each item of SGLang's stream then holds only what is new, five tokens at a time.
    options = ["--incremental-streaming-output", "--stream-interval", "5"]
    args = [*arguments(setup.family, setup.tool_parser), *options]
    with running(tmp_path_factory.mktemp("increments"), model, *args) as server:
        served = Served(setup, server, tokenizer)
        for output in outputs_of(setup.family):
            for name in SURFACES:
                if name.endswith("stream") and can_ask(output, name):
                    assert visible(ask(served, SURFACES[name], output)) == visible(expected(output)), output.name


def test_a_foreign_tokenizer_stops_the_start(servers: Servers, models: Any, tmp_path_factory: Any) -> None:
    servers.stop()
    model, _ = models("qwen3")
    args = arguments("muse_glimmer", None)
    with running(tmp_path_factory.mktemp("foreign"), model, *args, wait=False) as server:
        assert server.returncode(START_SECONDS) != 0
        log = server.log.read_text()
    assert re.search(r"no single token for <\|start\|>.*found in:.*Remedy: serve the model with", log), log[-3000:]
