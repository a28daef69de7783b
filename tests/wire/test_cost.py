"""What translation costs, counted: calls, and bytes that are held. Nothing is timed."""

import gc
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from tests.wire.streams import chunk, sse, translate
from tests.wire.test_messages import delta, start, stop
from tests.wire.test_responses import CREATED, added, completed, item_done, message_events, numbered, piece, text_done
from vllm_reasoning_ext.wire.chat import ChatStream
from vllm_reasoning_ext.wire.sse import ServerEvent
from vllm_reasoning_ext.wire.surfaces import stream_translator
from vllm_reasoning_ext.wire.translation import Translation

SETTINGS = Translation(messages_policy="unsigned")


def calls(surface: str, data: bytes) -> int:
    """Count the calls of functions, Python's and C's, that one stream takes."""
    count = 0

    def note(frame: Any, kind: str, argument: Any) -> None:
        nonlocal count
        count += kind in ("call", "c_call")

    sys.setprofile(note)
    try:
        translate(surface, data, SETTINGS)
    finally:
        sys.setprofile(None)
    return count


def items_in_turn(n: int, text: str) -> Iterator[dict[str, Any]]:
    yield CREATED
    for index in range(n):
        yield from message_events(index, text)
    yield completed(*(item_done(index, text)["item"] for index in range(n)))


def items_at_once(n: int, text: str) -> Iterator[dict[str, Any]]:
    yield CREATED
    yield from (added(index) for index in range(n))
    yield from (piece(index, text[:9]) for index in range(n))
    yield from (piece(index, text[9:]) for index in range(n))
    yield from (item_done(index, text) for index in range(n))


def items_never_done(n: int, text: str) -> Iterator[dict[str, Any]]:
    for index in range(n):
        yield from (added(index), piece(index, text[:9]))


def parts_of_one(n: int, text: str) -> Iterator[dict[str, Any]]:
    yield added(0)
    for index in range(n):
        yield from (piece(0, text, index), text_done(0, text, index))
        yield {"type": "response.content_part.done", "output_index": 0, "content_index": index, "part": {}}


def blocks_at_once(n: int, text: str) -> Iterator[dict[str, Any]]:
    yield from (start(index) for index in range(n))
    for cut in (slice(0, 9), slice(9, None)):
        yield from (delta(index, text[cut]) for index in range(n))
    yield from (stop(index) for index in range(n))


def choices(n: int, text: str) -> Iterator[dict[str, Any]]:
    yield from (chunk(text, index=index) for index in range(n))
    yield from (chunk(reason="stop", index=index) for index in range(n))


@pytest.mark.parametrize("text", ["<think>why</think>so", "no tag in this", "<think>never closed"])
@pytest.mark.parametrize(
    ("surface", "events"),
    [
        ("responses", items_in_turn),
        ("responses", items_at_once),
        ("responses", items_never_done),
        ("responses", parts_of_one),
        ("messages", blocks_at_once),
        ("chat", choices),
    ],
)
def test_cost_is_linear_in_items_parts_blocks_and_choices(surface: str, events: Any, text: str) -> None:
    one, four = (calls(surface, sse(numbered(list(events(n, text))))) for n in (100, 400))
    assert one < four < 4.2 * one


def held(n: int, text: str, finished: bool) -> float:
    """Give the bytes that a chat stream holds for each of its choices."""
    stream = ChatStream(SETTINGS)
    stream.event(ServerEvent(sse([chunk(text, index=-1)])))
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for index in range(n):
        stream.event(ServerEvent(sse([chunk(text, index=index)])))
        if finished:
            stream.event(ServerEvent(sse([chunk(reason="stop", index=index)])))
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / n


def test_a_finished_choice_holds_nothing_but_its_number() -> None:
    assert held(4000, "<think>w</think>x", finished=True) < 200


@pytest.mark.parametrize(("text", "n"), [("<think>abc", 4000), ("plain", 400), ("<thi", 400)])
def test_4000_choices_cost_no_more_than_4000_times_one(text: str, n: int) -> None:
    one = held(1, text, finished=False)
    assert held(n, text, finished=False) < 1.05 * one + 200


def test_choices_share_their_marker_sets() -> None:
    assert held(400, "<think>abc", finished=False) < 6_000


def test_responses_free_what_is_done() -> None:
    stream = stream_translator("responses", SETTINGS)
    events = [sse(message_events(index, "<think>why</think>so")) for index in range(400)]
    for event in events[:200]:
        stream.feed(event)
    tracemalloc.start()
    for event in events[200:]:
        stream.feed(event)
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    # The reasoning items are kept: the last event tells them all again.
    assert grown / 200 < 2_500
