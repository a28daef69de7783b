"""Real servers in threads: a scripted upstream that says what it is asked to say, and proxies in front of it."""

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.support.patience import LOCAL_SECONDS, REPLY_SECONDS
from tests.wire.streams import chat as chat_events
from tests.wire.streams import message_item, messages, response, responses, sse
from vllm_reasoning_ext.serve.metrics import Metrics
from vllm_reasoning_ext.serve.middleware import App
from vllm_reasoning_ext.serve.proxy.app import proxy_app, server
from vllm_reasoning_ext.serve.proxy.limits import Limits
from vllm_reasoning_ext.serve.settings import Settings
from vllm_reasoning_ext.wire.translation import Translation

ALL = Settings(translation=Translation(messages_policy="unsigned", signature="empty"))


@contextlib.contextmanager
def running(app: App, limits: Limits | None = None) -> Iterator[str]:
    """Serve an application on a free port; gives its address."""
    sock = socket.create_server(("127.0.0.1", 0))
    if limits is None:
        config = uvicorn.Config(app, log_level="critical", server_header=False, timeout_graceful_shutdown=2)
        running_server = uvicorn.Server(config)
    else:
        running_server = server(app, limits)
    thread = threading.Thread(target=running_server.run, args=([sock],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        running_server.should_exit = True
        thread.join(LOCAL_SECONDS)
        sock.close()
        assert not thread.is_alive()


def text_of(asked: dict[str, Any]) -> str:
    """The text a request wants to be said: its last message, or its input."""
    if "input" in asked:
        return str(asked["input"])
    content = asked["messages"][-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]


class Upstream:
    """Says the last message of the request, with tags left in the text, on all three surfaces.

    Attributes:
        seen: the requests that came, with their headers.
        gone: set when a client of `/endless` has been let go.
        flooded: bytes that `/flood` has got rid of.
        resume: what `/stepwise` waits for between its two halves.
    """

    def __init__(self) -> None:
        self.seen: list[Request] = []
        self.bodies: list[bytes] = []
        self.gone = threading.Event()
        self.resume = threading.Event()
        self.flooded = 0
        routes = [
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            Route("/v1/messages", self._messages, methods=["POST"]),
            Route("/v1/responses", self._responses, methods=["POST"]),
            Route("/stepwise/chat/completions", self._stepwise, methods=["POST"]),
            Route("/endless", self._endless),
            Route("/flood/chat/completions", self._flood, methods=["POST"]),
            Route("/broken/chat/completions", self._broken, methods=["POST"]),
            Route("/silent", self._silent),
            Route("/redirect", self._redirect),
            Route("/error/chat/completions", self._error, methods=["POST"]),
            Route("/gzip/chat/completions", self._gzip, methods=["POST"]),
            Route("/{rest:path}", self._echo, methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
        ]
        self.app = Starlette(routes=routes)

    async def _asked(self, request: Request) -> dict[str, Any]:
        self.seen.append(request)
        self.bodies.append(await request.body())
        asked: dict[str, Any] = json.loads(self.bodies[-1])
        return asked

    async def _chat(self, request: Request) -> Response:
        asked = await self._asked(request)
        text = text_of(asked)
        if asked.get("stream"):
            return self._stream(sse(chat_events(pieces(text))))
        choices = [
            {"index": n, "message": {"role": "assistant", "content": text, "own": 1}, "finish_reason": "stop"}
            for n in range(asked.get("n", 1))
        ]
        body = {"id": "c1", "object": "chat.completion", "created": 7, "model": "m", "choices": choices}
        return JSONResponse(body, headers={"etag": '"1"', "x-own": "kept"})

    async def _messages(self, request: Request) -> Response:
        asked = await self._asked(request)
        text = text_of(asked)
        if asked.get("stream"):
            return self._stream(sse(messages(pieces(text)), named=True))
        body = messages([])[0]["message"]
        return JSONResponse({**body, "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"})

    async def _responses(self, request: Request) -> Response:
        asked = await self._asked(request)
        text = text_of(asked)
        if asked.get("stream"):
            return self._stream(sse(responses(pieces(text)), named=True))
        return JSONResponse(response("completed", [message_item(text)]))

    def _stream(self, data: bytes) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            for start in range(0, len(data), 50):
                yield data[start : start + 50]
                await asyncio.sleep(0)

        return StreamingResponse(chunks(), media_type="text/event-stream")

    async def _stepwise(self, request: Request) -> Response:
        await self._asked(request)

        async def halves() -> AsyncIterator[bytes]:
            events = chat_events(["<think>why</think>first", " second"])
            yield sse(events[:2])
            while not self.resume.is_set():
                await asyncio.sleep(0.01)
            yield sse(events[2:])

        return StreamingResponse(halves(), media_type="text/event-stream")

    async def _endless(self, request: Request) -> Response:
        async def drops() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b": drop\n\n"
                    await asyncio.sleep(0.01)
            finally:
                self.gone.set()

        return StreamingResponse(drops(), media_type="text/event-stream")

    async def _flood(self, request: Request) -> Response:
        await self._asked(request)
        event = sse(chat_events(["x" * 10_000])[1:2])

        async def drops() -> AsyncIterator[bytes]:
            while True:
                yield event
                self.flooded += len(event)
                await asyncio.sleep(0)

        return StreamingResponse(drops(), media_type="text/event-stream")

    async def _broken(self, request: Request) -> Response:
        await self._asked(request)

        async def half() -> AsyncIterator[bytes]:
            yield sse(chat_events(["a<think>w"])[:2])
            raise ConnectionResetError

        return StreamingResponse(half(), media_type="text/event-stream")

    async def _silent(self, request: Request) -> Response:
        await asyncio.sleep(3600)
        return Response()

    async def _redirect(self, request: Request) -> Response:
        self.seen.append(request)
        return RedirectResponse("http://127.0.0.1:9/elsewhere", 307, headers={"set-cookie": "a=secret"})

    async def _error(self, request: Request) -> Response:
        await self._asked(request)
        return JSONResponse({"error": {"message": "<think>no</think>"}}, 429, headers={"retry-after": "7"})

    async def _gzip(self, request: Request) -> Response:
        import gzip

        asked = await self._asked(request)
        if asked.get("stream"):
            body, media = sse(chat_events(pieces(text_of(asked)))), "text/event-stream"
        else:
            body = json.dumps({"choices": [{"index": 0, "message": {"content": text_of(asked)}}]}).encode()
            media = "application/json"
        return Response(gzip.compress(body), media_type=media, headers={"content-encoding": asked.get("as", "gzip")})

    async def _echo(self, request: Request) -> Response:
        self.seen.append(request)
        self.bodies.append(await request.body())
        raw = request.scope["raw_path"].decode()
        headers = {
            "x-target": f"{raw}?{request.url.query}",
            "connection": "x-hop",
            "x-hop": "1",
            "keep-alive": "timeout=5",
        }
        return Response(self.bodies[-1], media_type="application/octet-stream", headers=headers)


def pieces(text: str) -> list[str]:
    return [text[start : start + 3] for start in range(0, len(text), 3)]


@contextlib.contextmanager
def proxied(
    upstream: str, settings: Settings = ALL, limits: Limits | None = None, metrics: Metrics | None = None
) -> Iterator[str]:
    """Serve a proxy in front of an address."""
    limits = limits or Limits(connect_seconds=LOCAL_SECONDS, read_seconds=REPLY_SECONDS, shutdown_seconds=1)
    with running(proxy_app(upstream, settings, limits, metrics=metrics), limits) as base:
        yield base
