"""Decompression of replies that came compressed although plain ones were asked for; memory bounded."""

import zlib
from collections.abc import Iterator
from typing import Final

ENCODINGS: Final = ("gzip", "x-gzip", "deflate")
"""The values of `Content-Encoding` that can be undone here."""

PIECE_BYTES: Final = 64 * 1024
"""Most bytes that are decompressed at a time: some bytes of a bomb give gigabytes."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
_EITHER: Final = zlib.MAX_WBITS | 32  # gzip or zlib, by their headers
_RAW: Final = -zlib.MAX_WBITS


class InflateError(Exception):
    """The bytes are not what `Content-Encoding` says."""


class Inflater:
    """Decompresses one reply: gzip of one or several members, deflate with or without zlib's header.

    Args:
        encoding: the value of `Content-Encoding`, one of `ENCODINGS`.
    """

    def __init__(self, encoding: str) -> None:
        self._deflate = encoding == "deflate"
        self._member = zlib.decompressobj()
        self._begun = False  # a member is being read
        self._members = 0
        self._waiting = b""  # a member's first byte, which alone does not tell the format

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Give what the next bytes hold, in pieces of `PIECE_BYTES` at most.

        Raises:
            InflateError: the bytes are damaged, or of another format.
        """
        data = self._waiting + data
        self._waiting = b""
        while data:
            if not self._begun:
                data = self._begin(data)
                if not self._begun:
                    return
            try:
                piece = self._member.decompress(data, PIECE_BYTES)
                while piece:
                    yield piece
                    piece = self._member.decompress(self._member.unconsumed_tail, PIECE_BYTES)
            except zlib.error:
                raise InflateError("the compressed reply is damaged") from None
            data = self._member.unused_data
            if self._member.eof:
                self._begun = False

    def finish(self) -> None:
        """Check that the reply was complete.

        Raises:
            InflateError: it was cut.
        """
        if self._begun or self._waiting or not self._members:
            raise InflateError("the compressed reply is cut")

    def _begin(self, data: bytes) -> bytes:
        """Begin a member; gives the bytes that are still to be read."""
        if self._members:
            # Padding after the last member is allowed.
            data = data.lstrip(b"\0")
            if not data:
                return b""
        if len(data) < 2:
            self._waiting = data
            return b""
        self._member = zlib.decompressobj(self._window(data))
        self._begun = True
        self._members += 1
        return data

    def _window(self, data: bytes) -> int:
        """Tell the format by its first two bytes: servers mean either by `deflate`."""
        zlib_header = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
        if self._members and not data.startswith(_GZIP_MAGIC):
            raise InflateError("something else follows the compressed reply")
        return _EITHER if zlib_header or not self._deflate or data.startswith(_GZIP_MAGIC) else _RAW
