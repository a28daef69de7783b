"""The reverse proxy: pass-through, translation, health and metrics pages, access log, server.

vllm-reasoning-ext proxy --upstream http://127.0.0.1:8000 --listen 127.0.0.1:8080
"""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import h11
import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from vllm_reasoning_ext.errors import SetupError
from vllm_reasoning_ext.serve.metrics import Metrics
from vllm_reasoning_ext.serve.middleware import (
    App,
    BrokenReplyError,
    Message,
    ReasoningMiddleware,
    Receive,
    Scope,
    Send,
)
from vllm_reasoning_ext.serve.proxy.admission import TARGET, Admission, answer
from vllm_reasoning_ext.serve.proxy.forward import Forwarder, parse_upstream
from vllm_reasoning_ext.serve.proxy.limits import Limits
from vllm_reasoning_ext.serve.settings import Settings

log = logging.getLogger("vllm_reasoning_ext.serve")
SPARE_CONNECTIONS: Final = 1000
"""Connections beyond `Limits.connections` that may wait for a request, a page of the proxy's own or a 503."""

access = logging.getLogger("vllm_reasoning_ext.access")


def proxy_app(
    upstream: str,
    settings: Settings,
    limits: Limits | None = None,
    *,
    metrics: Metrics | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> App:
    """Build the proxy as an ASGI application.

    Args:
        upstream: `http://HOST:PORT`, with a path if the API has one before `/v1`.
        settings: what is translated; with `enabled=False` this is a plain pass-through proxy.
        limits: the bounds.
        metrics: the counters; None makes new ones.
        transport: for tests; None connects for real.

    Raises:
        SetupError: the upstream's address is wrong.
    """
    metrics = metrics or Metrics()
    limits = limits or Limits()
    forward = Forwarder(parse_upstream(upstream), limits, metrics, transport)
    inner: App = _Answered(ReasoningMiddleware(forward, settings, metrics)) if settings.enabled else forward

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def numbers(_: Request) -> Response:
        page, media = metrics.page()
        return Response(page, media_type=media)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await forward.aclose()

    routes = [Route("/healthz", health), Route("/metrics", numbers), Mount("/", app=inner)]
    app = Starlette(routes=routes, lifespan=lifespan)
    return _Outermost(Admission(app, limits, metrics), metrics)


class _Answered:
    """Answers 502 where a reply broke while it was held to be translated: the client can still be told."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except BrokenReplyError:
            if not begun:
                await answer((502, "the upstream broke off its answer"), scope, receive, send)
            raise


class _Outermost:
    """Counts and logs each request (never a body, a query or a header) and ends broken ones."""

    def __init__(self, app: App, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status, sent = time.monotonic(), 0, 0

        async def counted(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body":
                sent += len(message.get("body", b""))
            await send(message)

        self._metrics.begun()
        note = ""
        try:
            await self._app(scope, receive, counted)
        except BrokenReplyError as error:
            # The response cannot be completed: leaving it unfinished is what tells the client.
            note = f" broken off by the upstream ({error})"
        finally:
            self._metrics.ended(status)
            took = (time.monotonic() - begun) * 1000
            # As it came: percent signs keep control characters out of the log.
            path = (scope.get("raw_path") or scope["path"].encode()).decode("ascii", "backslashreplace")
            access.info("%s %s %s %d bytes %.0f ms%s", scope["method"], path, status or "-", sent, took, note)


class _Connection(h11.Connection):
    """h11's connection, which also keeps the target of the last request as it came."""

    target = b""

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.target = event.target
        return event


class _Protocol(H11Protocol):
    """uvicorn's strict HTTP parser, with a bound on every wait for the client.

    uvicorn bounds only the idle time between two requests. Here a request's line and headers have `header_seconds`,
    the first request's and every later one's, and a connection that takes no bytes is dropped after
    `client_seconds`: while a reply is written, and when it is closed with bytes still unsent.
    """

    limits = Limits()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = self._connection = _Connection(h11.SERVER, self.limits.header_bytes)
        self._slow_headers: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._round: asyncio.TimerHandle | None = None
        self._was_closing = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections + SPARE_CONNECTIONS:
            transport.abort()
            return
        self._await_headers()
        self._round = self.loop.call_later(self.limits.client_seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._slow_headers, self._unread, self._round):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._slow_headers is None and (self.cycle is None or self.cycle.response_complete):
            self._await_headers()
        super().data_received(data)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is before:
            return
        self.scope["extensions"] = {TARGET: {"target": self._connection.target}}
        if self._slow_headers is not None:
            self._slow_headers.cancel()
            self._slow_headers = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(self.limits.client_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _await_headers(self) -> None:
        self._slow_headers = self.loop.call_later(self.limits.header_seconds, self.transport.abort)

    def _look(self) -> None:
        """Drop a connection that was closed a round ago and still has bytes that nobody takes."""
        if self.transport.is_closing() and self._was_closing:
            self.transport.abort()
            return
        self._was_closing = self.transport.is_closing()
        self._round = self.loop.call_later(self.limits.client_seconds, self._look)


def server(app: App, limits: Limits) -> uvicorn.Server:
    """Make the HTTP server for a proxy application."""
    protocol = type("Protocol", (_Protocol,), {"limits": limits})
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=limits.header_bytes,
        timeout_graceful_shutdown=limits.shutdown_seconds,
    )
    return uvicorn.Server(config)


def parse_listen(listen: str) -> tuple[str, int]:
    """Read `HOST:PORT` (`[::1]:8080` for IPv6).

    Raises:
        SetupError: it is no such thing.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise SetupError(f"{listen!r} is no address to listen on", "--listen", "give it as 127.0.0.1:8080")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except (OSError, UnicodeError) as error:
        sock.close()
        remedy = "stop what listens there, or choose another address with --listen"
        raise SetupError(f"cannot listen on {host}:{port} ({error})", "--listen", remedy) from None
    return sock


def serve_proxy(
    upstream: str,
    listen: str,
    settings: Settings | None = None,
    limits: Limits | None = None,
    *,
    ready: Callable[[str, int], None] | None = None,
) -> None:
    """Run the proxy until SIGINT or SIGTERM; streams in progress may then finish.

    Args:
        upstream: `http://HOST:PORT` of the server whose responses are translated.
        listen: `HOST:PORT` of the proxy; port 0 takes a free one.
        settings: None reads them from the environment.
        limits: the bounds; None reads them from the environment.
        ready: called with host and port once the address is bound.

    Raises:
        SetupError: an address or a setting is wrong, or the address is taken.
    """
    settings = Settings.from_env() if settings is None else settings
    limits = limits or Limits.from_env()
    host, port = parse_listen(listen)
    target = parse_upstream(upstream)
    if port and target.host == host and target.port == port:
        raise SetupError("the proxy would be its own upstream", "--upstream and --listen", "change one of the ports")
    app = proxy_app(upstream, settings, limits)
    sock = _bound(host, port)
    if not logging.getLogger("vllm_reasoning_ext").handlers and not logging.getLogger().handlers:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        logging.getLogger("httpx").setLevel(logging.WARNING)
    port = sock.getsockname()[1]
    log.info("listening on http://%s:%d, upstream %s", host, port, target)
    if ready is not None:
        ready(host, port)
    with contextlib.closing(sock):
        asyncio.run(server(app, limits).serve(sockets=[sock]))
