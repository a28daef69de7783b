"""The result of `conform` as data: what was tried, what failed, and the JSON and JUnit forms of it."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree

from vllm_reasoning_ext._version import __version__
from vllm_reasoning_ext.conformance.conform import COLUMNS, Cell, Row
from vllm_reasoning_ext.conformance.tokenizers import without_ids
from vllm_reasoning_ext.core.families import get_family

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def counted(number: int, thing: str) -> str:
    """Write a number and what it counts: "1 mode", "2 modes"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


class Report(NamedTuple):
    """What `conform` found.

    Attributes:
        family: the family.
        template: the template's path, as it was given.
        tokenizer: the tokenizer's path, "" for none.
        kwargs: the variables set for every mode.
        through: what rendered: "transformers 5.0", "jinja2 3.1".
        missing: markers that the tokenizer should have as single ids and has not.
        rows: the modes.
        date: when it was made, as it is to be shown.
    """

    family: str
    template: str
    tokenizer: str
    kwargs: Mapping[str, Any]
    through: str
    missing: tuple[str, ...]
    rows: Sequence[Row]
    date: str = ""

    @property
    def cells(self) -> list[Cell]:
        """All cells, mode by mode."""
        return [cell for row in self.rows for cell in row.cells.values()]

    @property
    def wrong(self) -> list[Cell]:
        """The cells with a problem."""
        return [cell for cell in self.cells if cell.problems]

    @property
    def alike(self) -> list[list[Cell]]:
        """The wrong cells, those of one output with the same problems together."""
        kinds: dict[tuple[str, tuple[str, ...]], list[Cell]] = {}
        for cell in self.wrong:
            kinds.setdefault((cell.output, cell.problems), []).append(cell)
        return list(kinds.values())

    @property
    def refused(self) -> list[Row]:
        """The modes that the template does not render."""
        return [row for row in self.rows if row.start is None]

    @property
    def unserved(self) -> tuple[str, ...]:
        """The missing markers, if the family cannot be told apart without them (as `doctor` judges it)."""
        return self.missing if self.missing and self._without_ids[0] else ()

    @property
    def missing_note(self) -> str:
        """What it means that markers are missing; "" where none is."""
        return self._without_ids[1] if self.missing else ""

    @property
    def missing_remedy(self) -> str:
        """What to do about missing markers; "" where none is."""
        return self._without_ids[2] if self.missing else ""

    @property
    def _without_ids(self) -> tuple[bool, str, str]:
        return without_ids(get_family(self.family), self.missing)

    @property
    def notes(self) -> list[list[Cell]]:
        """The cells with a note, those of one output with the same note together."""
        kinds: dict[tuple[str, str], list[Cell]] = {}
        for cell in self.cells:
            if cell.note:
                kinds.setdefault((cell.output, cell.note), []).append(cell)
        return list(kinds.values())

    @property
    def right(self) -> bool:
        """Whether everything agrees: nothing failed, something was tried, no marker is missing that must be there."""
        return not self.wrong and bool(self.cells) and not self.unserved

    @property
    def columns(self) -> list[str]:
        """The columns in which there is any cell."""
        used = {cell.output for cell in self.cells}
        return [column for column in COLUMNS if column in used]

    def summary(self) -> str:
        """Say the result in one line."""
        rendered = len(self.rows) - len(self.refused)
        refused = f"{counted(len(self.refused), 'mode')} refused by the template"
        lacks = f"{counted(len(self.unserved), 'control token')} missing in the tokenizer; " if self.unserved else ""
        if not self.cells:
            return f"{lacks}nothing could be tried: {refused}"
        ways = counted(sum(cell.ways for cell in self.cells), "replay")
        right = len(self.cells) - len(self.wrong)
        told = [
            f"{right} of {counted(len(self.cells), 'cell')} right in {counted(rendered, 'mode')} ({ways})",
            refused,
            counted(len(self.notes), "note"),
        ]
        return lacks + ", ".join(told)

    def command(self, cell: Cell) -> str:
        """Write the command that tries one cell again."""
        parts = ["vllm-reasoning-ext", "conform", "--family", self.family, "--template", self.template]
        if self.tokenizer:
            parts += ["--tokenizer", self.tokenizer]
        for name, value in self.kwargs.items():
            parts += ["--set", f"{name}={value}"]
        return shlex.join([*parts, "--mode", cell.mode, "--output", cell.output])


def as_data(report: Report) -> dict[str, Any]:
    """Give the report as plain data, for JSON."""
    return {
        "package": __version__,
        "family": report.family,
        "template": report.template,
        "tokenizer": report.tokenizer or None,
        "set": dict(report.kwargs),
        "rendered_through": report.through,
        "right": report.right,
        "summary": report.summary(),
        "missing_control_tokens": list(report.missing),
        "missing_is_wrong": bool(report.unserved),
        "date": report.date or None,
        "notes": len(report.notes),
        "modes": [_mode(report, row) for row in report.rows],
    }


def _mode(report: Report, row: Row) -> dict[str, Any]:
    start = row.start
    return {
        "mode": row.mode.name,
        "kwargs": dict(row.mode.kwargs),
        "refused": row.refused or None,
        "prompt_tail": row.tail,
        "start": start and {"kind": start.kind, "answer_begun": start.answer_begun, "reason": start.reason},
        "cells": [
            {
                "output": cell.output,
                "right": not cell.problems,
                "problems": list(cell.problems),
                "note": cell.note or None,
                "text": cell.text,
                "split": [list(piece) for piece in cell.split],
                "ways": cell.ways,
                **(_told(report, cell) if cell.problems else {}),
            }
            for cell in row.cells.values()
        ],
    }


def _told(report: Report, cell: Cell) -> dict[str, Any]:
    """Give what a wrong cell has beside the others: the command, and both splits where one was expected."""
    told: dict[str, Any] = {"reproduce": report.command(cell)}
    if cell.expected is not None:
        names = ("reasoning", "content")
        told |= {"expected": dict(zip(names, cell.expected, strict=True))}
        told |= {"actual": dict(zip(names, cell.actual, strict=True))}
    return told


def as_junit(report: Report) -> str:
    """Write the report as JUnit XML: one test case a cell, one skipped case a refused mode."""
    cells, refused = report.cells, report.refused
    suite = ElementTree.Element(
        "testsuite",
        name=_clean(f"conform {report.family} {report.template}"),
        tests=str(len(cells) + len(refused) + len(report.missing)),
        failures=str(len(report.wrong) + len(report.unserved)),
        errors="0",
        skipped=str(len(refused) + len(report.missing) - len(report.unserved)),
    )
    for name, kind, lines in _cases(report):
        case = ElementTree.SubElement(suite, "testcase", classname=f"conform.{report.family}", name=_clean(name))
        if kind:
            ElementTree.SubElement(case, kind, message=_clean(lines[0])).text = _clean("\n".join(lines))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _cases(report: Report) -> Iterator[tuple[str, str, list[str]]]:
    for marker in report.missing:
        lines = [report.missing_note, f"remedy: {report.missing_remedy}"]
        yield f"control token {marker}", "failure" if report.unserved else "skipped", lines
    for row in report.rows:
        if row.start is None:
            yield row.mode.name, "skipped", [f"the template refuses this mode: {row.refused}"]
        for cell in row.cells.values():
            lines = [*cell.problems, f"reproduce: {report.command(cell)}"] if cell.problems else []
            yield f"{cell.mode} | {cell.output}", "failure" if lines else "", lines


def _clean(text: str) -> str:
    """Spell out what XML cannot hold."""
    return _NOT_XML.sub(lambda found: ascii(found.group())[1:-1], text)
