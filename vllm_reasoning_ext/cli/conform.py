"""The command `conform`: does a chat template agree with a family's parser?"""

import json
import shlex
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import Progress

from vllm_reasoning_ext.cli import auto, paint
from vllm_reasoning_ext.cli.inputs import check_family
from vllm_reasoning_ext.cli.models import model_directory, model_files
from vllm_reasoning_ext.conformance.conform import COLUMNS, Cell, Kit, run
from vllm_reasoning_ext.conformance.modes import Mode
from vllm_reasoning_ext.conformance.render import read_template
from vllm_reasoning_ext.conformance.report import Report, as_data, as_junit, counted
from vllm_reasoning_ext.conformance.report_html import as_html
from vllm_reasoning_ext.conformance.templates import template_names, template_path
from vllm_reasoning_ext.conformance.tokenizers import load_tokenizer
from vllm_reasoning_ext.core.families import FAMILIES
from vllm_reasoning_ext.core.record import NO_REASONING
from vllm_reasoning_ext.errors import SetupError

EPILOG: Final = """\b
Examples:
  vllm-reasoning-ext conform --family qwen3 --template chat_template.jinja
  vllm-reasoning-ext conform --family glm --template ./model --tokenizer ./model --report out.html
  vllm-reasoning-ext conform --family qwen3 --template qwen3 --set revision=3.5 --junit out.xml

\b
The template is rendered in every mode it knows: user last, system, tools, a tool result
last, history with reasoning, thinking on and off, efforts, a continued answer or thought,
a user who quotes the markers. From each prompt the start state is read; then everything a
model of the family may write from there is fed whole, character by character, and cut at
every place, with token ids as well when a tokenizer is given. "own form" feeds what the
template itself writes for a finished turn, puts the split back into messages and renders
them again. A cell that is wrong prints the command that tries it alone.
"""

SHOWN_MAX: Final = 20
"""Kinds of wrong cells printed; the reports hold them all."""


def command(
    family: Annotated[str, typer.Option(metavar="NAME", help="The family the template is for; see `families`.")],
    template: Annotated[
        str, typer.Option(metavar="FILE|DIR|NAME", help="A Jinja file, a model directory, or a packaged template.")
    ],
    *,
    tokenizer: Annotated[str, typer.Option(metavar="DIR|NAME", help="The model's tokenizer: try token ids too.")] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A template variable for every mode; repeatable."),
    ] = None,
    mode: Annotated[str, typer.Option(metavar="NAME", help="Only this mode.")] = "",
    output: Annotated[str, typer.Option(metavar="NAME", help="Only this output.")] = "",
    report: Annotated[str, typer.Option(metavar="FILE", help="Write one self-contained HTML file.")] = "",
    junit: Annotated[str, typer.Option(metavar="FILE", help="Write JUnit XML, one test case a cell.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")] = False,
) -> None:
    """Check a chat template, and its tokenizer, against a family's parser in every mode."""
    name = family if auto.asked(family) else check_family(family)
    path = Path(template)
    if not path.exists() and template in template_names():
        path = template_path(template)
    elif not path.is_file():
        path = model_directory(template, "--template")
    text, tokens = read_template(path)
    loaded = load_tokenizer(model_files(tokenizer, "--tokenizer")) if tokenizer else None
    kwargs = dict(_setting(each) for each in settings or [])
    chosen = auto.choose_family("name the family", loaded, text) if auto.asked(family) else None
    if chosen is not None and chosen.family is NO_REASONING:
        _show_none(chosen.reason, as_json=as_json)
        raise typer.Exit(0)
    kit = Kit(name if chosen is None else chosen.family, text, tokens, kwargs, loaded)
    # A derived record has no name that another command would know.
    name = kit.family.name if kit.family.name in FAMILIES else family
    kit.renderer.check_read(kwargs)
    modes = _chosen(kit.modes, mode, output)
    err = paint.console(stderr=True)
    with Progress(console=err, transient=True, disable=not paint.painted(err)) as bar:
        task = bar.add_task(f"{name}: {counted(len(modes), 'mode')}", total=len(modes))
        rows = run(kit, modes, output, lambda: bar.advance(task))
    if output and not any(row.cells for row in rows):
        raise SetupError(
            f"no mode tried has the output {output!r}", "--output", "leave --output out to see what there is"
        )
    through, missing = kit.renderer.through, tuple(kit.missing_ids())
    found = Report(name, str(path), tokenizer, kwargs, through, missing, rows, f"{datetime.now():%Y-%m-%d %H:%M}")
    for target, written in ((report, as_html), (junit, as_junit)):
        if target:
            _write(target, written(found))
    if as_json:
        paint.print_json(as_data(found))
    else:
        if chosen is not None:
            told = paint.visible(f"{kit.family.name}, because {chosen.reason}")
            paint.line(paint.console(), ("family     ", "head"), told)
        _show(paint.console(), found, report)
    raise typer.Exit(0 if found.right else 1)


def _show_none(reason: str, *, as_json: bool) -> None:
    """Say that a template shows no reasoning, so that no family has to agree with it."""
    if as_json:
        paint.print_json({"ok": True, "family": None, "reason": reason})
    else:
        paint.line(paint.console(), ("family     ", "head"), ("none needed", "ok"), f": {paint.visible(reason)}")


def _setting(text: str) -> tuple[str, Any]:
    """Read KEY=VALUE; the value is JSON where it can be read as such, but a number stays text (a revision)."""
    key, given, value = text.partition("=")
    if not (key and given):
        raise SetupError(f"--set {text} has no value", "--set", "write --set enable_thinking=false")
    if value in ("true", "false", "null") or value[:1] in "[{":
        try:
            return key, json.loads(value)
        except ValueError:
            pass
    return key, value


def _chosen(modes: list[Mode], mode: str, output: str) -> list[Mode]:
    if output and output not in COLUMNS:
        raise SetupError(f"no output is called {output!r}", "--output", f"choose one of: {_quoted(COLUMNS)}")
    chosen = [each for each in modes if mode in ("", each.name)]
    if not chosen:
        raise SetupError(
            f"the template has no mode {mode!r}", "--mode", f"choose one of: {_quoted(each.name for each in modes)}"
        )
    return chosen


def _quoted(names: Iterable[str]) -> str:
    """List names as they can be pasted into a shell: some have commas and blanks in them."""
    return ", ".join(map(shlex.quote, names))


def _write(target: str, text: str) -> None:
    try:
        Path(target).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise SetupError(
            f"cannot write {target}: {error.strerror}", target, "give a path in a directory that exists"
        ) from error


def _show(out: Console, report: Report, html: str) -> None:
    paint.line(out, ("template   ", "head"), f"{report.template}, rendered through {report.through}")
    _show_modes(out, report)
    for cells in report.notes:
        paint.line(out, ("note       ", "info"), f"{_where(cells)}: {paint.visible(cells[0].note)}")
    if report.missing:
        head = ("WRONG      ", "fail") if report.unserved else ("WARN       ", "warn")
        paint.line(out, head, paint.visible(report.missing_note))
        paint.line(out, f"           remedy: {report.missing_remedy}")
    for cells in report.alike[:SHOWN_MAX]:
        paint.line(out, ("WRONG      ", "fail"), _where(cells))
        for problem in cells[0].problems:
            paint.line(out, f"           {paint.visible(problem)}")
        paint.line(out, f"           again: {report.command(cells[0])}")
    if len(report.alike) > SHOWN_MAX:
        more = counted(len(report.alike) - SHOWN_MAX, "kind")
        paint.line(out, f"           and {more} more; --report or --json has them all")
    paint.line(out, ("OK: " if report.right else "FAILED: ", "ok" if report.right else "fail"), report.summary())
    if html:
        paint.line(out, ("report     ", "head"), html)


def _where(cells: list[Cell]) -> str:
    more = f", and in {counted(len(cells) - 1, 'mode')} more" if len(cells) > 1 else ""
    return f"{cells[0].mode} x {cells[0].output}{more}"


def _show_modes(out: Console, report: Report) -> None:
    tried = [(row, row.start) for row in report.rows if row.start is not None]
    rows = []
    for row, start in tried:
        wrong = sum(bool(cell.problems) for cell in row.cells.values())
        state = start.kind + (", answer begun" if start.answer_begun else "")
        outputs = counted(len(row.cells), "output")
        rows.append(((row.mode.name, ""), (f"start {state}", ""), (outputs, ""), _verdict(wrong)))
    paint.columns(out, rows)
    for row in report.refused:
        paint.line(out, ("refused    ", "warn"), f"{row.mode.name}: {paint.visible(row.refused)}")


def _verdict(wrong: int) -> tuple[str, str]:
    return (f"{wrong} wrong", "fail") if wrong else ("right", "ok")
