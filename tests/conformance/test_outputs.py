"""The kit's scripted outputs are split as they say, for every family and every start, without a template."""

from collections.abc import Iterator

import pytest

from vllm_reasoning_ext.conformance.char_tokenizer import CharTokenizer
from vllm_reasoning_ext.conformance.outputs import CALLS, Output, outputs_of
from vllm_reasoning_ext.conformance.runner import replay
from vllm_reasoning_ext.conformance.script import QUOTED
from vllm_reasoning_ext.core.families import FAMILIES
from vllm_reasoning_ext.core.splitter import Splitter
from vllm_reasoning_ext.core.start import start_state

WITHOUT_CALLS = {"kimi", "rwkv"}
"""Families whose models write none."""


def endings(name: str) -> Iterator[str]:
    record = FAMILIES[name]
    turn = record.turn_openers[0] if record.turn_openers else ""
    if record.channels:
        yield turn + "assistant"
        return
    opener, closer = record.pairs[0]
    yield from (turn, turn + opener + "\n", turn + opener + closer, f"{turn}{opener}{closer}Begun")


def spans(output: Output) -> list[tuple[int, int]]:
    """Find where the characters stand that are spelled from ordinary tokens."""
    found, removed = [], 0
    for match in QUOTED.finditer(output.script):
        start = match.start() - removed
        found.append((start, start + len(match[1])))
        removed += 2
    return found


@pytest.mark.parametrize("name", FAMILIES)
def test_every_output_is_split_as_it_says(name: str) -> None:
    record = FAMILIES[name]
    tokenizer = CharTokenizer.of_family(name)
    end = next(iter(record.end_of_sequence), "") if not record.channels else ""
    wrong, tried = [], 0
    for prompt in endings(name):
        for output in outputs_of(record, start_state(prompt, name), end):
            tokens = list(tokenizer.tokens(output.text, spans(output)))
            ways = [("ids", [(token.text, [token.id]) for token in tokens])]
            if not output.ids:
                ways.append(("text", [(c, None) for c in output.text]))
            for way, deltas in ways:
                got = replay(Splitter(name, prompt, tokenizer=tokenizer if way == "ids" else None), deltas)
                tried += 1
                if (got.reasoning, got.content) != (output.reasoning, output.content):
                    wrong.append((prompt, output.name, way, got.reasoning, got.content))
    assert wrong == []
    assert tried >= 15


def test_every_family_that_calls_has_a_call() -> None:
    marker = {name for name, record in FAMILIES.items() if not record.channels}
    assert set(CALLS) == marker - WITHOUT_CALLS
