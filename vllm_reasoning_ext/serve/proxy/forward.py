"""A streaming pass-through to one upstream: the proxy without any translation.

It keeps no cookies, follows no redirects, reads no proxy or netrc settings from the environment, and sends a request
to the one configured upstream or nowhere.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import urlsplit

import certifi
import httpx

from vllm_reasoning_ext.errors import SetupError
from vllm_reasoning_ext.serve.metrics import Metrics
from vllm_reasoning_ext.serve.middleware import Header, Receive, Scope, Send
from vllm_reasoning_ext.serve.proxy.admission import answer
from vllm_reasoning_ext.serve.proxy.limits import Limits

log = logging.getLogger("vllm_reasoning_ext.serve")

_HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)


class UpstreamBrokenError(Exception):
    """The upstream broke off in the middle of a response."""


class _BodyTooLargeError(Exception):
    pass


class _ClientGoneError(Exception):
    pass


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
        pool = httpx.Limits(max_connections=limits.connections, max_keepalive_connections=100)
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
        body = _Body(receive, self._limits.body_bytes)
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
        except _BodyTooLargeError:
            self._metrics.error("refused")
            refusal = 413, f"the request body exceeds {self._limits.body_bytes} bytes"
            await answer(refusal, scope, body.receive, send)
            return
        except httpx.HTTPError as error:
            late = isinstance(error, httpx.TimeoutException)
            self._metrics.error("timeout" if late else "unreachable")
            log.warning("upstream %s: %s %s", self._upstream, type(error).__name__, error)
            problem = (504, "the upstream did not answer in time") if late else (502, "the upstream is not reachable")
            await answer(problem, scope, body.receive, send)
            return
        try:
            headers = _end_to_end(response.headers.raw)
            await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
            assert isinstance(response.stream, httpx.AsyncByteStream)
            async for chunk in response.stream:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except (httpx.HTTPError, _BodyTooLargeError, _ClientGoneError) as error:
            self._metrics.error("broken")
            raise UpstreamBrokenError(f"{type(error).__name__} {error}") from error
        finally:
            await response.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _request(self, scope: Scope, body: "_Body") -> httpx.Request:
        headers = [(b"host", self._host)]
        headers += [(n, v) for n, v in _end_to_end(scope["headers"]) if n not in (b"host", b"expect")]
        chunked = any(name == b"transfer-encoding" for name, _ in scope["headers"])
        if chunked:
            headers.append((b"transfer-encoding", b"chunked"))
        has_body = chunked or any(name == b"content-length" for name, _ in headers)
        if not has_body:
            body.none()
        target = self._prefix + (scope.get("raw_path") or scope["path"].encode())
        if scope["query_string"]:
            target += b"?" + scope["query_string"]
        return httpx.Request(
            scope["method"],
            self._upstream,
            headers=headers,
            stream=_Stream(body if has_body else None),
            # The target goes out as it came in: joining it to the URL would normalise dots and escapes.
            extensions={"timeout": self._timeouts, "target": target},
        )


def _trusted() -> ssl.SSLContext:
    """Trust what the system trusts (`SSL_CERT_FILE` included) and the certificates that come with httpx."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


class _Body:
    """The request's body as it comes, and the news that the client has left."""

    def __init__(self, receive: Receive, most: int) -> None:
        self.receive = receive
        self._left = most
        self._ended = asyncio.Event()
        self._gone = False

    def none(self) -> None:
        """Take note that the request has no body."""
        self._ended.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        while True:
            message = await self.receive()
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


def _end_to_end(headers: list[Header]) -> list[Header]:
    """Leave out what is meant for one connection only, and what `Connection` names."""
    named = {
        token.strip().lower() for name, value in headers if name.lower() == b"connection" for token in value.split(b",")
    }
    gone = _HOP_BY_HOP | named
    return [(name.lower(), value) for name, value in headers if name.lower() not in gone]
