"""Peers that break the rules, over raw sockets: an HTTP library would hide what they do."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from tests.support.patience import LOCAL_SECONDS

Script = Callable[[socket.socket, int], None]
"""What an upstream does after it has read a request: its connection, and the number of the request on it."""


class Liar:
    """An upstream that answers every request by a script.

    Attributes:
        url: its address.
        requests: the requests that came, as bytes.
        connections: how many connections there were.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self.requests: list[bytes] = []
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._server.accept()
                self.connections += 1
                self._open.append(sock)
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock:
            number = 0
            while request := _request(sock):
                self.requests.append(request)
                self._script(sock, number)
                number += 1

    def close(self) -> None:
        self._server.close()
        for sock in self._open:
            sock.close()


def _request(sock: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(65536)
        if not piece:
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    missing = int(lengths[0].split(b":")[1]) - len(body) if lengths else 0
    while missing > 0:
        piece = sock.recv(65536)
        if not piece:
            break
        data += piece
        missing -= len(piece)
    return data


@contextlib.contextmanager
def lying(script: Script | bytes) -> Iterator[Liar]:
    """Run an upstream; bytes are sent as they are and the connection is kept."""

    def send(sock: socket.socket, number: int) -> None:
        assert isinstance(script, bytes)
        sock.sendall(script)

    liar = Liar(send if isinstance(script, bytes) else script)
    try:
        yield liar
    finally:
        liar.close()


def then_close(data: bytes) -> Script:
    """Make a script that sends bytes and hangs up."""

    def script(sock: socket.socket, number: int) -> None:
        sock.sendall(data)
        sock.close()

    return script


def reply(body: bytes, *headers: bytes, media: bytes = b"application/json", length: int | None = None) -> bytes:
    """Write a reply; `length` is what it says of its length, -1 for nothing."""
    size = len(body) if length is None else length
    lines = [b"HTTP/1.1 200 OK", b"Content-Type: " + media, *headers]
    if size >= 0:
        lines.append(b"Content-Length: %d" % size)
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def chunked(body: bytes, size: int = 50) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in [*pieces, b""])


def connect(base: str, timeout: float = LOCAL_SECONDS) -> socket.socket:
    address = urlsplit(base)
    return socket.create_connection((address.hostname or "", address.port or 0), timeout=timeout)


def drain(sock: socket.socket) -> bytes:
    """Read until the other side closes."""
    out = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := sock.recv(65536):
            out += piece
    return out


def talk(base: str, data: bytes) -> bytes:
    """Send bytes, give what comes back until the proxy closes."""
    with connect(base) as sock:
        sock.sendall(data)
        return drain(sock)


def eventually(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + LOCAL_SECONDS
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()
