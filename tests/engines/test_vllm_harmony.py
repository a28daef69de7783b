"""The parser of gpt_oss in the place of vLLM's HarmonyParser: chat, Responses segments, and vLLM's own beside it."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("vllm", reason="needs vLLM: bash tests/envs/vllm.sh builds its environment")

from vllm.parser.parser_manager import ParserManager

from tests.support.harmony_outputs import HARMONY_OUTPUTS
from tests.support.vllm_drive import WIDTHS, Case, Reply, expected
from vllm_reasoning_ext.demo.outputs import TOOLS, Output
from vllm_reasoning_ext.engines import guard, register

pytestmark = pytest.mark.vllm

register.register_vllm()


@pytest.fixture(autouse=True)
def no_fault_of_ours(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    guard._logged.clear()
    yield
    assert not [record.getMessage() for record in caplog.records if record.name == register.vllm_log.name]


class HarmonyCase(Case):
    """An output on a model of type gpt_oss."""

    def parser(self, name: str, tool: str | None = None) -> Any:
        cls = ParserManager.get_parser(
            tool_parser_name=tool, reasoning_parser_name=name, enable_auto_tools=tool is not None, is_harmony=True
        )
        assert cls is not None
        if not hasattr(cls, "_reasoning_ext"):
            pytest.skip("this vLLM's HarmonyParser is another: gpt_oss models keep vLLM's own there")
        return cls(self.tokenizer, self.request.tools, chat_template_kwargs={})


def texts(output: Output) -> Reply:
    """Without a tool parser a call is shown as it was written."""
    return expected(output)._replace(calls=())


@pytest.mark.parametrize("output", HARMONY_OUTPUTS, ids=lambda output: output.name)
def test_chat(output: Output) -> None:
    case = HarmonyCase(output)
    assert case.full("gpt_oss", "openai") == expected(output)
    for width in WIDTHS:
        for trail in (True, False):
            assert case.streamed("gpt_oss", "openai", width, trail=trail) == expected(output), f"{width} tokens a delta"


@pytest.mark.parametrize(
    "fields", [{"tools": None}, {"tools": TOOLS, "tool_choice": "none"}], ids=["none", "no choice"]
)
@pytest.mark.parametrize("output", [w for w in HARMONY_OUTPUTS if w.cities], ids=lambda output: output.name)
def test_a_call_that_the_request_does_not_allow_is_shown(output: Output, fields: dict[str, Any]) -> None:
    case = HarmonyCase(output, **fields)
    full = case.full("gpt_oss", "openai")
    assert (full.reasoning, full.calls) == (output.reasoning, ())
    assert "weather" in full.content
    assert f'{{"city": "{output.cities[0]}"}}' in full.content
    for width in WIDTHS:
        assert case.streamed("gpt_oss", "openai", width) == full, f"{width} tokens a delta"


@pytest.mark.parametrize("output", HARMONY_OUTPUTS, ids=lambda output: output.name)
def test_the_responses_api_gets_whole_messages(output: Output) -> None:
    """HarmonyContext streams segments, and reads the finished messages for the reply."""
    case = HarmonyCase(output)
    for width in WIDTHS:
        parser = case.parser("gpt_oss", "openai")
        parser.set_prompt_token_ids(case.prompt)
        segments, counted = [], 0
        for at in range(0, len(case.ids), width):
            result = parser.process_chunk(case.ids[at : at + width])
            segments += result.segments
            counted += result.reasoning_token_count
        segments += parser.flush()
        for done in (False, True):
            chosen = [s for s in segments if (s.completed_message is not None) is done]
            found = {"analysis": [], "final": [], "commentary": []}
            for segment in chosen:
                text = segment.completed_message.content[0].text if done else segment.delta
                found[segment.channel].append(text)
            joined = {channel: ("\n" if done else "").join(parts) for channel, parts in found.items()}
            want = "".join(output.reasoning.split("\n")) if not done else output.reasoning
            assert joined["analysis"] == want
            want = "".join(output.content.split("\n")) if not done else output.content
            assert joined["final"] == want
            assert joined["commentary"] == "".join(f'{{"city": "{city}"}}' for city in output.cities)
        assert all(s.recipient == "functions.weather" for s in segments if s.channel == "commentary")
        assert counted == parser.count_reasoning_tokens(case.ids)
        assert bool(counted) is bool(output.reasoning)


def test_another_parser_gets_vllms_own() -> None:
    """The subclass stays in place in this process and must not touch `openai_gptoss`."""
    case = HarmonyCase(HARMONY_OUTPUTS[0])
    case.full("gpt_oss", "openai")
    parser = case.parser("openai_gptoss", "openai")
    assert not parser._splits
    assert case.streamed("openai_gptoss", "openai").reasoning == HARMONY_OUTPUTS[0].reasoning


def test_the_constraint_covers_the_channels() -> None:
    """vLLM spells the channels out in its structural tag, so a grammar must apply from the first token on."""
    case = HarmonyCase(HARMONY_OUTPUTS[0])
    kwargs: dict[str, Any] = {}
    case.parser("gpt_oss")
    cls = ParserManager.get_parser(reasoning_parser_name="gpt_oss", is_harmony=True)
    assert cls is not None
    assert cls(case.tokenizer, None, chat_template_kwargs=kwargs).is_reasoning_end(case.prompt) is True
    from vllm.reasoning import ReasoningParserManager

    core = ReasoningParserManager.get_reasoning_parser("gpt_oss")
    assert core(case.tokenizer, chat_template_kwargs=kwargs).is_reasoning_end(case.prompt) is True
    assert core(case.tokenizer, chat_template_kwargs={}).is_reasoning_end(case.prompt) is False


RUNS = "😀😁😂🤣😃 ᚠᚢᚦᚨᚱᚲ 𓀀𓀁𓀂𓀃 日本語 é"


@pytest.mark.parametrize("width", range(1, 17))
def test_no_character_breaks_where_deltas_end_within_characters(width: int) -> None:
    """Every byte is a token here, so a delta ends in the middle of several characters in a row."""
    script = f"<|channel|>analysis<|message|>{RUNS}<|end|><|start|>assistant<|channel|>final<|message|>{RUNS}<|return|>"
    case = HarmonyCase(Output("runs", "gpt_oss", script, RUNS, RUNS))
    assert case.streamed("gpt_oss", None, width) == (RUNS, RUNS, ())
    parser = case.parser("gpt_oss", None)
    parser.set_prompt_token_ids(case.prompt)
    segments = []
    for at in range(0, len(case.ids), width):
        segments += parser.process_chunk(case.ids[at : at + width]).segments
    segments += parser.flush()
    texts = {"analysis": "", "final": ""}
    for segment in segments:
        if segment.channel in texts:
            texts[segment.channel] += segment.delta
    assert texts == {"analysis": RUNS, "final": RUNS}


NOT_JSON = "<|channel|>commentary to=functions.weather<|message|>not json"
CALL = '<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city": "Oslo"}'


@pytest.mark.parametrize(
    ("script", "cities"),
    [
        (f"{NOT_JSON}<|call|><|start|>assistant{CALL}<|call|>", ("Oslo",)),
        (f"{NOT_JSON}<|start|>assistant{CALL}<|call|>", ("Oslo",)),
        (f"{CALL}<|start|>assistant{CALL.replace('Oslo', 'Rome')}<|call|>", ("Oslo", "Rome")),
    ],
    ids=["ended by its terminator", "ended by the next header", "two calls of one function"],
)
def test_a_slice_ends_where_the_core_says(script: str, cities: tuple[str, ...]) -> None:
    case = HarmonyCase(Output("slices", "gpt_oss", script, cities=cities))
    calls = tuple(("weather", {"city": city}) for city in cities)
    shown = [case.full("gpt_oss", "openai"), *(case.streamed("gpt_oss", "openai", width) for width in WIDTHS)]
    for reply in shown:
        assert reply.calls == calls
        assert ("not json" in reply.content) is ("not json" in script)
    assert len({reply.content for reply in shown}) == 1
