"""Token ids that the tokenizer cannot decode: the text decides, and nothing raises."""

import pytest

from tests.support.byte_tokenizer import byte_tokenizer
from vllm_reasoning_ext import Splitter
from vllm_reasoning_ext.core.count import ReasoningTokenCounter
from vllm_reasoning_ext.core.ids import marker_ids


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
