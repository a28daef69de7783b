"""What the doctor looks at: one function a subject, each giving findings with the remedy of what is wrong."""

import importlib.metadata
import os
import platform
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext._version import __version__
from vllm_reasoning_ext.cli.installed_engine import ENTRY, FILTERS, GROUPS, Engine
from vllm_reasoning_ext.cli.paint import shorten
from vllm_reasoning_ext.conformance.conform import START, Kit
from vllm_reasoning_ext.conformance.outputs import outputs_of
from vllm_reasoning_ext.conformance.report import counted
from vllm_reasoning_ext.conformance.tokenizers import control_ids, missing_markers, without_ids
from vllm_reasoning_ext.core.families import get_family
from vllm_reasoning_ext.core.splitter import split
from vllm_reasoning_ext.core.start import start_state
from vllm_reasoning_ext.engines.names import KEEP_BUILTIN, kept_builtin, parser_names
from vllm_reasoning_ext.errors import SetupError

OURS: Final = "vllm_reasoning_ext."


class Finding(NamedTuple):
    """One line of the doctor's report.

    Attributes:
        subject: what was looked at.
        status: "ok", "warn" (it works, but), "fail" or "info".
        text: what was found.
        remedy: what to do; "" where nothing is to be done.
    """

    subject: str
    status: str
    text: str
    remedy: str = ""


def check_package() -> Iterator[Finding]:
    """Look at the package and the Python."""
    yield Finding("package", "info", f"vllm-reasoning-ext {__version__}, Python {platform.python_version()}")


def check_filters(engines: list[Engine]) -> Iterator[Finding]:
    """Look at the variables that hide plugins or keep the engine's own parsers."""
    for engine in engines:
        variable = FILTERS[engine.name]
        value = os.environ.get(variable)
        if value is None or (engine.name == "sglang" and not value):
            continue
        if ENTRY in [part.strip() for part in value.split(",")]:
            yield Finding("filters", "ok", f"{variable}={value} lists {ENTRY}")
        else:
            yield Finding(
                "filters",
                "fail" if engine.installed else "warn",
                f"{variable}={value} hides this package from {engine.shown}",
                f"unset {variable}, or add {ENTRY}: {variable}={','.join(filter(None, [value, ENTRY]))}",
            )
    kept = os.environ.get(KEEP_BUILTIN)
    if kept:
        yield Finding(
            "filters", "info", f"{KEEP_BUILTIN}={kept}: the engine's own parsers stay; this package's are <name>_ext"
        )


def check_engine(engine: Engine, family: str | None) -> Iterator[Finding]:
    """Look at whether an installed engine finds the package, and whether its classes answer to their names there."""
    group = GROUPS[engine.name]
    if not any(point.name == ENTRY for point in importlib.metadata.entry_points(group=group)):
        yield Finding(
            engine.name,
            "fail",
            f"this environment has no entry point {ENTRY} in {group}, so {engine.shown} cannot find the package",
            "install it properly, in every environment that runs a worker: pip install vllm-reasoning-ext",
        )
    if engine.problem:
        yield Finding(
            engine.name,
            "fail",
            f"{engine.shown} {engine.version} is here, but {engine.problem}",
            f"run `python -c 'import {engine.name}'` in this environment and mend what it says",
        )
        return
    known = {parser.name: parser for parser in parser_names()}
    families = {name: parser.family for name, parser in known.items()}
    names = [name for name in engine.parsers if family in (None, families.get(name))]
    bound = [name for name in names if engine.parsers[name].startswith(OURS)]
    kept = [name for name in names if name not in bound and kept_builtin(name)]
    left = [name for name in names if name not in bound and name in known and not known[name].replaces]
    where = f"{engine.shown} {engine.version}"
    if not bound:
        yield Finding(
            engine.name,
            "fail",
            f"{where} knows none of this package's parsers"
            + (f"; its own answer to {', '.join(names)}" if names else ""),
            f"unset {FILTERS[engine.name]} if it is set; then `pip show vllm-reasoning-ext` where the engine serves",
        )
        return
    yield Finding(engine.name, "ok", f"{where}: this package's class answers to {', '.join(bound)}")
    for name in kept:
        text = f"{where}: {name} stays the engine's own ({KEEP_BUILTIN}); use {families[name]}_ext for this package's"
        yield Finding(engine.name, "info", text)
    for name in left:
        text = f"{where}: {name} is the engine's own parser; this package's is {families[name]}_ext"
        yield Finding(engine.name, "info", text)
    for name in names:
        if name not in (*bound, *kept, *left):
            yield Finding(
                engine.name,
                "fail",
                f"{where}: {name} is answered by {engine.parsers[name]}",
                f"another plugin took the name after us: serve with {families[name]}_ext",
            )


def check_markers(family: str, tokenizer: Any) -> Iterator[Finding]:
    """Look at whether the family's markers are single ids, there and back (an unk id does not come back)."""
    record = get_family(family)
    ids = control_ids(record, tokenizer)
    shown = "  ".join(f"{marker} {number}" for marker, number in ids.items())
    missing = missing_markers(record, ids)
    if ids:
        yield Finding("markers", "info" if missing else "ok", f"{shown}: single ids, round trip right")
    if missing:
        fatal, text, remedy = without_ids(record, missing)
        yield Finding("markers", "fail" if fatal else "warn", text, remedy)


def check_template(kit: Kit) -> Iterator[Finding]:
    """Look at the start state of the template in every mode."""
    tried = 0
    wrong: dict[str, list[str]] = {}
    notes: dict[tuple[str, str], list[str]] = {}
    for mode in kit.modes:
        row = kit.row(mode, START)
        if row.start is None:
            yield Finding("template", "info", f"{mode.name}: refused by the template: {row.refused}")
            continue
        tried += 1
        cell = row.cells[START]
        begun = ", answer begun" if row.start.answer_begun else ""
        text = f"{mode.name}: ends in {shorten(row.tail, 32, end=True)} -> {row.start.kind}{begun}"
        for problem in cell.problems:
            wrong.setdefault(problem, []).append(mode.name)
        if cell.note:
            # A thought that was switched off and comes all the same surprises; an effort without effect does not.
            notes.setdefault((cell.note, "warn" if mode.asked == "off" else "info"), []).append(mode.name)
        if not cell.problems:
            yield Finding("template", "ok", text)
    for (note, status), modes in notes.items():
        remedy = "leave the switch out, or change the template" if status == "warn" else ""
        yield Finding("template", status, f"{_first(modes)}: {note}", remedy)
    for problem, modes in wrong.items():
        yield Finding(
            "template",
            "fail",
            f"{modes[0]}: {problem}{_more(modes)}",
            "check --family; `vllm-reasoning-ext conform` with the same template shows every mode",
        )
    if not tried:
        yield Finding("template", "fail", "the template refused every mode", "give the model's own template")


def _more(modes: list[str]) -> str:
    return f" (and in {counted(len(modes) - 1, 'mode')} more)" if len(modes) > 1 else ""


def _first(modes: list[str]) -> str:
    return modes[0] + _more(modes)


def check_split(family: str, kit: Kit | None) -> Iterator[Finding]:
    """Split a canned output of the family, from the start that the template gives."""
    record = get_family(family)
    prompt = kit.prompt(kit.modes[0]) if kit is not None and kit.row(kit.modes[0], START).start is not None else None
    start = start_state(prompt, record)
    outputs = outputs_of(record, start, kit.end if kit is not None else "")
    output = outputs[0]
    got = split(output.text, family, prompt=prompt)
    counted = f"reasoning {len(got.reasoning)} characters, answer {len(got.content)}"
    if (got.reasoning, got.content) == (output.reasoning, output.content):
        yield Finding("split", "ok", f"the built-in output {output.name!r}: {counted}, as it must be")
    else:
        yield Finding(
            "split",
            "fail",
            f"built-in output {output.name!r}: {counted}; expected {len(output.reasoning)} and {len(output.content)}",
            "this is a fault of the package: please report it with this output",
        )


def guarded(subject: str, check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """Run a check; a set-up fault becomes a finding, so that the others still run."""
    try:
        return list(check())
    except SetupError as error:
        return [Finding(subject, "fail", f"{error.problem} ({error.found})", error.remedy)]
