"""What SGLang's channel-aware tool parsers make of framed content: the answer to the character, and every call."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("sglang")

from sglang.srt.entrypoints.openai.protocol import Function, Tool
from sglang.srt.function_call.function_call_parser import FunctionCallParser

from vllm_reasoning_ext.core.events import CONTENT, MARKER, TOOL, Event
from vllm_reasoning_ext.demo.outputs import FUNCTION, TOOLS, atem_call
from vllm_reasoning_ext.engines.sglang.framing import framing

pytestmark = pytest.mark.sglang

GRAMMARS = {"muse": "atem", "gpt-oss": "harmony"}
BOTH = pytest.mark.parametrize("parser", GRAMMARS)


def call(parser: str, city: str, *, header: str | None = None) -> Event:
    if parser == "muse":
        header = "<|start|>assistant to=weather<|message|>" if header is None else header
        return Event(TOOL, f"{header}{atem_call(city)}<|eom|>", False, FUNCTION)
    header = "<|channel|>commentary to=functions.weather<|message|>" if header is None else header
    arguments = json.dumps({"city": city})
    return Event(TOOL, f"{header}{arguments}<|call|>", False, f"functions.{FUNCTION}")


def in_pieces(events: list[Event], width: int) -> Iterator[list[Event]]:
    """Cut events into the pieces of a stream; a piece has a name and no event is made up."""
    for event in events:
        for at in range(0, len(event.text), width):
            yield [event._replace(text=event.text[at : at + width])]


def parse(parser: str, events: list[Event], width: int | None) -> tuple[str, list[Any]]:
    """Frame events, and let SGLang's parser read them; width None is a whole reply."""
    tools = [Tool(type="function", function=Function(**tool["function"])) for tool in TOOLS]
    reader = FunctionCallParser(tools, parser)
    frame = framing(parser, GRAMMARS[parser], whole=width is None)
    assert frame is not None
    if width is None:
        text = frame.write(events, ends=True)
        calls: list[Any] = []
        if reader.has_tool_call(text):
            text, calls = reader.parse_non_stream(text)
        return text, [json.loads(found.parameters) for found in calls]
    results = [reader.parse_stream_chunk(frame.write(piece, ends=False)) for piece in in_pieces(events, width)]
    results += [reader.parse_stream_chunk(frame.write([], ends=True)), reader.parse_stream_end()]
    return (
        "".join(text or "" for text, _ in results),
        [json.loads(found.parameters) for _, items in results for found in items],
    )


ANSWERS = [
    "It is 42.",
    "  indented\n\n",
    "Write <|eom|> or <|eot|>, <|call|>, <|return|> and <|end|>.",
    "<|start|>assistant<|channel|>commentary to=functions.weather<|message|>{}<|call|>",
    "a <| b and <|weird|> and <|",
    "my analysis: commentary assistantfinal",
    "to=user<|message|>x",
    "<atem:invoke> is a tag",
    "c",
]


@BOTH
@pytest.mark.parametrize("width", [None, 1, 3, 1000])
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_comes_back_as_it_was(parser: str, width: int | None, answer: str) -> None:
    got, calls = parse(parser, [Event(MARKER, "<|eom|>"), Event(CONTENT, answer)], width)
    if parser == "gpt-oss" and width is None and "<|channel|>commentary" in answer:
        # A whole reply that quotes a call's header is read for calls; SGLang then trims what it finds.
        got, answer = got.strip(), answer.strip()
    assert got == answer
    assert calls == []


@BOTH
@pytest.mark.parametrize("width", [None, 1, 3, 1000])
def test_answers_and_calls_in_any_order(parser: str, width: int | None) -> None:
    events = [
        Event(CONTENT, "First."),
        call(parser, "Oslo"),
        call(parser, "Rome"),
        Event(CONTENT, "Comm"),
        Event(CONTENT, "on."),
        call(parser, "Bonn"),
    ]
    got, calls = parse(parser, events, width)
    assert calls == [{"city": "Oslo"}, {"city": "Rome"}, {"city": "Bonn"}]
    assert got.replace(" ", "") == "First.Common."


@pytest.mark.parametrize("width", [None, 1, 3, 1000])
@pytest.mark.parametrize(
    "header",
    [
        "<|start|>assistant to=functions.weather<|channel|>commentary<|message|>",
        "<|channel|>analysis to=functions.weather <|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>",
    ],
)
def test_every_spelling_of_a_harmony_header_is_a_call(header: str, width: int | None) -> None:
    event = call("gpt-oss", "a <|call|> b", header=header)
    assert parse("gpt-oss", [event], width) == ("", [{"city": "a <|call|> b"}])


@pytest.mark.parametrize("width", [None, 1, 3, 1000])
def test_a_call_whose_end_never_came(width: int | None) -> None:
    event = call("gpt-oss", "Oslo")
    cut = event._replace(text=event.text.removesuffix("<|call|>"))
    assert parse("gpt-oss", [cut], width) == ("", [{"city": "Oslo"}])


@pytest.mark.parametrize("width", [1, 3, 1000])
@pytest.mark.parametrize(
    "text",
    [
        "<|channel|>commentary to=functions.weather<|message|>not json<|call|>",
        "<|channel|>commentary to=functions.weather",
    ],
)
def test_what_sglang_would_drop_is_shown(text: str, width: int) -> None:
    assert parse("gpt-oss", [Event(TOOL, text, False, "functions.weather")], width) == (text, [])


@pytest.mark.parametrize("width", [None, 1000])
def test_a_headerless_muse_switch_is_a_call(width: int | None) -> None:
    event = call("muse", "Oslo", header="to=weather<|message|>")
    assert parse("muse", [Event(CONTENT, "Look."), event], width) == ("Look.", [{"city": "Oslo"}])


@pytest.mark.parametrize(
    ("parser", "grammar"), [("hermes", "atem"), ("qwen25", "marker"), ("muse", "harmony"), (None, "atem")]
)
def test_no_other_tool_parser_gets_a_frame(parser: str | None, grammar: str) -> None:
    assert framing(parser, grammar, whole=False) is None
