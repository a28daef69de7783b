"""A streaming pass-through to one upstream: the proxy without any translation.

It keeps no cookies, follows no redirects, reads no proxy or netrc settings from the environment, and sends a request
to the one configured upstream or nowhere.

A connection to the upstream serves one request. A kept one would carry what an upstream sends after the end of its
reply into the next client's reply, and may be closed by the upstream in the moment it is used again; a new one costs
a millisecond in front of a model that writes for seconds.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import urlsplit

import httpx
from starlette.datastructures import Headers

from vllm_reasoning_ext.errors import SetupError
from vllm_reasoning_ext.serve.metrics import Metrics
from vllm_reasoning_ext.serve.middleware import BrokenReplyError, Header, Receive, Scope, Send
from vllm_reasoning_ext.serve.proxy.admission import answer, target_of
from vllm_reasoning_ext.serve.proxy.limits import Limits

log = logging.getLogger("vllm_reasoning_ext.serve")

_HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class UpstreamBrokenError(BrokenReplyError):
    """The upstream broke off in the middle of a response."""


class _BodyTooLargeError(Exception):
    pass


class _BodyStalledError(Exception):
    pass


class _ClientGoneError(Exception):
    pass


_OF_THE_REQUEST: Final = (_BodyTooLargeError, _BodyStalledError, _ClientGoneError)


def parse_upstream(url: str) -> httpx.URL:
    """Check the upstream's address.

    Raises:
        SetupError: it is no plain http or https address.
    """
    remedy = "give it as http(s)://HOST[:PORT][/PREFIX]; a port is 1 to 65535"
    try:
        parsed, port = httpx.URL(url), urlsplit(url).port
    except (httpx.InvalidURL, TypeError, ValueError) as error:
        raise SetupError(f"{url!r} is no address ({error})", "--upstream", remedy) from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise SetupError(f"{url!r} is no http address", "--upstream", remedy)
    if port == 0:
        raise SetupError(f"{url!r} is no address (nothing listens on port 0)", "--upstream", remedy)
    if parsed.userinfo or parsed.query or parsed.fragment:
        remedy = "give scheme, host, port and path only; a key belongs in the client's Authorization header"
        raise SetupError("the upstream has a user, query or fragment", "--upstream", remedy)
    return parsed


class Forwarder:
    """An ASGI application that passes every request to one upstream and streams the response back.

    Args:
        upstream: its address; its path, if any, is put before the request's.
        limits: the bounds.
        metrics: counts what goes wrong.
        transport: for tests; None connects for real.
    """

    def __init__(
        self,
        upstream: httpx.URL,
        limits: Limits,
        metrics: Metrics,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._upstream = upstream
        self._host = upstream.netloc
        self._prefix = upstream.raw_path.rstrip(b"/")
        self._limits = limits
        self._metrics = metrics
        pool = httpx.Limits(max_connections=limits.connections, max_keepalive_connections=0)
        self._transport = transport or httpx.AsyncHTTPTransport(
            verify=_trusted(), trust_env=False, retries=0, limits=pool
        )
        self._timeouts = httpx.Timeout(
            connect=limits.connect_seconds,
            read=limits.read_seconds,
            write=limits.write_seconds,
            pool=limits.connect_seconds,
        ).as_dict()

    async def aclose(self) -> None:
        """Close the connections to the upstream."""
        await self._transport.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"the proxy has no use for ASGI {scope['type']}")
        body = _Body(receive, self._limits)
        pump = asyncio.create_task(self._exchange(scope, body, send))
        watch = asyncio.create_task(body.client_gone())
        try:
            await asyncio.wait({pump, watch}, return_when=asyncio.FIRST_COMPLETED)
            if pump.done():
                pump.result()
            else:
                self._metrics.error("client_gone")
        finally:
            watch.cancel()
            pump.cancel()
            await asyncio.gather(pump, watch, return_exceptions=True)

    async def _exchange(self, scope: Scope, body: "_Body", send: Send) -> None:
        try:
            response = await self._transport.handle_async_request(self._request(scope, body))
        except _ClientGoneError:
            self._metrics.error("client_gone")
            return
        except (_BodyTooLargeError, _BodyStalledError, httpx.HTTPError) as error:
            await answer(self._problem(error), scope, body.receive, send)
            return
        try:
            await self._reply(response, scope, body, send)
        except (httpx.HTTPError, *_OF_THE_REQUEST) as error:
            self._metrics.error("broken")
            # Not the error's own text: it quotes what the upstream sent.
            raise UpstreamBrokenError(_name(error)) from None
        finally:
            await response.aclose()

    async def _reply(self, response: httpx.Response, scope: Scope, body: "_Body", send: Send) -> None:
        if not 200 <= response.status_code < 600:
            self._metrics.error("broken")
            log.warning("upstream %s: status %d", self._upstream, response.status_code)
            await answer((502, "the upstream's answer is no HTTP response"), scope, body.receive, send)
            return
        headers = _end_to_end(response.headers.raw)
        if "transfer-encoding" in response.headers:
            # It outranks a length beside it, which may be any; the server frames the reply anew.
            headers = [(name, value) for name, value in headers if name != b"content-length"]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        assert isinstance(response.stream, httpx.AsyncByteStream)
        async for chunk in response.stream:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _problem(self, error: Exception) -> tuple[int, str]:
        """Count and log what went wrong before there was a reply; gives what the client is told."""
        if isinstance(error, _BodyTooLargeError):
            self._metrics.error("refused")
            return 413, f"the request body exceeds {self._limits.body_bytes} bytes"
        if isinstance(error, _BodyStalledError):
            self._metrics.error("timeout")
            return 408, f"the request body stopped for {self._limits.body_seconds:g} seconds"
        late = isinstance(error, httpx.TimeoutException)
        self._metrics.error("timeout" if late else "unreachable")
        log.warning("upstream %s: %s", self._upstream, _name(error))
        if isinstance(error, httpx.RemoteProtocolError):
            return 502, "the upstream's answer is no HTTP response"
        return (504, "the upstream did not answer in time") if late else (502, "the upstream is not reachable")

    def _request(self, scope: Scope, body: "_Body") -> httpx.Request:
        headers = [(b"host", self._host), (b"connection", b"close")]
        headers += [(n, v) for n, v in _end_to_end(scope["headers"]) if n not in (b"host", b"expect")]
        chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
        if chunked:
            headers.append((b"transfer-encoding", b"chunked"))
        has_body = chunked or any(name == b"content-length" for name, _ in headers)
        if not has_body:
            body.none()
        return httpx.Request(
            scope["method"],
            self._upstream,
            headers=headers,
            stream=_Stream(body if has_body else None),
            # The target goes out as it came in: joining it to the URL would normalise dots and escapes.
            extensions={"timeout": self._timeouts, "target": self._prefix + target_of(scope)},
        )


def _trusted() -> ssl.SSLContext:
    """Trust what the system trusts (`SSL_CERT_FILE` included) and the certificates that come with httpx."""
    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    return context


def _name(error: Exception) -> str:
    """Name an error without its text, but for those of the system, which say what is wrong with the address."""
    cause = error.__cause__
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    name = type(error).__name__.lstrip("_")
    return f"{name} ({cause})" if isinstance(error, httpx.ConnectError) and cause is not None else name


class _Body:
    """The request's body as it comes, and the news that the client has left."""

    def __init__(self, receive: Receive, limits: Limits) -> None:
        self.receive = receive
        self._left = limits.body_bytes
        self._seconds = limits.body_seconds
        self._ended = asyncio.Event()
        self._gone = False

    def none(self) -> None:
        """Take note that the request has no body."""
        self._ended.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            try:
                message = await asyncio.wait_for(self.receive(), self._seconds)
            except TimeoutError:
                raise _BodyStalledError from None
            if message["type"] == "http.disconnect":
                self._gone = True
                self._ended.set()
                raise _ClientGoneError
            data = message.get("body", b"")
            self._left -= len(data)
            if self._left < 0:
                raise _BodyTooLargeError
            if data:
                yield data
            if not message.get("more_body", False):
                self._ended.set()
                return

    async def client_gone(self) -> None:
        """Wait until the client has hung up (after the body: until then `chunks` would see it)."""
        await self._ended.wait()
        while not self._gone:
            message = await self.receive()
            self._gone = message["type"] == "http.disconnect"


class _Stream(httpx.AsyncByteStream):
    def __init__(self, body: _Body | None) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._body is not None:
            async for chunk in self._body.chunks():
                yield chunk


def _end_to_end(raw: list[Header]) -> list[Header]:
    """Leave out what is meant for one connection only, and what `Connection` names."""
    headers = Headers(raw=[(name.lower(), value) for name, value in raw])
    named = {token.strip().lower() for value in headers.getlist("connection") for token in value.split(",")}
    gone = {name.encode("latin-1") for name in _HOP_BY_HOP | named}
    return [(name, value) for name, value in headers.raw if name not in gone]
