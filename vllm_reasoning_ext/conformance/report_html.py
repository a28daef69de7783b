"""The result of `conform` as one HTML file: a map of the cells, what is wrong, then every split."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, Final

from vllm_reasoning_ext._version import __version__
from vllm_reasoning_ext.conformance.conform import START, Cell, Row
from vllm_reasoning_ext.conformance.report import Report

TEMPLATE: Final = "report.html.jinja"

_WORDS: Final = re.compile(r"\w+|\W")


def as_html(report: Report) -> str:
    """Write the report as one HTML document that loads nothing and runs nothing.

    All text of models, templates and tokenizers is escaped, and control characters in it are spelled out.
    """
    import jinja2  # conform has rendered a template with it already; library users may not have it

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("vllm_reasoning_ext.conformance", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"shown": shown, "lines": _lines}
    page: str = environment.get_template(TEMPLATE).render(
        report=report,
        version=__version__,
        settings=" ".join(f"{name}={value}" for name, value in report.kwargs.items()),
        # Wrong modes first: nobody should have to look for them.
        rows=sorted((row for row in report.rows if row.start is not None), key=lambda row: not _wrong(row)),
        wrong=_wrong,
        pieces=_pieces,
        diffs=_diffs,
        START=START,
    )
    return page


def _wrong(row: Row) -> bool:
    return any(cell.problems for cell in row.cells.values())


def _pieces(cell: Cell) -> Iterator[tuple[str, str]]:
    """List (CSS classes, text) of a cell's split."""
    for kind, text in cell.split:
        name = kind.lstrip("+")
        yield name + (" added" if kind != name else ""), shown(text) if name == "marker" else _lines(text)


def _diffs(cell: Cell) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """List ("reasoning" | "answer", parts) of what differs; a part is ("same" | "missing" | "extra", text)."""
    for name, want, got in zip(("reasoning", "answer"), cell.expected or (), cell.actual, strict=False):
        if want != got:
            yield name, list(difference(want, got))


def difference(want: str, got: str) -> Iterator[tuple[str, str]]:
    """Compare two texts word by word.

    Returns:
        parts ("same" | "missing" | "extra", text); "missing" stands in `want` only, "extra" in `got` only.
    """
    left, right = _WORDS.findall(want), _WORDS.findall(got)
    for tag, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            yield "same", "".join(left[a:b])
            continue
        if a < b:
            yield "missing", "".join(left[a:b])
        if c < d:
            yield "extra", "".join(right[c:d])


def shown(text: Any) -> str:
    """Spell control characters out, newlines too."""
    return _spelled(str(text), "")


def _lines(text: str) -> str:
    return _spelled(text, "\n")


def _spelled(text: str, keep: str) -> str:
    plain = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return "".join(c if c in keep or c.isprintable() else plain.get(c) or ascii(c)[1:-1] for c in text)
