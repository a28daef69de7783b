"""Server-sent events, sans-IO: bytes in, events out, each with the very bytes it came in.

Joining the `raw` of all events gives the input back, byte for byte, so that an event nobody touches is copied and
not re-written. That is why this reader is the package's own: the SSE libraries give decoded fields and keep no bytes,
and from fields a stream can only be written anew.

Line ends may be LF, CR or CRLF, cut anywhere; a comment line between events (a keep-alive) is handed on at once,
without waiting for the blank line. What waits for its blank line is bounded by `EVENT_MAX`.
"""

import re
from collections.abc import Iterable
from typing import Final, Protocol

from vllm_reasoning_ext.wire.jsontext import loads

EVENT_MAX: Final = 16 * 1024 * 1024
"""Bytes an event may have before its blank line comes: a partial image fits, an endless line does not fill memory."""

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_COLON: Final = ord(":")


class ServerEvent:
    """One event, or one comment line between events.

    Attributes:
        raw: its bytes, line ends included.
        complete: False for what the stream ended in before a blank line.
    """

    __slots__ = ("_data", "_name", "_parsed", "complete", "raw")

    def __init__(self, raw: bytes, complete: bool = True) -> None:
        self.raw = raw
        self.complete = complete
        self._parsed = False
        self._data: bytes | None = None
        self._name: bytes | None = None

    @property
    def data(self) -> bytes | None:
        """The joined `data` lines; None when there is none."""
        self._parse()
        return self._data

    @property
    def name(self) -> bytes | None:
        """The value of the `event` line; None when there is none."""
        self._parse()
        return self._name

    @property
    def newline(self) -> bytes:
        """The line end this event is written with."""
        found = _LINE_END.search(self.raw.lstrip(b"\n"))
        return found[0] if found else b"\n"

    def _parse(self) -> None:
        if self._parsed:
            return
        self._parsed = True
        data: list[bytes] = []
        for line in self.raw.splitlines():
            field, value = _field(line)
            if field == b"data":
                data.append(value)
            elif field == b"event":
                self._name = value
        if data:
            self._data = b"\n".join(data)

    def rewritten(self, data: bytes, name: bytes | None = None) -> bytes:
        """Write the event with other data.

        Args:
            data: the new data, without a line break.
            name: a new value for the `event` line, if the event has one.

        Returns:
            the bytes: every line that is neither data nor a changed name is kept as it was.
        """
        end = self.newline
        out: list[bytes] = []
        written = False
        for line in self.raw.splitlines(keepends=True):
            field, _ = _field(line.rstrip(b"\r\n"))
            if field == b"data":
                if not written:
                    out.append(b"data: " + data + end)
                written = True
            elif field == b"event" and name is not None:
                out.append(b"event: " + name + end)
            elif line.strip(b"\r\n"):
                out.append(line)
        return b"".join(out) + end


def compose(data: bytes, name: bytes | None = None, newline: bytes = b"\n") -> bytes:
    """Write a new event."""
    head = b"event: " + name + newline if name is not None else b""
    return head + b"data: " + data + newline + newline


def _field(line: bytes) -> tuple[bytes, bytes]:
    field, _, value = line.removeprefix(b"\xef\xbb\xbf").partition(b":")
    return field, value.removeprefix(b" ")


class EventTooLongError(Exception):
    """An event grew over its bound before its blank line came.

    Attributes:
        rest: what has to be sent before the stream is broken off: the events before it, and what was held.
    """

    def __init__(self, rest: bytes = b"") -> None:
        super().__init__("an event of the stream is too long")
        self.rest = rest


class SSEParser:
    """Cuts a byte stream into events, in time linear in its length.

    Args:
        event_max: bytes that may wait for their blank line.
    """

    __slots__ = ("_after_cr", "_begun", "_buffer", "_event_max", "_line_first")

    def __init__(self, event_max: int = EVENT_MAX) -> None:
        # One buffer, not a list of chunks: a stream in two-byte chunks would cost thirty times its bytes.
        self._buffer = bytearray()
        self._event_max = event_max
        self._line_first: int | None = None  # the first byte of the line that is not yet ended
        self._begun = False  # the event has a line that is no comment
        self._after_cr = False  # a line feed next belongs to the line end already counted

    @property
    def too_long(self) -> bool:
        """Whether what waits for its blank line is over the bound: the stream is then to be broken off."""
        return len(self._buffer) > self._event_max

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Take the next bytes and return the events they complete."""
        if not chunk:
            return []
        out: list[ServerEvent] = []
        start = 0
        line = 1 if self._after_cr and chunk[0] == 0x0A else 0
        first = self._line_first
        for end in _LINE_END.finditer(chunk, line):
            if first is None and end.start() > line:
                first = chunk[line]
            if first is None or (first == _COLON and not self._begun):
                out.append(ServerEvent(self._take(chunk[start : end.end()])))
                start = end.end()
            else:
                self._begun = True
            line, first = end.end(), None
        if first is None and line < len(chunk):
            first = chunk[line]
        self._line_first = first
        self._after_cr = chunk.endswith(b"\r")
        if start < len(chunk):
            self._buffer += chunk[start:]
        return out

    def finish(self) -> list[ServerEvent]:
        """Return what the stream ended in, if anything."""
        raw = self._take(b"")
        return [ServerEvent(raw, complete=False)] if raw else []

    def _take(self, last: bytes) -> bytes:
        self._begun = False
        if not self._buffer:
            return last
        raw = bytes(self._buffer + last)
        self._buffer.clear()
        return raw


def is_done(event: ServerEvent) -> bool:
    """Tell whether an event is the `[DONE]` that ends a stream."""
    return event.data is not None and event.data.strip() == b"[DONE]"


def is_last_word(event: ServerEvent, payload: object) -> bool:
    """Tell whether an event ends a stream on any surface: `[DONE]` or an error, in whatever form it comes."""
    if event.name == b"error" or is_done(event):
        return True
    return isinstance(payload, dict) and (payload.get("type") == "error" or bool(payload.get("error")))


class EventHandler(Protocol):
    """Decides what becomes of each event of one surface's stream."""

    def event(self, event: ServerEvent) -> Iterable[bytes]:
        """Return what is sent in the event's place: `event.raw`, other bytes, or nothing."""
        ...

    def end(self) -> Iterable[bytes]:
        """Return what is still to be sent when the stream has ended."""
        ...


class SSETranslator:
    """Runs a surface's handler over a byte stream.

    Args:
        handler: the surface's.
        event_max: bytes that may wait for the blank line of their event.
    """

    __slots__ = ("_handler", "_parser")

    def __init__(self, handler: EventHandler, event_max: int = EVENT_MAX) -> None:
        self._handler = handler
        self._parser = SSEParser(event_max)

    def feed(self, chunk: bytes) -> bytes:
        """Take response bytes and return the bytes to send for them, possibly none.

        Raises:
            EventTooLongError: an event is over the bound; its `rest` is what to send before breaking off.
        """
        out = b"".join([piece for event in self._parser.feed(chunk) for piece in self._handler.event(event)])
        if self._parser.too_long:
            raise EventTooLongError(b"".join([out, *self._handler.end()]))
        return out

    def finish(self) -> bytes:
        """Return the bytes that end the stream: what was held, nothing lost.

        A last event without its blank line is taken as an event if it can be read; a broken one goes out as it
        came, after what was held.
        """
        out: list[bytes] = []
        for event in self._parser.finish():
            if not is_done(event) and (event.data is None or loads(event.data) is None):
                return b"".join([*self._handler.end(), event.raw])
            out.extend(self._handler.event(event))
            rest = list(self._handler.end())
            if rest and out and out[-1] is event.raw:
                out.append(event.newline * 2)
            out.extend(rest)
        out.extend(self._handler.end())
        return b"".join(out)
