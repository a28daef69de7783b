"""The own chat templates end like the real ones, in every mode, rendered by transformers."""

from collections import Counter
from typing import Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("jinja2")

from tests.support.conversations import TURN_OPENERS, after_last_opener, render
from tests.support.endings import ENDINGS, Ending
from tests.support.recorded import RECORDED, recorded

each_ending = pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in ENDINGS])


@each_ending
def test_the_prompt_ends_as_documented(row: Ending) -> None:
    rendered = render(row.family, row.conversation, row.kwargs)
    assert after_last_opener(rendered, row.family) == row.ending
    assert rendered.endswith(row.tail)


@each_ending
def test_content_in_parts_and_the_other_reasoning_field_render_the_same(row: Ending) -> None:
    plain = render(row.family, row.conversation, row.kwargs)
    assert render(row.family, row.conversation, row.kwargs, reasoning="reasoning") == plain
    assert render(row.family, row.conversation, row.kwargs, parts=True) == plain


@pytest.mark.skipif(not RECORDED.exists(), reason="needs ../shared/cases/prompt_tails.jsonl beside the repository")
def test_the_recorded_endings_of_the_real_templates_are_reproduced(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = recorded()
    compared = Counter(row.family for row in rows)
    whole = sum(row.rendered.endswith(row.tail) for row in rows)
    with capsys.disabled():
        print(
            f"\n{compared.total()} recorded endings compared, {whole} equal over the whole recorded tail:",
            dict(compared),
        )
    wrong = [
        (row.id, row.mode, row.ending, row.rendered[-80:])
        for row in rows
        if after_last_opener(row.rendered, row.family) != row.ending
    ]
    assert wrong == []
    assert compared.keys() == TURN_OPENERS.keys()
    assert compared.total() >= 890


@pytest.mark.parametrize(
    ("family", "kwargs", "problem"),
    [
        ("qwen3", {"revision": "9"}, "unknown revision 9"),
        ("qwen3", {"revision": "3.8", "reasoning_effort": "high"}, "low, medium or xhigh"),
        ("qwen3", {"revision": "3.8-max", "enable_thinking": False}, "cannot switch thinking off"),
        ("glm", {"revision": "9"}, "unknown revision 9"),
        ("minimax", {"revision": "9"}, "unknown revision 9"),
        ("gemma4", {"revision": "9"}, "unknown revision 9"),
        ("deepseekv32", {"revision": "9"}, "unknown revision 9"),
    ],
)
def test_a_mode_that_does_not_exist_is_refused(family: str, kwargs: dict[str, Any], problem: str) -> None:
    with pytest.raises(Exception, match=problem):
        render(family, "user_last", kwargs)
