"""The same wires give the same reasoning and content through the library, vLLM's parsers and SGLang's."""

from typing import Any, Final

import pytest

from tests.engines.replay import pieces, prompt_ids, raw, tokenizer_of
from tests.support.more_wires import ALL_WIRES
from vllm_reasoning_ext import Splitter, split
from vllm_reasoning_ext.serve.wires import Wire

Split = tuple[str, str]

WIRE: Final = pytest.mark.parametrize("wire", ALL_WIRES, ids=lambda wire: f"{wire.family}-{wire.name}")
WIDTH: Final = pytest.mark.parametrize("width", [1, 3, 1000])


def deltas(wire: Wire, width: int) -> list[tuple[str, list[int]]]:
    """Cut an output into deltas: new text, new ids."""
    cut, known = [], 0
    for text, ids in pieces(wire, width):
        cut.append((text, ids[known:]))
        known = len(ids)
    return cut


def options(wire: Wire) -> dict[str, Any]:
    return {
        "prompt_token_ids": prompt_ids(wire),
        "tokenizer": tokenizer_of(wire.family),
        "tools": bool(wire.cities),
    }


def library(wire: Wire, width: int) -> Split:
    splitter = Splitter(wire.family, **options(wire))
    parts = [splitter.feed(text, token_ids=ids) for text, ids in deltas(wire, width)]
    parts.append(splitter.finish("length" if wire.cut else "stop"))
    return "".join(part.reasoning for part in parts), "".join(part.content for part in parts)


def library_whole(wire: Wire) -> Split:
    ((text, ids),) = deltas(wire, 1_000_000)
    got = split(text, wire.family, token_ids=ids, **options(wire))
    return got.reasoning, got.content


@WIRE
@WIDTH
def test_library(wire: Wire, width: int) -> None:
    assert library(wire, width) == library_whole(wire) == (wire.reasoning, raw(wire))


@pytest.mark.vllm
@WIRE
@WIDTH
def test_vllm(wire: Wire, width: int) -> None:
    pytest.importorskip("vllm")
    from tests.support.vllm_drive import Case
    from vllm_reasoning_ext.engines.register import register_vllm

    register_vllm()
    case = Case(wire)
    parser = case.parser(wire.family)
    cut = deltas(wire, width)
    messages = [
        parser.parse_delta(text, ids, case.request, case.prompt, finished=at == len(cut) - 1)
        for at, (text, ids) in enumerate(cut)
    ]
    got = [message for message in messages if message is not None]
    streamed = "".join(m.reasoning or "" for m in got), "".join(m.content or "" for m in got)
    assert streamed == library(wire, width)


@pytest.mark.sglang
@WIRE
@WIDTH
def test_sglang(wire: Wire, width: int) -> None:
    pytest.importorskip("sglang")
    from tests.engines import sglang_drive
    from vllm_reasoning_ext.engines import sglang_output
    from vllm_reasoning_ext.engines.register import register_sglang

    register_sglang()
    try:
        got = sglang_drive.streamed(sglang_drive.parser_for(wire), wire, width)
        assert sglang_drive.joined(got) == library(wire, width)
        sglang_output.set_current(None)
        assert sglang_drive.whole(sglang_drive.parser_for(wire), wire) == library_whole(wire)
    finally:
        sglang_output.set_current(None)
