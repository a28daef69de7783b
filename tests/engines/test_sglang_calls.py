"""Answers and calls in any order, through this package and SGLang's own tool parsers: whole and streaming alike.

The outputs come from `sglang_dialects`.
"""

from collections.abc import Iterator
from typing import Final

import pytest

pytest.importorskip("sglang")

from tests.engines.replay import tokenizer_of
from tests.engines.sglang_dialects import DIALECTS, THINKING, Dialect, drawn, expected, written
from tests.engines.sglang_drive import Reply, streamed_reply, whole_reply
from vllm_reasoning_ext.conformance.script import CUT, script_ids
from vllm_reasoning_ext.demo.outputs import FUNCTION, Output
from vllm_reasoning_ext.demo.tiny_model import encode
from vllm_reasoning_ext.engines.register import register_sglang
from vllm_reasoning_ext.engines.sglang import handoff as sglang_handoff
from vllm_reasoning_ext.engines.sglang import output as sglang_output

pytestmark = pytest.mark.sglang

register_sglang()

WIDTHS: Final = (1, 3, 8, 1000)
EVERY: Final = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: f"{dialect.family}-{dialect.parser}")


@pytest.fixture(autouse=True)
def _no_output_left_over() -> Iterator[None]:
    yield
    sglang_output.set_current(None)
    sglang_handoff.set_current(None)


def replies(output: Output, dialect: Dialect) -> dict[str, Reply]:
    streams = {f"interval {width}": streamed_reply(output, dialect.parser, width) for width in WIDTHS}
    return {"whole": whole_reply(output, dialect.parser), **streams}


@EVERY
def test_answers_and_calls_in_any_order(dialect: Dialect) -> None:
    for seed in range(25):
        pieces = drawn(dialect, seed)
        output = written(dialect, pieces)
        shown, calls = expected(dialect, pieces)
        for road, reply in replies(output, dialect).items():
            where = f"seed {seed}, {road}: {output.script!r}"
            assert reply.reasoning == "Six.", where
            assert (reply.content, reply.arguments) == (shown, calls), where
            assert {name for name, _ in reply.calls} <= {FUNCTION}, where


def cuts(family: str, script: str) -> list[str]:
    """Cut a script after every token, but for those inside a quoted marker."""
    tokenizer = tokenizer_of(family)

    def ids(text: str) -> list[int]:
        return script_ids(text, lambda part: encode(tokenizer, part))

    written = ids(script)
    heads = (script[:at] for at in range(1, len(script)))
    return [f"{head}{CUT}{script[len(head) :]}" for head in heads if written[: len(ids(head))] == ids(head)]


@EVERY
def test_every_cut_is_the_same_whole_and_streaming(dialect: Dialect) -> None:
    for seed in range(2):
        pieces = drawn(dialect, seed)
        script = written(dialect, pieces).script
        cities = [piece.city for piece in pieces if piece.city is not None]
        for cut in cuts(dialect.family, script):
            output = Output("cut", dialect.family, cut, kwargs=THINKING)
            whole, *streams = replies(output, dialect).values()
            where = f"seed {seed}: {output.script!r}"
            assert streams == [whole] * len(streams), where
            assert len(whole.calls) <= len(cities), where
            # Nothing is shown that the model did not write, in its order; but for the core's joiner, a newline.
            rest = iter(output.text)
            assert all(char in rest for char in whole.content.replace("\n", "")), where
