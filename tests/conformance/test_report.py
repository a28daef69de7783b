"""The reports: model text cannot break them, failing cells come first, each with the command that tries it again."""

import json
import shlex
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

pytest.importorskip("jinja2")

from vllm_reasoning_ext.conformance.conform import Cell, Row
from vllm_reasoning_ext.conformance.modes import Mode
from vllm_reasoning_ext.conformance.report import Report, as_data, as_junit
from vllm_reasoning_ext.conformance.report_html import as_html
from vllm_reasoning_ext.core.state import StartState

EVIL = "</span><script>alert(1)</script>&<img src=x onerror=y>\x1b[31m\x00\ufffe"
WRONG = Cell("quotes", "answer", (f"the content should be 'x', is {EVIL!r}",), EVIL, (("content", EVIL),), 3)
RIGHT = Cell("user", "answer", (), "A", (("marker", "<think>\n"), ("reasoning", "A")), 3)
REPORT = Report(
    "qwen3",
    "a dir/t.jinja",
    "",
    {"revision": "3.5"},
    "jinja2 3",
    ("<|eom|>",),
    [
        Row(Mode("user", ()), "tail", StartState("undecided"), "", {"answer": RIGHT}),
        Row(Mode("quotes", ()), EVIL, StartState("undecided", reason=EVIL), "", {"answer": WRONG}),
        Row(Mode("tools", ()), "", None, f"refused {EVIL}", {}),
    ],
)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_html_escapes_what_the_model_wrote_and_loads_nothing() -> None:
    page = as_html(REPORT)
    tags = _Tags()
    tags.feed(page)
    assert {"script", "img", "link", "iframe"}.isdisjoint(tags.tags)
    assert {"src", "href", "onerror"}.isdisjoint(tags.attributes)
    assert not any(loads in page for loads in ("http://", "https://", "url(", "@import"))
    assert "<script>alert(1)</script>" in "".join(tags.text)
    assert "\x1b" not in page
    assert "\x00" not in page


def test_html_shows_the_wrong_cell_first_with_its_command_and_the_refused_mode() -> None:
    page = as_html(REPORT)
    assert page.index("What is wrong") < page.index("quotes × answer") < page.index("Modes by outputs")
    # In the matrix too: the failing mode stands above the one that is right.
    matrix = page[page.index("Modes by outputs") :]
    assert matrix.index(">quotes<") < matrix.index(">user<")
    assert "--mode quotes --output answer" in page
    assert "Modes the template refuses" in page
    assert '<span class="reasoning">A</span>' in page
    assert '<span class="marker">&lt;think&gt;\\n</span>' in page


def test_the_command_can_be_pasted_into_a_shell() -> None:
    words = shlex.split(REPORT.command(WRONG))
    assert words[:2] == ["vllm-reasoning-ext", "conform"]
    assert words[words.index("--template") + 1] == "a dir/t.jinja"
    assert words[words.index("--set") + 1] == "revision=3.5"
    assert words[-4:] == ["--mode", "quotes", "--output", "answer"]


def test_junit_has_one_case_a_cell() -> None:
    suite = ElementTree.fromstring(as_junit(REPORT))
    found = {case.attrib["name"]: [child.tag for child in case] for case in suite.iter("testcase")}
    assert found == {
        "control token <|eom|>": ["failure"],
        "user | answer": [],
        "quotes | answer": ["failure"],
        "tools": ["skipped"],
    }
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["skipped"]) == ("4", "2", "1")


def test_json_says_all_of_it() -> None:
    document = json.loads(json.dumps(as_data(REPORT)))
    assert document["right"] is False
    assert document["missing_control_tokens"] == ["<|eom|>"]
    quotes = next(mode for mode in document["modes"] if mode["mode"] == "quotes")
    assert quotes["cells"][0]["text"] == EVIL
    assert "reproduce" in quotes["cells"][0]
    assert "reproduce" not in document["modes"][0]["cells"][0]
    assert document["modes"][2]["refused"].startswith("refused")


@pytest.mark.parametrize(
    ("rows", "missing", "right"),
    [
        (REPORT.rows[:1], (), True),
        (REPORT.rows[:2], (), False),
        (REPORT.rows[:1], ("<|eom|>",), False),
        (REPORT.rows[2:], (), False),  # a template that refuses everything is not right
    ],
)
def test_right_means_something_was_tried_and_nothing_failed(
    rows: list[Row], missing: tuple[str, ...], right: bool
) -> None:
    assert REPORT._replace(rows=rows, missing=missing).right is right
