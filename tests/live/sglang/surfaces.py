"""One reply through each surface of a server, with the vendors' own SDKs, in one common shape."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import anthropic
import openai

from tests.support.patience import REPLY_SECONDS

Request = Mapping[str, Any]


class Reply(NamedTuple):
    """What a client received.

    Attributes:
        reasoning, content: the texts, joined.
        calls: (function name, arguments) in order.
        reasoning_tokens: as the usage says; None where the surface does not say.
    """

    reasoning: str
    content: str
    calls: tuple[tuple[str, dict[str, Any]], ...]
    reasoning_tokens: int | None = None


Surface = Callable[[str, str, Request, Mapping[str, str]], Reply]
"""(server, model, chat request, headers) -> what the client received."""


class Calls:
    """Collect tool calls that arrive in pieces, by the index of the call."""

    def __init__(self) -> None:
        self._parts: dict[Any, list[str]] = {}

    def add(self, key: Any, name: str | None, arguments: str | None) -> None:
        entry = self._parts.setdefault(key, ["", ""])
        entry[0] += name or ""
        entry[1] += arguments or ""

    def whole(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        return tuple((name, json.loads(arguments or "{}")) for name, arguments in self._parts.values())


def _openai(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=REPLY_SECONDS)


def _chat_fields(request: Request) -> dict[str, Any]:
    known = {"messages", "tools", "tool_choice", "max_tokens", "n", "response_format"}
    fields = {key: value for key, value in request.items() if key in known}
    return fields | {"extra_body": {key: value for key, value in request.items() if key not in known}}


def _count(usage: Any) -> int | None:
    count: int | None = getattr(usage, "reasoning_tokens", None)
    return count


def chat(url: str, model: str, request: Request, headers: Mapping[str, str]) -> Reply:
    """`POST /v1/chat/completions`, whole."""
    got = _openai(url).chat.completions.create(model=model, extra_headers=dict(headers), **_chat_fields(request))
    return _chat_reply(got.choices[0].message, got.usage)


def _chat_reply(message: Any, usage: Any) -> Reply:
    calls = Calls()
    for index, call in enumerate(message.tool_calls or []):
        calls.add(index, call.function.name, call.function.arguments)
    reasoning = getattr(message, "reasoning_content", None) or ""
    return Reply(reasoning, message.content or "", calls.whole(), _count(usage))


def chat_all(url: str, model: str, request: Request, headers: Mapping[str, str]) -> list[Reply]:
    """`POST /v1/chat/completions` with `n` > 1, whole."""
    got = _openai(url).chat.completions.create(model=model, extra_headers=dict(headers), **_chat_fields(request))
    return [_chat_reply(choice.message, None) for choice in got.choices]


def chat_stream(url: str, model: str, request: Request, headers: Mapping[str, str]) -> Reply:
    """`POST /v1/chat/completions` as a stream."""
    return chat_stream_all(url, model, request, headers)[0]


def chat_stream_all(url: str, model: str, request: Request, headers: Mapping[str, str]) -> list[Reply]:
    """`POST /v1/chat/completions` as a stream, every choice."""
    texts: dict[int, list[str]] = {}
    calls: dict[int, Calls] = {}
    usage = None
    stream = _openai(url).chat.completions.create(
        model=model,
        stream=True,
        stream_options={"include_usage": True},
        extra_headers=dict(headers),
        **_chat_fields(request),
    )
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text = texts.setdefault(choice.index, ["", ""])
            text[0] += getattr(choice.delta, "reasoning_content", None) or ""
            text[1] += choice.delta.content or ""
            found = calls.setdefault(choice.index, Calls())
            for call in choice.delta.tool_calls or []:
                found.add(call.index, call.function.name, call.function.arguments)
    return [Reply(*texts[i], calls[i].whole(), _count(usage)) for i in sorted(texts)]


def _responses_fields(request: Request) -> dict[str, Any]:
    # SGLang keeps two tokens of this budget for itself on this surface.
    budget = request["max_tokens"] + 2
    fields: dict[str, Any] = {"input": request["messages"], "max_output_tokens": budget}
    if "tools" in request:
        fields["tools"] = [{"type": "function", **tool["function"]} for tool in request["tools"]]
    if "chat_template_kwargs" in request:
        fields["extra_body"] = {"chat_template_kwargs": request["chat_template_kwargs"]}
    return fields


def responses(url: str, model: str, request: Request, headers: Mapping[str, str]) -> Reply:
    """`POST /v1/responses`, whole."""
    got = _openai(url).responses.create(model=model, extra_headers=dict(headers), **_responses_fields(request))
    return _response_reply(got)


def _response_reply(got: Any) -> Reply:
    reasoning = content = ""
    calls = Calls()
    for item in got.output:
        if item.type == "reasoning":
            reasoning += "".join(part.text for part in item.content or item.summary or [])
        elif item.type == "message":
            content += "".join(part.text for part in item.content)
        elif item.type == "function_call":
            calls.add(item.id, item.name, item.arguments)
    return Reply(reasoning, content, calls.whole())


def responses_stream(url: str, model: str, request: Request, headers: Mapping[str, str]) -> Reply:
    """`POST /v1/responses` as a stream; the deltas must add up to the completed response.

    Raises:
        AssertionError: they do not.
    """
    reasoning = content = ""
    final = None
    stream = _openai(url).responses.create(
        model=model, stream=True, extra_headers=dict(headers), **_responses_fields(request)
    )
    for event in stream:
        if event.type == "response.reasoning_text.delta":
            reasoning += event.delta
        elif event.type == "response.output_text.delta":
            content += event.delta
        elif event.type in ("response.completed", "response.incomplete"):
            final = _response_reply(event.response)
    assert final is not None, "the stream ended without its last event"
    assert (reasoning, content) == (final.reasoning, final.content)
    return final


def _messages_fields(request: Request) -> dict[str, Any]:
    fields: dict[str, Any] = {"messages": request["messages"], "max_tokens": request["max_tokens"]}
    if "tools" in request:
        fields["tools"] = [
            {
                "name": tool["function"]["name"],
                "description": tool["function"]["description"],
                "input_schema": tool["function"]["parameters"],
            }
            for tool in request["tools"]
        ]
    # This API has no template arguments; its own switch is turned into the template's by SGLang.
    switches = request.get("chat_template_kwargs", {})
    wanted = switches.get("thinking", switches.get("enable_thinking"))
    if wanted is not None:
        fields["thinking"] = {"type": "adaptive" if wanted else "disabled"}
    return fields


def _anthropic(url: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=url, api_key="none", max_retries=0, timeout=REPLY_SECONDS)


def _message_reply(got: Any) -> Reply:
    reasoning = content = ""
    calls = []
    for block in got.content:
        if block.type == "thinking":
            reasoning += block.thinking
        elif block.type == "text":
            content += block.text
        elif block.type == "tool_use":
            calls.append((block.name, dict(block.input)))
    return Reply(reasoning, content, tuple(calls))


def messages(url: str, model: str, request: Request, headers: Mapping[str, str]) -> Reply:
    """`POST /v1/messages`, whole."""
    got = _anthropic(url).messages.create(model=model, extra_headers=dict(headers), **_messages_fields(request))
    return _message_reply(got)


def messages_stream(url: str, model: str, request: Request, headers: Mapping[str, str]) -> Reply:
    """`POST /v1/messages` as a stream, collected by Anthropic's own accumulator."""
    with _anthropic(url).messages.stream(
        model=model, extra_headers=dict(headers), **_messages_fields(request)
    ) as stream:
        return _message_reply(stream.get_final_message())


SURFACES: Final[dict[str, Surface]] = {
    "chat": chat,
    "chat stream": chat_stream,
    "responses": responses,
    "responses stream": responses_stream,
    "messages": messages,
    "messages stream": messages_stream,
}
