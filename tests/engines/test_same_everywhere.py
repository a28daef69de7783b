"""The same outputs give the same reasoning and content through the library, vLLM's parsers and SGLang's."""

from typing import Any, Final

import pytest

from tests.engines.replay import pieces, prompt_ids, raw, tokenizer_of
from tests.support.more_outputs import ALL_OUTPUTS
from vllm_reasoning_ext import Splitter, split
from vllm_reasoning_ext.demo.outputs import Output

Split = tuple[str, str]

OUTPUT: Final = pytest.mark.parametrize("output", ALL_OUTPUTS, ids=lambda output: f"{output.family}-{output.name}")
WIDTH: Final = pytest.mark.parametrize("width", [1, 3, 1000])


def deltas(output: Output, width: int) -> list[tuple[str, list[int]]]:
    """Cut an output into deltas: new text, new ids."""
    cut, known = [], 0
    for text, ids in pieces(output, width):
        cut.append((text, ids[known:]))
        known = len(ids)
    return cut


def options(output: Output) -> dict[str, Any]:
    return {
        "prompt_token_ids": prompt_ids(output),
        "tokenizer": tokenizer_of(output.family),
        "tools": bool(output.cities),
    }


def library(output: Output, width: int) -> Split:
    splitter = Splitter(output.family, **options(output))
    parts = [splitter.feed(text, token_ids=ids) for text, ids in deltas(output, width)]
    parts.append(splitter.finish("length" if output.cut else "stop"))
    return "".join(part.reasoning for part in parts), "".join(part.content for part in parts)


def library_whole(output: Output) -> Split:
    ((text, ids),) = deltas(output, 1_000_000)
    got = split(text, output.family, token_ids=ids, **options(output))
    return got.reasoning, got.content


@OUTPUT
@WIDTH
def test_library(output: Output, width: int) -> None:
    assert library(output, width) == library_whole(output) == (output.reasoning, raw(output))


@pytest.mark.vllm
@OUTPUT
@WIDTH
def test_vllm(output: Output, width: int) -> None:
    pytest.importorskip("vllm")
    from tests.support.vllm_drive import Case
    from vllm_reasoning_ext.engines.register import register_vllm

    register_vllm()
    case = Case(output)
    parser = case.parser(output.family)
    cut = deltas(output, width)
    messages = [
        parser.parse_delta(text, ids, case.request, case.prompt, finished=at == len(cut) - 1)
        for at, (text, ids) in enumerate(cut)
    ]
    got = [message for message in messages if message is not None]
    streamed = "".join(m.reasoning or "" for m in got), "".join(m.content or "" for m in got)
    assert streamed == library(output, width)


@pytest.mark.sglang
@OUTPUT
@WIDTH
def test_sglang(output: Output, width: int) -> None:
    pytest.importorskip("sglang")
    from tests.engines import sglang_drive
    from vllm_reasoning_ext.engines.register import register_sglang
    from vllm_reasoning_ext.engines.sglang import output as sglang_output

    register_sglang()
    try:
        got = sglang_drive.streamed(sglang_drive.parser_for(output), output, width)
        assert sglang_drive.joined(got) == library(output, width)
        sglang_output.set_current(None)
        assert sglang_drive.whole(sglang_drive.parser_for(output), output) == library_whole(output)
    finally:
        sglang_output.set_current(None)
