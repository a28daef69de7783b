"""The middleware around any ASGI application, message by message."""

import asyncio
import gzip
import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.wire.streams import chat, sse, totals
from vllm_reasoning_ext.serve import middleware as module
from vllm_reasoning_ext.serve.metrics import Metrics
from vllm_reasoning_ext.serve.middleware import ReasoningMiddleware
from vllm_reasoning_ext.serve.settings import Settings

JSON = (b"content-type", b"application/json; charset=utf-8")
SSE = (b"content-type", b"text/event-stream; charset=utf-8")
BODY = json.dumps({"choices": [{"message": {"content": "<think>why</think>so"}}]}).encode()
PLAIN = json.dumps({"choices": [{"message": {"content": "so"}}]}).encode()


def start(*headers: tuple[bytes, bytes], status: int = 200) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def part(body: bytes, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


def run(
    messages: Sequence[dict[str, Any]], path: str = "/v1/chat/completions", kind: str = "http"
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Send messages from an application inside the middleware; gives what comes out and the scope it saw."""
    out: list[dict[str, Any]] = []
    seen: dict[str, Any] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.update(scope)
        for message in messages:
            await send(message)

    async def receive() -> Any:
        raise AssertionError

    async def send(message: Any) -> None:
        out.append(dict(message))

    scope = {"type": kind, "method": "POST", "path": path, "headers": [(b"Accept-Encoding", b"gzip"), (b"x", b"1")]}
    asyncio.run(ReasoningMiddleware(app, Settings(), Metrics())(scope, receive, send))
    return out, seen


def test_a_body_is_held_translated_and_measured_anew() -> None:
    length = (b"content-length", str(len(BODY)).encode())
    sent = [start(JSON, length, (b"ETag", b"1"), (b"x-own", b"1")), part(BODY[:9], True), part(BODY[9:])]
    (head, body), scope = run(sent)
    assert json.loads(body["body"])["choices"][0]["message"] == {"content": "so", "reasoning_content": "why"}
    assert head["headers"] == [JSON, (b"x-own", b"1"), (b"content-length", str(len(body["body"])).encode())]
    assert scope["headers"] == [(b"x", b"1"), (b"accept-encoding", b"identity")]


@pytest.mark.parametrize(
    "messages",
    [
        [start(JSON, (b"content-length", b"7")), part(PLAIN)],
        [start(JSON, status=400), part(BODY)],
        [start((b"content-type", b"text/plain")), part(BODY, True), part(b"")],
        [start(), part(BODY)],
        [start(JSON, (b"content-encoding", b"br")), part(BODY)],
        [start(JSON, (b"content-encoding", b"gzip")), part(b"no gzip")],
        [start(JSON, (b"content-encoding", b"gzip")), part(gzip.compress(PLAIN))],
        [start(JSON), {"type": "http.response.pathsend", "path": "/file"}],
        [{"type": "http.response.debug", "info": {}}, start(JSON), part(PLAIN)],
    ],
)
def test_what_is_not_to_be_changed_is_handed_on_as_it_came(messages: list[dict[str, Any]]) -> None:
    assert run(messages)[0] == messages


@pytest.mark.parametrize(("path", "kind"), [("/health", "http"), ("/v1/messages", "http"), ("/", "websocket")])
def test_other_endpoints_are_not_wrapped_at_all(path: str, kind: str) -> None:
    messages = [start(JSON), part(BODY)]
    out, scope = run(messages, path, kind)
    assert out == messages
    assert scope["headers"][0] == (b"Accept-Encoding", b"gzip")


def test_a_body_too_long_to_collect_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BODY_MAX", 20)
    out, _ = run([start(JSON), part(BODY[:15], True), part(BODY[15:30], True), part(BODY[30:])])
    assert out == [start(JSON), part(BODY[:30], True), part(BODY[30:])]


def test_a_stream_is_translated_piece_by_piece_and_loses_its_length() -> None:
    data = sse(chat(["<think>why", "</think>", "so"]))
    cuts = [data[n : n + 40] for n in range(0, len(data), 40)]
    out, _ = run([start(SSE, (b"content-length", b"9")), *(part(piece, True) for piece in cuts), part(b"")])
    assert out[0] == start(SSE)
    assert totals("chat", b"".join(message["body"] for message in out[1:])) == ("why", "so")
    assert [message["more_body"] for message in out[1:]] == [True] * (len(out) - 2) + [False]
    assert len(out) > 3
    assert all(message["body"] for message in out[1:-1])


def test_a_compressed_stream_comes_out_plain() -> None:
    data = gzip.compress(sse(chat(["<think>why</think>so"])))
    cuts = [data[n : n + 7] for n in range(0, len(data), 7)]
    encoding = (b"Content-Encoding", b"gzip")
    out, _ = run([start(SSE, encoding), *(part(piece, True) for piece in cuts), part(b"")])
    assert out[0] == start(SSE)
    assert totals("chat", b"".join(message["body"] for message in out[1:])) == ("why", "so")


def test_an_application_that_fails_half_way_loses_nothing_that_was_held() -> None:
    out: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(start(SSE))
        await send(part(sse(chat(["a<think>w"])[:2]), True))
        raise KeyError("broken")

    async def send(message: Any) -> None:
        out.append(dict(message))

    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
    with pytest.raises(KeyError, match="broken"):
        asyncio.run(ReasoningMiddleware(app, Settings(), Metrics())(scope, app, send))  # type: ignore[arg-type]
    assert totals("chat", b"".join(message["body"] for message in out[1:])) == ("", "a<think>w")
    assert all(message["more_body"] for message in out[1:])
