"""The byte tokenizer that other tests and the demo build on is exact."""

from pathlib import Path

import pytest

pytest.importorskip("transformers")
pytest.importorskip("jinja2")

from transformers import AutoTokenizer

from tests.support.byte_tokenizer import VOCABULARIES, byte_tokenizer

TEXT = "naïve 😀\x00\n</think <|chann el| ｜DSML ｜"
"""No control spelling: multi-byte characters, a NUL and halves of markers."""

each_vocabulary = pytest.mark.parametrize("vocabulary", VOCABULARIES)


@each_vocabulary
def test_control_tokens_have_their_true_ids_and_text_is_one_token_a_byte(vocabulary: str) -> None:
    tokenizer, ids = byte_tokenizer(vocabulary), VOCABULARIES[vocabulary].ids
    assert {text: tokenizer(text, add_special_tokens=False).input_ids for text in ids} == {
        t: [n] for t, n in ids.items()
    }
    plain = tokenizer(TEXT, add_special_tokens=False).input_ids
    assert len(plain) == len(TEXT.encode())
    assert tokenizer.decode(plain) == TEXT
    assert set(plain).isdisjoint(ids.values())


@each_vocabulary
def test_only_special_tokens_vanish(vocabulary: str) -> None:
    tokenizer, known = byte_tokenizer(vocabulary), VOCABULARIES[vocabulary]
    gone = {text for text, number in known.ids.items() if tokenizer.decode([number], skip_special_tokens=True) == ""}
    assert gone == set(known.special)


@each_vocabulary
def test_compact_ids_are_consecutive(vocabulary: str) -> None:
    tokenizer = byte_tokenizer(vocabulary, compact=True)
    count = 256 + len(VOCABULARIES[vocabulary].ids)
    assert sorted(tokenizer.get_vocab().values()) == list(range(count))
    text = TEXT.join(VOCABULARIES[vocabulary].ids)
    assert tokenizer.decode(tokenizer(text, add_special_tokens=False).input_ids) == text


@each_vocabulary
def test_a_saved_one_loads_again(vocabulary: str, tmp_path: Path) -> None:
    tokenizer = byte_tokenizer(vocabulary)
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded.get_vocab() == tokenizer.get_vocab()
    assert loaded.chat_template == tokenizer.chat_template
    assert loaded.eos_token == VOCABULARIES[vocabulary].eos
