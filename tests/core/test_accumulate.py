"""The accumulator of one streamed turn: every shape reasoning comes in, the floor, what is emitted."""

from typing import Any

import pytest

from vllm_reasoning_ext.wire.accumulate import StreamTextAccumulator, TextDelta, extract_openai_delta


def chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


class SdkObject:
    def model_dump(self) -> dict[str, Any]:
        return chunk(content="from an object")


@pytest.mark.parametrize(
    ("raw", "content", "reasoning"),
    [
        (chunk(content="hello"), ["hello"], []),
        (chunk(content=""), [], []),
        (chunk(content=None, reasoning="hm"), [], ["hm"]),
        (chunk(reasoning_content="hm"), [], ["hm"]),
        (chunk(reasoning_content=["h", {"text": "m"}]), [], ["hm"]),
        # Both names with one text: a server that offers both. Two texts: two pieces.
        (chunk(reasoning="hm", reasoning_content="hm"), [], ["hm"]),
        (chunk(reasoning="a", reasoning_content="b"), [], ["a", "b"]),
        (
            chunk(
                content=[
                    {"type": "thinking", "thinking": [{"type": "text", "text": "p"}]},
                    {"type": "text", "text": "q"},
                    "r",
                ]
            ),
            ["q", "r"],
            ["p"],
        ),
        (chunk(content=[{"type": "output_reasoning", "text": "p"}, {"type": "image_url"}, 7]), [], ["p"]),
        ({**chunk(content="x"), "reasoning_summary": "sum"}, ["x"], ["sum"]),
        ({"choices": [{"delta": {"content": "0"}}, {"delta": {"content": "1"}}]}, ["0"], []),
        (SdkObject(), ["from an object"], []),
        ({"choices": []}, [], []),
        ({"choices": "none"}, [], []),
        ({"choices": [{"delta": "none"}]}, [], []),
        (chunk(content={"text": {"text": {"text": {"text": {"text": "deeper than any API"}}}}}), [], []),
        (None, [], []),
    ],
)
def test_a_chunk_is_sorted(raw: Any, content: list[str], reasoning: list[str]) -> None:
    assert extract_openai_delta(raw) == (content, reasoning)


def test_without_reasoning_everything_is_answer_in_order() -> None:
    raw = chunk(content=[{"type": "reasoning", "text": "a"}, {"type": "text", "text": "b"}], reasoning="c")
    assert extract_openai_delta(raw, allow_reasoning=False) == (["a", "b", "c"], [])


def test_fields_and_tags_add_up_and_are_emitted_as_they_are_sorted() -> None:
    turn = StreamTextAccumulator()
    seen: list[TextDelta] = []
    turn.push({"content": ["one <thi"]}, seen.append)
    turn.push({"content": ["nk>two"], "reasoning": ["three"]}, seen.append)
    turn.push({"content": [" four</think> five<"]}, seen.append)
    assert seen == [
        {"content": "one "},
        {"reasoning": "two"},
        {"reasoning": "three"},
        {"content": " five"},
        {"reasoning": " four"},
    ]
    assert turn.finish(seen.append) == ("one  five<", "twothree four")
    assert seen[-1] == {"content": "<"}


@pytest.mark.parametrize(
    ("text", "options", "finish", "content", "reasoning"),
    [
        ("<think> \n k \n</think>", {}, {}, "k", " k"),
        ("<think>k</think> \n", {}, {}, "k", "k"),
        ("<think>cut", {}, {}, "cut", "cut"),
        ("<think>cut", {}, {"finish_reason": "length"}, "", "cut"),
        ("<think>k</think>", {}, {"tool_calls": True}, "", "k"),
        ("<think>k</think>", {"floor": "off"}, {}, "", "k"),
        ("<think>k</think>x", {}, {}, "x", "k"),
        ("", {}, {}, "", ""),
        (" \n", {}, {}, " \n", ""),
        ("`<think>k</think>", {"where": "anywhere"}, {}, "`", "k"),
        ("<think>k", {"unclosed": "content"}, {}, "<think>k", ""),
    ],
)
def test_a_reply_is_never_empty_unless_it_may_be(
    text: str, options: dict[str, Any], finish: dict[str, Any], content: str, reasoning: str
) -> None:
    turn = StreamTextAccumulator(**options)
    turn.push({"content": [text]})
    assert turn.finish(**finish) == (content, reasoning)


@pytest.mark.parametrize(
    ("chunks", "content"),
    [
        ([chunk(reasoning="k")], "k"),
        ([chunk(reasoning="k"), chunk(tool_calls=[{"id": "1"}])], ""),
        ([chunk(reasoning="k"), {"choices": [{"delta": {}, "finish_reason": "length"}]}], ""),
        ([chunk(reasoning="k"), {"choices": [{"delta": {}, "finish_reason": "stop"}]}], "k"),
    ],
)
def test_whole_chunks_bring_tool_calls_and_finish_reason(chunks: list[Any], content: str) -> None:
    turn = StreamTextAccumulator()
    for raw in chunks:
        turn.push_chunk(raw)
    assert turn.finish() == (content, "k")


def test_misuse_names_the_remedy() -> None:
    with pytest.raises(ValueError, match="use one of off, promote"):
        StreamTextAccumulator(floor="none")
    turn = StreamTextAccumulator()
    turn.finish()
    with pytest.raises(RuntimeError, match="make a new one"):
        turn.push({"content": ["x"]})
