"""Anthropic messages: the policies, the order of the blocks, and the SDK's own types."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tests.wire.streams import TOOL_USE, decoded, messages, sse, totals, translate
from vllm_reasoning_ext.wire.surfaces import translate_body
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
        (policy("drop"), ["a", "<think>w</think>b"], TOOL_USE, ["ping", *text(0, "a", "b"), *tool(1)]),
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
def test_streams_without_work_keep_the_bytes_of_every_event(settings: Translation, data: bytes) -> None:
    # A text block is announced with its first text: a ping in between goes ahead of it.
    end = b"\r\n\r\n" if b"\r" in data else b"\n\n"
    out = translate("messages", data, settings)
    assert sorted(out.split(end)) == sorted(data.split(end))
    assert totals("messages", out) == totals("messages", data)


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
    assert out[6:10] == [("stop", 1), ("start", 2, "text", ""), cited[1], ("stop", 2)]


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
