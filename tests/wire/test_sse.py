"""Server-sent events: the bytes come back, whatever the line ends, the length and the cuts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vllm_reasoning_ext.wire.sse import ServerEvent, SSEParser, compose

UNTIMED = settings(deadline=None)
STREAMS = [
    b"data: a\n\ndata: b\n\n",
    b"data: a\r\n\r\nevent: x\r\ndata: b\r\n\r\n",
    b"data: a\r\rdata: b\r\r",
    b": ping\n: pong\n\ndata: a\n: inside\ndata: b\n\n",
    b"id: 7\nretry: 10\ndata:a\ndata\ndata:  c\n\n",
    b"\xef\xbb\xbfdata: a\n\n\n\ndata: b",
    b"data: a\r\n\r\n: ping\r\n\r\ndata: [DONE]\r\n\r\n",
    "data: é◁think▷\n\n".encode(),
    b"event: only a name\n\n",
    b"",
]


def parsed(chunks: list[bytes]) -> list[ServerEvent]:
    parser = SSEParser()
    return [event for piece in chunks for event in parser.feed(piece)] + parser.finish()


def fields(events: list[ServerEvent]) -> list[tuple[bytes | None, bytes | None]]:
    return [(event.name, event.data) for event in events if event.data is not None]


@pytest.mark.parametrize("stream", STREAMS)
def test_every_cut_gives_the_same_events_and_the_same_bytes(stream: bytes) -> None:
    whole = parsed([stream])
    for place in range(len(stream) + 1):
        cut = parsed([stream[:place], stream[place:]])
        assert b"".join(event.raw for event in cut) == stream
        assert fields(cut) == fields(whole)
    one_by_one = parsed([stream[n : n + 1] for n in range(len(stream))])
    assert b"".join(event.raw for event in one_by_one) == stream
    assert fields(one_by_one) == fields(whole)


@UNTIMED
@given(st.lists(st.sampled_from([b"data: x", b":c", b"\n", b"\r", b"\r\n", b"event: e", b"y"]), max_size=30), st.data())
def test_no_byte_is_lost(parts: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(parts)
    places = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=10)))
    chunks = [stream[a:b] for a, b in zip([0, *places], [*places, len(stream)], strict=True)]
    assert b"".join(event.raw for event in parsed(chunks)) == stream
    assert fields(parsed(chunks)) == fields(parsed([stream]))


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\ndata: b\n\n", [(None, b"a\nb")]),
        (b"data:a\n\n", [(None, b"a")]),
        (b"data:  a\n\n", [(None, b" a")]),
        (b"data\n\n", [(None, b"")]),
        (b"event: e\r\ndata: a\r\n\r\n", [(b"e", b"a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [(None, b"a")]),
        (b": data: a\n\n", []),
    ],
)
def test_fields_are_read_as_the_format_says(stream: bytes, expected: list[tuple[bytes | None, bytes | None]]) -> None:
    assert fields(parsed([stream])) == expected


def test_a_keep_alive_does_not_wait_for_a_blank_line() -> None:
    parser = SSEParser()
    assert [event.raw for event in parser.feed(b": keep-alive\n")] == [b": keep-alive\n"]
    assert [event.raw for event in parser.feed(b"data: a\n: inside an event\n")] == []


@pytest.mark.parametrize(
    ("raw", "name", "expected"),
    [
        (b"data: a\n\n", None, b"data: NEW\n\n"),
        (b"id: 7\nevent: old\n: note\ndata: a\ndata: b\n\n", None, b"id: 7\nevent: old\n: note\ndata: NEW\n\n"),
        (b"event: old\r\ndata: a\r\n\r\n", b"new", b"event: new\r\ndata: NEW\r\n\r\n"),
        (b"data: a\r\r", None, b"data: NEW\r\r"),
        (b"\ndata: a\n\n", None, b"data: NEW\n\n"),
        (b"data: a", None, b"data: NEW\n\n"),
    ],
)
def test_rewriting_changes_the_data_only(raw: bytes, name: bytes | None, expected: bytes) -> None:
    assert ServerEvent(raw).rewritten(b"NEW", name) == expected


def test_a_new_event_has_name_data_and_blank_line() -> None:
    assert compose(b"{}", b"ping", b"\r\n") == b"event: ping\r\ndata: {}\r\n\r\n"
    assert compose(b"{}") == b"data: {}\n\n"


def test_a_very_long_event_comes_whole() -> None:
    body = b"x" * 3_000_000
    stream = b"data: " + body + b"\n\n"
    events = parsed([stream[n : n + 1000] for n in range(0, len(stream), 1000)])
    assert [event.data for event in events] == [body]
