"""Outputs nobody thought of, through vLLM's composed parsers: reasoning and answer are what the core says."""

from typing import Any

import pytest

pytest.importorskip("vllm", reason="needs vLLM: bash tests/envs/vllm.sh builds its environment")

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.byte_tokenizer import vocabulary_of
from tests.support.more_outputs import TOOL_PARSERS
from tests.support.strategies import fragments
from tests.support.vllm_drive import WIDTHS, Case
from vllm_reasoning_ext import split
from vllm_reasoning_ext.core.families import FAMILIES
from vllm_reasoning_ext.demo.outputs import TOOLS, Output
from vllm_reasoning_ext.engines import register

pytestmark = pytest.mark.vllm

register.register_vllm()

SWITCHES = [{"thinking": True, "enable_thinking": True}, {"thinking": False, "enable_thinking": False}]


def scripts(family: str) -> st.SearchStrategy[str]:
    """Draw an output: markers, real or quoted, halves, blanks, words, beginnings of calls and headers."""
    marker = st.sampled_from(FAMILIES[family].markers)
    piece = st.one_of(fragments(family), marker.map(lambda text: f"‹{text}›"))
    usable = piece.filter(lambda text: len(text) < 200 and (text.isprintable() or text.isspace()))
    return st.lists(usable, max_size=8).map(lambda parts: "".join(parts) + vocabulary_of(family).eos)


@pytest.mark.parametrize("family", sorted(FAMILIES))
@settings(max_examples=30, deadline=None, derandomize=True)
@given(data=st.data())
def test_the_composed_parser_splits_as_the_core(family: str, data: Any) -> None:
    output = Output("drawn", family, data.draw(scripts(family)), kwargs=data.draw(st.sampled_from(SWITCHES)))
    for tools in (None, TOOLS):
        case = Case(output, tools=tools, skip_special_tokens=False)
        tool = TOOL_PARSERS.get(family) if tools else None
        text = "".join(text for text, _ in case.deltas(1000))
        core = split(
            text,
            family,
            prompt_token_ids=case.prompt,
            token_ids=case.ids,
            tokenizer=case.tokenizer,
            tools=tools is not None,
        )
        name = f"{family}_ext"
        replies = [case.full(name, tool), *(case.streamed(name, tool, width) for width in WIDTHS)]
        assert [reply.reasoning for reply in replies] == [core.reasoning] * len(replies)
        if tool is None:
            assert [reply.content for reply in replies] == [core.content] * len(replies)
        elif not replies[0].calls:
            assert replies[0].content == core.content  # nothing is lost where there is no call
