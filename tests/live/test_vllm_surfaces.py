"""The three API surfaces of a real vLLM server through the official SDKs, on the scripted engine core."""

import json
import threading
import urllib.request
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.live.chat_outputs import check, flags, splits, wait_until
from tests.live.conftest import Scripted, Start
from tests.support.more_outputs import TOOL_PARSERS, outputs_of, reasoning_tokens
from tests.support.patience import REPLY_SECONDS
from vllm_reasoning_ext.demo.outputs import FUNCTION, TOOLS, Output

pytestmark = [pytest.mark.vllm, pytest.mark.live]

pytest.importorskip("openai")
pytest.importorskip("anthropic")


class Seen(NamedTuple):
    """What an SDK's user sees of a reply."""

    reasoning: str
    answer: str
    cities: tuple[str, ...] = ()


def wanted(output: Output) -> Seen:
    return Seen(output.reasoning, output.content, output.cities)


@pytest.fixture(scope="module", params=sorted(TOOL_PARSERS))
def served(request: pytest.FixtureRequest, start_vllm: Start) -> tuple[str, Scripted]:
    return request.param, start_vllm(request.param, *flags(request.param))


def turn_outputs(family: str) -> list[Output]:
    """Select the outputs whose prompt every surface can make (no continued message)."""
    return [output for output in outputs_of(family) if output.prompt == "turn"]


def openai_client(scripted: Scripted) -> Any:
    import openai

    return openai.OpenAI(base_url=f"{scripted.server.url}/v1", api_key="none", max_retries=0, timeout=REPLY_SECONDS)


def script(scripted: Scripted, output: Output, **more: Any) -> dict[str, Any]:
    fields = {"vllm_xargs": scripted.body(output)["vllm_xargs"] | more}
    return fields | ({"chat_template_kwargs": dict(output.kwargs)} if output.kwargs else {})


# Chat

VLLMS_OWN = {"vllm_xargs", "chat_template_kwargs", "continue_final_message", "add_generation_prompt"}
"""Fields of a chat request that the SDK does not know."""


def chat(scripted: Scripted, output: Output, *, stream: bool, **fields: Any) -> list[Seen]:
    """Send a chat request; give what is seen of each choice."""
    body = scripted.body(output, **fields)
    extra = body.pop("extra", {})
    for name in VLLMS_OWN & set(body):
        extra = {name: body.pop(name)} | extra
    client = openai_client(scripted)
    if not stream:
        choices = client.chat.completions.create(**body, extra_body=extra).choices
        return [
            Seen(
                getattr(c.message, "reasoning", None) or "",
                c.message.content or "",
                tuple(json.loads(t.function.arguments)["city"] for t in c.message.tool_calls or ()),
            )
            for c in choices
        ]
    found: dict[int, list[Any]] = {}
    for chunk in client.chat.completions.create(**body, extra_body=extra, stream=True):
        for choice in chunk.choices:
            parts = found.setdefault(choice.index, ["", "", {}])
            parts[0] += getattr(choice.delta, "reasoning", None) or ""
            parts[1] += choice.delta.content or ""
            for call in choice.delta.tool_calls or ():
                parts[2][call.index] = parts[2].get(call.index, "") + (call.function.arguments or "")
    return [
        Seen(reasoning, answer, tuple(json.loads(arguments)["city"] for arguments in calls.values()))
        for _, (reasoning, answer, calls) in sorted(found.items())
    ]


@pytest.mark.parametrize("step", [1, 2, 5, 500])
def test_outputs_and_usage(served: tuple[str, Scripted], step: int) -> None:
    family, scripted = served
    for output in outputs_of(family):
        check(scripted, output, step)


@pytest.mark.parametrize("stream", [False, True])
def test_chat_outputs(served: tuple[str, Scripted], stream: bool) -> None:
    family, scripted = served
    for output in outputs_of(family):
        assert chat(scripted, output, stream=stream) == [wanted(output)], output.name


@pytest.mark.parametrize("stream", [False, True])
def test_two_choices_are_two_outputs(served: tuple[str, Scripted], stream: bool) -> None:
    family, scripted = served
    first, *others = outputs_of(family)
    second = next(w for w in others if (w.prompt, w.kwargs) == (first.prompt, first.kwargs))
    scripts = "|".join(scripted.body(output)["vllm_xargs"]["script"] for output in (first, second))
    got = chat(
        scripted, first, stream=stream, n=2, temperature=1, tools=TOOLS, vllm_xargs={"script": scripts, "step": 2}
    )
    assert got == [wanted(first), wanted(second)]


@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_string_cuts_the_answer(served: tuple[str, Scripted], stream: bool) -> None:
    family, scripted = served
    output = outputs_of(family)[0]
    assert chat(scripted, output, stream=stream, stop=[" 42"]) == [Seen(output.reasoning, "It is")]


@pytest.mark.parametrize("stream", [False, True])
def test_hidden_reasoning_stays_hidden(served: tuple[str, Scripted], stream: bool) -> None:
    family, scripted = served
    for output in turn_outputs(family):
        got = chat(scripted, output, stream=stream, extra={"include_reasoning": False})
        assert got == [wanted(output)._replace(reasoning="")], output.name


@pytest.mark.parametrize("stream", [False, True])
def test_the_floor_on_request(served: tuple[str, Scripted], stream: bool) -> None:
    family, scripted = served
    output = next(output for output in outputs_of(family) if output.cut)
    extra = {"chat_template_kwargs": {**output.kwargs, "force_nonempty_content": True}}
    assert chat(scripted, output, stream=stream, extra=extra) == [wanted(output)]  # cut by its limit: no floor
    # The same output, ended by the model: the script's end is a stop.
    uncut = chat(scripted, output, stream=stream, extra=extra, max_tokens=1000, **ended(scripted, output))
    assert uncut == [Seen(output.reasoning, output.reasoning)]


def ended(scripted: Scripted, output: Output) -> dict[str, Any]:
    """Let the model end the output where `max_tokens` would have cut it."""
    script = output.script.partition("✂")[0] + scripted.tokenizer.eos_token
    return {"vllm_xargs": {"script": ",".join(map(str, scripted.ids(script)))}}


# Responses


def responses_tools(output: Output) -> dict[str, Any]:
    return {"tools": [{"type": "function", **TOOLS[0]["function"]}]} if output.cities else {}


def read_items(items: Any) -> Seen:
    reasoning, answer, cities = "", "", []
    for item in items:
        if item.type == "reasoning":
            reasoning += "".join(part.text for part in item.content or ())
        elif item.type == "message":
            answer += "".join(part.text for part in item.content)
        elif item.type == "function_call":
            cities.append(json.loads(item.arguments)["city"])
    return Seen(reasoning, answer, tuple(cities))


def responses(scripted: Scripted, output: Output, *, stream: bool) -> Seen:
    """Send a Responses request; the finished items and what the events said must be the same."""
    made = openai_client(scripted).responses.create(
        model="tiny",
        input=output.messages()[0]["content"],
        max_output_tokens=scripted.body(output)["max_tokens"],
        extra_body=script(scripted, output),
        stream=stream,
        **responses_tools(output),
    )
    if not stream:
        assert made.usage.output_tokens_details.reasoning_tokens == reasoning_tokens(output), output.name
        return read_items(made.output)
    reasoning = answer = ""
    calls: list[str] = []
    for event in made:
        if event.type == "response.reasoning_text.delta":
            reasoning += event.delta
        elif event.type == "response.output_text.delta":
            answer += event.delta
        elif event.type == "response.function_call_arguments.done":
            calls.append(json.loads(event.arguments)["city"])
        elif event.type in ("response.completed", "response.incomplete"):
            finished = read_items(event.response.output)
    assert finished == Seen(reasoning, answer, tuple(calls)), output.name
    return finished


@pytest.mark.parametrize("stream", [False, True])
def test_responses(served: tuple[str, Scripted], stream: bool) -> None:
    family, scripted = served
    for output in turn_outputs(family):
        assert responses(scripted, output, stream=stream) == wanted(output), output.name


# The prompt decides


@pytest.mark.parametrize("stream", [False, True])
def test_the_prompt_decides_not_the_switch(start_vllm: Start, stream: bool) -> None:
    """A template that ignores enable_thinking opens the block all the same: chat and Responses."""
    scripted = start_vllm("qwen3", *flags("qwen3"))
    kwargs = {"revision": "2507-thinking", "enable_thinking": False}
    output = Output("ignored switch", "qwen3", "Six times seven.\n</think>\n\nIt is 42.<|im_end|>", kwargs=kwargs)
    want = Seen("Six times seven.", "It is 42.")
    assert chat(scripted, output, stream=stream) == [want]
    made = openai_client(scripted).responses.create(
        model="tiny",
        input="What is six times seven?",
        extra_body=script(scripted, output) | {"chat_template_kwargs": kwargs},
        stream=stream,
    )
    if stream:
        made = next(event.response for event in made if event.type == "response.completed")
    assert read_items(made.output) == want


# Messages


def messages(scripted: Scripted, output: Output, *, stream: bool) -> Seen:
    """Send an Anthropic messages request."""
    import anthropic

    client = anthropic.Anthropic(base_url=scripted.server.url, api_key="none", max_retries=0, timeout=REPLY_SECONDS)
    schema = TOOLS[0]["function"]["parameters"]
    fields: dict[str, Any] = {
        "model": "tiny",
        "max_tokens": scripted.body(output)["max_tokens"],
        "messages": [{"role": "user", "content": output.messages()[0]["content"]}],
        "extra_body": script(scripted, output),
        **({"tools": [{"name": FUNCTION, "input_schema": schema}]} if output.cities else {}),
    }
    if stream:
        with client.messages.stream(**fields) as events:
            made = events.get_final_message()
    else:
        made = client.messages.create(**fields)
    reasoning = "".join(block.thinking for block in made.content if block.type == "thinking")
    answer = "".join(block.text for block in made.content if block.type == "text")
    cities = tuple(block.input["city"] for block in made.content if block.type == "tool_use")
    return Seen(reasoning, answer, cities)


@pytest.mark.parametrize("stream", [False, True])
def test_messages(served: tuple[str, Scripted], stream: bool) -> None:
    family, scripted = served
    for output in turn_outputs(family):
        assert messages(scripted, output, stream=stream) == wanted(output), output.name


# A client that hangs up


def test_a_hang_up_harms_nobody(served: tuple[str, Scripted]) -> None:
    """A client leaves mid-thought while others go on; the server then still counts and serves."""
    family, scripted = served
    output = outputs_of(family)[0]
    body = scripted.body(output, stream=True)
    body["vllm_xargs"] |= {"pause": 0.05}
    request = urllib.request.Request(
        f"{scripted.server.url}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    got: list[Any] = []
    others = [
        threading.Thread(target=lambda: got.append(chat(scripted, output, stream=True, vllm_xargs=body["vllm_xargs"])))
        for _ in range(3)
    ]
    for other in others:
        other.start()
    with urllib.request.urlopen(request, timeout=REPLY_SECONDS) as reply:
        for _ in range(4):
            reply.readline()
    for other in others:
        other.join()
    assert got == [[wanted(output)]] * 3
    assert chat(scripted, output, stream=False) == [wanted(output)]


@pytest.mark.parametrize("surface", [chat, messages, responses], ids=lambda send: send.__name__)
def test_the_counters_are_on_vllms_own_metrics_page(served: tuple[str, Scripted], surface: Callable[..., Any]) -> None:
    family, scripted = served

    def count() -> float:
        return splits(scripted, family=family, surface=surface.__name__)

    before = count()
    surface(scripted, turn_outputs(family)[0], stream=False)
    wait_until(lambda: count() == before + 1)
    assert count() == before + 1
