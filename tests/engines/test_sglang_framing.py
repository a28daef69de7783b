"""Where a call begins and ends, and what a client sees of one that SGLang's parsers do not take."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("sglang")

from sglang.srt.function_call.function_call_parser import FunctionCallParser

from tests.engines.sglang_dialects import THINKING, gemma_call, m3_call, muse_call, qwen_call
from tests.engines.sglang_drive import TOOL_PARSERS, ToolParser, streamed_reply, whole_reply
from vllm_reasoning_ext.core.families import get_family
from vllm_reasoning_ext.demo.outputs import Output
from vllm_reasoning_ext.engines.register import register_sglang
from vllm_reasoning_ext.engines.sglang import handoff as sglang_handoff
from vllm_reasoning_ext.engines.sglang import hooks as sglang_hooks
from vllm_reasoning_ext.engines.sglang import output as sglang_output
from vllm_reasoning_ext.engines.sglang.calls import MarkerReader, reader_for
from vllm_reasoning_ext.engines.sglang.forced import is_forced, with_thought
from vllm_reasoning_ext.engines.sglang.handoff import Handoff

pytestmark = pytest.mark.sglang

register_sglang()

HARMONY = "<|channel|>commentary to=functions.weather<|message|>"
NEXT = "<|start|>assistant"


@pytest.fixture(autouse=True)
def _nothing_left_over() -> Iterator[None]:
    yield
    sglang_output.set_current(None)
    sglang_handoff.set_current(None)


CASES = {
    # Issue's own: an implied end, and a valid call behind a broken one of the same function.
    "the next header ends a call": (
        "gpt_oss", f'{HARMONY}{{"city": "Oslo"}}{NEXT}{HARMONY}{{"city": "Rome"}}<|call|>', "", ["Oslo", "Rome"],
    ),
    "broken, then valid": (
        "gpt_oss", f'{HARMONY}not json<|call|>{NEXT}{HARMONY}{{"city": "Rome"}}<|call|>',
        f"{HARMONY}not json<|call|>", ["Rome"],
    ),
    "broken and ended by the next header": (
        "gpt_oss", f'{HARMONY}not json{NEXT}{HARMONY}{{"city": "Rome"}}<|call|>', f"{HARMONY}not json", ["Rome"],
    ),
    "cut in its arguments": ("gpt_oss", f'{HARMONY}{{"a": "b✂', f'{HARMONY}{{"a": "b', []),
    "complete but for its terminator": ("gpt_oss", f'{HARMONY}{{"city": "Oslo"}}✂', "", ["Oslo"]),
    "a number that may go on": ("gpt_oss", f"{HARMONY}1✂", f"{HARMONY}1", []),
    "a built-in tool": ("gpt_oss", "<|channel|>analysis to=python<|message|>1<|call|>",
                        "<|channel|>analysis to=python<|message|>1", []),
    "a quoted terminator in the arguments": (
        "gpt_oss", f'{HARMONY}{{"city": "‹<|call|>› and ‹<|end|>›"}}<|call|>', "", ["<|call|> and <|end|>"],
    ),
    "the recipient in the role part": (
        "gpt_oss", f'<|channel|>analysis<|message|>a<|end|>{NEXT} to=functions.weather<|channel|>commentary<|message|>'
        '{"city": "Oslo"}<|call|>', "", ["Oslo"],
    ),
    "muse, no terminator between two calls": (
        "muse_glimmer", " to=self<|message|>a<|eom|>" + muse_call("weather", "Oslo").removesuffix("<|eom|>")
        + muse_call("weather", "Rome"), "", ["Oslo", "Rome"],
    ),
    "muse, cut after the header": (
        "muse_glimmer", " to=self<|message|>a<|eom|><|start|>assistant to=weather<|message|>✂",
        "<|start|>assistant to=weather<|message|>", [],
    ),
    "muse, the prompt's own header": (
        "muse_glimmer", muse_call("weather", "Oslo").removeprefix("<|start|>assistant"), "", ["Oslo"],
    ),
    "muse, no call in the first message": (
        "muse_glimmer", " to=weather<|message|>no call<|eom|>", " to=weather<|message|>no call", [],
    ),
    "muse, a quoted terminator in a parameter": (
        "muse_glimmer", " to=self<|message|>a<|eom|>" + muse_call("weather", "‹<|eom|>› or ‹<|eot|>›"),
        "", ["<|eom|> or <|eot|>"],
    ),
    "an answer that quotes a muse call": (
        "muse_glimmer", " to=user<|message|>use <atem:invoke name=\"weather\"> here<|eot|>",
        "use <atem:invoke name=\"weather\"> here", [],
    ),
    "a closing tag in a JSON string": (
        "qwen3", "<think>a</think>" + qwen_call("weather", "</tool_call>") + "<|im_end|>", "", ["</tool_call>"],
    ),
    "JSON whose string never ends, then a call": (
        "qwen3", '<think>a</think><tool_call>\n{"name": "x\n</tool_call>' + qwen_call("weather", "Oslo")
        + "<|im_end|>", '<tool_call>\n{"name": "x\n</tool_call>', ["Oslo"],
    ),
    "answers around and between calls": (
        "qwen3", "<think>a</think>One. " + qwen_call("weather", "Oslo") + "\n\nTwo." + qwen_call("weather", "Rome")
        + "\n" + qwen_call("weather", "Bonn") + " Three.<|im_end|>", "One. \n\nTwo. Three.", ["Oslo", "Rome", "Bonn"],
    ),
    "cut in the opening": ("qwen3", '<think>a</think>x<tool_call>\n{"na✂', 'x<tool_call>\n{"na', []),
    "the marker in an answer": (
        "qwen3", "<think>a</think>the <tool_call> tag, and <tool<|im_end|>", "the <tool_call> tag, and <tool", [],
    ),
    "gemma, two calls of one function": (
        "gemma4", "A" + gemma_call("weather", "Oslo") + gemma_call("weather", "Rome") + "B<turn|>", "AB",
        ["Oslo", "Rome"],
    ),
    "minimax m3, an unknown function": (
        "minimax_m3", "<mm:think>a</mm:think>" + m3_call("stocks", "Oslo") + "[e~[", m3_call("stocks", "Oslo"), [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_whole_and_streaming(case: str) -> None:
    family, script, shown, cities = CASES[case]
    output = Output(case, family, script, kwargs=THINKING)
    parser = TOOL_PARSERS[family]
    for reply in (whole_reply(output, parser), *(streamed_reply(output, parser, width) for width in (1, 3, 8, 1000))):
        assert (reply.content, reply.arguments) == (shown, [{"city": city} for city in cities])


@pytest.mark.parametrize("text", [m3_call("weather", "Oslo"), "An answer."])
def test_without_tools_nothing_is_a_call(text: str) -> None:
    # SGLang runs this class without tools too, on chat completions only.
    sglang_handoff.set_current(Handoff(get_family("minimax_m3")))
    whole, stream = ToolParser("minimax-m3", []), ToolParser("minimax-m3", [])
    assert whole.has_tool_call(text) is False
    assert [stream.parse_stream_chunk(char) for char in text] == [(char, []) for char in text]


@pytest.mark.parametrize(
    ("family", "parser"), [("qwen3", "pythonic"), ("muse_glimmer", "hermes"), ("qwen3", "muse"), ("gpt_oss", "muse")]
)
def test_a_parser_of_other_calls_reads_by_itself(family: str, parser: str) -> None:
    assert reader_for(ToolParser(parser), Handoff(get_family(family))) is None


def test_a_parser_of_other_calls_gets_its_steps() -> None:
    # A call that was held back comes whole; SGLang's class takes one step a delta.
    sglang_handoff.set_current(Handoff(get_family("gpt_oss")))
    parser = ToolParser("qwen25")
    _, items = parser.parse_stream_chunk(qwen_call("weather", "Oslo"))
    assert "".join(item.parameters for item in items) == '{"city": "Oslo"}'


def test_a_server_of_other_reasoning_parsers_is_left_alone() -> None:
    parser = ToolParser("qwen25")
    text = "Answer " + qwen_call("weather", "Oslo")
    assert parser.has_tool_call(text) is True
    assert parser.parse_non_stream(text) == FunctionCallParser(parser.tools, "qwen25").parse_non_stream(text)
    assert sglang_hooks.around_end(FunctionCallParser.parse_stream_end, parser) == ("", [])


def test_a_fault_while_reading_shows_the_text(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sglang_handoff.set_current(Handoff(get_family("qwen3")))
    parser = ToolParser("qwen25")
    monkeypatch.setattr(MarkerReader, "read", lambda *_, **__: 1 / 0)
    text = qwen_call("weather", "Oslo")
    assert [parser.parse_stream_chunk(text), parser.parse_stream_chunk(" more")] == [(text, []), (" more", [])]
    assert parser.parse_stream_end() == ("", [])
    assert caplog.text.count("reading tool calls failed") == 1
    assert "Oslo" not in caplog.text


# A forced call


@pytest.mark.parametrize(
    ("choice", "forced"),
    [("auto", False), ("none", False), (None, False), ("required", True), (SimpleNamespace(function=None), True)],
)
def test_which_choice_forces_a_call(choice: Any, forced: bool) -> None:
    assert is_forced(choice) is forced


@pytest.mark.parametrize("parallel", [True, False])
def test_a_forced_call_may_follow_a_thought_and_must_come(parallel: bool) -> None:
    parser = ToolParser("gpt-oss")
    constraint = parser.get_structure_constraint("required", parallel_tool_calls=parallel)
    kind, tag = with_thought(constraint)
    thought, calls = tag.model_dump()["format"]["elements"]
    assert kind == "structural_tag"
    assert thought["type"] == "optional"
    own = constraint[1].model_dump()["format"]
    own = own["content"] if own["type"] == "optional" else own
    assert (calls["type"], calls["at_least_one"]) == ("tags_with_separator", True)
    assert calls["stop_after_first"] == own["stop_after_first"]  # SGLang's own word: parallel calls, from 0.5.23 on


@pytest.mark.parametrize("constraint", [None, ("json_schema", {}), ("structural_tag", None)])
def test_another_constraint_stays_as_it_is(constraint: Any) -> None:
    if constraint and constraint[0] == "structural_tag":
        constraint = ToolParser("qwen25").get_structure_constraint("required")
    assert with_thought(constraint) is None
