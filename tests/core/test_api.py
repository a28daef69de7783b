"""The public API as SPEC section 3 names it: names, types, errors with a remedy; the core needs nothing installed."""

import ast
import inspect
import sys
import typing
from dataclasses import replace
from pathlib import Path

import pytest

import vllm_reasoning_ext as package
from vllm_reasoning_ext import (
    CONTENT,
    FAMILIES,
    MARKER,
    REASONING,
    Delta,
    Event,
    Family,
    Splitter,
    register_family,
    split,
)
from vllm_reasoning_ext.conformance.char_tokenizer import CharTokenizer
from vllm_reasoning_ext.core.families import LEFT_OUT, get_family, infer_by_name, names
from vllm_reasoning_ext.core.reading.markers import MarkerSet
from vllm_reasoning_ext.core.record import Tool

CORE = Path(package.__file__).parent / "core"


@pytest.mark.parametrize("file", sorted(CORE.rglob("*.py")), ids=lambda file: file.name)
def test_core_imports_the_standard_library_only(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found = [node.module or ""]
        else:
            continue
        for module in found:
            own = module.startswith("vllm_reasoning_ext.core")
            assert own or module.split(".")[0] in sys.stdlib_module_names, f"{file.name} imports {module}"


@pytest.mark.parametrize(
    "name", ["Splitter", "split", "start_state", "infer_family", "register_family", "FAMILIES", "StreamTextAccumulator"]
)
def test_public_names(name: str) -> None:
    assert name in package.__all__
    assert getattr(package, name).__doc__


@pytest.mark.parametrize(
    "function",
    [Splitter.__init__, Splitter.feed, Splitter.finish, split, package.start_state, register_family],
    ids=lambda function: function.__qualname__,
)
def test_everything_public_is_typed(function: typing.Callable[..., object]) -> None:
    hints = typing.get_type_hints(function)
    parameters = [name for name in inspect.signature(function).parameters if name != "self"]
    assert hints.keys() == {*parameters, "return"}
    assert (Path(package.__file__).parent / "py.typed").exists()


def test_options_are_the_documented_ones() -> None:
    documented = (
        "family prompt prompt_token_ids force_reasoning tools tokenizer marker_ids stream_reasoning turn_openers floor "
        "joiner tags where unclosed max_buffer_bytes"
    )
    assert set(documented.split()) <= inspect.signature(Splitter).parameters.keys()


def test_a_delta_is_its_events() -> None:
    delta = split("<think>a</think>b", "qwen3")
    events = (Event(MARKER, "<think>"), Event(REASONING, "a"), Event(MARKER, "</think>"), Event(CONTENT, "b"))
    assert delta == Delta(events)
    assert (delta.reasoning, delta.content) == ("a", "b")
    assert delta != events
    assert bool(delta)
    assert not Delta()
    assert repr(Delta()) == "Delta(reasoning='', content='', events=())"
    live = Splitter("qwen3", force_reasoning=True)
    assert live.feed("x").events == live.feed("x").events == (Event(REASONING, "x"),)
    assert live.feed("</think>y").content == live.feed("y").content == "y"
    assert live.feed("z").events == (Event(CONTENT, "z"),)
    with pytest.raises(TypeError):
        hash(delta)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"family": "qwen"}, "unknown reasoning family 'qwen'. Did you mean 'qwen3'"),
        ({"family": "zzz"}, "unknown reasoning family 'zzz'. Known names: apertus"),
        ({"family": "qwen3", "floor": "up"}, "floor must be"),
        ({"family": "inline", "where": "up"}, "where='up' is unknown"),
        ({"family": "inline", "unclosed": "up"}, "unclosed='up' is unknown"),
        ({"family": "inline", "tags": [("a",)]}, "is no tag pair"),
        ({"family": "qwen3", "prompt_token_ids": [1]}, "need a tokenizer"),
        ({"family": "inline", "prompt": "x"}, "prompt: 'inline' reads tags in the output alone"),
        ({"family": "inline", "tools": False, "turn_openers": ("a",)}, "tools, turn_openers: 'inline'"),
    ],
)
def test_misuse_names_the_remedy(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError) as error:
        Splitter(**options)  # type: ignore[arg-type]
    assert words in str(error.value)


def test_the_floor_says_that_it_happened() -> None:
    splitter = Splitter("qwen3", force_reasoning=True, floor="promote")
    assert splitter.feed("only this").content == ""
    assert splitter.finish("stop").content == "only this"
    assert splitter.floored
    splitter = Splitter("qwen3", force_reasoning=True, floor="promote")
    assert not splitter.feed("")
    assert not splitter.finish("stop")
    assert not splitter.floored


def test_a_delta_belongs_to_who_asked_for_it() -> None:
    """What one caller does to the delta that it was given shows nowhere else."""
    splitter = Splitter("qwen3")
    empty = splitter.feed("")
    empty.content = "changed"
    assert splitter.feed("").content == Splitter("qwen3").feed("").content == ""


def test_one_further_turn_opener_may_be_a_string() -> None:
    assert Splitter("qwen3", prompt="q<asst><think>", turn_openers="<asst>").start.kind == "reasoning"
    assert package.start_state("<asst><think>x", "qwen3", turn_openers="<asst>").body_begun


def test_inline_is_no_family() -> None:
    with pytest.raises(ValueError, match="no family with markers"):
        get_family("inline")


def test_names_hold_the_aliases() -> None:
    engines = {name for record in FAMILIES.values() for name in record.engine_names}
    assert {"glm", "gpt-oss", *FAMILIES, *engines} == set(names())
    assert len(names()) == len(set(names()))
    assert get_family("glm") is FAMILIES["qwen3"]
    assert Splitter("glm").family == "qwen3"


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("glm45", "qwen3"),
        ("mimo", "qwen3"),
        ("deepseek-v41", "deepseekv32"),
        ("deepseek-r1", "deepseek_r1"),
        ("openai_gptoss", "gpt_oss"),
        ("hy_v4", "hunyuan"),
    ],
)
def test_a_name_of_an_engine_is_known(name: str, family: str) -> None:
    assert get_family(name) is FAMILIES[family]
    assert Splitter(name).family == family


@pytest.mark.parametrize("name", sorted(LEFT_OUT))
def test_a_name_that_would_mislead_says_why(name: str) -> None:
    """One name, two meanings, or no split at all: it is refused with its reason, and is no family's."""
    assert name not in names()
    with pytest.raises(ValueError, match=r"is an engine's parser, not a family: (in|under)"):
        get_family(name)


def test_a_family_is_one_record() -> None:
    own = Family(name="own", opener="<<", closer=">>", aliases=("mine",), turn_openers=("[A]",))
    try:
        registered = register_family(own)
        assert (registered.reasoning_start_str, registered.reasoning_end_str) == ("<<", ">>")
        assert register_family(own) == registered
        delta = split("<<a>>b<tool_call>", "mine", prompt="[Q]<<[A]")
        assert (delta.reasoning, delta.content) == ("a", "b<tool_call>")
    finally:
        FAMILIES.pop("own", None)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"grammar": "atem"}, "only marker families"),
        ({"opener": ""}, "two different markers"),
        ({"closer": "<think>"}, "two different markers"),
        ({"call_shapes": ()}, "needs call_shapes"),
        ({"name": "own", "turn_openers": "<asst>"}, r"turn_openers must be a tuple, e\.g\. \('<asst>',\)"),
        ({"name": "own", "opener": ("<a>",)}, "opener must be a string"),
        ({"name": "own_ext"}, "'_ext' is what engines"),
        ({"name": "own", "tool_marker": "<think>"}, "tool_marker '<think>' is an opener or closer"),
        ({"name": "own", "opener": "</thi"}, "'</thi' begins the marker '</think>'"),
        ({"name": "own", "more_pairs": (("<x>", "<x>"),)}, "opener and closer are '<x>'"),
        ({"name": "own", "more_pairs": (("<x>", ""),)}, "two different markers"),
        ({"name": "own", "more_tools": (Tool("<x>", ()),)}, "a Tool needs a marker and shapes"),
        ({"name": "inline"}, "is taken"),
        ({"name": "own", "aliases": ("gpt-oss",)}, "is taken"),
        ({"name": "own", "aliases": ("qwen3",)}, "is taken"),
        ({"name": "own", "aliases": ("glm45",)}, "is taken"),
        ({"name": "own", "engine_names": ("glm",)}, "is taken"),
    ],
)
def test_a_wrong_record_is_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        register_family(replace(FAMILIES["qwen3"], **change))  # type: ignore[arg-type]
    assert "own" not in FAMILIES


@pytest.mark.parametrize("spellings", [("",), ("a", "")])
def test_a_marker_is_not_empty(spellings: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="may be empty"):
        MarkerSet(spellings)


def test_without_markers_nothing_is_found_or_held() -> None:
    none = MarkerSet(())
    assert none.absent("a<b")
    assert none.find("a<b") == (-1, -1)
    assert none.partial("a<b") == 3


def test_the_longest_hold_is_kept() -> None:
    splitter = Splitter("qwen3", force_reasoning=True)
    for part in ("a", " ", "\n", "</thi", "x"):
        splitter.feed(part)
    assert splitter.max_held == 7
    assert splitter.held == 0
    assert Splitter("inline").held == 0


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("openai/gpt-oss-20b", "gpt_oss"),
        ("Muse-Glimmer-30B", "muse_glimmer"),
        ("deepseek-ai/DeepSeek-V3.2", "deepseekv32"),
        ("deepseek-ai/DeepSeek-V3.1", "qwen3"),
        ("DeepSeek-R1-Distill-Qwen-1.5B", "qwen3"),
        ("Qwen/QwQ-32B", "qwen3"),
        ("MiniMax-M3", "minimax_m3"),
        ("MiniMax-M2.7", "minimax"),
        ("google/gemma-4-31b-it", "gemma4"),
        ("moonshotai/Kimi-K2-Thinking", "kimi_k2"),
        ("Kimi-K2-Instruct", None),
        ("Kimi-K3", "kimi_k3"),
        ("ByteDance-Seed/Seed-OSS-36B-Instruct", "seed_oss"),
        ("mistralai/Magistral-Small-2506", "mistral"),
        ("Mistral-Small-24B", None),
        ("c4ai-command-r7b-12-2024", "cohere"),
        ("NVIDIA-Nemotron-Nano-9B-v2", "nemotron_nano_v2"),
        ("NVIDIA-Nemotron-3-Nano-30B", "qwen3"),
        ("granite-3.2-8b-instruct", "granite"),
        ("granite-3.3-8b", "granite33"),
        ("Step-3.5-Flash", "qwen3"),
        ("stepfun-ai/Step-3", "step3"),
        ("Ling-3.0", "ling3"),
        ("handling-3", None),
        ("iflytek/Spark-2.5", "spark25"),
        ("Muse-Spark-2.5", None),
        ("meta/llama-3", None),
    ],
)
def test_the_name_decides_and_says_why(name: str, family: str | None) -> None:
    found, reason = infer_by_name(name)
    assert found == family
    assert repr(name) in reason


class Listener:
    """Writes down what an observer hears."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def spelling(self, marker: str, position: int, real: bool | None) -> None:
        self.heard.append((marker, position, real))

    def text_alone(self, why: str) -> None:
        self.heard.append(why)


def test_an_observer_hears_how_each_spelling_is_read() -> None:
    tokenizer = CharTokenizer.of_family("qwen3")
    splitter, listener = Splitter("qwen3", force_reasoning=True, tokenizer=tokenizer), Listener()
    splitter.observe(listener)
    splitter.feed("a</think>", [ord(c) for c in "a</think>"])
    splitter.feed("b</thi", [98, *map(ord, "</thi"), tokenizer.ids["</think>"]])
    splitter.finish()
    assert listener.heard == [("</think>", 1, None), ("</think>", 15, True)]
    splitter, listener = Splitter("qwen3", force_reasoning=True, tokenizer=tokenizer), Listener()
    splitter.observe(listener)
    splitter.feed("a", [97, tokenizer.ids["<think>"]])
    splitter.finish()
    assert listener.heard == ["control tokens of the output have no text"]
    Splitter("inline").observe(listener)


@pytest.mark.parametrize(
    "option",
    [{"tags": "<a>...</a>"}, {"where": "head"}, {"unclosed": "content"}, {"max_buffer_bytes": 5}],
    ids=lambda option: next(iter(option)),
)
def test_options_of_inline_go_with_no_other_family(option: dict[str, typing.Any]) -> None:
    assert Splitter("inline", **option).family == "inline"
    with pytest.raises(ValueError, match="go with 'inline' only, not with 'qwen3'"):
        Splitter("glm", **option)
