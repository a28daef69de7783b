"""The package's own templates pass `conform`, every family and revision, with the true token ids."""

from typing import Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("jinja2")

from tests.support.byte_tokenizer import byte_tokenizer
from vllm_reasoning_ext.conformance.conform import COLUMNS, Kit, run
from vllm_reasoning_ext.conformance.report import Report
from vllm_reasoning_ext.conformance.templates import template_names, template_path

CHECKED: dict[str, dict[Any, Any]] = {}
"""What has been fed already, by vocabulary: revisions of a family start in the same few states."""

# template, revision, vocabulary, the modes it must refuse
REVISIONS: list[tuple[str, str, str, set[str]]] = [
    ("deepseekv32", "v3.2", "deepseekv32", {"continue-thought"}),
    # V3.1 writes no thought into finished turns, so that none can be continued.
    (
        "deepseekv32",
        "v3.1",
        "deepseekv32",
        {"continue-thought", "continue-thought enable_thinking=true", "continue-thought thinking_mode=thinking"},
    ),
    ("deepseekv32", "v4", "deepseekv32/v4", set()),
    ("deepseekv32", "v4.1", "deepseekv32/v4", set()),
    ("qwen3", "2504", "qwen3", set()),
    ("qwen3", "2507-thinking", "qwen3", set()),
    ("qwen3", "2507-instruct", "qwen3", set()),
    ("qwen3", "3.5", "qwen3/3.5", set()),
    ("qwen3", "3.6", "qwen3/3.5", set()),
    ("qwen3", "3.8", "qwen3/3.5", {"user reasoning_effort=high"}),
    (
        "qwen3",
        "3.8-max",
        "qwen3/3.5",
        {
            "user reasoning_effort=high",
            "user enable_thinking=false",
            "tool-result enable_thinking=false",
            "continue-answer enable_thinking=false",
        },
    ),
    ("glm", "4.5", "glm", set()),
    ("glm", "4.6", "glm", set()),
    ("glm", "4.7", "glm", set()),
    ("glm", "5", "glm/5", set()),
    ("glm", "5.1", "glm/5", set()),
    ("glm", "5.2", "glm/5", set()),
    ("glm", "5.3", "glm/5", set()),
    ("minimax", "m2", "minimax", set()),
    ("minimax", "no-think", "minimax", set()),
    ("minimax_m3", "", "minimax_m3", set()),
    ("gemma4", "31b", "gemma4", set()),
    ("gemma4", "e4b", "gemma4", set()),
    ("gemma4", "early", "gemma4", set()),
    ("gpt_oss", "", "gpt_oss", set()),
    ("muse_glimmer", "", "muse_glimmer", set()),
]


def test_every_packaged_template_is_among_them() -> None:
    assert {template for template, *_ in REVISIONS} == set(template_names())


@pytest.mark.parametrize(
    ("template", "revision", "vocabulary", "refuses"),
    [pytest.param(*row, id=f"{row[0]}-{row[1]}") for row in REVISIONS],
)
def test_template_and_parser_agree(template: str, revision: str, vocabulary: str, refuses: set[str]) -> None:
    kit = Kit(
        template,
        template_path(template).read_text(encoding="utf-8"),
        kwargs={"revision": revision} if revision else {},
        tokenizer=byte_tokenizer(vocabulary),
        checked=CHECKED.setdefault(vocabulary, {}),
    )
    rows = run(kit, kit.modes)
    report = Report(template, template, vocabulary, {}, "", tuple(kit.missing_ids()), rows)
    assert [(cell.mode, cell.output, cell.problems) for cell in report.wrong] == []
    assert {row.mode.name for row in report.refused} == refuses
    assert report.right
    # Something was tried: the start of every mode, ids against quoted markers, and the template's own form.
    assert {"start", "quoted markers", "own form", "own form, call"} <= set(report.columns) <= set(COLUMNS)
