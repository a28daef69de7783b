"""Server-sent events: what waits for its blank line is bounded, and costs its bytes and not more."""

import tracemalloc

import pytest

from tests.wire.streams import SURFACES, chunk, sse
from vllm_reasoning_ext.wire.chat import ChatStream
from vllm_reasoning_ext.wire.sse import EVENT_MAX, EventTooLongError, SSEParser, SSETranslator
from vllm_reasoning_ext.wire.surfaces import stream_translator
from vllm_reasoning_ext.wire.translation import Translation


def feed_often(stream: SSETranslator, piece: bytes, times: int) -> None:
    for _ in range(times):
        stream.feed(piece)


def peak_of(piece: bytes, most: int, event_max: int) -> int:
    """Feed a piece until the stream is broken off, `most` bytes at most; gives the most bytes that were held."""
    stream = SSETranslator(ChatStream(Translation()), event_max)
    tracemalloc.start()
    with pytest.raises(EventTooLongError) as raised:
        feed_often(stream, piece, most // len(piece))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert raised.value.rest == b""
    return peak


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 60_000, b": " + b"x" * 60_000])
def test_an_event_of_20_mb_without_a_blank_line_is_broken_off(piece: bytes) -> None:
    assert peak_of(piece, 20_000_000, EVENT_MAX) < 2.5 * EVENT_MAX


@pytest.mark.parametrize("piece", [b"xy", b"x", b"data: x\n", b"\xff" * 999])
def test_what_waits_costs_its_bytes_however_it_is_cut(piece: bytes) -> None:
    # A list of two-byte chunks would hold thirty times as much.
    assert peak_of(piece, 400_000, 200_000) < 3 * 200_000


def test_what_came_before_and_what_is_held_goes_out_first() -> None:
    stream = stream_translator("chat", Translation())
    whole = sse([chunk("a"), chunk("<think>w")])
    with pytest.raises(EventTooLongError) as raised:
        stream.feed(whole + b"data: " + b"x" * (EVENT_MAX + 1))
    assert raised.value.rest.startswith(sse([chunk("a")]))
    assert b"<think>w" in raised.value.rest
    assert b"xxx" not in raised.value.rest


@pytest.mark.parametrize("surface", SURFACES)
def test_an_event_within_the_bound_passes_on_every_surface(surface: str) -> None:
    data = b"data: " + b"x" * (EVENT_MAX - 100) + b"\n\n"
    stream = stream_translator(surface, Translation(messages_policy="unsigned"))
    out = b"".join(stream.feed(data[n : n + 1_000_000]) for n in range(0, len(data), 1_000_000))
    assert out + stream.finish() == data


def test_the_bound_is_an_option() -> None:
    parser = SSEParser(10)
    parser.feed(b"data: 7890")
    assert not parser.too_long
    parser.feed(b"1")
    assert parser.too_long
