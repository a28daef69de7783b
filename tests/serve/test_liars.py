"""A proxy between peers that break the rules: no other client suffers, nothing is logged, nothing waits for ever."""

import gzip
import json
import logging
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.serve.liars import chunked, connect, drain, eventually, lying, reply, talk, then_close
from tests.serve.servers import ALL, Upstream, proxied
from tests.support.patience import LOCAL_SECONDS, stretched
from tests.wire.streams import chat, chunk, decoded, sse, totals
from vllm_reasoning_ext.serve import middleware
from vllm_reasoning_ext.serve.inflate import InflateError, Inflater
from vllm_reasoning_ext.serve.metrics import Metrics
from vllm_reasoning_ext.serve.proxy.limits import Limits

CHAT = "/v1/chat/completions"
BODY = json.dumps({"choices": [{"index": 0, "message": {"content": "<think>why</think>so"}}]}).encode()
EVENTS = sse(chat(["<think>why</think>so"]))
SSE = b"text/event-stream"
SECRET = b"s3cret"


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=LOCAL_SECONDS) as found:
        yield found


def ask(client: httpx.Client, base: str, path: str = CHAT) -> httpx.Response:
    return client.post(base + path, json={"messages": []}, headers={"accept-encoding": "identity"})


def message(answer: httpx.Response) -> tuple[str, str]:
    found = answer.json()["choices"][0]["message"]
    return found["reasoning_content"], found["content"]


# -- more than announced, less than announced, framed otherwise


@pytest.mark.parametrize("path", [CHAT, "/v1/models"])
@pytest.mark.parametrize("pause", [0, 0.1])
def test_bytes_after_the_end_of_a_reply_reach_no_other_client(
    client: httpx.Client, caplog: pytest.LogCaptureFixture, path: str, pause: float
) -> None:
    caplog.set_level(logging.INFO)
    poison = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n" + SECRET

    def script(sock: socket.socket, number: int) -> None:
        sock.sendall(reply(BODY) if pause else reply(BODY) + poison)
        time.sleep(pause)
        sock.sendall(poison)

    with lying(script) as liar, proxied(liar.url) as base:
        for _ in range(4):
            answer = ask(client, base, path)
            assert answer.status_code == 200
            assert SECRET not in answer.content
            assert len(answer.content) == int(answer.headers["content-length"])
            time.sleep(1.5 * pause)
        # The connection with the lie on it was dropped.
        assert liar.connections == 4
    assert SECRET.decode() not in caplog.text


@pytest.mark.parametrize("media", [b"application/json", SSE, b"text/plain"])
def test_text_that_is_not_chunked_though_announced_as_such_is_a_broken_reply(
    client: httpx.Client, caplog: pytest.LogCaptureFixture, media: bytes
) -> None:
    caplog.set_level(logging.INFO)
    lie = reply(SECRET + b" <think>\r\n" + SECRET, b"Transfer-Encoding: chunked", media=media, length=-1)
    with lying(lie) as liar, proxied(liar.url) as base:
        if media == b"application/json":
            answer = ask(client, base)
            assert answer.status_code == 502
            assert answer.json()["error"]["message"] == "the upstream broke off its answer"
        else:
            with pytest.raises(httpx.RemoteProtocolError):
                ask(client, base)
        assert client.get(base + "/healthz").status_code == 200
    assert SECRET.decode() not in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    "lie", [SECRET * 3 + b"\r\n\r\n", b"HTTP/1.1 999 " + SECRET + b"\r\n\r\n", b"HTTP/9 200\r\n\r\n"]
)
def test_an_answer_that_is_no_http_is_502_and_in_no_log(
    client: httpx.Client, caplog: pytest.LogCaptureFixture, lie: bytes
) -> None:
    caplog.set_level(logging.INFO)
    with lying(then_close(lie)) as liar, proxied(liar.url) as base:
        answer = ask(client, base)
    assert answer.status_code == 502
    assert answer.json()["error"]["message"] == "the upstream's answer is no HTTP response"
    assert SECRET.decode() not in caplog.text


@pytest.mark.parametrize("path", [CHAT, "/v1/models"])
@pytest.mark.parametrize("length", [3, len(BODY) + 500])
def test_a_length_beside_chunks_does_not_count(client: httpx.Client, path: str, length: int) -> None:
    lie = reply(chunked(BODY), b"Transfer-Encoding: chunked", length=length)
    with lying(lie) as liar, proxied(liar.url) as base:
        answer = ask(client, base, path)
    if path == CHAT:
        assert message(answer) == ("why", "so")
        assert int(answer.headers["content-length"]) == len(answer.content)
    else:
        assert answer.content == BODY
        assert ("content-length" in answer.headers) is not ("transfer-encoding" in answer.headers)


@pytest.mark.parametrize("cut", [0, 1, len(BODY) - 1])
@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_a_json_body_that_the_upstream_cuts_is_502(client: httpx.Client, cut: int, framing: str) -> None:
    metrics = Metrics()
    if framing == "length":
        lie = reply(BODY[:cut], length=len(BODY))
    else:
        lie = reply(chunked(BODY[:cut]).removesuffix(b"0\r\n\r\n"), b"Transfer-Encoding: chunked", length=-1)
    with lying(then_close(lie)) as liar, proxied(liar.url, ALL, metrics=metrics) as base:
        answer = ask(client, base)
        assert answer.status_code == 502
        assert answer.json()["error"]["type"] == "proxy_error"
    assert metrics.registry.get_sample_value("reasoning_ext_proxy_errors_total", {"cause": "broken"}) == 1
    assert metrics.registry.get_sample_value("reasoning_ext_proxy_requests_total", {"status": "5xx"}) == 1


def test_a_stream_that_the_upstream_cuts_gives_what_was_held_then_the_tail(client: httpx.Client) -> None:
    start = sse([chunk("a"), chunk("<think>w")])
    tail = b'data: {"choi'
    lie = reply(chunked(start + tail).removesuffix(b"0\r\n\r\n"), b"Transfer-Encoding: chunked", media=SSE, length=-1)
    seen: list[bytes] = []
    with (
        lying(then_close(lie)) as liar,
        proxied(liar.url) as base,
        client.stream("POST", base + CHAT, json={}) as answer,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        seen.extend(answer.iter_raw())
    out = b"".join(seen)
    assert out.endswith(b"\n\n" + tail)
    assert totals("chat", out.removesuffix(tail)) == ("", "a<think>w")


# -- compression


def deflated(data: bytes, wbits: int) -> bytes:
    compressor = zlib.compressobj(wbits=wbits)
    return compressor.compress(data) + compressor.flush()


def members(data: bytes) -> bytes:
    return b"".join(gzip.compress(data[start : start + 13]) for start in range(0, len(data), 13))


COMPRESSED = {
    "gzip": (b"gzip", gzip.compress),
    "several members": (b"gzip", members),
    "padded": (b"x-gzip", lambda data: members(data) + b"\0" * 100),
    "zlib deflate": (b"deflate", zlib.compress),
    "raw deflate": (b"deflate", lambda data: deflated(data, -15)),
    "gzip called deflate": (b"deflate", gzip.compress),
    "zlib called gzip": (b"gzip", zlib.compress),
}


@pytest.mark.parametrize("kind", COMPRESSED)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_every_form_of_compression_is_read(client: httpx.Client, kind: str, size: int) -> None:
    encoding, compress = COMPRESSED[kind]
    for plain, media in ((BODY, b"application/json"), (EVENTS, SSE)):
        body = chunked(compress(plain), size)
        headers = (b"Content-Encoding: " + encoding, b"Transfer-Encoding: chunked")
        with lying(reply(body, *headers, media=media, length=-1)) as liar, proxied(liar.url) as base:
            answer = ask(client, base)
        assert "content-encoding" not in answer.headers
        assert (message(answer) if media != SSE else totals("chat", answer.content)) == ("why", "so")


@pytest.mark.parametrize("kind", COMPRESSED)
def test_compressed_bytes_come_out_in_small_pieces(kind: str) -> None:
    encoding, compress = COMPRESSED[kind]
    plain = b"ab" * 500_000 if kind not in ("several members", "padded") else b"ab" * 5_000
    inflater = Inflater(encoding.decode())
    pieces = list(inflater.feed(compress(plain)))
    inflater.finish()
    assert b"".join(pieces) == plain
    assert max(map(len, pieces)) <= 65536


@pytest.mark.parametrize("data", [gzip.compress(b"x")[:-1], b"", b"\x1f", b"\x1f\x8b"])
def test_a_cut_compressed_reply_is_noticed(data: bytes) -> None:
    inflater = Inflater("gzip")
    list(inflater.feed(data))
    with pytest.raises(InflateError, match="is cut"):
        inflater.finish()


@pytest.mark.parametrize(("data", "says"), [(b"no gzip", "damaged"), (gzip.compress(b"x") + b"more", "something else")])
def test_a_damaged_compressed_reply_is_noticed(data: bytes, says: str) -> None:
    with pytest.raises(InflateError, match=says):
        list(Inflater("gzip").feed(data))


BOMB = gzip.compress(b" " * 200_000_000, 9)


def test_a_bomb_in_a_body_is_502_and_memory_stays_bounded(client: httpx.Client) -> None:
    with lying(reply(BOMB, b"Content-Encoding: gzip")) as liar, proxied(liar.url) as base:
        tracemalloc.start()
        answer = ask(client, base)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert answer.status_code == 502
    assert answer.json()["error"]["message"] == "the reply is too long when it is decompressed"
    # What was collected up to the bound, and the room a growing buffer takes; 200 MB were in it.
    assert peak < 1.5 * middleware.BODY_MAX


@pytest.mark.parametrize("encoding", [b"gzip", b"identity"])
def test_an_endless_event_cuts_the_stream_with_an_error(client: httpx.Client, encoding: bytes) -> None:
    held = sse([chunk("a"), chunk("<think>w")])
    body = held + b"data: " + b"x" * 20_000_000
    if encoding == b"gzip":
        body = gzip.compress(body)
    seen: list[bytes] = []
    with lying(reply(body, b"Content-Encoding: " + encoding, media=SSE)) as liar, proxied(liar.url) as base:
        tracemalloc.start()
        with client.stream("POST", base + CHAT, json={}) as answer, pytest.raises(httpx.RemoteProtocolError):
            seen.extend(answer.iter_raw())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    events = decoded(b"".join(seen))
    assert events[-1]["error"]["message"] == "an event of the stream is too long"
    assert totals("chat", sse(events[:-1])) == ("", "a<think>w")
    # The test's upstream and the proxy are one process; the event alone would be 20 MB in each.
    assert peak < 80_000_000


def test_a_bomb_in_a_stream_cuts_it_with_an_error(client: httpx.Client) -> None:
    seen: list[bytes] = []
    with lying(reply(BOMB, b"Content-Encoding: gzip", media=SSE)) as liar, proxied(liar.url) as base:
        tracemalloc.start()
        with client.stream("POST", base + CHAT, json={}) as answer, pytest.raises(httpx.RemoteProtocolError):
            seen.extend(answer.iter_raw())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert decoded(b"".join(seen))[-1]["error"]["message"] == "an event of the stream is too long"
    assert peak < 80_000_000


def test_a_damaged_compressed_stream_is_cut_after_what_could_be_read(client: httpx.Client) -> None:
    body = gzip.compress(sse([chunk("a"), chunk("<think>w")])) + b"no gzip"
    seen: list[bytes] = []
    with (
        lying(reply(body, b"Content-Encoding: gzip", media=SSE)) as liar,
        proxied(liar.url) as base,
        client.stream("POST", base + CHAT, json={}) as answer,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        seen.extend(answer.iter_raw())
    events = decoded(b"".join(seen))
    assert events[-1]["error"]["message"] == "something else follows the compressed reply"
    assert totals("chat", sse(events[:-1])) == ("", "a<think>w")


# -- keep-alive


def test_blanks_that_keep_a_connection_alive_reach_the_client_at_once() -> None:
    go_on = threading.Event()

    def script(sock: socket.socket, number: int) -> None:
        sock.sendall(reply(b"", b"Transfer-Encoding: chunked", length=-1) + b"2\r\n\n\n\r\n")
        go_on.wait(LOCAL_SECONDS)
        sock.sendall(chunked(BODY))

    request = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}".encode()
    with lying(script) as liar, proxied(liar.url) as base, connect(base) as sock:
        sock.sendall(request)
        seen = b""
        while not seen.endswith(b"2\r\n\n\n\r\n"):
            seen += sock.recv(65536)
        assert b"content-length" not in seen.lower()
        go_on.set()
        seen += drain(sock)
    assert b'"reasoning_content":"why"' in seen
    assert seen.endswith(b"0\r\n\r\n")


def test_an_upstream_that_closes_after_each_reply_is_never_raced(client: httpx.Client) -> None:
    # It says keep-alive and hangs up in the very moment the next request would come.
    with lying(then_close(reply(BODY, b"Connection: keep-alive"))) as liar, proxied(liar.url) as base:
        answers = [ask(client, base) for _ in range(20)]
        assert [message(answer) for answer in answers] == [("why", "so")] * 20
        assert all(b"\r\nconnection: close\r\n" in request.lower() for request in liar.requests)


# -- waits

SHORT = stretched(0.5)
QUICK = Limits(header_seconds=SHORT, body_seconds=SHORT, client_seconds=SHORT, shutdown_seconds=1)
GET = b"GET /x HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize("rest", [b"G", b"GET /x HTTP/1.1\r\n", GET, GET + b"Content-Length: 1\r\n"])
def test_a_later_request_that_stalls_is_dropped_like_a_first_one(
    upstream_at: tuple[Upstream, str], rest: bytes
) -> None:
    with proxied(upstream_at[1], ALL, QUICK) as base, connect(base) as sock:
        for _ in range(2):
            sock.sendall(GET + b"\r\n")
            assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")
        sock.sendall(rest)
        assert drain(sock) == b""


def test_a_stalled_body_is_answered_408_and_frees_the_upstream(upstream_at: tuple[Upstream, str]) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
    with lying(reply(BODY)) as liar, proxied(liar.url, ALL, QUICK) as base:
        answer = talk(base, head + b"{")
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert f"the request body stopped for {SHORT:g} seconds".encode() in answer
        assert liar.requests == [] or liar.requests[0].endswith(b"{")
        # Its slot is free again.
        assert httpx.get(base + "/x", trust_env=False).status_code == 200


def test_a_client_that_never_reads_is_dropped_and_frees_the_upstream(upstream_at: tuple[Upstream, str]) -> None:
    metrics = Metrics()
    stopped = threading.Event()

    def script(sock: socket.socket, number: int) -> None:
        event = b"data: " + b"x" * 60_000 + b"\n\n"
        try:
            sock.sendall(reply(b"", media=SSE, length=-1))
            while True:
                sock.sendall(event)
        finally:
            stopped.set()

    def in_progress() -> Any:
        return metrics.registry.get_sample_value("reasoning_ext_proxy_in_progress")

    with lying(script) as liar, proxied(liar.url, ALL, QUICK, metrics) as base, connect(base) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode())
        assert stopped.wait(LOCAL_SECONDS)
        assert eventually(lambda: in_progress() == 0)


def trickle(sock: socket.socket, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sock.sendall(b"x")
        time.sleep(0.05)


def test_a_client_that_goes_on_sending_after_its_answer_is_dropped(upstream_at: tuple[Upstream, str]) -> None:
    with proxied(upstream_at[1], ALL, QUICK) as base, connect(base) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
        with pytest.raises(OSError):  # the proxy has closed: the bytes have nowhere to go
            trickle(sock, LOCAL_SECONDS)
