"""Pure ASGI middleware that translates the responses of the application inside it.

    vllm serve MODEL --middleware vllm_reasoning_ext.serve.middleware.ReasoningMiddleware

Requests are handed on as they are, but for `Accept-Encoding`: a compressed reply could not be translated.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from dataclasses import replace
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders

from vllm_reasoning_ext.serve.inflate import ENCODINGS, InflateError, Inflater
from vllm_reasoning_ext.serve.metrics import Metrics, shared
from vllm_reasoning_ext.serve.settings import Settings
from vllm_reasoning_ext.wire.jsontext import dumps
from vllm_reasoning_ext.wire.sse import EventTooLongError, SSETranslator
from vllm_reasoning_ext.wire.surfaces import SURFACES, error_event, stream_translator, surface_of, translate_body
from vllm_reasoning_ext.wire.translation import Translation

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]

log = logging.getLogger("vllm_reasoning_ext.serve")

BODY_MAX: Final = 64 * 1024 * 1024
"""Bytes of a JSON reply that are collected for translation.

A longer plain one is passed on as it is; one that grows beyond it by decompression is a bomb, and refused.
"""

# What a changed body makes untrue.
_OF_THE_BODY: Final = ("content-length", "etag", "content-md5", "digest", "content-digest", "repr-digest")
_BLANKS: Final = b" \t\r\n"


class BrokenReplyError(Exception):
    """A reply that has begun cannot be completed: leaving it unfinished is what tells the client."""


class _RefusedError(Exception):
    """The reply was answered with an error in its place; the application inside has to stop."""


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
        headers = _headers(scope["headers"])
        del headers["accept-encoding"]
        headers.append("accept-encoding", "identity")
        response = _Response(surface, self._translation, send)
        try:
            await self.app({**scope, "headers": headers.raw}, receive, response.send)
        except _RefusedError:
            return
        except Exception:
            await response.abandon()
            raise


def _headers(raw: Iterable[Header]) -> MutableHeaders:
    """Take a copy of headers; their names may have come in any case."""
    return MutableHeaders(raw=[(name.lower(), value) for name, value in raw])


class _Response:
    """One response on its way out: held until its kind is known, then streamed, collected or passed on."""

    def __init__(self, surface: str, translation: Translation, send: Send) -> None:
        self._surface = surface
        self._translation = translation
        self._send = send
        self._start: Message | None = None  # held
        self._stream: SSETranslator | None = None
        self._body: _Body | None = None
        self._inflater: Inflater | None = None

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
            await self._piece(rest)

    async def _begin(self, start: Message) -> None:
        headers = Headers(raw=_headers(start.get("headers", ())).raw)
        media = headers.get("content-type", "").partition(";")[0].strip().lower()
        encoding = headers.get("content-encoding", "identity").strip().lower()
        streamed = media == "text/event-stream"
        if not 200 <= start["status"] < 300 or not (streamed or media == "application/json"):
            await self._send(start)
            return
        if encoding in ENCODINGS:
            self._inflater = Inflater(encoding)
        elif encoding != "identity":
            log.warning("a reply came with Content-Encoding %r unasked: it is passed on as it is", encoding)
            await self._send(start)
            return
        if not streamed:
            self._start, self._body = start, _Body(self._inflater, "content-length" not in headers)
            return
        self._stream = stream_translator(self._surface, self._translation)
        await self._send(self._changed(start))

    def _changed(self, start: Message, length: int | None = None) -> Message:
        """Give the start of a response whose body is no longer the upstream's."""
        headers = _headers(start.get("headers", ()))
        for name in _OF_THE_BODY:
            del headers[name]
        if self._inflater is not None:
            del headers["content-encoding"]
        if length is not None:
            headers["content-length"] = str(length)
        return {**start, "headers": headers.raw}

    async def _piece(self, data: bytes) -> None:
        if data:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    # -- streams

    async def _translated(self, stream: SSETranslator, message: Message) -> None:
        more = bool(message.get("more_body", False))
        data = b""
        try:
            for plain in self._plain(message.get("body", b"")):
                await self._piece(data)
                data = stream.feed(plain)
            if not more and self._inflater is not None:
                self._inflater.finish()
        except EventTooLongError as error:
            await self._break_off(data + error.rest, str(error))
        except InflateError as error:
            await self._break_off(data + stream.finish(), str(error))
        if not more:
            data += stream.finish()
            self._stream = None
        if data or not more:
            await self._send({**message, "body": data})

    def _plain(self, raw: bytes) -> Iterator[bytes]:
        return iter((raw,)) if self._inflater is None else self._inflater.feed(raw)

    async def _break_off(self, rest: bytes, why: str) -> None:
        self._stream = None
        await self._piece(rest)
        await self._piece(error_event(self._surface, why))
        raise BrokenReplyError(why)

    # -- bodies

    async def _collected(self, body: "_Body", message: Message) -> None:
        more = bool(message.get("more_body", False))
        body.take(message.get("body", b""))
        if body.bomb:
            await self._refuse("the reply is too long when it is decompressed")
        blanks = body.keep_alive() if more else b""
        if blanks:
            await self._early(blanks)
        if more and not body.too_long:
            return
        self._body = None
        whole = body.raw
        start, self._start = self._start, None
        if not more:
            plain = body.finished()
            data = translate_body(self._surface, plain, self._translation)
            if data is not plain or start is None:
                whole = data
                start = start and self._changed(start, len(data))
        if start is not None:
            await self._send(start)
        await self._send({**message, "body": whole})

    async def _early(self, blanks: bytes) -> None:
        """Send the blanks by which an upstream keeps a connection alive while the model works."""
        start, self._start = self._start, None
        if start is not None:
            await self._send(self._changed(start))
        await self._piece(blanks)

    async def _refuse(self, why: str) -> None:
        """Answer 502 in place of the reply, or break it off if it has begun."""
        start, self._start, self._body = self._start, None, None
        log.warning("%s: it is not passed on", why)
        if start is None:
            raise BrokenReplyError(why)
        body = dumps({"error": {"message": why, "type": "proxy_error", "code": 502}})
        headers = MutableHeaders({"content-type": "application/json", "content-length": str(len(body))})
        await self._send({"type": "http.response.start", "status": 502, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})
        raise _RefusedError

    async def _release(self) -> None:
        """Something else than a body follows the held start (a file to be sent): pass everything on."""
        start, self._start, self._body = self._start, None, None
        if start is not None:
            await self._send(start)


class _Body:
    """A JSON body that is collected, as it came and decompressed.

    Args:
        inflater: None for a plain body.
        unmeasured: its length was not announced: blanks ahead of it may go out at once.
    """

    def __init__(self, inflater: Inflater | None, unmeasured: bool) -> None:
        self._inflater = inflater
        self._only_blanks = unmeasured and inflater is None
        self._came = bytearray()
        self._plain = bytearray()
        self._readable = True
        self.bomb = False

    @property
    def raw(self) -> bytes:
        return bytes(self._came)

    @property
    def too_long(self) -> bool:
        return len(self._came) > BODY_MAX

    def take(self, data: bytes) -> None:
        self._came += data
        if self._inflater is None or not self._readable:
            return
        try:
            for piece in self._inflater.feed(data):
                self._plain += piece
                if len(self._plain) > BODY_MAX:
                    self.bomb = True
                    return
        except InflateError:
            self._readable = False

    def keep_alive(self) -> bytes:
        """Take off the blanks that have come, as long as nothing else has."""
        self._only_blanks = self._only_blanks and not self._came.strip(_BLANKS)
        if not self._only_blanks:
            return b""
        blanks = self.raw
        self._came.clear()
        return blanks

    def finished(self) -> bytes:
        """Give the whole body for translation; nothing of one that cannot be read: it is passed on as it came."""
        if self._inflater is None:
            return self.raw
        try:
            self._inflater.finish()
        except InflateError:
            self._readable = False
        return bytes(self._plain) if self._readable else b""
