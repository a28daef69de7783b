"""Properties of all surfaces: any cut of the bytes shows the same, nothing is lost, nothing odd breaks a stream."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.wire.streams import SURFACES, pieces_of, sse, totals, translate, upstream
from vllm_reasoning_ext.wire.surfaces import surface_of, translate_body
from vllm_reasoning_ext.wire.translation import Outcome, Translation

UNTIMED = hypothesis_settings(deadline=None)
PIECES = ["<think>", "</think>", "<thi", "nk>", "[THINK]", "[/THINK]", "a", "é ", "\n", "`", "```", "◁think▷"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12)
NEWLINES = st.sampled_from(["\n", "\r\n", "\r"])
SETTINGS = st.sampled_from(
    [
        Translation(messages_policy="unsigned"),
        Translation(messages_policy="unsigned", unclosed="reasoning"),
        Translation(messages_policy="redacted", max_buffer_bytes=2, responses_events="seed"),
        Translation(messages_policy="unsigned", implicit_open=True),
    ]
)


def cut(data: bytes, draw: st.DataObject) -> list[bytes]:
    places = sorted(draw.draw(st.sets(st.integers(0, len(data)), max_size=12)))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


@pytest.mark.parametrize("surface", SURFACES)
@UNTIMED
@given(texts=TEXTS, newline=NEWLINES, settings=SETTINGS, draw=st.data())
def test_every_cut_of_the_bytes_shows_the_same(
    surface: str, texts: list[str], newline: str, settings: Translation, draw: st.DataObject
) -> None:
    data = sse(upstream(surface, texts), named=surface != "chat", newline=newline)
    whole = translate(surface, data, settings)
    assert pieces_of(surface, translate(surface, cut(data, draw), settings)) == pieces_of(surface, whole)
    once = settings.once("".join(texts), "")
    assert totals(surface, whole)[1] == once.content
    if surface == "chat":
        assert totals(surface, whole)[0] == once.reasoning


@pytest.mark.parametrize("surface", SURFACES)
@UNTIMED
@given(texts=TEXTS, settings=SETTINGS)
def test_however_the_text_is_cut_into_deltas_the_totals_are_the_same(
    surface: str, texts: list[str], settings: Translation
) -> None:
    text = "".join(texts)
    one = totals(surface, translate(surface, sse(upstream(surface, [text])), settings))
    many = totals(surface, translate(surface, sse(upstream(surface, list(text))), settings))
    assert many == one


# Blocks and answers that begin and end in a visible character: nothing is trimmed, so that nothing but the tags and
# the joiner is changed, and both can be put back.
VISIBLE = st.text("ab<é/", min_size=1, max_size=6)


@pytest.mark.parametrize("surface", SURFACES)
@UNTIMED
@given(blocks=st.lists(st.tuples(VISIBLE, VISIBLE), max_size=4), end=st.sampled_from(["", "<think>ab", "<thi"]))
def test_with_the_tags_put_back_the_original_text_is_there(
    surface: str, blocks: list[tuple[str, str]], end: str
) -> None:
    text = "".join(f"<think>{thought}</think>{answer}" for thought, answer in blocks) + end
    out = translate(surface, sse(upstream(surface, list(text))), Translation(messages_policy="unsigned"))
    back = ""
    inside = False
    for piece in pieces_of(surface, out):
        reasoning = piece.kind == "reasoning"
        if reasoning is not inside:
            back += "<think>" if reasoning else "</think>"
            inside = reasoning
        back += piece.text.removeprefix("\n\n") if reasoning else piece.text
    assert back == text


SHAPES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from(["", "text", "<think>", "</think>x", "index"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "index",
                    "delta",
                    "content",
                    "text",
                    "choices",
                    "message",
                    "output",
                    "output_index",
                    "item",
                    "part",
                    "content_block",
                    "response",
                    "content_index",
                    "finish_reason",
                    "reasoning",
                    "sequence_number",
                    "item_id",
                    "logprobs",
                    "thinking",
                    "id",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)
TYPES = [
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
    "text",
    "text_delta",
    "message",
    "output_text",
]
TYPED = st.builds(
    lambda shape, kind: {**shape, "type": kind},
    st.dictionaries(
        st.sampled_from(
            [
                "index",
                "output_index",
                "delta",
                "item",
                "part",
                "content_block",
                "text",
                "response",
                "content_index",
                "sequence_number",
            ]
        ),
        SHAPES,
    ),
    st.sampled_from(TYPES),
)


@pytest.mark.parametrize("surface", SURFACES)
@UNTIMED
@given(events=st.lists(SHAPES | TYPED, max_size=6))
def test_no_shape_of_json_breaks_a_surface(surface: str, events: list[Any]) -> None:
    settings = Translation(messages_policy="unsigned")
    assert isinstance(translate(surface, sse([json.dumps(event) for event in events]), settings), bytes)
    for event in events:
        json.loads(translate_body(surface, json.dumps(event).encode(), settings))


@pytest.mark.parametrize(
    ("method", "path", "surface"),
    [
        ("POST", "/v1/chat/completions", "chat"),
        ("POST", "/base/v1/messages/", "messages"),
        ("POST", "/v1/responses", "responses"),
        ("GET", "/v1/responses/resp_1", "responses"),
        ("GET", "/v1/responses/resp_1/input_items", None),
        ("GET", "/v1/chat/completions", None),
        ("POST", "/v1/messages/count_tokens", None),
        ("POST", "/v1/completions", None),
        ("POST", "/", None),
    ],
)
def test_paths(method: str, path: str, surface: str | None) -> None:
    assert surface_of(method, path) == surface


@pytest.mark.parametrize(
    ("settings", "text", "end", "reasoning", "answer"),
    [
        ({}, "plain", "plain", 0, 5),
        ({}, "<think>abc</think>x", "closed", 3, 1),
        ({}, "x<think>abc", "unterminated", 0, 11),
        ({"unclosed": "reasoning"}, "<think>abc", "unterminated", 3, 0),
        ({"unclosed": "reasoning"}, "<think>abc</think>", "closed", 3, 0),
        ({"family": "qwen3"}, "<think>abc", "unterminated", 3, 0),
    ],
)
def test_each_text_is_counted_once(settings: dict[str, Any], text: str, end: str, reasoning: int, answer: int) -> None:
    seen: list[Outcome] = []
    options = Translation(**settings, observe=seen.append)
    translate("responses", sse(upstream("responses", [text])), options)
    translate_body("chat", json.dumps({"choices": [{"message": {"content": text}}]}).encode(), options)
    assert seen == [
        Outcome("responses", "stream", end, reasoning, answer),
        Outcome("chat", "body", end, reasoning, answer),
    ]
