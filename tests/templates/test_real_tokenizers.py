"""Real vocabularies: the documented control ids, and real id streams that quote the markers they also use."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

pytest.importorskip("transformers")
pytest.importorskip("jinja2")

from tests.support.byte_tokenizer import VOCABULARIES
from tests.support.conversations import render
from tests.support.real_tokenizers import PACKAGES, real_tokenizer
from vllm_reasoning_ext import Splitter, start_state


@pytest.fixture(scope="module", params=PACKAGES)
def vocabulary(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def tokenizer(vocabulary: str) -> Any:
    return real_tokenizer(vocabulary)


def test_every_control_spelling_is_one_token_with_the_documented_id(vocabulary: str, tokenizer: Any) -> None:
    known = VOCABULARIES[vocabulary]
    assert {text: tokenizer.recognise(text) for text in known.ids} == {t: [n] for t, n in known.ids.items()}
    assert {text: tokenizer.decode([n], skip_special_tokens=False) for text, n in known.ids.items()} == {
        text: text for text in known.ids
    }
    assert {text for text, n in known.ids.items() if tokenizer.decode([n]) == ""} == set(known.special)


def test_a_quoted_marker_holds_no_control_id(vocabulary: str, tokenizer: Any) -> None:
    known = VOCABULARIES[vocabulary].ids
    for text in known:
        ids = tokenizer.spell(text)
        assert set(ids).isdisjoint(known.values())
        assert tokenizer.decode(ids) == text


@pytest.mark.parametrize(
    ("vocabulary", "kwargs", "conversation", "state"),
    [
        ("qwen3", {}, "user_quotes_open", "undecided"),
        ("qwen3", {"enable_thinking": False}, "tool_result_quotes_open", "content"),
        ("qwen3", {}, "cfm-reasoning:thought", "reasoning"),
        ("deepseekv32/v4", {"revision": "v4"}, "user_quotes_open", "reasoning"),
        ("deepseekv32/v4", {"revision": "v4", "thinking": False}, "prior_assistant_quotes_open", "content"),
        ("deepseekv32/v4", {"revision": "v4"}, "open:thought", "reasoning"),
        ("gpt_oss", {}, "tool_result_quotes_open", "header"),
        ("gpt_oss", {}, "cfm:content", "content"),
        ("gpt_oss", {}, "cfm-reasoning:thought", "reasoning"),
    ],
)
def test_the_start_state_is_read_from_real_prompt_ids(
    vocabulary: str, kwargs: dict[str, Any], conversation: str, state: str
) -> None:
    tokenizer, family = real_tokenizer(vocabulary), vocabulary.partition("/")[0]
    ids = tokenizer.recognise(render(family, conversation, kwargs))
    assert start_state(None, family, prompt_token_ids=ids, tokenizer=tokenizer).kind == state


class Stream(NamedTuple):
    """A model's output: pieces in brackets are control tokens, all else is written out in ordinary tokens."""

    vocabulary: str
    prompt: str
    pieces: tuple[str | list[str], ...]
    reasoning: str
    content: str


_CALL = '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>'
_HARMONY_CALL = '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"q": "<|call|>"}<|call|>'

STREAMS = {
    "qwen3 quotes its tags and a tool tag": Stream(
        "qwen3",
        "<|im_start|>assistant\n",
        (["<think>"], "\nThe tag </think> ends it, <tool_call> calls.\n", ["</think>"],
         "\n\nWrite <think> and </think>, naïve 😀.", ["<|im_end|>"]),
        "The tag </think> ends it, <tool_call> calls.",
        "Write <think> and </think>, naïve 😀.",
    ),
    "qwen3 quotes its end of sequence": Stream(
        "qwen3",
        "<|im_start|>assistant\n<think>\n\n</think>\n\n",
        ("A turn ends in <|im_end|>", ["<|im_end|>"]),
        "",
        "A turn ends in <|im_end|>",
    ),
    "deepseek quotes its tags": Stream(
        "deepseekv32/v4",
        "<｜Assistant｜><think>",
        ("Is </think> or ｜DSML｜ meant? 思考", ["</think>"], "Write <think>.", ["<｜end▁of▁sentence｜>"]),
        "Is </think> or ｜DSML｜ meant? 思考",
        "Write <think>.",
    ),
    "deepseek calls a tool in the open block": Stream(
        "deepseekv32/v4",
        "<｜Assistant｜><think>",
        ("Look it up.\n\n<", ["｜DSML｜"], "tool_calls>\n<", ["｜DSML｜"], 'invoke name="f">\n</',
         ["｜DSML｜"], "invoke>\n</", ["｜DSML｜"], "tool_calls>", ["<｜end▁of▁sentence｜>"]),
        "Look it up.",
        _CALL,
    ),
    "deepseek quotes a whole tool call in the block": Stream(
        "deepseekv32/v4",
        "<｜Assistant｜><think>",
        (f"Not yet: {_CALL}", ["</think>"], "Done."),
        f"Not yet: {_CALL}",
        "Done.",
    ),
    "gpt-oss quotes its control tokens": Stream(
        "gpt_oss",
        "<|start|>assistant",
        (["<|channel|>"], "analysis", ["<|message|>"],
         "They typed <|end|> and <|channel|>final<|message|>, 😀.",
         ["<|end|>"], ["<|start|>"], "assistant", ["<|channel|>"], "final", ["<|message|>"],
         "It is <|return|> or <|start|>assistant.", ["<|return|>"]),
        "They typed <|end|> and <|channel|>final<|message|>, 😀.",
        "It is <|return|> or <|start|>assistant.",
    ),
    "gpt-oss quotes a stop token in a call": Stream(
        "gpt_oss",
        "<|start|>assistant",
        (["<|channel|>"], "analysis", ["<|message|>"], "Call f.", ["<|end|>"], ["<|start|>"], "assistant",
         ["<|channel|>"], "commentary to=functions.f ", ["<|constrain|>"], "json", ["<|message|>"],
         '{"q": "<|call|>"}', ["<|call|>"]),
        "Call f.",
        _HARMONY_CALL,
    ),
}  # fmt: skip


def _deltas(tokenizer: Any, ids: list[int], size: int) -> Iterator[tuple[str, list[int]]]:
    """Cut ids into groups and detokenise as an engine does: an incomplete character waits for its rest."""
    shown = ""
    for at in range(0, len(ids), size):
        text = tokenizer.decode(ids[: at + size], skip_special_tokens=False)
        text = shown if text.endswith("\ufffd") else text
        yield text[len(shown) :], ids[at : at + size]
        shown = text


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("name", STREAMS)
def test_only_control_ids_are_markers(name: str, size: int) -> None:
    stream = STREAMS[name]
    tokenizer, family = real_tokenizer(stream.vocabulary), stream.vocabulary.partition("/")[0]
    known = VOCABULARIES[stream.vocabulary].ids
    ids = [
        n for piece in stream.pieces for n in (tokenizer.spell(piece) if isinstance(piece, str) else [known[piece[0]]])
    ]
    splitter = Splitter(family, prompt=stream.prompt, tokenizer=tokenizer)
    deltas = [splitter.feed(text, token_ids=part) for text, part in _deltas(tokenizer, ids, size)]
    deltas.append(splitter.finish())
    assert "".join(d.reasoning for d in deltas) == stream.reasoning
    assert "".join(d.content for d in deltas) == stream.content
    whole = tokenizer.decode(ids, skip_special_tokens=False)
    assert "".join(e.text for d in deltas for e in d.events if not e.synthetic) == whole
