"""OpenAI Responses: the life of a reasoning item, the numbering, and the SDK's own types."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from tests.wire.streams import CALL, decoded, message_item, response, responses, sse, totals, translate
from vllm_reasoning_ext.wire.responses import reasoning_id
from vllm_reasoning_ext.wire.surfaces import translate_body
from vllm_reasoning_ext.wire.translation import Translation

FIRST, SECOND = reasoning_id("msg_1", 0), reasoning_id("msg_1", 1)
NATIVE = {"id": "rs_own", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "own"}]}


def reasoning(text: str, item_id: str = FIRST) -> dict[str, Any]:
    content = [{"type": "reasoning_text", "text": text}]
    return {"id": item_id, "type": "reasoning", "status": "completed", "summary": [], "content": content}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ([message_item("a<think>why</think>b")], [reasoning("why"), message_item("ab")]),
        ([CALL, message_item("<think>w</think>x")], [CALL, reasoning("w"), message_item("x")]),
        ([message_item("<think>1</think>x<think>2</think>")], [reasoning("1\n\n2"), message_item("x")]),
        ([message_item("<think>w</think>")], [reasoning("w"), message_item("")]),
        ([message_item("a<think></think>b")], [message_item("ab")]),
        (
            [message_item("<think>w</think>x"), message_item("<think>v</think>y", "msg_2")],
            [reasoning("w"), message_item("x"), reasoning("v", reasoning_id("msg_2", 0)), message_item("y", "msg_2")],
        ),
        ([NATIVE, message_item("<think>w</think>x")], None),
        ([NATIVE, CALL, message_item("<think>w</think>x")], None),
        ([message_item("<think>open"), {"type": "message", "content": "<think>w</think>"}, 7], None),
    ],
)
def test_bodies(output: list[Any], expected: list[Any] | None) -> None:
    raw = json.dumps(response("completed", output) | {"own": 1}).encode()
    out = translate_body("responses", raw, Translation())
    if expected is None:
        assert out is raw
    else:
        assert json.loads(out) == response("completed", expected) | {"own": 1}


def test_ids_are_the_same_when_a_stored_response_is_fetched_again() -> None:
    raw = json.dumps(response("completed", [message_item("<think>w</think>x")])).encode()
    first, again = (translate_body("responses", raw, Translation()) for _ in range(2))
    assert first == again
    item = json.loads(first)["output"][0]["id"]
    assert item.startswith("rs_")
    assert len(item) == 3 + 16
    assert FIRST != SECOND


def brief(data: bytes) -> list[Any]:
    """Each event as its short type, output index and text."""
    out: list[Any] = []
    for event in decoded(data):
        kind = event["type"].removeprefix("response.")
        if kind == "completed":
            out.append((kind, event["response"]["output"]))
        elif kind.startswith("output_item"):
            out.append((kind, event["output_index"], event["item"]["type"]))
        elif "output_index" in event:
            shown = event.get("delta", event.get("text", (event.get("part") or {}).get("text")))
            out.append((kind, event["output_index"], shown))
    return out


def life(index: int, *texts: str) -> list[Any]:
    whole = "".join(texts)
    return [
        ("output_item.added", index, "reasoning"),
        ("content_part.added", index, ""),
        *(("reasoning_text.delta", index, text) for text in texts),
        ("reasoning_text.done", index, whole),
        ("content_part.done", index, whole),
        ("output_item.done", index, "reasoning"),
    ]


def opened(index: int) -> list[Any]:
    return [("output_item.added", index, "message"), ("content_part.added", index, "")]


def deltas(index: int, *texts: str) -> list[Any]:
    return [("output_text.delta", index, text) for text in texts]


def closed(index: int, text: str) -> list[Any]:
    done = ("output_text.done", index, text), ("content_part.done", index, text)
    return [*done, ("output_item.done", index, "message")]


def call(index: int) -> list[Any]:
    return [(f"output_item.{end}", index, "function_call") for end in ("added", "done")]


FULL = Translation()
LIVE = Translation(unclosed="reasoning")
SEED = Translation(responses_events="seed")


@pytest.mark.parametrize(
    ("settings", "pieces", "with_call", "expected", "output"),
    [
        # Reasoning first: it has the lower index, the message and the call move up.
        (
            FULL,
            ["<think>w", "hy</think>", "so"],
            True,
            [*life(0, "why"), *opened(1), *deltas(1, "so"), *closed(1, "so"), *call(2)],
            [reasoning("why"), message_item("so"), CALL],
        ),
        # Text first: reasoning takes the next free index, a later block a new item.
        (
            FULL,
            ["a<think>1</think>b", "<think>2</think>", "c"],
            True,
            [
                *opened(0),
                *deltas(0, "a"),
                *life(1, "1"),
                *deltas(0, "b"),
                *life(2, "2"),
                *deltas(0, "c"),
                *closed(0, "abc"),
                *call(3),
            ],
            [message_item("abc"), reasoning("1"), reasoning("2", SECOND), CALL],
        ),
        # Blocks with no text between them are one item.
        (
            FULL,
            ["<think>1</think>", "\n<think>2</think>x"],
            False,
            [*life(0, "1", "\n\n2"), *opened(1), *deltas(1, "x"), *closed(1, "x")],
            [reasoning("1\n\n2"), message_item("x")],
        ),
        (
            FULL,
            ["<think>all</think>"],
            False,
            [*life(0, "all"), *opened(1), *closed(1, "")],
            [reasoning("all"), message_item("")],
        ),
        # Never closed: verbatim, before the text is done.
        (
            FULL,
            ["a<think>w"],
            False,
            [*opened(0), *deltas(0, "a", "<think>w"), *closed(0, "a<think>w")],
            [message_item("a<think>w")],
        ),
        (
            LIVE,
            ["<think>w", "hy"],
            False,
            [*life(0, "w", "hy"), *opened(1), *closed(1, "")],
            [reasoning("why"), message_item("")],
        ),
        # The short form: the message first, one reasoning item for all of it, three kinds of event.
        (
            SEED,
            ["a<think>1</think>b", "<think>2</think>c"],
            True,
            [
                *opened(0),
                ("output_item.added", 1, "reasoning"),
                ("reasoning_text.delta", 1, "1"),
                *deltas(0, "ab"),
                ("reasoning_text.delta", 1, "\n\n2"),
                *deltas(0, "c"),
                *closed(0, "abc")[:2],
                ("output_item.done", 1, "reasoning"),
                *closed(0, "abc")[2:],
                *call(2),
            ],
            [message_item("abc"), reasoning("1\n\n2"), CALL],
        ),
    ],
)
def test_streams(
    settings: Translation, pieces: list[str], with_call: bool, expected: list[Any], output: list[Any]
) -> None:
    data = translate("responses", sse(responses(pieces, with_call), named=True), settings)
    assert brief(data) == [*expected, ("completed", output)]
    events = decoded(data)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    names = [line[7:] for line in data.decode().splitlines() if line.startswith("event: ")]
    assert names == [event["type"] for event in events]


@pytest.mark.parametrize("settings", [FULL, LIVE, SEED])
def test_events_are_what_the_sdk_declares(settings: Translation) -> None:
    from openai.types.responses import Response, ResponseStreamEvent

    adapter: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    for event in decoded(translate("responses", sse(responses(["a<think>1</think>b"], True)), settings)):
        adapter.validate_python(event)
    raw = json.dumps(response("completed", [message_item("<think>w</think>x")])).encode()
    Response.model_validate(json.loads(translate_body("responses", raw, settings)))


@pytest.mark.parametrize(
    "data",
    [
        sse(responses(["plain", " text"], True), named=True),
        sse(responses(["a < b"]), newline="\r\n"),
        sse([{"type": "response.created"}, {"type": "error", "message": "<think>x</think>"}, "[DONE]", "odd"]),
        # A message without any text.
        sse([{"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}}]),
        sse(
            [
                {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}},
                {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "content": []}},
            ]
        ),
        # Upstream reasons itself: the message after it is not looked at.
        sse(
            [
                {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning"}},
                {"type": "response.output_item.done", "output_index": 0, "item": {"type": "reasoning"}},
                {"type": "response.output_item.added", "output_index": 1, "item": {"type": "message"}},
                {"type": "response.output_text.delta", "output_index": 1, "delta": "<think>w</think>x"},
                {"type": "response.output_text.done", "output_index": 1, "text": "<think>w</think>x"},
                {
                    "type": "response.completed",
                    "response": {"output": [{"type": "reasoning"}, message_item("<think>w</think>x")]},
                },
            ]
        ),
        b'data: {"output_index": 3}\n\ndata: {"output_index": 0, "type": 7}\n\n: x\n\n',
    ],
)
def test_streams_without_work_are_copied_byte_for_byte(data: bytes) -> None:
    assert translate("responses", data) == data


PLACE = {"item_id": "m", "output_index": 0, "content_index": 0}
DELTA = {"type": "response.output_text.delta", **PLACE}
ADDED = {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "m"}}


@pytest.mark.parametrize("end", [["[DONE]"], [], [{"type": "response.failed"}], [{"type": "error"}]])
def test_held_text_goes_out_however_the_stream_ends(end: list[Any]) -> None:
    out = translate("responses", sse([ADDED, {**DELTA, "delta": "a<think>w"}, *end]))
    assert totals("responses", out) == ("", "a<think>w")
    assert decoded(out)[3:] == end


def test_unknown_fields_and_log_probabilities_are_kept_once() -> None:
    probabilities = [{"token": "x", "logprob": -0.5}]
    delta = {**DELTA, "delta": "a<think>1</think>b", "logprobs": probabilities, "own": 1}
    out = [event for event in decoded(translate("responses", sse([ADDED, delta]))) if event["type"] == DELTA["type"]]
    assert [(event["delta"], event["logprobs"], event["own"]) for event in out] == [
        ("a", probabilities, 1),
        ("b", [], 1),
    ]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        # No item was announced, an empty delta says nothing.
        ([{**DELTA, "delta": ""}, "[DONE]"], ("", "")),
        ([{**DELTA, "delta": "<think>w</think>x"}], ("w", "x")),
        # The text comes with `done` only, or in the last event only.
        ([ADDED, {"type": "response.output_text.done", **PLACE, "text": "<think>w</think>"}], ("w", "")),
        # Another part of the same message has a split of its own.
        ([ADDED, {**DELTA, "delta": "<thi"}, {**DELTA, "content_index": 1, "delta": "nk>"}], ("", "nk><thi")),
        # A delta after its text was done is passed on.
        (
            [
                ADDED,
                {**DELTA, "delta": "a"},
                {"type": "response.output_text.done", **PLACE, "text": "a"},
                {**DELTA, "delta": "<think>"},
            ],
            ("", "a<think>"),
        ),
    ],
)
def test_odd_streams(events: list[Any], expected: tuple[str, str]) -> None:
    assert totals("responses", translate("responses", sse(events))) == expected


def test_a_response_that_comes_in_its_last_event_only_is_translated_there() -> None:
    done = {"type": "response.completed", "response": response("completed", [message_item("<think>w</think>x")])}
    out = decoded(translate("responses", sse([done])))
    assert out[0]["response"]["output"] == [reasoning("w"), message_item("x")]


def test_the_items_of_a_turn_with_two_messages() -> None:
    first, second = responses(["<think>1</think>a"])[2:8], responses(["<think>2</think>b"])[2:8]
    moved = json.loads(json.dumps(second).replace("msg_1", "msg_2").replace('"output_index": 0', '"output_index": 1'))
    end = {
        "type": "response.completed",
        "response": response(
            "completed", [message_item("<think>1</think>a"), message_item("<think>2</think>b", "msg_2")]
        ),
    }
    out = brief(translate("responses", sse([*first, *moved, end])))
    other = reasoning_id("msg_2", 0)
    assert [entry[1] for entry in out if entry[0] == "output_item.added"] == [0, 1, 2, 3]
    assert out[-1] == (
        "completed",
        [reasoning("1"), message_item("a"), reasoning("2", other), message_item("b", "msg_2")],
    )
