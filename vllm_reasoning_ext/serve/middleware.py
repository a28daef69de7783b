"""Pure ASGI middleware that translates the responses of the application inside it.

    vllm serve MODEL --middleware vllm_reasoning_ext.serve.middleware.ReasoningMiddleware

Requests are handed on as they are, but for `Accept-Encoding`: a compressed reply could not be translated.
"""

import logging
import zlib
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import replace
from typing import Any, Final

from vllm_reasoning_ext.serve.metrics import Metrics, shared
from vllm_reasoning_ext.serve.settings import Settings
from vllm_reasoning_ext.wire.sse import SSETranslator
from vllm_reasoning_ext.wire.surfaces import SURFACES, stream_translator, surface_of, translate_body
from vllm_reasoning_ext.wire.translation import Translation

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]

log = logging.getLogger("vllm_reasoning_ext.serve")

BODY_MAX: Final = 64 * 1024 * 1024
"""Bytes of a JSON reply that are collected for translation; a longer one is passed on as it is."""

# What a changed body makes untrue.
_OF_THE_BODY: Final = (b"content-length", b"etag", b"content-md5", b"digest", b"content-digest", b"repr-digest")


class ReasoningMiddleware:
    """Translate inline reasoning in the responses of chat completions, messages and Responses.

    Args:
        app: the application inside.
        settings: None reads them from the environment (`Settings.from_env`).
        metrics: None counts in the process's default registry.

    Raises:
        SetupError: a `THINK_EXTRACT_*` variable has a wrong value.
    """

    def __init__(self, app: App, settings: Settings | None = None, metrics: Metrics | None = None) -> None:
        self.app = app
        self.settings = Settings.from_env() if settings is None else settings
        metrics = metrics or shared()
        self._translation = replace(self.settings.translation, observe=metrics.split)
        on = [surface for surface in SURFACES if self.settings.translates(surface)]
        log.info("translating inline reasoning on: %s", ", ".join(on) or "no surface")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        surface = surface_of(scope["method"], scope["path"]) if scope["type"] == "http" else None
        if surface is None or not self.settings.translates(surface):
            await self.app(scope, receive, send)
            return
        headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"accept-encoding"]
        inner = {**scope, "headers": [*headers, (b"accept-encoding", b"identity")]}
        response = _Response(surface, self._translation, send)
        try:
            await self.app(inner, receive, response.send)
        except Exception:
            await response.abandon()
            raise


class _Response:
    """One response on its way out: held until its kind is known, then streamed, collected or passed on."""

    def __init__(self, surface: str, translation: Translation, send: Send) -> None:
        self._surface = surface
        self._translation = translation
        self._send = send
        self._start: Message | None = None
        self._stream: SSETranslator | None = None
        self._body: list[bytes] | None = None
        self._body_bytes = 0
        self._inflate: Any = None

    async def send(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start":
            await self._begin(message)
        elif kind == "http.response.body" and self._stream is not None:
            await self._translated(self._stream, message)
        elif kind == "http.response.body" and self._body is not None:
            await self._collected(self._body, message)
        else:
            await self._release()
            await self._send(message)

    async def abandon(self) -> None:
        """The application failed half way: send what is held, so that nothing received is lost."""
        if self._stream is not None:
            rest, self._stream = self._stream.finish(), None
            if rest:
                await self._send({"type": "http.response.body", "body": rest, "more_body": True})

    async def _begin(self, start: Message) -> None:
        headers = {name.lower(): value for name, value in start.get("headers", ())}
        media = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        encoding = headers.get(b"content-encoding", b"identity").strip().lower()
        streamed = media == b"text/event-stream"
        if not 200 <= start["status"] < 300 or not (streamed or media == b"application/json"):
            await self._send(start)
            return
        if encoding in (b"gzip", b"x-gzip", b"deflate"):
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
        elif encoding != b"identity":
            log.warning("a reply came with Content-Encoding %r unasked: it is passed on as it is", encoding)
            await self._send(start)
            return
        if not streamed:
            self._start, self._body = start, []
            return
        self._stream = stream_translator(self._surface, self._translation)
        await self._send({**start, "headers": self._headers(start)})

    def _headers(self, start: Message, length: int | None = None) -> list[Header]:
        gone = (*_OF_THE_BODY, b"content-encoding") if self._inflate is not None else _OF_THE_BODY
        kept = [(name, value) for name, value in start.get("headers", ()) if name.lower() not in gone]
        return kept if length is None else [*kept, (b"content-length", str(length).encode())]

    async def _translated(self, stream: SSETranslator, message: Message) -> None:
        more = bool(message.get("more_body", False))
        data = stream.feed(self._plain(message.get("body", b""), more))
        if not more:
            data += stream.finish()
            self._stream = None
        if data or not more:
            await self._send({**message, "body": data})

    async def _collected(self, body: list[bytes], message: Message) -> None:
        more = bool(message.get("more_body", False))
        raw = message.get("body", b"")
        body.append(raw)
        self._body_bytes += len(raw)
        if more and self._body_bytes <= BODY_MAX:
            return
        whole = b"".join(body)
        start, self._start, self._body = self._start, None, None
        assert start is not None
        if not more:
            plain = self._whole(whole)
            data = translate_body(self._surface, plain, self._translation)
            if data is not plain:
                whole = data
                start = {**start, "headers": self._headers(start, len(data))}
        await self._send(start)
        await self._send({**message, "body": whole})

    def _whole(self, raw: bytes) -> bytes:
        """Give the body uncompressed; nothing when that fails or grows too long: it is then passed on as it came."""
        if self._inflate is None:
            return raw
        try:
            plain: bytes = self._inflate.decompress(raw, BODY_MAX)
        except zlib.error:
            return b""
        return plain if not self._inflate.unconsumed_tail else b""

    def _plain(self, raw: bytes, more: bool) -> bytes:
        if self._inflate is None:
            return raw
        plain: bytes = self._inflate.decompress(raw)
        return plain if more else plain + self._inflate.flush()

    async def _release(self) -> None:
        """Something else than a body follows the held start (a file to be sent): pass everything on."""
        start, self._start, self._body = self._start, None, None
        if start is not None:
            await self._send(start)
