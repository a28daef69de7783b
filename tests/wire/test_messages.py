"""Anthropic messages: the policies, the order of the blocks, and the SDK's own types."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tests.wire.streams import TOOL_USE, decoded, messages, sse, totals, translate
from vllm_reasoning_ext.wire.surfaces import stream_translator, translate_body
from vllm_reasoning_ext.wire.translation import Translation

TEXT = "<think>why</think>so"
NATIVE = {"type": "thinking", "thinking": "own", "signature": "s"}


def policy(name: str, **more: Any) -> Translation:
    return Translation(messages_policy=name, **more)


def text_block(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


@pytest.mark.parametrize(
    ("settings", "blocks", "expected"),
    [
        (policy("off"), [text_block(TEXT)], None),
        (policy("drop"), [text_block(TEXT)], [text_block("so")]),
        (policy("unsigned"), [text_block(TEXT)], [{"type": "thinking", "thinking": "why"}, text_block("so")]),
        (
            policy("unsigned", signature="empty"),
            [text_block(TEXT)],
            [{"type": "thinking", "thinking": "why", "signature": ""}, text_block("so")],
        ),
        (policy("redacted"), [text_block(TEXT)], [{"type": "redacted_thinking", "data": "why"}, text_block("so")]),
        # Thinking, then text, then tool use; what is no text keeps its place and its fields.
        (
            policy("unsigned"),
            [text_block("a<think>1</think>b<think>2</think>", citations=None), {"type": "tool_use", "id": "t"}],
            [
                {"type": "thinking", "thinking": "1\n\n2"},
                text_block("ab", citations=None),
                {"type": "tool_use", "id": "t"},
            ],
        ),
        (policy("unsigned"), [text_block("<think>w</think>")], [{"type": "thinking", "thinking": "w"}]),
        (policy("unsigned"), [text_block("<think></think>x")], [text_block("x")]),
        (policy("unsigned"), [text_block("<think>open"), text_block(""), 7], None),
        (policy("unsigned"), [NATIVE, text_block(TEXT)], None),
        (policy("redacted"), [text_block(TEXT), {"type": "redacted_thinking", "data": "own"}], None),
    ],
)
def test_bodies(settings: Translation, blocks: list[Any], expected: list[Any] | None) -> None:
    raw = json.dumps({"type": "message", "content": blocks, "stop_reason": "end_turn"}).encode()
    out = translate_body("messages", raw, settings)
    if expected is None:
        assert out is raw
    else:
        assert json.loads(out) == {"type": "message", "content": expected, "stop_reason": "end_turn"}


def test_a_body_of_another_shape_is_not_touched() -> None:
    raw = b'{"type":"error","error":{"message":"<think>x</think>"},"content":"<think>x</think>"}'
    assert translate_body("messages", raw, policy("unsigned")) is raw


def brief(data: bytes) -> list[Any]:
    out: list[Any] = []
    for event in decoded(data):
        kind, index = event["type"].removeprefix("content_block_"), event.get("index")
        if kind == "start":
            block = event["content_block"]
            out.append(("start", index, block["type"], block.get("data", block.get("text", block.get("thinking")))))
        elif kind == "delta":
            delta = event["delta"]
            out.append((delta["type"], index, delta.get("text", delta.get("thinking", delta.get("partial_json")))))
        elif kind == "stop":
            out.append(("stop", index))
        else:
            out.append(kind)
    return out


def thinking(index: int, *texts: str) -> list[Any]:
    deltas = [("thinking_delta", index, text) for text in texts]
    return [("start", index, "thinking", ""), *deltas, ("stop", index)]


def text(index: int, *texts: str) -> list[Any]:
    return [("start", index, "text", ""), *(("text_delta", index, t) for t in texts), ("stop", index)]


def tool(index: int) -> list[Any]:
    return [("start", index, "tool_use", None), ("input_json_delta", index, "{}"), ("stop", index)]


@pytest.mark.parametrize(
    ("settings", "pieces", "more", "expected"),
    [
        (policy("unsigned"), ["<think>w", "hy</think>", "so"], [], ["ping", *thinking(0, "why"), *text(1, "so")]),
        (policy("unsigned"), [TEXT], TOOL_USE, ["ping", *thinking(0, "why"), *text(1, "so"), *tool(2)]),
        (policy("unsigned"), ["<think>w</think>"], TOOL_USE, ["ping", *thinking(0, "w"), *tool(1)]),
        (
            policy("unsigned"),
            ["a<think>1</think>", "b"],
            [],
            ["ping", *text(0, "a"), *thinking(1, "1"), *text(2, "b")],
        ),
        (
            policy("unsigned"),
            ["<think>1</think>", "\n<think>2</think>x"],
            [],
            ["ping", *thinking(0, "1", "\n\n2"), *text(1, "x")],
        ),
        (
            policy("unsigned", unclosed="reasoning"),
            ["<think>w", "hy", "</think>so"],
            [],
            ["ping", *thinking(0, "w", "hy"), *text(1, "so")],
        ),
        # What comes before the first tag comes out as it came, the ping behind the start, too.
        (
            policy("drop"),
            ["a", "<think>w</think>b"],
            TOOL_USE,
            [("start", 0, "text", ""), "ping", *text(0, "a", "b")[1:], *tool(1)],
        ),
        (policy("drop"), ["<think>w</think>"], TOOL_USE, ["ping", *tool(0)]),
        (
            policy("redacted", unclosed="reasoning"),
            ["<think>w", "hy</think>so"],
            [],
            ["ping", ("start", 0, "redacted_thinking", "why"), ("stop", 0), *text(1, "so")],
        ),
        (
            policy("redacted", unclosed="reasoning"),
            ["<think>w", "hy"],
            [],
            ["ping", ("start", 0, "redacted_thinking", "why"), ("stop", 0)],
        ),
        (policy("unsigned"), ["a<think>w"], [], ["ping", *text(0, "a", "<think>w")]),
    ],
)
def test_streams(settings: Translation, pieces: list[str], more: list[Any], expected: list[Any]) -> None:
    data = sse(messages(pieces, more), named=True)
    out = translate("messages", data, settings)
    assert brief(out) == ["message_start", *expected, "message_delta", "message_stop"]
    names = [line[7:] for line in out.decode().splitlines() if line.startswith("event: ")]
    assert names == [event["type"] for event in decoded(out)]


@pytest.mark.parametrize(
    ("settings", "data"),
    [
        (policy("off"), sse(messages([TEXT]), named=True)),
        (policy("unsigned"), sse(messages(["plain", " text"], TOOL_USE), named=True, newline="\r\n")),
        (policy("unsigned"), sse(messages([]), named=True)),
        # Upstream thinks itself: the text after it is not looked at.
        (
            policy("redacted"),
            sse(
                [
                    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
                    {"type": "content_block_stop", "index": 0},
                    {"type": "content_block_start", "index": 1, "content_block": text_block("")},
                    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": TEXT}},
                    {"type": "content_block_stop", "index": 1},
                ]
            ),
        ),
        (policy("unsigned"), b'data: {"type":"error","error":{}}\n\ndata: 7\n\n: x\n\ndata: {"index":{}}\n\n'),
    ],
)
def test_streams_without_work_come_out_byte_for_byte(settings: Translation, data: bytes) -> None:
    assert translate("messages", data, settings) == data
    assert translate("messages", [data[n : n + 1] for n in range(len(data))], settings) == data


def start(index: int, value: str = "", kind: str = "text") -> dict[str, Any]:
    block = text_block(value) if kind == "text" else {"type": kind, "id": "t", "name": "f", "input": {}}
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, value: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": value}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


PING = {"type": "ping"}
MESSAGE = messages([])[0]
END = messages([])[-2:]


@pytest.mark.parametrize(
    "events",
    [
        # Several blocks open at once, in any order.
        [MESSAGE, start(0), start(1), delta(1, "b"), delta(0, "a"), stop(0), delta(1, "c"), stop(1), *END],
        [MESSAGE, start(0), start(1, kind="tool_use"), delta(0, "a"), stop(1), stop(0), *END],
        [MESSAGE, start(0), start(1), start(2), delta(2, "c"), stop(2), stop(1), stop(0), *END],
        [MESSAGE, start(1), start(0), delta(0, "a"), delta(1, "b"), stop(0), stop(1), *END],
        # Indexes that begin at 5, with gaps, twice the same, or never announced.
        [MESSAGE, start(5), delta(5, "a"), stop(5), start(6, kind="tool_use"), stop(6), *END],
        [MESSAGE, start(3), delta(3, "a"), stop(3), start(9), delta(9, "b"), stop(9), *END],
        [MESSAGE, start(0), delta(0, "a"), stop(0), start(0), delta(0, "b"), stop(0), *END],
        [MESSAGE, delta(7, "<think>w</think>x"), stop(7), *END],
        # A second message.
        [MESSAGE, start(0), delta(0, "a"), stop(0), *END, MESSAGE, start(0), delta(0, "b"), stop(0), *END],
        [MESSAGE, start(0), delta(0, "a"), MESSAGE, start(0), delta(0, "b"), stop(0), *END],
        # Keep-alives, empty blocks, a stream that is cut.
        [MESSAGE, start(0), PING, delta(0, "a"), PING, stop(0), PING, *END],
        [MESSAGE, start(0), b": keep-alive\n", delta(0, "a"), b": keep-alive\n", stop(0), *END],
        [MESSAGE, start(0), delta(0, ""), stop(0), start(1), stop(1), *END],
        [MESSAGE, start(0), PING, stop(0)],
        [MESSAGE, start(0), PING],
        [MESSAGE, start(0), delta(0, "a")],
        [MESSAGE, start(0), delta(0, "a"), *END, b"data: [DONE]\n\n"],
        [MESSAGE, start(0), {"type": "error", "error": {"type": "overloaded_error", "message": "m"}}],
        [MESSAGE, start(0), b"event: err"],
        [MESSAGE, {"type": "own", "index": 4}, start(0), {"type": "own"}, delta(0, "a"), {"type": "own", "index": 0}],
    ],
)
@pytest.mark.parametrize("settings", [policy("unsigned"), policy("drop"), policy("redacted", unclosed="reasoning")])
def test_untagged_streams_come_out_byte_for_byte(settings: Translation, events: list[Any]) -> None:
    data = sse(events, named=True)
    assert translate("messages", data, settings) == data


def test_tagged_blocks_that_are_open_at_once() -> None:
    events = [
        *(start(0), start(1), start(2, kind="tool_use")),
        *(delta(1, "<think>w"), delta(0, "<think>v</think>a"), stop(2), delta(1, "</think>b"), stop(1), stop(0)),
        *(start(3), delta(3, "c"), stop(3)),
    ]
    out = brief(translate("messages", sse(events), policy("unsigned")))
    # The tool block came before any text was known: the text blocks are announced before it, then re-opened.
    assert out[:3] == [("start", 0, "text", ""), ("start", 1, "text", ""), ("start", 2, "tool_use", None)]
    assert [entry[:3] for entry in out if entry[0] == "start"] == [
        *[(entry[0], entry[1], entry[2]) for entry in out[:3]],
        ("start", 3, "thinking"),
        ("start", 4, "text"),
        ("start", 5, "thinking"),
        ("start", 6, "text"),
        ("start", 7, "text"),
    ]
    shown = [entry for entry in out if entry[0].endswith("_delta")]
    assert shown == [
        ("thinking_delta", 3, "v"),
        ("text_delta", 4, "a"),
        ("thinking_delta", 5, "w"),
        ("text_delta", 6, "b"),
        ("text_delta", 7, "c"),
    ]
    opened = [entry[1] for entry in out if entry[0] == "start"]
    assert sorted(opened) == sorted(entry[1] for entry in out if entry[0] == "stop")


def test_thinking_that_goes_on_while_another_block_opens() -> None:
    live = policy("unsigned", unclosed="reasoning")
    events = [start(0), delta(0, "<think>w"), start(1, kind="tool_use"), stop(1), delta(0, "</think>a"), stop(0)]
    out = brief(translate("messages", sse([*events, start(2), delta(2, "b"), stop(2)]), live))
    # Indexes ascend in the order of the starts, as clients that append demand.
    assert out == [
        *thinking(0, "w")[:2],
        ("start", 1, "tool_use", None),
        ("stop", 1),
        ("stop", 0),
        *text(2, "a"),
        *text(3, "b"),
    ]


@pytest.mark.parametrize("base", [0, 1, 5])
def test_indexes_are_moved_by_what_was_put_in(base: int) -> None:
    events = [start(base), delta(base, TEXT), stop(base), start(base + 1, kind="tool_use"), stop(base + 1)]
    events += [start(base + 4), delta(base + 4, "x"), stop(base + 4), {"type": "own", "index": base + 9}]
    out = translate("messages", sse(events), policy("unsigned"))
    tool_block = [("start", base + 2, "tool_use", None), ("stop", base + 2)]
    assert brief(out) == [*thinking(base, "why"), *text(base + 1, "so"), *tool_block, *text(base + 5, "x"), "own"]
    assert decoded(out)[-1]["index"] == base + 10


def test_an_empty_delta_announces_nothing() -> None:
    events = [start(0), delta(0, ""), delta(0, TEXT), stop(0)]
    assert brief(translate("messages", sse(events), policy("unsigned"))) == [*thinking(0, "why"), *text(1, "so")]


def test_a_second_message_begins_anew() -> None:
    one = sse([MESSAGE, start(0), delta(0, TEXT), stop(0), *END])
    out = translate("messages", one, policy("unsigned"))
    assert translate("messages", one + one, policy("unsigned")) == out + out
    # Thinking of its own in the first message says nothing of the second.
    native = sse([MESSAGE, {**start(0), "content_block": NATIVE}, stop(0), start(1), delta(1, TEXT), stop(1), *END])
    assert translate("messages", native + one, policy("unsigned")) == native + out


@pytest.mark.parametrize("end", [END, ["[DONE]"], [{"error": {"message": "m"}}], [b"event: err"], [b'data: {"type":']])
def test_what_is_held_goes_out_before_whatever_ends_the_stream(end: list[Any]) -> None:
    out = translate("messages", sse([MESSAGE, start(0), delta(0, "a<think>w"), *end]), policy("unsigned"))
    assert out.endswith(sse(end))
    assert brief(out.removesuffix(sse(end)))[1:] == text(0, "a", "<think>w")


def test_keep_alives_do_not_wait_for_a_block_that_does() -> None:
    stream = stream_translator("messages", policy("unsigned"))
    assert stream.feed(sse([start(0)])) == b""
    # One may wait with the start; when the next comes, both go: the client must not starve.
    assert stream.feed(sse([PING])) == b""
    assert stream.feed(sse([PING])) == sse([PING, PING])
    assert stream.feed(sse([delta(0, "<think>w")])) == b""
    assert stream.feed(sse([PING])) == sse([PING])
    assert brief(stream.feed(sse([delta(0, "</think>x"), stop(0)]))) == [*thinking(0, "w"), *text(1, "x")]


@pytest.mark.parametrize("last", [{"type": "message_delta", "delta": {}}, {"type": "message_stop"}, None])
def test_a_block_that_is_never_stopped_is_flushed_and_closed(last: dict[str, Any] | None) -> None:
    events = messages(["a<think>w"])[:4] + ([last] if last else [])
    out = brief(translate("messages", sse(events), policy("unsigned")))
    assert out[2:6] == text(0, "a", "<think>w")
    assert out[6:] == ([last["type"]] if last else [])


def test_text_in_the_start_event_and_other_deltas_are_kept() -> None:
    events = [
        {"type": "content_block_start", "index": 0, "content_block": text_block("<think>w</think>a", citations=[])},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {}}},
        {"type": "content_block_start", "index": 1, "content_block": text_block("")},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {}}},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_stop", "index": 0},
    ]
    out = brief(translate("messages", sse(events), policy("unsigned")))
    cited = ("citations_delta", 1, None), ("citations_delta", 2, None)
    assert out[:3] == thinking(0, "w")
    assert out[3:6] == [("start", 1, "text", ""), ("text_delta", 1, "a"), cited[0]]
    assert out[6:10] == [("start", 2, "text", ""), cited[1], ("stop", 2), ("stop", 1)]


@pytest.mark.parametrize("settings", [policy("redacted"), policy("drop"), policy("unsigned", signature="empty")])
def test_events_are_what_the_sdk_declares(settings: Translation) -> None:
    from anthropic.types import Message, RawMessageStreamEvent

    events: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
    for event in decoded(translate("messages", sse(messages(["a<think>1</think>b"], TOOL_USE)), settings)):
        if event["type"] != "ping":
            events.validate_python(event)
    message = messages([])[0]["message"] | {"content": [text_block(TEXT, citations=None)]}
    Message.model_validate(json.loads(translate_body("messages", json.dumps(message).encode(), settings)))


def test_an_omitted_signature_is_the_only_thing_the_sdk_type_misses() -> None:
    from anthropic.types import ThinkingBlock

    start = decoded(translate("messages", sse(messages([TEXT])), policy("unsigned")))[2]
    with pytest.raises(ValidationError) as error:
        ThinkingBlock.model_validate(start["content_block"])
    assert [(problem["type"], problem["loc"]) for problem in error.value.errors()] == [("missing", ("signature",))]


def test_stream_and_body_show_the_same_text() -> None:
    out = translate("messages", sse(messages(["x<think>1</think>y"])), policy("unsigned"))
    assert totals("messages", out) == ("1", "xy")
