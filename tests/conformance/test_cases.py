"""Every conformance case, cut in every way; and that a malformed case is named."""

import json
from collections import Counter
from pathlib import Path

import pytest

from vllm_reasoning_ext import FAMILIES
from vllm_reasoning_ext.conformance.char_tokenizer import CharTokenizer
from vllm_reasoning_ext.conformance.runner import Case, check_case, id_ways, load_cases, text_ways

CASES = load_cases()


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_case(case: Case) -> None:
    assert [str(difference) for difference in check_case(case)] == []


def test_the_cases_cover_every_family_and_say_why() -> None:
    per_family = Counter(case.family for case in CASES)
    assert per_family.keys() >= {*FAMILIES, "inline", "glm", "gpt-oss"}
    assert len(CASES) >= 400
    assert len({case.id for case in CASES}) == len(CASES)
    assert all(case.why.startswith(("SPEC", "faults")) for case in CASES)


GOOD = {"id": "x", "family": "qwen3", "why": "SPEC", "split": [["content", "ab"]]}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"split": [["marker", "a"], ["content", "b"]]}, "split"),
        ({"split": [["content", "a"]], "live": [["a", "a", ""]]}, "delta 1"),
        ({"start": "reasoning"}, "start state"),
        ({"family": "muse_glimmer", "recipients": ["f"]}, "recipients"),
        ({"ids": "only", "split": [["reasoning", "ab"]]}, "ids, whole"),
    ],
)
def test_a_wrong_case_is_told_apart(tmp_path: Path, change: dict[str, object], word: str) -> None:
    """The runner must be able to fail, in each of the ways it looks."""
    file = tmp_path / "wrong.jsonl"
    file.write_text(json.dumps(GOOD | change) + "\n", encoding="utf-8")
    (case,) = load_cases(file)
    assert any(word in str(difference) for difference in check_case(case))


@pytest.mark.parametrize(
    "line",
    ["{", "[]", json.dumps(GOOD | {"expected": 1}), json.dumps(GOOD | {"ids": "maybe"}), '{"id": "x"}'],
)
def test_a_malformed_case_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "bad.jsonl").write_text("\n" + line, encoding="utf-8")
    with pytest.raises(ValueError, match=r"bad\.jsonl:2"):
        load_cases(tmp_path)


def test_every_way_feeds_the_whole_output() -> None:
    tokenizer = CharTokenizer.of_family("qwen3")
    text = "<think>é</think>" + "x" * 9
    tokens = list(tokenizer.tokens(text, [(0, 7)]))
    ways = [*text_ways(text), *id_ways(tokens)]
    assert {"".join(part for part, _ in deltas) for _, deltas in ways} == {text}
    assert len(ways) == 3 + len(text) - 1 + 6 + len(tokens) - 1
    assert [token.id for token in tokens].count(tokenizer.ids["</think>"]) == 1
    assert tokenizer.decode([token.id for token in tokens]) == text
    assert tokenizer.decode([token.id for token in tokens], skip_special_tokens=True) == text.replace("</think>", "")
