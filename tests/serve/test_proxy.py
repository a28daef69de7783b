"""The proxy as a good citizen: what it passes on, what it keeps to itself, when it lets go."""

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve.liars import lying, reply, talk
from tests.serve.servers import ALL, Upstream, proxied, running
from tests.support.patience import LOCAL_SECONDS, REPLY_SECONDS, stretched
from tests.wire.streams import decoded, totals
from vllm_reasoning_ext.errors import SetupError
from vllm_reasoning_ext.serve.metrics import Metrics
from vllm_reasoning_ext.serve.proxy.app import parse_listen, proxy_app, serve_proxy
from vllm_reasoning_ext.serve.proxy.forward import parse_upstream
from vllm_reasoning_ext.serve.proxy.limits import Limits
from vllm_reasoning_ext.serve.settings import Settings

TEXT = "<think>why</think>so"
CHAT = "/v1/chat/completions"


def ask(text: str = TEXT, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def wait_for(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + LOCAL_SECONDS
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


@pytest.fixture(scope="module")
def client() -> Any:
    with httpx.Client(trust_env=False, timeout=LOCAL_SECONDS) as found:
        yield found


@pytest.mark.parametrize("target", ["/a/../b%2Fc//d/./e", "//127.0.0.1:9/x", "/v1/models?x=%20&y=é&z", "/%C3%A9?a=b?c"])
def test_targets_go_out_as_they_came(proxy: str, upstream: Upstream, target: str) -> None:
    raw = target.encode().replace("é".encode(), b"%C3%A9")
    with httpx.HTTPTransport(trust_env=False) as transport:
        request = httpx.Request("GET", proxy, extensions={"target": raw})
        answer = transport.handle_request(request)
        answer.read()
    assert answer.headers["x-target"] == raw.decode() + ("" if b"?" in raw else "?")


@pytest.mark.parametrize("target", ["/x", "/x?", "/x??", "/x?a", "/?"])
def test_a_question_mark_is_kept(target: str) -> None:
    with lying(reply(b"{}")) as liar, proxied(liar.url) as base:
        talk(base, f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        assert liar.requests[0].split(b"\r\n")[0] == f"GET {target} HTTP/1.1".encode()


def test_an_upstream_path_stands_before_the_requests(upstream_at: tuple[Upstream, str], client: httpx.Client) -> None:
    with proxied(upstream_at[1] + "/base/") as base:
        assert client.get(base + "/v1/models").headers["x-target"] == "/base/v1/models?"


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_methods_and_bodies_are_passed_on(proxy: str, upstream: Upstream, client: httpx.Client, method: str) -> None:
    body = os.urandom(300_000)
    if method in ("GET", "HEAD", "OPTIONS", "DELETE"):
        answer = client.request(method, proxy + "/x")
        assert upstream.bodies == [b""]
    else:
        answer = client.request(method, proxy + "/x", content=body)
        assert answer.content == body
        assert upstream.seen[0].headers["content-length"] == "300000"
        answer = client.request(method, proxy + "/x", content=iter([body[:7], body[7:]]))
        assert answer.content == body
        assert upstream.seen[1].headers["transfer-encoding"] == "chunked"
    assert answer.status_code == 200


def test_headers_of_one_connection_stay_there(proxy: str, upstream: Upstream, client: httpx.Client) -> None:
    sent = {
        "authorization": "Bearer secret",
        "connection": "x-named",
        "x-named": "1",
        "keep-alive": "1",
        "te": "trailers",
        "proxy-authorization": "no",
        "upgrade": "h2c",
        "x-kept": "yes",
        "accept-encoding": "gzip",
        "cookie": "a=1",
    }
    answer = client.get(proxy + "/x", headers=sent)
    seen = upstream.seen[0].headers
    assert {name: seen[name] for name in ("authorization", "x-kept", "accept-encoding", "cookie")} == {
        "authorization": "Bearer secret",
        "x-kept": "yes",
        "accept-encoding": "gzip",
        "cookie": "a=1",
    }
    assert not {"x-named", "keep-alive", "te", "proxy-authorization", "upgrade"} & set(seen)
    assert seen["host"] != httpx.URL(proxy).netloc.decode()
    assert not {"x-hop", "keep-alive"} & set(answer.headers)
    assert answer.headers["content-type"] == "application/octet-stream"


def test_a_translated_surface_is_asked_for_plain_text(proxy: str, upstream: Upstream, client: httpx.Client) -> None:
    answer = client.post(proxy + CHAT, json=ask(), headers={"accept-encoding": "gzip, br"})
    assert upstream.seen[0].headers["accept-encoding"] == "identity"
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert "etag" not in answer.headers
    assert answer.headers["x-own"] == "kept"
    unchanged = client.post(proxy + CHAT, json=ask("plain"))
    assert unchanged.headers["etag"] == '"1"'
    assert int(unchanged.headers["content-length"]) == len(unchanged.content)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("encoding", ["gzip", "br"])
def test_a_compressed_reply(proxy: str, client: httpx.Client, stream: bool, encoding: str) -> None:
    sent = ask(stream=stream) | {"as": encoding}
    with client.stream("POST", proxy + "/gzip/chat/completions", json=sent) as answer:
        raw = b"".join(answer.iter_raw())
    if encoding == "br":  # not understood: passed on as it is
        assert answer.headers["content-encoding"] == "br"
        assert b"<th" in gzip.decompress(raw)
        return
    assert "content-encoding" not in answer.headers
    if stream:
        assert totals("chat", raw) == ("why", "so")
    else:
        assert json.loads(raw)["choices"][0]["message"] == {"content": "so", "reasoning_content": "why"}


def test_errors_of_the_upstream_are_passed_unchanged(proxy: str, client: httpx.Client) -> None:
    answer = client.post(proxy + "/error/chat/completions", json=ask())
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert answer.json() == {"error": {"message": "<think>no</think>"}}


def test_redirects_are_passed_on_and_cookies_not_kept(proxy: str, upstream: Upstream, client: httpx.Client) -> None:
    answer = client.get(proxy + "/redirect", headers={"authorization": "Bearer secret"})
    assert (answer.status_code, answer.headers["location"]) == (307, "http://127.0.0.1:9/elsewhere")
    assert answer.headers["set-cookie"] == "a=secret"
    with httpx.Client(trust_env=False, timeout=LOCAL_SECONDS) as other:
        other.get(proxy + "/x")
    assert [request.url.path for request in upstream.seen] == ["/redirect", "/x"]
    assert "cookie" not in upstream.seen[1].headers


def test_nothing_of_a_request_but_its_path_is_logged(
    proxy: str, client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "vllm_reasoning_ext")
    headers = {"authorization": "Bearer s3cret"}
    answer = client.post(proxy + CHAT + "?key=s3cret", json=ask("<think>s3cret</think>"), headers=headers)

    def posted() -> list[str]:
        # The line of an earlier test's request may come late: only this one was posted.
        lines = [r.getMessage() for r in caplog.records if r.name == "vllm_reasoning_ext.access"]
        return [line for line in lines if line.startswith("POST ")]

    assert wait_for(lambda: bool(posted()))
    [line] = posted()
    assert line.startswith(f"POST {CHAT} 200 {len(answer.content)} bytes ")
    assert "s3cret" not in caplog.text


def test_the_first_text_comes_before_the_last_is_written(proxy: str, upstream: Upstream, client: httpx.Client) -> None:
    with client.stream("POST", proxy + "/stepwise/chat/completions", json=ask(stream=True)) as answer:
        assert "content-length" not in answer.headers
        seen = b""
        pieces = answer.iter_raw()
        while b"first" not in seen:
            seen += next(pieces)
        assert b"second" not in seen
        upstream.resume.set()
        seen += b"".join(pieces)
    assert totals("chat", seen) == ("why", "first second")
    assert decoded(seen)[-1] == "[DONE]"


def test_a_client_that_hangs_up_frees_the_upstream(upstream_at: tuple[Upstream, str], upstream: Upstream) -> None:
    metrics = Metrics()

    def counted() -> float:
        return metrics.registry.get_sample_value("reasoning_ext_proxy_errors_total", {"cause": "client_gone"}) or 0

    with proxied(upstream_at[1], metrics=metrics) as base:
        with (
            httpx.Client(trust_env=False, timeout=LOCAL_SECONDS) as client,
            client.stream("GET", base + "/endless") as answer,
        ):
            next(answer.iter_raw())
        assert upstream.gone.wait(LOCAL_SECONDS)
        assert wait_for(lambda: counted() == 1)
        # Before there is any answer, too.
        with httpx.Client(trust_env=False, timeout=stretched(0.5)) as client, pytest.raises(httpx.ReadTimeout):
            client.get(base + "/silent")
        assert wait_for(lambda: counted() == 2)


def test_a_client_that_does_not_read_stops_the_upstream(proxy: str, upstream: Upstream) -> None:
    address = httpx.URL(proxy)
    body = json.dumps(ask(stream=True)).encode()
    head = f"POST /flood/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((address.host, address.port or 0)) as sock:
        sock.sendall(head.encode() + body)
        before = -1
        while upstream.flooded != before or not before:
            before = upstream.flooded
            time.sleep(0.3)
        # What is on the way fits into the buffers of two connections; it would be gigabytes by now without an end.
        assert 0 < before < 100_000_000


def test_an_upstream_that_breaks_off_loses_nothing_that_was_held(proxy: str, client: httpx.Client) -> None:
    seen: list[bytes] = []
    with (
        client.stream("POST", proxy + "/broken/chat/completions", json=ask(stream=True)) as answer,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        seen.extend(answer.iter_raw())
    assert totals("chat", b"".join(seen)) == ("", "a<think>w")


@pytest.mark.parametrize(
    ("path", "upstream_url", "status", "cause"),
    [("/x", "http://127.0.0.1:9", 502, "unreachable"), ("/silent", None, 504, "timeout")],
)
def test_an_upstream_that_does_not_answer(
    upstream_at: tuple[Upstream, str],
    client: httpx.Client,
    path: str,
    upstream_url: str | None,
    status: int,
    cause: str,
) -> None:
    metrics = Metrics()
    limits = Limits(connect_seconds=LOCAL_SECONDS, read_seconds=stretched(0.3), shutdown_seconds=1)
    with proxied(upstream_url or upstream_at[1], ALL, limits, metrics) as base:
        answer = client.get(base + path)
    assert answer.status_code == status
    assert answer.json()["error"]["type"] == "proxy_error"
    assert metrics.registry.get_sample_value("reasoning_ext_proxy_errors_total", {"cause": cause}) == 1


def test_overload_refuses_the_excess_only_and_health_never(
    upstream_at: tuple[Upstream, str], upstream: Upstream
) -> None:
    statuses: list[int] = []
    with proxied(upstream_at[1], ALL, Limits(connections=10, shutdown_seconds=1)) as base:

        def run() -> None:
            with httpx.Client(trust_env=False, timeout=LOCAL_SECONDS) as client:
                answer = client.post(base + "/stepwise/chat/completions", json=ask(stream=True))
                statuses.append(answer.status_code)
                if answer.status_code == 200:
                    assert totals("chat", answer.content) == ("why", "first second")
                else:
                    assert answer.headers["retry-after"] == "1"
                    assert "10 requests at a time" in answer.json()["error"]["message"]

        threads = [threading.Thread(target=run) for _ in range(12)]
        for thread in threads:
            thread.start()
        # The two that are too many are answered while the ten wait for the upstream.
        assert wait_for(lambda: len(statuses) == 2)
        assert httpx.get(base + "/healthz", trust_env=False).status_code == 200
        assert httpx.get(base + "/metrics", trust_env=False).status_code == 200
        assert httpx.get(base + "/x", trust_env=False).status_code == 503
        upstream.resume.set()
        for thread in threads:
            thread.join()
        assert sorted(statuses) == [200] * 10 + [503] * 2
        assert httpx.get(base + "/x", trust_env=False).status_code == 200


def test_health_and_metrics_pages(upstream_at: tuple[Upstream, str], client: httpx.Client) -> None:
    with proxied(upstream_at[1]) as base:
        assert client.get(base + "/healthz").json() == {"status": "ok"}
        before = client.get(base + "/metrics").text
        assert 'reasoning_ext_translations_total{end="closed",mode="stream",surface="chat"} 0.0' in before
        client.post(base + CHAT, json=ask(stream=True)).read()
        page = client.get(base + "/metrics").text
    for line in (
        'reasoning_ext_translations_total{end="closed",mode="stream",surface="chat"} 1.0',
        'reasoning_ext_chars_total{channel="reasoning",surface="chat"} 3.0',
        'reasoning_ext_chars_total{channel="answer",surface="chat"} 2.0',
        "reasoning_ext_proxy_in_progress 1.0",
        'reasoning_ext_proxy_requests_total{status="2xx"} 3.0',
    ):
        assert line in page


def test_many_streams_at_a_time_do_not_mix(proxy: str) -> None:
    texts = [f"<think>thought {n} {'é' * n}</think>answer {n}" for n in range(1, 41)]
    seen: dict[str, tuple[str, str]] = {}

    def run(text: str) -> None:
        with httpx.Client(trust_env=False, timeout=REPLY_SECONDS) as client:
            seen[text] = totals("chat", client.post(proxy + CHAT, json=ask(text, stream=True)).content)

    threads = [threading.Thread(target=run, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {text: (text[7 : text.index("</")], text[text.index("answer") :]) for text in texts}


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("127.0.0.1:8000", "HOST\\[:PORT"),
        ("ftp://x", "HOST\\[:PORT"),
        ("http://", "HOST\\[:PORT"),
        ("http://user:key@x", "Authorization header"),
        ("http://x?key=1", "Authorization header"),
        ("http://x:port", "HOST\\[:PORT"),
        ("http://x:99999", "1 to 65535"),
        ("http://x:0", "nothing listens on port 0"),
    ],
)
def test_a_wrong_upstream_stops_with_a_remedy(url: str, says: str) -> None:
    with pytest.raises(SetupError, match=says):
        parse_upstream(url)


@pytest.mark.parametrize("listen", ["8080", "127.0.0.1", ":8080", "x:99999", "x:-1", "x:"])
def test_a_wrong_address_stops_with_a_remedy(listen: str) -> None:
    with pytest.raises(SetupError, match=r"give it as 127\.0\.0\.1:8080"):
        parse_listen(listen)


def test_addresses() -> None:
    assert parse_listen("[::1]:8080") == ("::1", 8080)
    assert parse_listen("0.0.0.0:0") == ("0.0.0.0", 0)


def test_a_taken_address_and_a_loop_stop_with_a_remedy(proxy: str) -> None:
    taken = proxy.removeprefix("http://")
    with pytest.raises(SetupError, match="choose another address with --listen"):
        serve_proxy("http://127.0.0.1:9", taken, Settings())
    with pytest.raises(SetupError, match="its own upstream"):
        serve_proxy(proxy, taken, Settings())


SERVE = """
import sys
from vllm_reasoning_ext.serve.proxy.app import serve_proxy
serve_proxy(sys.argv[1], "127.0.0.1:0", ready=lambda host, port: print(port, flush=True))
"""


def test_sigterm_lets_a_stream_finish(upstream_at: tuple[Upstream, str], upstream: Upstream, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, upstream_at[1]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    base = f"http://127.0.0.1:{process.stdout.readline().strip()}"
    with httpx.Client(trust_env=False, timeout=LOCAL_SECONDS) as client:
        wait_for(lambda: client.get(base + "/healthz").status_code == 200)
        with client.stream("POST", base + "/stepwise/chat/completions", json=ask(stream=True)) as answer:
            pieces = answer.iter_raw()
            seen = next(pieces)
            process.send_signal(signal.SIGTERM)
            assert wait_for(lambda: not accepts(base))
            upstream.resume.set()
            seen += b"".join(pieces)
    assert totals("chat", seen) == ("why", "first second")
    _, log = process.communicate(timeout=LOCAL_SECONDS)
    assert process.returncode in (0, -signal.SIGTERM)
    assert "listening on http://127.0.0.1:" in log
    assert "Traceback" not in log


def accepts(base: str) -> bool:
    try:
        return httpx.get(base + "/healthz", trust_env=False, timeout=LOCAL_SECONDS).status_code == 200
    except httpx.TransportError:
        return False


def test_the_application_can_run_elsewhere(upstream_at: tuple[Upstream, str], client: httpx.Client) -> None:
    with running(proxy_app(upstream_at[1], ALL)) as base:
        message = client.post(base + CHAT, json=ask()).json()["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("so", "why")
