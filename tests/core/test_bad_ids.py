"""Token ids that the tokenizer cannot decode: the text decides, and nothing raises."""

import pytest

from tests.support.byte_tokenizer import byte_tokenizer
from vllm_reasoning_ext import Splitter
from vllm_reasoning_ext.core.count import ReasoningTokenCounter
from vllm_reasoning_ext.core.reading.ids import marker_ids


@pytest.mark.parametrize("bad", [-5, 2**40])
def test_an_id_of_no_vocabulary(bad: int) -> None:
    tokenizer = byte_tokenizer("qwen3")
    opener = marker_ids("qwen3", tokenizer)["<think>"]
    splitter = Splitter("qwen3", tokenizer=tokenizer)
    deltas = [splitter.feed("<think>a</think>", [opener, bad]), splitter.feed("b", [bad]), splitter.finish()]
    assert "".join(d.reasoning for d in deltas) == "a"
    assert "".join(d.content for d in deltas) == "b"
    counter = ReasoningTokenCounter("qwen3", marker_ids("qwen3", tokenizer), splitter.start, tokenizer.decode)
    assert counter.feed([opener, *tokenizer.encode("ab"), bad]) == 3
    assert counter.finish() == 2  # an id without text is no token of reasoning


@pytest.mark.parametrize("bad", [-5, 2**40])
def test_bad_ids_of_a_plain_output(bad: int) -> None:
    splitter = Splitter("qwen3", tokenizer=byte_tokenizer("qwen3"))
    deltas = [splitter.feed("a plain answer", [bad]), splitter.feed(" of two", [bad]), splitter.finish()]
    assert "".join(d.content for d in deltas) == "a plain answer of two"
    assert [d.plain for d in deltas] == [False, True, False]


def test_a_token_may_lie_on_both_sides_of_a_boundary() -> None:
    """A tokenizer without ids for the markers: every id is read, and a token counts if any of it is reasoning."""

    def decode(ids: list[int]) -> str:
        return "".join(["<think>a", "b</think>c", "d"][number] for number in ids)

    counter = ReasoningTokenCounter("qwen3", {}, Splitter("qwen3").start, decode)
    assert [counter.feed([0]), counter.feed([1, 2]), counter.finish()] == [1, 2, 2]
