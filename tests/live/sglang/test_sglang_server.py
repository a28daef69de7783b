"""A real SGLang server splits the shared wires on every surface, with SGLang's own tool parsers beside us."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import openai
import pytest

from tests.live.sglang.conftest import SETUPS, Served, Setup, arguments
from tests.live.sglang.server import running
from tests.live.sglang.surfaces import SURFACES, Reply, chat, chat_all, chat_stream, chat_stream_all
from tests.support.wires import of_family
from vllm_reasoning_ext.serve.tiny_model import encode
from vllm_reasoning_ext.serve.wires import FUNCTION, TOOLS, Wire, cut_at, script_ids

pytestmark = [pytest.mark.live, pytest.mark.sglang]

BODY_HEADERS: Final = {"muse_glimmer": " to=user<|message|>", "gpt_oss": "<|channel|>final<|message|>"}
"""SGLang appends a continued answer to the generation prompt, so a channel family's header has to come along."""


def ids_of(served: Served, wire: Wire) -> list[int]:
    return script_ids(wire.script, lambda text: encode(served.tokenizer, text))


def header(ids: list[int], *, free: bool = False) -> dict[str, str]:
    return {"x-script": ",".join(map(str, ids)), **({"x-free": "1"} if free else {})}


def request_of(served: Served, wire: Wire) -> dict[str, Any]:
    """Build the request of a wire; what `max_tokens` does not cut ends by its stop token."""
    fields = wire.request()
    fields.pop("add_generation_prompt", None)
    if wire.prompt == "answer":
        messages = fields["messages"]
        prefill = BODY_HEADERS.get(wire.family, "") + messages[-1]["content"]
        fields["messages"] = [*messages[:-1], {"role": "assistant", "content": prefill}]
    cut = cut_at(wire.script, lambda text: encode(served.tokenizer, text))
    return {**fields, "max_tokens": cut or len(ids_of(served, wire)) + 4}


def expected(wire: Wire) -> Reply:
    return Reply(wire.reasoning, wire.content, tuple((FUNCTION, {"city": city}) for city in wire.cities))


def visible(reply: Reply) -> Reply:
    """Drop what SGLang's tool parsers trim on their own: blanks around an answer beside a call."""
    content = reply.content.strip() if reply.calls else reply.content
    return Reply(reply.reasoning, content, reply.calls)


def cases() -> list[Any]:
    """List setup, wire and surface; only chat can continue a final message."""
    return [
        pytest.param(setup, wire, surface, id=f"{setup.name}-{wire.name}-{surface}")
        for setup in SETUPS
        for wire in of_family(setup.family)
        for surface in SURFACES
        if wire.prompt == "turn" or surface.startswith("chat")
    ]


@pytest.mark.parametrize(("served", "wire", "surface"), cases(), indirect=["served"])
def test_wire(served: Served, wire: Wire, surface: str) -> None:
    reply = SURFACES[surface](
        served.server.url, str(served.server.model), request_of(served, wire), header(ids_of(served, wire))
    )
    assert visible(reply) == visible(expected(wire))


SETUP: Final = pytest.mark.parametrize("served", SETUPS, indirect=True, ids=lambda setup: setup.name)


def thought(served: Served) -> Wire:
    return of_family(served.setup.family)[0]


@SETUP
def test_two_choices(served: Served) -> None:
    wire = thought(served)
    request = {**request_of(served, wire), "n": 2}
    for ask in (chat_all, chat_stream_all):
        replies = ask(served.server.url, str(served.server.model), request, header(ids_of(served, wire)))
        assert [visible(reply) for reply in replies] == [expected(wire)] * 2


@SETUP
def test_parallel_streams_do_not_mix(served: Served) -> None:
    wires = [wire for wire in of_family(served.setup.family) if wire.prompt == "turn"]
    chosen = [wires[index % len(wires)] for index in range(8)]

    def ask(wire: Wire) -> Reply:
        return chat_stream(
            served.server.url,
            str(served.server.model),
            request_of(served, wire),
            header(ids_of(served, wire)),
        )

    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(ask, chosen))
    assert [visible(reply) for reply in replies] == [visible(expected(wire)) for wire in chosen]


@SETUP
def test_reasoning_tokens_are_counted_by_the_split(served: Served) -> None:
    wire = thought(served)
    for ask in (chat, chat_stream):
        got = ask(
            served.server.url,
            str(served.server.model),
            request_of(served, wire),
            header(ids_of(served, wire)),
        )
        # One token a byte: at least the thought's own, and never the answer's.
        most = len(ids_of(served, wire)) - len(encode(served.tokenizer, wire.content))
        assert got.reasoning_tokens is not None
        assert len(encode(served.tokenizer, wire.reasoning)) <= got.reasoning_tokens <= most


@SETUP
def test_hang_up_leaves_the_server_well(served: Served) -> None:
    wire = thought(served)
    client = openai.OpenAI(base_url=f"{served.server.url}/v1", api_key="none", max_retries=0)
    endless = header(encode(served.tokenizer, "x") * 2)
    with client.chat.completions.create(
        model=str(served.server.model), messages=wire.messages(), stream=True, max_tokens=1500, extra_headers=endless
    ) as stream:  # fmt: skip
        for _ in zip(range(3), stream, strict=False):
            pass
    reply = chat(
        served.server.url, str(served.server.model), request_of(served, wire), header(ids_of(served, wire))
    )
    assert visible(reply) == expected(wire)
    assert "vllm-reasoning-ext: the hook" not in served.server.log.read_text()


SCHEMA: Final = {
    "type": "object",
    "properties": {"answer": {"enum": ["yes", "no"]}},
    "required": ["answer"],
    "additionalProperties": False,
}


def before_content(wire: Wire) -> str:
    """Cut a script right before the answer that it ends in."""
    return wire.script[: wire.script.rindex(wire.content)]


@SETUP
def test_structured_output_begins_after_the_thought(served: Served) -> None:
    wire = thought(served)
    # The script writes the thought and opens the answer; the model then samples freely, held by the grammar.
    ids = script_ids(before_content(wire).rstrip("\n"), lambda text: encode(served.tokenizer, text))
    request = {
        **request_of(served, wire),
        "max_tokens": len(ids) + 64,
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}},
    }
    for ask in (chat, chat_stream):
        reply = ask(served.server.url, str(served.server.model), request, header(ids, free=True))
        assert reply.reasoning == wire.reasoning
        assert json.loads(reply.content) in ({"answer": "yes"}, {"answer": "no"})


@SETUP
def test_one_line_tells_that_the_plugin_is_there(served: Served) -> None:
    log = served.server.log.read_text()
    said = re.findall(r"vllm-reasoning-ext \S+: reasoning parsers registered.*", log)
    assert said, log[-3000:]
    assert "Not found in this SGLang" not in said[0]


def test_two_tokenizer_workers(models: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    setup = Setup("muse_glimmer", "muse")
    model, tokenizer = models(setup.family)
    env = {"SGLANG_UVICORN_WORKER_HEALTHCHECK_TIMEOUT": "180"}
    with running(
        tmp_path_factory.mktemp("workers"),
        model,
        *arguments(setup.family, setup.tool_parser),
        *("--tokenizer-worker-num", "2"),
        env=env,
    ) as server:
        served = Served(setup, server, tokenizer)
        wires = [wire for wire in of_family(setup.family) if wire.prompt == "turn"]
        # Each request is a new connection, so that both workers get some.
        for wire in wires * 2:
            for ask in (chat, chat_stream):
                reply = ask(server.url, str(model), request_of(served, wire), header(ids_of(served, wire)))
                assert visible(reply) == visible(expected(wire)), wire.name


def test_a_foreign_tokenizer_stops_the_start(models: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    model, _ = models("qwen3")
    with running(
        tmp_path_factory.mktemp("foreign"), model, *arguments("muse_glimmer", None), wait=False
    ) as server:
        assert server.returncode(180) != 0
        assert "the tokenizer has no single token for <|start|>" in server.log.read_text()
