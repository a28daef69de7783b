"""Markers with a suffix of the checkpoint's own (SPEC 5.5): the vocabulary tells which, else the known ones count."""

import pytest

from vllm_reasoning_ext import FAMILIES, Splitter, split
from vllm_reasoning_ext.conformance.char_tokenizer import CharTokenizer
from vllm_reasoning_ext.core.families import check_record, resolve_family
from vllm_reasoning_ext.core.suffix import fitted
from vllm_reasoning_ext.derive.choice import choose

HUNYUAN = FAMILIES["hunyuan"]


class Checkpoint(CharTokenizer):
    """A tokenizer that can list its tokens."""

    def get_added_vocab(self) -> dict[str, int]:
        return self.ids

    get_vocab = get_added_vocab


def of(*suffixes: str) -> Checkpoint:
    texts = ("<think{}>", "</think{}>", "<tool_calls{}>", "</tool_calls{}>", "<｜hy_Assistant{}｜>", "<｜hy_eos{}｜>")
    return Checkpoint(text.format(suffix) for suffix in suffixes for text in texts)


@pytest.mark.parametrize("suffix", ["", ":opensource", ":internal-7b"])
def test_the_vocabulary_tells_the_suffix(suffix: str) -> None:
    tokenizer = of(suffix)
    record = resolve_family("hunyuan", tokenizer)
    check_record(record)
    assert record.pairs == ((f"<think{suffix}>", f"</think{suffix}>"),)
    assert record.turn_openers == (f"<｜hy_Assistant{suffix}｜>",)
    assert [(tool.marker, tool.closers) for tool in record.tools] == [
        (f"<tool_calls{suffix}>", (f"</tool_calls{suffix}>",))
    ]
    assert (record.reasoning_start_str, record.reasoning_end_str) == (f"<think{suffix}>", f"</think{suffix}>")
    assert record.end_of_sequence == (f"<｜hy_eos{suffix}｜>",)
    assert fitted(HUNYUAN, tokenizer) is record


def test_an_output_of_such_a_checkpoint_is_split() -> None:
    tokenizer = of(":v9")
    call = "<tool_calls:v9>\n<tool_call:v9>f<tool_sep:v9>\n</tool_call:v9>\n</tool_calls:v9>"
    output = f"a <think>, </think:opensource>\n{call}<｜hy_eos:v9｜>"
    splitter = Splitter("hy_v3", "<｜hy_Assistant:v9｜><think:v9>", tokenizer=tokenizer)
    assert splitter.start.kind == "reasoning"
    parts = [splitter.feed(token.text, [token.id]) for token in tokenizer.tokens(output)]
    parts.append(splitter.finish())
    assert "".join(part.reasoning for part in parts) == "a <think>, </think:opensource>"
    assert "".join(part.content for part in parts) == call


@pytest.mark.parametrize("tokenizer", [None, CharTokenizer(["<think:v9>"]), of("", ":opensource"), of()])
def test_without_one_answer_the_known_suffixes_count(tokenizer: CharTokenizer | None) -> None:
    """No tokenizer, one that lists no tokens, two suffixes, none: the record as it is."""
    assert resolve_family(HUNYUAN, tokenizer) is HUNYUAN
    assert split("<think:opensource>a</think:opensource>b", "hunyuan").reasoning == "a"
    assert split("<think>a</think>b", "hunyuan").reasoning == "a"


def test_a_family_without_suffixes_is_never_changed() -> None:
    assert fitted(FAMILIES["qwen3"], of(":v9")) is FAMILIES["qwen3"]


def test_auto_knows_such_a_checkpoint_by_its_vocabulary() -> None:
    chosen = choose(None, of(":v9"))
    assert chosen.family is not None
    assert (chosen.family.name, chosen.family.opener) == ("hunyuan", "<think:v9>")
