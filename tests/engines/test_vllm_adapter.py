"""The adapter's answers outside the text path: start-up, request, ids, counts."""

import inspect
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm", reason="needs vLLM: bash tests/envs/vllm.sh builds its environment")

from vllm.parser.parser_manager import ParserManager

from tests.support.byte_tokenizer import byte_tokenizer, vocabulary_of
from tests.support.more_outputs import ALL_OUTPUTS, reasoning_tokens
from tests.support.outputs import of_family
from tests.support.vllm_drive import WIDTHS, Case, compose
from vllm_reasoning_ext.core.families import FAMILIES
from vllm_reasoning_ext.demo.outputs import TOOLS, Output
from vllm_reasoning_ext.engines import guard, register
from vllm_reasoning_ext.engines.vllm import parser as vllm_adapter
from vllm_reasoning_ext.engines.vllm.message import answers_at_once, enabled_in_reasoning, finish_reason, offers_tools
from vllm_reasoning_ext.errors import SetupError

pytestmark = pytest.mark.vllm

register.register_vllm()


def reasoning_parser(family: str, tokenizer: Any, **kwargs: Any) -> Any:
    from vllm.reasoning import ReasoningParserManager

    return ReasoningParserManager.get_reasoning_parser(f"{family}_ext")(tokenizer, **kwargs)


@pytest.mark.parametrize(("family", "other"), [("muse_glimmer", "qwen3"), ("gpt_oss", "qwen3")])
def test_a_tokenizer_without_the_markers_is_a_clear_start_up_error(family: str, other: str) -> None:
    tokenizer = byte_tokenizer(other)
    with pytest.raises(SetupError) as caught:
        reasoning_parser(family, tokenizer)
    assert "<|start|>" in caught.value.problem
    assert family in caught.value.problem
    assert "doctor" in caught.value.remedy
    if "tokenizer" not in inspect.signature(ParserManager.get_parser).parameters:
        return  # before 0.32 vLLM constructs the parser at start-up too, and lets the error through as it is
    with pytest.raises(TypeError, match=f"--reasoning-parser {family} cannot be used.*<|start|>.*Remedy"):
        compose(family, None, tokenizer)


def test_a_tokenizer_of_another_family_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """Where tags decide, text alone can do, so the server starts."""
    vllm_adapter._warn_missing.cache_clear()
    for _ in range(2):
        reasoning_parser("minimax_m3", byte_tokenizer("qwen3"))
        reasoning_parser("qwen3", byte_tokenizer("qwen3"))
    said = [record.getMessage() for record in caplog.records if record.name == register.vllm_log.name]
    assert len(said) == 1
    assert "minimax_m3: the tokenizer has no single token for <mm:think>, </mm:think>" in said[0]


def test_an_unknown_name_is_answered_with_ours() -> None:
    from vllm.reasoning import ReasoningParserManager

    with pytest.raises(KeyError, match="muse_glimmer_ext"):
        ReasoningParserManager.get_reasoning_parser("muse_glimer")


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_budget_strings_are_the_familys(family: str) -> None:
    parser = reasoning_parser(family, byte_tokenizer(family))
    assert parser.reasoning_start_str == FAMILIES[family].reasoning_start_str
    assert parser.reasoning_end_str == FAMILIES[family].reasoning_end_str


@pytest.mark.parametrize(
    ("vocabulary", "kept"),
    [
        ("muse_glimmer", True),
        ("gpt_oss", True),
        ("gemma4", True),
        ("deepseekv32", True),  # ｜DSML｜ is a special token there
        ("deepseekv32/v4", False),
        ("qwen3", False),
        ("minimax", False),
        ("minimax_m3", False),
    ],
)
def test_special_tokens_stay_in_the_text_where_a_marker_is_one(vocabulary: str, kept: bool) -> None:
    request = SimpleNamespace(skip_special_tokens=True, spaces_between_special_tokens=True)
    reasoning_parser(vocabulary.partition("/")[0], byte_tokenizer(vocabulary)).adjust_request(request)
    assert request.skip_special_tokens is not kept
    assert request.spaces_between_special_tokens is not kept


def ends(case: Case, step: int) -> int | None:
    """Ask as the engine core does, step by step; give the number of tokens after which a grammar applies."""
    parser = reasoning_parser(case.output.family, case.tokenizer)
    if parser.is_reasoning_end(case.prompt):
        return 0
    for at in range(0, len(case.ids), step):
        new = case.ids[at : at + step]
        if parser.is_reasoning_end_streaming(case.prompt + case.ids[: at + len(new)], new):
            return at + len(new)
    return None


@pytest.mark.parametrize("output", ALL_OUTPUTS, ids=lambda output: f"{output.family}-{output.name}")
def test_a_grammar_applies_from_the_answer_on(output: Output) -> None:
    """However many tokens a step, the answer is found in the step that holds its beginning."""
    case = Case(output)
    first = ends(case, 1)
    if output.cut or any(name in output.name for name in ("open block", "plain answer", "two calls")):
        assert first is None  # nothing in the ids says that an answer begins
        return
    if output.family == "gpt_oss" and not output.content:
        assert first is None  # a call's arguments are not the answer
        return
    assert first is not None
    answer = output.content or output.raw or ""
    if output.family == "muse_glimmer" and output.cities:
        answer = "<atem:function_calls>"
    written, rest = (
        case.tokenizer.decode(part, skip_special_tokens=False) for part in (case.ids[:first], case.ids[first:])
    )
    assert rest.lstrip().startswith(answer.lstrip())
    assert not written.endswith(answer)
    for step in (2, 3, 7, 1000):
        later = ends(case, step)
        assert later == min(-(-first // step) * step, len(case.ids))


@pytest.mark.parametrize("output", ALL_OUTPUTS, ids=lambda output: f"{output.family}-{output.name}")
def test_the_count_is_incremental_and_starts_anew(output: Output) -> None:
    case = Case(output)
    parser = case.parser(output.family).reasoning_parser  # vLLM's Parser itself counts from 0.27 on
    parser.set_prompt_token_ids(case.prompt)
    whole = parser.count_reasoning_tokens(case.ids)
    growing = [parser.count_reasoning_tokens(case.ids[:n]) for n in (1, len(case.ids) // 2, len(case.ids))]
    assert growing == sorted(growing)
    assert growing[-1] == whole
    assert whole == reasoning_tokens(output)


def test_one_object_serves_several_choices() -> None:
    """Up to vLLM 0.30 all choices of a request share one parser."""
    outputs = of_family("qwen3")[:2]
    cases = [Case(output) for output in outputs]
    parser = cases[0].parser("qwen3")
    parser.set_prompt_token_ids(cases[0].prompt)
    for case in [*cases, *cases]:
        text = "".join(text for text, _ in case.deltas(1000))
        reasoning, content, _ = parser.parse(text, case.request, model_output_token_ids=case.ids)
        assert (reasoning or "", content) == (case.output.reasoning, case.output.content)
        assert bool(parser.reasoning_parser.count_reasoning_tokens(case.ids)) is bool(case.output.reasoning)


@pytest.mark.parametrize(
    ("fields", "offered"),
    [
        ({}, False),
        ({"tools": []}, False),
        ({"tools": TOOLS}, True),
        ({"tools": TOOLS, "tool_choice": "none"}, False),
        ({"tools": TOOLS, "tool_choice": "required"}, True),
        ({"tools": None, "tool_choice": "auto"}, False),
    ],
)
def test_whether_a_request_offers_tools(fields: dict[str, Any], offered: bool) -> None:
    assert offers_tools(SimpleNamespace(**fields)) is offered


@pytest.mark.parametrize(
    ("fields", "at_once"),
    [
        ({"response_format": {"type": "json_object"}, "include_reasoning": False}, True),
        ({"response_format": SimpleNamespace(type="json_schema"), "include_reasoning": False}, True),
        ({"structured_outputs": object(), "include_reasoning": False}, True),
        ({"response_format": {"type": "json_object"}, "include_reasoning": True}, False),
        ({"response_format": {"type": "text"}, "include_reasoning": False}, False),
        ({"response_format": None, "structured_outputs": None, "include_reasoning": False}, False),
        ({}, False),
    ],
)
def test_when_the_output_is_the_answer(fields: dict[str, Any], at_once: bool) -> None:
    assert answers_at_once(SimpleNamespace(**fields)) is at_once


@pytest.mark.parametrize("family", ["minimax", "gpt_oss", "muse_glimmer"])
def test_a_dictated_answer_is_shown_though_the_prompt_opened_a_block(family: str) -> None:
    eos = vocabulary_of(family).eos
    output = Output("dictated", family, '{"a": 1}' + eos, content='{"a": 1}')
    case = Case(output, response_format={"type": "json_object"}, include_reasoning=False)
    assert case.full(family).content == output.content
    for width in WIDTHS:
        assert case.streamed(family, width=width).content == output.content


@pytest.mark.parametrize(
    ("fields", "output", "context", "reason"),
    [
        ({"max_tokens": 5}, 5, None, "length"),
        ({"max_tokens": 5}, 4, None, None),
        ({"max_tokens": None, "max_completion_tokens": 3}, 3, None, "length"),
        ({"max_output_tokens": 3}, 3, None, "length"),
        ({}, 90, 100, "length"),
        ({}, 89, 100, None),
        ({}, 1000, None, None),
    ],
)
def test_a_cut_is_recognised_by_the_limits(
    fields: dict[str, Any], output: int, context: int | None, reason: str | None
) -> None:
    config = SimpleNamespace(max_model_len=context) if context else None
    assert finish_reason(SimpleNamespace(**fields), output, [0] * 10, config) == reason
    assert finish_reason(SimpleNamespace(**fields), output, [0] * 10, config, ended=True) is None


def test_the_servers_own_limit_cuts_too() -> None:
    """`max_new_tokens` of the generation config caps what a request asks for."""
    config = SimpleNamespace(get_diff_sampling_param=lambda: {"max_tokens": 5})
    assert finish_reason(SimpleNamespace(max_tokens=100), 5, [], config) == "length"
    assert finish_reason(SimpleNamespace(max_tokens=100), 4, [], config) is None


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_what_ends_an_output(family: str) -> None:
    tokenizer = byte_tokenizer(family)
    parser = reasoning_parser(family, tokenizer)
    eos = tokenizer.convert_tokens_to_ids(vocabulary_of(family).eos)
    assert parser.ended(eos, SimpleNamespace())
    assert parser.ended(7, SimpleNamespace(stop_token_ids=[7]))
    assert not parser.ended(7, SimpleNamespace(stop_token_ids=None))
    assert not parser.ended(None, SimpleNamespace())


def test_a_checkpoints_suffix_is_the_parsers_too() -> None:
    tokenizer = byte_tokenizer.__wrapped__("gpt_oss")
    tokenizer.add_tokens(["<think:lab>", "</think:lab>"])
    parser = reasoning_parser("hunyuan", tokenizer)
    assert (parser.reasoning_start_str, parser.reasoning_end_str) == ("<think:lab>", "</think:lab>")
    ids = tokenizer.encode("<think:lab>a</think:lab>", add_special_tokens=False)
    assert parser.is_reasoning_end_streaming(ids, ids[-1:])
    assert reasoning_parser("hunyuan", byte_tokenizer("hunyuan")).reasoning_start_str == "<think>"


class NoDecoder:
    """A tokenizer whose decoder fails for everything but a single token."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def decode(self, ids: Any, **kwargs: Any) -> str:
        if not isinstance(ids, int) and len(ids) != 1:
            raise OverflowError("out of range")
        return str(self._tokenizer.decode(ids, **kwargs))


@pytest.mark.parametrize("family", ["qwen3", "gemma4", "gpt_oss", "muse_glimmer"])
def test_ids_methods_never_raise(family: str, caplog: pytest.LogCaptureFixture) -> None:
    guard._logged.clear()
    parser = reasoning_parser(family, NoDecoder(byte_tokenizer(family)))
    ids = byte_tokenizer(family).encode("<think>a</think> to=f<|message|>b", add_special_tokens=False)
    for _ in range(2):
        assert parser.is_reasoning_end(ids) in (True, False)
        assert parser.is_reasoning_end_streaming(ids, ids[-2:]) in (True, False)
        assert parser.count_reasoning_tokens(ids) >= 0
    assert parser.is_reasoning_end([10**9]) in (True, False)
    faults = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(faults) == len({record.getMessage() for record in faults})  # each is told once


def test_a_list_that_the_caller_grows_is_counted_right() -> None:
    tokenizer = byte_tokenizer("qwen3")
    parser = reasoning_parser("qwen3", tokenizer)
    ids = tokenizer.encode("<think>Six.</think>42", add_special_tokens=False)
    grown: list[int] = []
    for number in ids:
        grown.append(number)
        counted = parser.count_reasoning_tokens(grown)
    assert counted == reasoning_parser("qwen3", tokenizer).count_reasoning_tokens(ids) == 4


@pytest.mark.parametrize("stop", [None, "abcdefgh", ["ab", "abcdefghijklmnop"]])
@pytest.mark.parametrize(
    "output", [o for o in ALL_OUTPUTS if o.reasoning], ids=lambda output: f"{output.family}-{output.name}"
)
def test_continuous_usage_never_goes_down(output: Output, stop: Any) -> None:
    """With stop strings the text comes after its ids: a blank before a closer was counted, and taken back."""
    case = Case(output, stop=stop)
    lag = max(map(len, [stop] if isinstance(stop, str) else stop or [""])) - 1 if stop else 0
    parser = case.parser(f"{output.family}_ext")
    late, seen, counts, deltas = "", [], [0], list(case.deltas(1))
    for at, (text, ids) in enumerate(deltas):
        late += text
        last = at == len(deltas) - 1
        shown = late if last or not lag else late[:-lag]
        late = late[len(shown) :]
        seen += ids
        parser.parse_delta(shown, ids, case.request, case.prompt, finished=last)
        counts.append(parser._reasoning_parser.count_reasoning_tokens(seen))
    assert counts == sorted(counts)
    assert counts[-1] == reasoning_tokens(output)


@pytest.mark.parametrize(
    ("arguments", "binds"),
    [
        (["--structured-outputs-config", '{"enable_in_reasoning": true}'], True),
        (['--structured-outputs-config={"backend": "xgrammar", "enable_in_reasoning": true}'], True),
        (["--structured_outputs_config", '{"enable_in_reasoning": true}'], True),
        (["--structured-outputs-config.enable_in_reasoning", "true", "--port", "1"], True),
        (["--structured-outputs-config.enable_in_reasoning=True"], True),
        (["--structured-outputs-config.enable-in-reasoning", "false"], False),
        (["--structured-outputs-config", '{"enable_in_reasoning": false}'], False),
        (["--structured-outputs-config", "not json"], False),
        (["--structured-outputs-config"], False),
        (["--port", "1"], False),
    ],
)
def test_whether_a_servers_grammars_bind_in_reasoning(arguments: list[str], *, binds: bool) -> None:
    assert enabled_in_reasoning(["api_server.py", *arguments]) is binds


@pytest.mark.parametrize("family", ["deepseekv32", "minimax"])
def test_a_grammar_that_binds_in_reasoning_makes_the_json_the_answer(
    monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    monkeypatch.setattr("vllm_reasoning_ext.engines.vllm.message.binds_in_reasoning", lambda: True)
    eos = vocabulary_of(family).eos
    output = Output("dictated", family, '{"a": 1}' + eos, content='{"a": 1}', kwargs={"thinking": True})
    case = Case(output, response_format={"type": "json_object"})
    assert case.full(family) == ("", output.content, ())
    for width in WIDTHS:
        assert case.streamed(family, width=width) == ("", output.content, ())
    plain = Case(output)
    assert plain.full(family).reasoning == output.content  # without a grammar the prompt's block is open
