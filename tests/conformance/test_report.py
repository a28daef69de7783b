"""The reports: model text cannot break them, failing cells come first, each with the command that tries it again."""

import json
import re
import shlex
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

pytest.importorskip("jinja2")

from vllm_reasoning_ext.conformance.conform import Cell, Row
from vllm_reasoning_ext.conformance.modes import Mode
from vllm_reasoning_ext.conformance.report import Report, as_data, as_junit
from vllm_reasoning_ext.conformance.report_html import as_html, difference
from vllm_reasoning_ext.core.state import StartState

EVIL = "</span><script>alert(1)</script>&<img src=x onerror=y>\x1b[31m\x00\ufffe"
WRONG = Cell(
    *("quotes", "answer", (f"the content should be 'x', is {EVIL!r}",), EVIL, (("content", EVIL),), 3),
    expected=("", "x y"),
)
RIGHT = Cell("user", "answer", (), "A", (("marker", "<think>\n"), ("reasoning", "A")), 3, f"a note {EVIL}", ("A", ""))
REPORT = Report(
    "muse_glimmer",
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
    "1 May 2026",
)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.links += [value or "" for name, value in attrs if name == "href"]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_html_escapes_what_the_model_wrote_and_loads_nothing() -> None:
    page = as_html(REPORT)
    tags = _Tags()
    tags.feed(page)
    assert {"script", "img", "link", "iframe"}.isdisjoint(tags.tags)
    assert {"src", "onerror"}.isdisjoint(tags.attributes)
    assert all(link.startswith("#") for link in tags.links)
    assert not any(loads in page for loads in ("http://", "https://", "url(", "@import"))
    assert "<script>alert(1)</script>" in "".join(tags.text)
    assert "\x1b" not in page
    assert "\x00" not in page


def test_html_begins_with_a_map_whose_every_square_leads_to_its_cell() -> None:
    page = as_html(REPORT)
    assert page.startswith("<!doctype html>")
    assert page.index("Map of all cells") < page.index("What is wrong")
    tags = _Tags()
    tags.feed(page)
    assert len(tags.links) == 2  # two cells
    assert set(tags.links) <= {f"#{name}" for name in tags.ids}
    assert [title for title in ("quotes, answer: wrong", "user, answer: right, with a note") if title in page] == [
        *("quotes, answer: wrong", "user, answer: right, with a note")
    ]


def test_html_tells_expected_from_actual_notes_and_date() -> None:
    page = as_html(REPORT)
    failure = page[page.index("quotes × answer") : page.index("Notes (1)")]
    assert "<ins>&lt;/span&gt;&lt;script&gt;alert(1)&lt;/script&gt;" in failure
    assert "<script" not in failure
    assert "a note &lt;/span&gt;" in page[page.index("Notes (1)") : page.index("Modes by outputs")]
    assert "1 May 2026" in page
    assert "1 note" in page


def test_html_can_hide_what_is_right_without_a_script() -> None:
    page = as_html(REPORT)
    assert 'type="checkbox" id="only"' in page
    assert "#only:checked ~ .all .right { display: none; }" in page
    matrix = page[page.index("Modes by outputs") :]
    assert re.findall(r"<tr( class=\"right\")?><th><div class=\"mode\">(\w+)", matrix) == [
        ("", "quotes"),
        (' class="right"', "user"),
    ]


@pytest.mark.parametrize(
    ("want", "got", "parts"),
    [
        ("a b c", "a b c", [("same", "a b c")]),
        ("a b c", "a x c", [("same", "a "), ("missing", "b"), ("extra", "x"), ("same", " c")]),
        ("", "a", [("extra", "a")]),
        ("a\n", "a", [("same", "a"), ("missing", "\n")]),
    ],
)
def test_a_difference_names_what_is_missing_and_what_is_too_much(
    want: str, got: str, parts: list[tuple[str, str]]
) -> None:
    assert list(difference(want, got)) == parts


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
    assert document["missing_is_wrong"] is True
    assert document["missing_control_tokens"] == ["<|eom|>"]
    quotes = next(mode for mode in document["modes"] if mode["mode"] == "quotes")
    assert quotes["cells"][0]["text"] == EVIL
    assert "reproduce" in quotes["cells"][0]
    assert quotes["cells"][0]["expected"] == {"reasoning": "", "content": "x y"}
    assert quotes["cells"][0]["actual"] == {"reasoning": "", "content": EVIL}
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


def test_markers_without_ids_are_wrong_only_where_text_cannot_tell() -> None:
    # `doctor` says WARN of the same fact: a <think> family is split by its text (SPEC section 2, law 5).
    report = REPORT._replace(family="qwen3", rows=REPORT.rows[:1], missing=("<think>",))
    assert report.right
    assert report.summary().startswith("1 of 1 cell right in 1 mode (3 replays)")
    suite = ElementTree.fromstring(as_junit(report))
    assert (suite.attrib["failures"], suite.attrib["skipped"]) == ("0", "1")
    assert "the text decides" in as_html(report)
    channels = report._replace(family="muse_glimmer")
    assert not channels.right
    assert channels.summary().startswith("1 control token missing in the tokenizer; ")


def test_a_template_that_refuses_everything_is_said_so() -> None:
    assert REPORT._replace(rows=REPORT.rows[2:]).summary() == (
        "1 control token missing in the tokenizer; nothing could be tried: 1 mode refused by the template"
    )
