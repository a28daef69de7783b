"""Chat completions: what the message and each chunk become."""

import json
from typing import Any

import pytest

from tests.wire.streams import chat, chunk, decoded, sse, totals, translate
from vllm_reasoning_ext.wire.surfaces import translate_body
from vllm_reasoning_ext.wire.translation import Translation

DEFAULT = Translation()
TOOLS = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]


def body(settings: Translation = DEFAULT, **message: Any) -> dict[str, Any]:
    choice = {
        "index": 0,
        "message": {"role": "assistant", **message},
        "logprobs": {"content": []},
        "finish_reason": "stop",
    }
    raw = json.dumps({"id": "x", "choices": [choice], "usage": {"total_tokens": 3}, "own": 1}).encode()
    out = json.loads(translate_body("chat", raw, settings))
    assert {**out, "choices": 0} == {"id": "x", "choices": 0, "usage": {"total_tokens": 3}, "own": 1}
    assert {**out["choices"][0], "message": 0} == {**choice, "message": 0}
    message = out["choices"][0]["message"]
    assert message.pop("role") == "assistant"
    return message


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": "pre<think>why</think>post"}, {"content": "prepost", "reasoning_content": "why"}),
        ({"content": "<think>why</think>"}, {"content": "", "reasoning_content": "why"}),
        ({"content": "a<think></think>b"}, {"content": "ab"}),
        ({"content": "<think>1</think>x<think>2</think>"}, {"content": "x", "reasoning_content": "1\n\n2"}),
        ({"content": "a<think>never closed"}, {"content": "a<think>never closed"}),
        ({"content": None, "tool_calls": TOOLS}, {"content": None, "tool_calls": TOOLS}),
        (
            {"content": "<think>w</think>x", "tool_calls": TOOLS, "refusal": None},
            {"content": "x", "tool_calls": TOOLS, "refusal": None, "reasoning_content": "w"},
        ),
        # Upstream's own reasoning wins; null and "" are none.
        ({"content": "<think>w</think>x", "reasoning": "own"}, {"content": "<think>w</think>x", "reasoning": "own"}),
        (
            {"content": "<think>w</think>x", "reasoning_content": "own"},
            {"content": "<think>w</think>x", "reasoning_content": "own"},
        ),
        (
            {"content": "<think>w</think>x", "reasoning": None, "reasoning_content": ""},
            {"content": "x", "reasoning": None, "reasoning_content": "w"},
        ),
        # Typed parts, each for itself; what is no text is not touched.
        (
            {
                "content": [
                    {"type": "text", "text": "a<think>1</think>", "own": 1},
                    {"type": "image_url", "image_url": {"url": "data:,"}},
                    {"type": "text", "text": "<think>2</think>b"},
                    {"type": "text", "text": ""},
                    {"type": "text", "text": "<think>open"},
                ]
            },
            {
                "content": [
                    {"type": "text", "text": "a", "own": 1},
                    {"type": "image_url", "image_url": {"url": "data:,"}},
                    {"type": "text", "text": "b"},
                    {"type": "text", "text": ""},
                    {"type": "text", "text": "<think>open"},
                ],
                "reasoning_content": "1\n\n2",
            },
        ),
    ],
)
def test_messages(message: dict[str, Any], expected: dict[str, Any]) -> None:
    assert body(**message) == expected


@pytest.mark.parametrize(
    ("settings", "text", "expected"),
    [
        ({"reasoning_field": "reasoning"}, "<think>w</think>x", {"content": "x", "reasoning": "w"}),
        (
            {"reasoning_field": "both"},
            "<think>w</think>x",
            {"content": "x", "reasoning": "w", "reasoning_content": "w"},
        ),
        ({"implicit_open": True}, "why\n</think>\nso", {"content": "so", "reasoning_content": "why"}),
        ({"implicit_open": True}, "no closer", {"content": "no closer"}),
        ({"unclosed": "reasoning"}, "<think>cut", {"content": "", "reasoning_content": "cut"}),
        ({"max_buffer_bytes": 3}, "<think>long</think>x", {"content": "<think>long</think>x"}),
        ({"tags": (("<s>", "</s>"),)}, "<s>w</s><think>x", {"content": "<think>x", "reasoning_content": "w"}),
        ({"where": "head"}, "x<think>w</think>", {"content": "x<think>w</think>"}),
        (
            {"family": "gpt_oss"},
            "<|channel|>analysis<|message|>w<|end|><|start|>assistant<|channel|>final<|message|>x",
            {"content": "x", "reasoning_content": "w"},
        ),
        ({"family": "glm", "implicit_open": True}, "w</think>\n\nx", {"content": "x", "reasoning_content": "w"}),
    ],
)
def test_settings(settings: dict[str, Any], text: str, expected: dict[str, Any]) -> None:
    assert body(Translation(**settings), content=text) == expected


@pytest.mark.parametrize(
    "raw",
    [
        b'{ "choices": [ {"message":{"content":"plain  text"}} ] }',
        b'{"choices":[{"message":{"content":"<think>open"}},{},7],"n":1e400}',
        b'{"error": {"message": "<think>x</think>"}}',
        b'{"choices": "<think>x</think>"}',
        b"[1]",
        b"no json <think>x</think>",
        b"[" * 100_000,
        b"\xff\xfe",
        b"",
    ],
)
def test_bodies_without_work_are_the_very_same_bytes(raw: bytes) -> None:
    assert translate_body("chat", raw, DEFAULT) is raw


def test_lone_surrogates_survive() -> None:
    raw = b'{"choices":[{"message":{"content":"<think>\\ud83d</think>\\ud83d"}}]}'
    message = json.loads(translate_body("chat", raw, DEFAULT))["choices"][0]["message"]
    assert message == {"content": "\ud83d", "reasoning_content": "\ud83d"}


ROLE = chunk("", delta={"role": "assistant"})
STOP = chunk(reason="stop")


def gains(content: str = "", reasoning: str = "", **rest: Any) -> dict[str, Any]:
    event = chunk(content or None, **rest)
    if reasoning:
        event["choices"][0]["delta"]["reasoning_content"] = reasoning
    return event


def flushed(content: str, index: int = 0) -> dict[str, Any]:
    event = chunk(content, index=index)
    del event["choices"][0]["logprobs"]
    return event


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        # One chunk out for one in; a chunk whose text is held is not sent.
        (
            [ROLE, chunk("<thi"), chunk("nk>w"), chunk("</think>"), chunk("x"), STOP, "[DONE]"],
            [ROLE, gains(reasoning="w"), chunk("x"), STOP, "[DONE]"],
        ),
        ([chunk("a<think>w</think>b")], [gains("ab", "w")]),
        # It is sent without its text when it carries anything else.
        (
            [chunk("<think>w", delta={"role": "assistant"}), chunk("</think>"), STOP],
            [chunk(delta={"role": "assistant"}), gains(reasoning="w"), STOP],
        ),
        (
            [chunk("<think>", usage={"total_tokens": 1}), chunk("w</think>")],
            [chunk(usage={"total_tokens": 1}), gains(reasoning="w")],
        ),
        ([chunk("<think>", delta={"tool_calls": TOOLS})], [chunk(delta={"tool_calls": TOOLS}), flushed("<think>")]),
        # Held text goes out before the finish reason, else before [DONE], else at the end.
        ([chunk("a<think>w"), STOP, "[DONE]"], [chunk("a"), flushed("<think>w"), STOP, "[DONE]"]),
        ([chunk("a<think>w"), "[DONE]"], [chunk("a"), flushed("<think>w"), "[DONE]"]),
        ([chunk("a<think>w")], [chunk("a"), flushed("<think>w")]),
        ([chunk("<thi", "stop")], [chunk("<thi", "stop")]),
        ([chunk("<think>w</think>x", "stop")], [gains("x", "w", reason="stop")]),
        ([chunk("<think>"), chunk("w", "length")], [chunk("<think>w", "length")]),
        # Upstream's own reasoning wins from the chunk it comes in; what was held before goes out ahead.
        (
            [chunk("<thi"), chunk("<think>w</think>", delta={"reasoning": "own"}), chunk("<think>x</think>"), STOP],
            [flushed("<thi"), chunk("<think>w</think>", delta={"reasoning": "own"}), chunk("<think>x</think>"), STOP],
        ),
        ([chunk("<think>w</think>", delta={"reasoning": None})], [gains(reasoning="w", delta={"reasoning": None})]),
        # Typed parts in a delta.
        (
            [
                chunk([{"type": "text", "text": "<think>w"}, {"type": "other"}]),
                chunk([{"type": "text", "text": "</think>x"}]),
            ],
            [chunk([{"type": "other"}]), gains([{"type": "text", "text": "x"}], "w")],  # type: ignore[arg-type]
        ),
        (
            [chunk([{"type": "text", "text": "x<thi"}], "stop")],
            [chunk([{"type": "text", "text": "x"}, {"type": "text", "text": "<thi"}], "stop")],
        ),
        # What says nothing about text is copied, however odd.
        (
            ["no json", {"choices": []}, {"choices": [7, {"delta": 7}, {"index": "x", "delta": {}}]}, {"error": "e"}],
            None,
        ),
        ([STOP, chunk("<think>after the end</think>")], None),
    ],
)
def test_streams(events: list[Any], expected: list[Any] | None) -> None:
    data = sse(events)
    if expected is None:
        assert translate("chat", data) == data
    else:
        assert decoded(translate("chat", data)) == expected


def test_choices_do_not_mix() -> None:
    both = chunk("<think>a")
    both["choices"].append(chunk("<think>b", index=1)["choices"][0])
    events = [
        both,
        chunk("</think>A", index=1),
        chunk("</think>B"),
        chunk(reason="stop"),
        chunk(reason="stop", index=1),
    ]
    out = decoded(translate("chat", sse([*events, "[DONE]"])))
    assert out[0]["choices"][0] | {"logprobs": 0} == gains("A", "b", index=1)["choices"][0] | {"logprobs": 0}
    assert out[1]["choices"][0]["delta"] == {"content": "B", "reasoning_content": "a"}
    assert out[2:] == [*events[3:], "[DONE]"]


def test_held_choices_are_flushed_together() -> None:
    events = [chunk("<think>a", index=1), chunk("<think>b"), "[DONE]"]
    expected = flushed("<think>b")
    expected["choices"].append(flushed("<think>a", index=1)["choices"][0])
    assert decoded(translate("chat", sse(events))) == [expected, "[DONE]"]


def test_a_stream_without_tags_is_copied_byte_for_byte() -> None:
    data = b": hello\n\n" + sse(chat(["a < b", " and `x`", "é"]), newline="\r\n") + b": bye\n\ndata: tail"
    assert translate("chat", data) == data


BROKEN = b'data: {"choices": [{"index": 0, "del'
ERROR = {"error": {"message": "overloaded", "type": "server_error"}}


@pytest.mark.parametrize(
    "end",
    [
        BROKEN,
        BROKEN + b"\n",
        b": cut comm",
        b"event: cut",
        sse([ERROR]),
        sse([ERROR, "[DONE]"]),
        b"event: error\ndata: out of memory\n\n",
        b"event: error\ndata: out of memory",
        sse([{"type": "error", "message": "m"}]),
        b"data: [DONE]",
        b"data: [DONE]\n\n",
    ],
)
@pytest.mark.parametrize("held", ["<think>w", "<thi"])
def test_what_is_held_goes_out_before_a_broken_tail_an_error_and_done(held: str, end: bytes) -> None:
    out = translate("chat", sse([chunk("a" + held)]) + end)
    assert out == compact(chunk("a")) + compact(flushed(held)) + end


def compact(event: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(event, separators=(",", ":")).encode() + b"\n\n"


def test_a_last_event_without_its_blank_line_is_still_read() -> None:
    out = translate("chat", sse([chunk("<think>w"), chunk("</think>x")]).removesuffix(b"\n\n"))
    assert totals("chat", out) == ("w", "x")


@pytest.mark.parametrize(
    "content",
    [7, 0, True, 1.5, {}, {"text": "<think>w</think>"}, ["<think>"], [7, None], [{"type": "text", "text": 7}]],
)
@pytest.mark.parametrize("reason", [None, "stop", "", 7, {"a": 1}])
def test_content_of_any_type_is_not_touched(content: Any, reason: Any) -> None:
    data = sse([chunk(content, reason)])
    assert translate("chat", data) == data
    # Behind text that is held, too: that goes out ahead of the finish reason, or at the end.
    out = decoded(translate("chat", sse([chunk("<thi"), chunk(content, reason), "[DONE]"])))
    assert [event for event in out if event != flushed("<thi")] == [chunk(content, reason), "[DONE]"]
    assert flushed("<thi") in out
    raw = json.dumps({"choices": [{"message": {"content": content}, "finish_reason": reason}]}).encode()
    assert translate_body("chat", raw, DEFAULT) is raw


@pytest.mark.parametrize("index", [None, "0", 0.0, True, [], {}])
def test_an_index_that_is_no_number_is_not_touched(index: Any) -> None:
    data = sse([chunk("<think>w</think>x", index=index), chunk("plain"), chunk(reason="stop"), "[DONE]"])
    assert translate("chat", data) == data


@pytest.mark.parametrize("reason", ["", None])
def test_an_empty_finish_reason_ends_nothing(reason: str | None) -> None:
    events = [chunk(piece, reason) for piece in ("<think>w", "hy</think>", "x")] + [chunk(reason="stop"), "[DONE]"]
    out = translate("chat", sse(events))
    assert totals("chat", out) == ("why", "x")
    assert [event["choices"][0]["finish_reason"] for event in decoded(out)[:-1]] == [reason, reason, "stop"]


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "own"}]}


@pytest.mark.parametrize("part", [THOUGHT, {"type": "reasoning", "text": "own"}])
def test_typed_thinking_parts_are_reasoning_of_the_upstreams_own(part: dict[str, Any]) -> None:
    text = {"type": "text", "text": "<think>w</think>x"}
    raw = json.dumps({"choices": [{"message": {"content": [part, text]}}]}).encode()
    assert translate_body("chat", raw, DEFAULT) is raw
    data = sse([ROLE, chunk([part]), chunk("<think>w</think>x"), chunk([text]), STOP, "[DONE]"])
    assert translate("chat", data) == data


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["<think>w", "hy</think>x"], ["", "x"]),
        (["a<thi", "nk>why</think>x", "y"], ["a", "x", "y"]),
        (["a <", " b<think>why</think>", ""], ["a <", " b", ""]),
        (["<think>why</th", "ink>", "\n\nx"], ["", "", "x"]),
        (["```", "<think>no</think>", "```\n<think>why</think>"], ["```", "<think>no</think>", "```\n"]),
        (["x<think>open", " end"], ["x<think>open", " end"]),
    ],
)
def test_a_content_of_parts_is_one_text(texts: list[str], expected: list[str]) -> None:
    parts = [{"type": "text", "text": text} for text in texts]
    message = body(content=parts)
    reasoning = message.get("reasoning_content", "")
    assert [part["text"] for part in message["content"]] == expected
    assert reasoning == ("why" if "why" in "".join(texts) else "")
    # The stream of the same parts, and of the same text, gives the same.
    stream = decoded(translate("chat", sse([chunk([part]) for part in parts] + [STOP])))
    shown = [choice["delta"] for event in stream for choice in event["choices"]]
    contents = [delta.get("content", "") for delta in shown]
    flat = "".join(c if isinstance(c, str) else "".join(part["text"] for part in c) for c in contents)
    assert flat == "".join(expected)
    assert "".join(delta.get("reasoning_content", "") for delta in shown) == reasoning
    assert totals("chat", translate("chat", sse([chunk("".join(texts)), STOP]))) == (reasoning, flat)


def test_numbers_of_a_rewritten_chunk_keep_their_digits() -> None:
    data = b'data: {"choices":[{"index":0,"delta":{"content":"<think>w</think>x"}}],"a":1e999,"b":1.50,"c":-0}\n\n'
    out = translate("chat", data)
    assert b'"a":1e999,"b":1.50,"c":-0}' in out
    assert totals("chat", out) == ("w", "x")


def test_rewritten_chunks_keep_line_ends_and_comments() -> None:
    data = b': note\r\nid: 7\r\ndata: {"choices":[{"index":0,"delta":{"content":"<think>w</think>x"}}]}\r\n\r\n'
    out = translate("chat", data)
    assert out.startswith(b": note\r\nid: 7\r\ndata: {")
    assert out.endswith(b"}\r\n\r\n")
    assert totals("chat", out) == ("w", "x")
