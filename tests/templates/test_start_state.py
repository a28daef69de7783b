"""The start state is read from every ending the templates can write, as text and as token ids."""

import pytest

pytest.importorskip("transformers")
pytest.importorskip("jinja2")

from tests.support.byte_tokenizer import VOCABULARIES, byte_tokenizer
from tests.support.conversations import render
from tests.support.endings import ENDINGS
from tests.support.recorded import RECORDED, recorded
from vllm_reasoning_ext import start_state


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("form", ["text", "ids"])
def test_of_every_documented_ending(vocabulary: str, form: str) -> None:
    family = vocabulary.partition("/")[0]
    tokenizer = byte_tokenizer(vocabulary)
    rows = [row for row in ENDINGS if row.family == family]
    wrong = []
    for row in rows:
        rendered = render(family, row.conversation, row.kwargs)
        if form == "text":
            state = start_state(rendered, family)
        else:
            ids = tokenizer(rendered, add_special_tokens=False).input_ids
            state = start_state(None, family, prompt_token_ids=ids, tokenizer=tokenizer)
        if state.kind != row.state or row.answer_begun not in (None, state.answer_begun):
            wrong.append((row.name, row.ending, state))
    assert rows
    assert wrong == []


@pytest.mark.skipif(not RECORDED.exists(), reason="needs ../shared/cases/prompt_tails.jsonl beside the repository")
def test_of_every_recorded_ending() -> None:
    states = [(row, start_state(row.rendered, row.family).kind) for row in recorded()]
    assert [(row.id, row.mode, row.rendered[-80:], row.state, kind) for row, kind in states if kind != row.state] == []
    assert len(states) >= 890
