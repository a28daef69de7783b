"""Hostile requests over raw sockets: refused, never passed on, and the proxy lives."""

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from tests.serve.servers import ALL, Upstream, proxied
from tests.support.patience import LOCAL_SECONDS, stretched
from vllm_reasoning_ext.serve.proxy.admission import refusal
from vllm_reasoning_ext.serve.proxy.limits import Limits

LIMITS = Limits(
    header_bytes=16_000, body_bytes=1000, header_seconds=stretched(1), connect_seconds=LOCAL_SECONDS, shutdown_seconds=1
)
HOST = b"Host: x\r\n"


@pytest.fixture(scope="module")
def strict(upstream_at: tuple[Upstream, str]) -> Iterator[str]:
    with proxied(upstream_at[1], ALL, LIMITS) as base:
        yield base


def talk(base: str, data: bytes) -> bytes:
    """Send bytes, give what comes back until the proxy closes."""
    address = urlsplit(base)
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=LOCAL_SECONDS) as sock:
        sock.sendall(data)
        out = b""
        while piece := sock.recv(65536):
            out += piece
    return out


def request(line: bytes, *headers: bytes, body: bytes = b"", host: bytes = HOST) -> bytes:
    return line + b"\r\n" + host + b"".join(header + b"\r\n" for header in headers) + b"\r\n" + body


POST = b"POST /v1/chat/completions HTTP/1.1"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        # Targets that name another server.
        (request(b"GET http://127.0.0.1:9/secret HTTP/1.1"), 400),
        (request(b"POST https://x/v1/chat/completions HTTP/1.1", b"Content-Length: 0"), 400),
        (request(b"GET x:80 HTTP/1.1"), 400),
        (request(b"OPTIONS * HTTP/1.1"), 400),
        (request(b"CONNECT 127.0.0.1:9 HTTP/1.1"), 405),
        (request(b"TRACE / HTTP/1.1"), 405),
        (request(b"BREW / HTTP/1.1"), 405),
        # Bodies whose end is not certain.
        (request(POST, b"Content-Length: 3", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"), 400),
        (request(POST, b"Content-Length: 3", b"Content-Length: 4", body=b"abcd"), 400),
        (request(POST, b"Content-Length: 3, 4", body=b"abcd"), 400),
        (request(POST, b"Content-Length: +3", body=b"abc"), 400),
        (request(POST, b"Content-Length: -1"), 400),
        (request(POST, b"Content-Length: 3x", body=b"abc"), 400),
        (request(POST, b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"), 400),
        (request(POST, b"Transfer-Encoding: identity", body=b"abc"), 400),
        (request(POST, b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"), 400),
        (request(POST, b"Transfer-Encoding : chunked", body=b"0\r\n\r\n"), 400),
        (request(POST, b"Transfer-Encoding: chunked", body=b"zz\r\n"), 400),
        # Too much of anything.
        (request(POST, b"X-Long: " + b"x" * 20_000), 431),
        (request(POST, *[b"X-%d: y" % n for n in range(2000)]), 431),
        (request(b"GET /" + b"x" * 20_000 + b" HTTP/1.1"), 431),
        (request(POST, b"Content-Length: 1001", b"Expect: 100-continue"), 413),
        (request(POST, b"Content-Length: " + b"9" * 4000), 400),
        (request(POST, b"Transfer-Encoding: chunked", body=b"400\r\n" + b"x" * 1024 + b"\r\n0\r\n\r\n"), 413),
        # No HTTP.
        (request(b"GET / HTTP/1.1", host=b""), 400),
        (request(b"GET / HTTP/1.1", HOST.strip()), 400),
        (request(b"GET / HTTP/1.1", b"X: a\0b"), 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    ],
)
def test_refused_and_not_passed_on(strict: str, upstream: Upstream, data: bytes, status: int) -> None:
    answer = talk(strict, data)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:200]
    assert not upstream.bodies
    assert httpx.get(f"{strict}/healthz", trust_env=False, timeout=LOCAL_SECONDS).status_code == 200


def test_a_header_just_over_the_bound_is_refused_by_number(strict: str, upstream: Upstream) -> None:
    # Received in one piece, it is complete before the parser's own bound can bite.
    headers = {f"x-{n}": "y" * 1000 for n in range(15)}
    with httpx.Client(trust_env=False, timeout=LOCAL_SECONDS) as client:
        assert client.get(f"{strict}/x", headers=headers | {"x": "y" * 900}).status_code == 431
        assert client.get(f"{strict}/x", headers=dict(list(headers.items())[:10])).status_code == 200
    assert len(upstream.seen) == 1


def test_a_second_request_cannot_be_smuggled_in_a_refused_one(strict: str, upstream: Upstream) -> None:
    inner = request(b"GET /inner HTTP/1.1")
    answer = talk(strict, request(POST, b"Content-Length: 0", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n" + inner))
    assert answer.count(b"HTTP/1.1 ") == 1
    assert not upstream.seen


def test_a_client_that_never_ends_its_headers_is_dropped(strict: str) -> None:
    assert talk(strict, POST + b"\r\n" + HOST) == b""


def test_control_characters_of_a_path_do_not_reach_the_log(strict: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "vllm_reasoning_ext.access")
    talk(strict, request(b"GET /a%0D%0Ab%1B[31m HTTP/1.1", b"Connection: close"))
    assert [record.getMessage().split()[1] for record in caplog.records] == ["/a%0D%0Ab%1B[31m"]


@pytest.mark.parametrize("lengths", [[b"1", b"2"], [b"+1"], [b"1, 1"], [b""]])
def test_lengths_are_checked_whatever_the_server_let_through(lengths: list[bytes]) -> None:
    headers = [(b"content-length", length) for length in lengths]
    scope = {"method": "POST", "path": "/x", "raw_path": b"/x", "query_string": b"", "headers": headers}
    assert refusal(scope, LIMITS) == (400, "the Content-Length is no single number")
