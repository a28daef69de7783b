"""The reverse proxy: pass-through, translation, health and metrics pages, access log, server.

vllm-reasoning-ext proxy --upstream http://127.0.0.1:8000 --listen 127.0.0.1:8080
"""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from vllm_reasoning_ext.errors import SetupError
from vllm_reasoning_ext.serve.metrics import Metrics
from vllm_reasoning_ext.serve.middleware import App, Message, ReasoningMiddleware, Receive, Scope, Send
from vllm_reasoning_ext.serve.proxy.admission import Admission
from vllm_reasoning_ext.serve.proxy.forward import Forwarder, UpstreamBrokenError, parse_upstream
from vllm_reasoning_ext.serve.proxy.limits import Limits
from vllm_reasoning_ext.serve.settings import Settings

log = logging.getLogger("vllm_reasoning_ext.serve")
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
    inner: App = ReasoningMiddleware(forward, settings, metrics) if settings.enabled else forward

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
        except UpstreamBrokenError as error:
            # The response cannot be completed: leaving it unfinished is what tells the client.
            note = f" broken off by the upstream ({error})"
        finally:
            self._metrics.ended(status)
            took = (time.monotonic() - begun) * 1000
            # As it came: percent signs keep control characters out of the log.
            path = (scope.get("raw_path") or scope["path"].encode()).decode("ascii", "backslashreplace")
            access.info("%s %s %s %d bytes %.0f ms%s", scope["method"], path, status or "-", sent, took, note)


class _Protocol(H11Protocol):
    """uvicorn's strict HTTP parser, with a bound on how long a request's headers may take."""

    header_seconds = 30.0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._too_slow = self.loop.call_later(self.header_seconds, self._drop)

    def handle_events(self) -> None:
        super().handle_events()
        if self.cycle is not None:
            self._too_slow.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        self._too_slow.cancel()
        super().connection_lost(exc)

    def _drop(self) -> None:
        self.transport.close()


def server(app: App, limits: Limits) -> uvicorn.Server:
    """Make the HTTP server for a proxy application."""
    protocol = type("Protocol", (_Protocol,), {"header_seconds": limits.header_seconds})
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
        limit_concurrency=limits.connections,
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
