"""OpenAI Responses: the life of a reasoning item, the numbering, and the SDK's own types."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from tests.wire.streams import CALL, decoded, message_item, response, responses, sse, totals, translate
from vllm_reasoning_ext.wire.responses import reasoning_id
from vllm_reasoning_ext.wire.surfaces import stream_translator, translate_body
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


def numbered(events: list[Any], first: int = 0, step: int = 1) -> list[Any]:
    return [
        {**event, "sequence_number": first + step * n} if isinstance(event, dict) else event
        for n, event in enumerate(events)
    ]


def added(index: int, kind: str = "message") -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": {"type": kind, "id": f"m{index}"}}


def part(index: int, content: int = 0) -> dict[str, Any]:
    place = {"output_index": index, "content_index": content, "item_id": f"m{index}"}
    return {"type": "response.content_part.added", **place, "part": {"type": "output_text", "text": ""}}


def piece(index: int, value: str, content: int = 0) -> dict[str, Any]:
    place = {"output_index": index, "content_index": content, "item_id": f"m{index}"}
    return {"type": "response.output_text.delta", **place, "delta": value}


def text_done(index: int, value: str, content: int = 0) -> dict[str, Any]:
    place = {"output_index": index, "content_index": content, "item_id": f"m{index}"}
    return {"type": "response.output_text.done", **place, "text": value}


def item_done(index: int, value: str, kind: str = "message") -> dict[str, Any]:
    content = [{"type": "output_text", "text": value}]
    item = {"type": kind, "id": f"m{index}", "content": content}
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def message_events(index: int, *values: str) -> list[dict[str, Any]]:
    whole = "".join(values)
    deltas_ = [piece(index, value) for value in values]
    return [added(index), part(index), *deltas_, text_done(index, whole), item_done(index, whole)]


CREATED = {"type": "response.created", "response": response("in_progress", [])}
PROGRESS = {"type": "response.in_progress", "response": response("in_progress", [])}


def completed(*items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.completed", "response": response("completed", list(items))}


UNTAGGED = [
    # Several items open at once.
    [CREATED, added(0), part(0), added(1), part(1), piece(1, "b"), piece(0, "a"), item_done(1, "b"), item_done(0, "a")],
    [CREATED, added(0), added(1, "function_call"), piece(0, "a"), item_done(1, "", "function_call"), item_done(0, "a")],
    [CREATED, added(1), added(0), piece(0, "a"), piece(1, "b"), item_done(0, "a"), item_done(1, "b")],
    # Indexes that begin at 5, with gaps, twice the same, never announced.
    [CREATED, *message_events(5, "a"), *message_events(6, "b"), completed(item_done(5, "a")["item"])],
    [CREATED, *message_events(3, "a"), *message_events(9, "b")],
    [CREATED, *message_events(0, "a"), *message_events(0, "b")],
    [CREATED, added(0), added(0), piece(0, "a")],
    [CREATED, text_done(7, "<think>w</think>x")],
    # A second response.
    [CREATED, PROGRESS, *message_events(0, "a"), completed(), CREATED, *message_events(0, "b"), completed()],
    [CREATED, added(0), CREATED, added(0), piece(0, "b")],
    # Keep-alives, empty texts, other events, a stream that is cut.
    [CREATED, added(0), b": keep-alive\n", part(0), piece(0, "a"), b": keep-alive\n"],
    [CREATED, added(0), {"type": "own"}, piece(0, "a"), {"type": "own", "output_index": 0}],
    [CREATED, added(0), part(0), piece(0, ""), text_done(0, ""), item_done(0, ""), completed()],
    [CREATED, added(0), part(0)],
    [CREATED, added(0), part(0), piece(0, "a"), "[DONE]"],
    [CREATED, added(0), {"type": "error", "message": "m"}],
    [CREATED, added(0), part(0), b"event: err"],
]


@pytest.mark.parametrize("events", UNTAGGED)
@pytest.mark.parametrize("numbers", [None, (0, 1), (17, 10), (5, 0), (90, -3)])
@pytest.mark.parametrize("settings", [FULL, LIVE, SEED])
def test_untagged_streams_come_out_byte_for_byte(
    settings: Translation, numbers: tuple[int, int] | None, events: list[Any]
) -> None:
    data = sse(events if numbers is None else numbered(events, *numbers))
    assert translate("responses", data, settings) == data


@pytest.mark.parametrize("first", [0, 40])
def test_numbers_and_indexes_are_moved_by_what_was_put_in(first: int) -> None:
    events = [CREATED, *message_events(5, "<think>w</think>", "x"), *message_events(6, "y"), added(9, "function_call")]
    events.append(completed(item_done(5, "<think>w</think>x")["item"], item_done(6, "y")["item"], CALL))
    out = decoded(translate("responses", sse(numbered(events, first))))
    # Six events were put in for one delta that was left out.
    assert [event["sequence_number"] for event in out] == list(range(first, first + len(events) + 5))
    opened_at = [event["output_index"] for event in out if event["type"] == "response.output_item.added"]
    assert opened_at == [5, 6, 7, 10]
    kinds = [item["type"] for item in out[-1]["response"]["output"]]
    assert kinds == ["reasoning", "message", "message", "function_call"]


def test_items_that_are_open_at_once_keep_their_texts() -> None:
    events = [
        *(CREATED, added(0), part(0), added(1), part(1), added(2, "function_call")),
        *(piece(1, "<think>w"), piece(0, "<think>v</think>a"), piece(1, "</think>b")),
        *(text_done(1, "<think>w</think>b"), item_done(1, "<think>w</think>b")),
        *(text_done(0, "<think>v</think>a"), item_done(0, "<think>v</think>a"), *message_events(3, "c")),
        completed(item_done(0, "<think>v</think>a")["item"], item_done(1, "<think>w</think>b")["item"], CALL),
    ]
    out = decoded(translate("responses", sse(numbered(events))))
    assert [event["sequence_number"] for event in out] == list(range(len(out)))
    texts: dict[int, str] = {}
    for event in out:
        if event["type"].endswith("_text.delta"):
            texts[event["output_index"]] = texts.get(event["output_index"], "") + event["delta"]
    # The call was announced before any text was known: the reasoning items take the next free indexes.
    assert texts == {3: "v", 0: "a", 4: "w", 1: "b", 5: "c"}
    shown = [
        item["content"][0]["text"] for item in out[-1]["response"]["output"] if item["type"] in ("message", "reasoning")
    ]
    assert shown == ["a", "b", "v", "w"]


def test_reasoning_that_goes_on_while_another_item_opens() -> None:
    events = [added(0), piece(0, "<think>w"), added(1, "function_call"), piece(0, "</think>a"), item_done(0, "")]
    out = decoded(translate("responses", sse(numbered([CREATED, *events, added(2)])), LIVE))
    starts = [(e["output_index"], e["item"]["type"]) for e in out if e["type"] == "response.output_item.added"]
    assert starts == [(0, "reasoning"), (1, "function_call"), (2, "message"), (3, "message")]
    assert [event["sequence_number"] for event in out] == list(range(len(out)))


def test_an_empty_delta_announces_nothing() -> None:
    events = [added(0), part(0), piece(0, ""), piece(0, "<think>w</think>x")]
    out = brief(translate("responses", sse(numbered(events))))
    assert [entry for entry in out if entry[0] == "output_item.added"] == [
        ("output_item.added", 0, "reasoning"),
        ("output_item.added", 1, "message"),
    ]


def test_a_second_response_begins_anew_but_counts_on() -> None:
    one = [CREATED, *message_events(0, "<think>w</think>x"), completed()]
    alone = translate("responses", sse(numbered(one)))
    again = translate("responses", sse(numbered(one) + numbered(one)))
    assert again == alone + alone
    counted_on = decoded(translate("responses", sse(numbered(one + one))))
    assert [event["sequence_number"] for event in counted_on] == list(range(2 * len(decoded(alone))))
    assert [{**event, "sequence_number": 0} for event in counted_on[len(decoded(alone)) :]] == [
        {**event, "sequence_number": 0} for event in decoded(alone)
    ]


@pytest.mark.parametrize(
    "end", [[completed()], ["[DONE]"], [{"error": {"message": "m"}}], [b"event: err"], [b"data: {"]]
)
def test_what_is_held_goes_out_before_whatever_ends_the_stream(end: list[Any]) -> None:
    out = translate("responses", sse([added(0), piece(0, "a<think>w"), *end]))
    assert out.endswith(sse(end))
    assert totals("responses", out.removesuffix(sse(end))) == ("", "a<think>w")


def test_keep_alives_do_not_wait_for_a_message_that_does() -> None:
    stream = stream_translator("responses", FULL)
    assert stream.feed(sse([added(0)])) == b""
    assert stream.feed(b": 1\n") == b""
    assert stream.feed(b": 2\n") == b": 1\n: 2\n"
    assert stream.feed(sse([piece(0, "<think>w")])) == b""
    assert stream.feed(b": 3\n") == b": 3\n"
    assert totals("responses", stream.feed(sse([piece(0, "</think>x")]))) == ("w", "x")
