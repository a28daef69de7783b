"""The result of `conform` as one HTML file: failing cells first, then modes by outputs with the split in colour."""

from html import escape
from typing import Final

from vllm_reasoning_ext._version import __version__
from vllm_reasoning_ext.conformance.conform import START, Cell, Row
from vllm_reasoning_ext.conformance.report import Report

_STYLE: Final = """
:root { color-scheme: light dark; --bg: #fff; --fg: #1d2330; --soft: #667085; --line: #d5dae3; --panel: #f6f7f9;
  --think: #5b4bb7; --thinkbg: #efedfb; --tool: #7a4a00; --toolbg: #fdf1dc; --mark: #fff; --markbg: #5f6b7d;
  --good: #11734b; --bad: #b3261e; --badbg: #fdecea; }
@media (prefers-color-scheme: dark) { :root { --bg: #14171d; --fg: #e4e7ec; --soft: #98a2b3; --line: #343b48;
  --panel: #1c2028; --think: #c3b8ff; --thinkbg: #2a2547; --tool: #ffd18a; --toolbg: #3a2c12; --mark: #14171d;
  --markbg: #98a2b3; --good: #5fd39f; --bad: #ff8a80; --badbg: #3d1f1d; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1.5rem 2rem 4rem; background: var(--bg); color: var(--fg);
  font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
p { margin: .3rem 0; } .soft { color: var(--soft); } .good { color: var(--good); } .bad { color: var(--bad); }
.verdict { font-weight: 650; font-size: 1.05rem; }
code, pre, .split, .tail { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
code { font-size: .86em; } pre { margin: .4rem 0; padding: .6rem .8rem; background: var(--panel); overflow-x: auto;
  border: 1px solid var(--line); border-radius: 6px; font-size: 12.5px; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.split { font-size: 12px; line-height: 1.55; white-space: pre-wrap; overflow-wrap: anywhere; }
.split span { border-radius: 3px; padding: 0 1px; }
.reasoning { color: var(--think); background: var(--thinkbg); font-style: italic; }
.tool { color: var(--tool); background: var(--toolbg); outline: 1px solid var(--tool); outline-offset: -1px; }
.marker { color: var(--mark); background: var(--markbg); } .added { text-decoration: underline dotted; }
.legend span { margin-right: .6rem; }
.failure { border: 1px solid var(--bad); background: var(--badbg); border-radius: 8px; padding: .7rem 1rem;
  margin: .7rem 0; }
.failure h3 { margin: 0 0 .3rem; font-size: 1rem; } .failure ul { margin: .2rem 0 .4rem; padding-left: 1.2rem; }
.frame { overflow: auto; max-height: 88vh; border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: separate; border-spacing: 0; }
th, td { border-right: 1px solid var(--line); border-bottom: 1px solid var(--line); padding: .45rem .6rem;
  text-align: left; vertical-align: top; background: var(--bg); }
thead th { position: sticky; top: 0; z-index: 2; background: var(--panel); white-space: nowrap; }
th:first-child { position: sticky; left: 0; z-index: 1; background: var(--panel); min-width: 17rem; max-width: 17rem; }
thead th:first-child { z-index: 3; }
td { min-width: 15rem; max-width: 22rem; } td.start { min-width: 9rem; } td.none { color: var(--soft); }
td .split { max-height: 11.5em; overflow: auto; } td.wrong { background: var(--badbg); }
.tail { font-size: 11.5px; color: var(--soft); font-weight: 400; white-space: pre-wrap; overflow-wrap: anywhere; }
.mode { font-weight: 600; } .note { font-size: 12px; color: var(--soft); }
li { overflow-wrap: anywhere; }
"""


def as_html(report: Report) -> str:
    """Write the report as one HTML document that loads nothing; all model and template text is escaped."""
    title = f"conform: {report.family}"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        _head(report),
        _failures(report),
        _matrix(report),
        _refused(report),
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _head(report: Report) -> str:
    verdict = '<span class="good">everything agrees</span>' if report.right else '<span class="bad">not right</span>'
    settings = " ".join(f"{name}={value}" for name, value in report.kwargs.items())
    facts = [
        f"template <code>{escape(report.template)}</code>",
        f"tokenizer <code>{escape(report.tokenizer)}</code>"
        if report.tokenizer
        else "no tokenizer: text alone decides",
        f"set <code>{escape(settings)}</code>" if settings else "",
        f"rendered through {escape(report.through)}",
        f"vllm-reasoning-ext {__version__}",
    ]
    legend = (
        '<p class="split legend"><span class="reasoning">reasoning</span><span>answer</span>'
        '<span class="tool">tool call</span><span class="marker">marker, shown nowhere</span>'
        '<span class="added">added by the splitter</span></p>'
    )
    return (
        f"<h1>{escape(report.family)}: template and parser</h1>\n"
        f'<p class="verdict">{verdict}: {escape(report.summary())}</p>\n'
        f'<p class="soft">{"; ".join(fact for fact in facts if fact)}</p>\n{legend}'
    )


def _failures(report: Report) -> str:
    blocks = [
        f'<div class="failure"><h3>control token {_quoted(marker)}</h3><p>The tokenizer has no single id for it, so a '
        "marker the model quotes cannot be told from a real one. Use the tokenizer the model came with.</p></div>"
        for marker in report.missing
    ]
    for cells in report.alike:
        cell = cells[0]
        problems = "".join(f"<li>{escape(_shown(problem))}</li>" for problem in cell.problems)
        others = ", ".join(other.mode for other in cells[1:])
        also = f'<p class="note">the same in: {escape(others)}</p>' if others else ""
        blocks.append(
            f'<div class="failure"><h3>{escape(cell.mode)} × {escape(cell.output)}</h3><ul>{problems}</ul>'
            f"{_split(cell)}{also}<pre>{escape(report.command(cell))}</pre></div>"
        )
    return "<h2>What is wrong</h2>\n" + "\n".join(blocks) if blocks else ""


def _matrix(report: Report) -> str:
    columns = report.columns
    if not columns:
        return ""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    # Failing modes first: nobody should have to look for them.
    rows = sorted(
        (row for row in report.rows if row.start is not None),
        key=lambda row: not any(cell.problems for cell in row.cells.values()),
    )
    body = "\n".join(_row(row, columns) for row in rows)
    return (
        "<h2>Modes by outputs</h2>\n<p class='soft'>Each cell shows the split of what a model may write from there; "
        "“own form” is the turn as the template itself writes it. — : this output cannot follow this start.</p>\n"
        f'<div class="frame"><table><thead><tr><th>mode, end of the prompt</th>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _row(row: Row, columns: list[str]) -> str:
    cells = "".join(_cell(row, row.cells.get(column)) for column in columns)
    head = f'<div class="mode">{escape(row.mode.name)}</div><div class="tail">…{_quoted(row.tail)}</div>'
    return f"<tr><th>{head}</th>{cells}</tr>"


def _cell(row: Row, cell: Cell | None) -> str:
    if cell is None:
        return '<td class="none">—</td>'
    mark = '<span class="bad">✗ wrong</span>' if cell.problems else '<span class="good">✓</span>'
    note = f'<div class="note">{escape(cell.note)}</div>' if cell.note else ""
    if cell.output == START and row.start is not None:
        begun = ", answer begun" if row.start.answer_begun else ""
        shown = f'<div>{escape(row.start.kind)}{begun}</div><div class="note">{escape(_shown(row.start.reason))}</div>'
        return f'<td class="start{" wrong" if cell.problems else ""}">{mark}{shown}{note}</td>'
    ways = f' <span class="note">{cell.ways} ways</span>'
    return f'<td class="{"wrong" if cell.problems else ""}">{mark}{ways}{_split(cell)}{note}</td>'


def _split(cell: Cell) -> str:
    spans = []
    for kind, text in cell.split:
        names = kind.lstrip("+") + (" added" if kind.startswith("+") else "")
        shown = _quoted(text) if kind.lstrip("+") == "marker" else escape(_shown(text, newlines=True))
        spans.append(f'<span class="{names}">{shown}</span>')
    return f'<div class="split">{"".join(spans)}</div>' if spans else ""


def _refused(report: Report) -> str:
    if not report.refused:
        return ""
    items = "".join(f"<li><b>{escape(row.mode.name)}</b>: {escape(_shown(row.refused))}</li>" for row in report.refused)
    return f"<h2>Modes the template refuses</h2>\n<ul>{items}</ul>"


def _quoted(text: str) -> str:
    return escape(_shown(text))


def _shown(text: str, *, newlines: bool = False) -> str:
    """Spell control characters out; a newline stays one only where lines are wanted."""
    plain = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return "".join(
        c if c.isprintable() or c == " " or (newlines and c == "\n") else plain.get(c) or ascii(c)[1:-1] for c in text
    )
