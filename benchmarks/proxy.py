"""Measure the proxy beside the same proxy without translation, in one run: latency, and many streams at a time.

    python -m benchmarks.proxy

Upstream, pass-through and translating proxy are processes of their own on 127.0.0.1. Every stream's text is checked
to the character, so that a lost or mixed piece ends the run with exit code 1.
"""

import argparse
import asyncio
import json
import multiprocessing
import socket
import statistics
import time
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from vllm_reasoning_ext.serve.proxy.app import proxy_app, server
from vllm_reasoning_ext.serve.proxy.limits import Limits
from vllm_reasoning_ext.serve.settings import Settings
from vllm_reasoning_ext.wire.sse import SSEParser
from vllm_reasoning_ext.wire.translation import Translation


class Timing(NamedTuple):
    """Seconds from the request to the first and to the last piece of text."""

    first: float
    last: float


def words(stream: str, tokens: int) -> tuple[str, str]:
    """Make the reasoning and the answer of one stream: no two streams share a word."""
    half = tokens // 2
    reasoning = " ".join(f"r{stream}.{n}" for n in range(half))
    answer = " ".join(f"a{stream}.{n}" for n in range(tokens - half))
    return reasoning, answer


def _upstream(pace: float) -> Starlette:
    async def chat(request: Request) -> StreamingResponse:
        asked = await request.json()
        reasoning, answer = words(asked["user"], asked["max_tokens"])
        text = f"<think>{reasoning}</think>{answer}"

        async def chunks() -> AsyncIterator[bytes]:
            # The tag comes with text: else the first chunk would hold nothing that either proxy could show.
            for start, end in [(0, 14), *((n, n + 7) for n in range(14, len(text), 7))]:
                delta = {"content": text[start:end]}
                choice = {"index": 0, "delta": delta, "finish_reason": None}
                chunk = {"id": asked["user"], "object": "chat.completion.chunk", "choices": [choice]}
                yield b"data: " + json.dumps(chunk).encode() + b"\n\n"
                await asyncio.sleep(pace)
            yield b"data: [DONE]\n\n"

        return StreamingResponse(chunks(), media_type="text/event-stream")

    return Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])])


def _serve(sock: socket.socket, upstream: str | None, translate: bool, pace: float) -> None:
    if upstream is None:
        config = uvicorn.Config(_upstream(pace), log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[sock])
        return
    settings = Settings(enabled=translate, translation=Translation(unclosed="reasoning"))
    limits = Limits()
    server(proxy_app(upstream, settings, limits), limits).run(sockets=[sock])


async def _stream(client: httpx.AsyncClient, base: str, name: str, tokens: int) -> tuple[Timing, str, str]:
    asked = {"user": name, "max_tokens": tokens, "stream": True, "messages": []}
    begun = time.perf_counter()
    first = 0.0
    parser = SSEParser()
    content: list[str] = []
    reasoning: list[str] = []
    async with client.stream("POST", f"{base}/v1/chat/completions", json=asked) as response:
        async for data in response.aiter_raw():
            for event in parser.feed(data):
                if event.data is None or event.data == b"[DONE]":
                    continue
                delta: dict[str, Any] = json.loads(event.data)["choices"][0]["delta"]
                content.append(delta.get("content") or "")
                reasoning.append(delta.get("reasoning_content") or "")
                first = first or time.perf_counter() - begun
    return Timing(first, time.perf_counter() - begun), "".join(reasoning), "".join(content)


async def _checked(client: httpx.AsyncClient, base: str, name: str, tokens: int, translated: bool) -> Timing:
    timing, reasoning, content = await _stream(client, base, name, tokens)
    want_reasoning, want_answer = words(name, tokens)
    want = (want_reasoning, want_answer) if translated else ("", f"<think>{want_reasoning}</think>{want_answer}")
    if (reasoning, content) != want:
        raise SystemExit(f"stream {name} through {base}: text lost or mixed")
    return timing


def _line(label: str, plain: list[Timing], translated: list[Timing]) -> str:
    out = [f"{label:<28}"]
    for field in ("first", "last"):
        base = statistics.median(getattr(t, field) for t in plain)
        through = statistics.median(getattr(t, field) for t in translated)
        out.append(f"{field} {base * 1000:8.1f} -> {through * 1000:8.1f} ms, ratio {through / base:5.2f}   ")
    return "".join(out)


async def _measure(plain: str, translated: str, args: argparse.Namespace) -> None:
    pool = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(timeout=120, limits=pool, trust_env=False) as client:
        singles: dict[str, list[Timing]] = {plain: [], translated: []}
        for round_ in range(args.rounds + 1):
            for base in (plain, translated):
                timing = await _checked(client, base, f"single{round_}", args.tokens, base == translated)
                if round_:  # the first round opens the connections
                    singles[base].append(timing)
        print(_line("one stream at a time", singles[plain], singles[translated]))
        many: dict[str, list[Timing]] = {plain: [], translated: []}
        for round_ in range(2):
            for base in (plain, translated):
                runs = [
                    _checked(client, base, f"many{round_}-{n}", args.tokens, base == translated)
                    for n in range(args.streams)
                ]
                many[base] += await asyncio.gather(*runs)
        print(_line(f"{args.streams} streams at a time", many[plain], many[translated]))
        checked = sum(map(len, (*singles.values(), *many.values())))
    print(f"{checked} streams checked to the character: nothing lost, nothing mixed")


def main(argv: list[str] | None = None) -> None:
    """Run the measurement and print it (pass-through -> translating, medians)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.proxy", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--streams", type=int, default=100, help="streams at a time")
    parser.add_argument("--tokens", type=int, default=100, help="words of each stream")
    parser.add_argument("--rounds", type=int, default=10, help="rounds of one stream at a time")
    parser.add_argument("--pace", type=float, default=0.01, help="seconds between two chunks of the upstream")
    args = parser.parse_args(argv)
    context = multiprocessing.get_context("spawn")
    sockets = [socket.create_server(("127.0.0.1", 0), backlog=1024) for _ in range(3)]
    bases = [f"http://127.0.0.1:{sock.getsockname()[1]}" for sock in sockets]
    plans = ((None, False), (bases[0], False), (bases[0], True))
    processes = [
        context.Process(target=_serve, args=(sock, upstream, translate, args.pace), daemon=True)
        for sock, (upstream, translate) in zip(sockets, plans, strict=True)
    ]
    for process in processes:
        process.start()
    try:
        asyncio.run(_measure(bases[1], bases[2], args))
    finally:
        for process in processes:
            process.terminate()
            process.join()


if __name__ == "__main__":
    main()
