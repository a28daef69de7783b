"""The command `doctor`: is everything in place, and what to change."""

import shlex
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from vllm_reasoning_ext.cli import auto, checks, paint
from vllm_reasoning_ext.cli.checks import Finding, guarded
from vllm_reasoning_ext.cli.infer import serve_commands
from vllm_reasoning_ext.cli.inputs import check_family
from vllm_reasoning_ext.cli.installed_engine import ENGINES, Engine, ask
from vllm_reasoning_ext.cli.models import model_directory
from vllm_reasoning_ext.conformance.conform import Kit
from vllm_reasoning_ext.conformance.render import read_model_template, read_template
from vllm_reasoning_ext.conformance.templates import template_path
from vllm_reasoning_ext.conformance.tokenizers import load_tokenizer
from vllm_reasoning_ext.errors import SetupError
from vllm_reasoning_ext.inference import NO_THOUGHT, infer_with_reason

EPILOG: Final = """\b
Examples:
  vllm-reasoning-ext doctor                          the installation alone
  vllm-reasoning-ext doctor --model ./model          and a model: family, markers, template, split
  vllm-reasoning-ext doctor --family qwen3 --template chat_template.jinja

\b
It ends in OK or FAILED; every failure says what to do. Run it in the environment that serves,
and after every upgrade of an engine.
"""

_MEND: Final = "mend that file, or copy it anew from where the model came from"
_MARKS: Final = {"ok": "ok", "warn": "WARN", "fail": "FAIL", "info": ""}


def command(
    model: Annotated[
        str, typer.Option(metavar="DIR|NAME", help="A model directory, or ORG/NAME in the local hub cache.")
    ] = "",
    *,
    family: Annotated[str, typer.Option(metavar="NAME", help="Do not infer the family: it is this one.")] = "",
    template: Annotated[
        str, typer.Option(metavar="FILE", help="The chat template, where it is not the model's own.")
    ] = "",
    engines: Annotated[
        bool, typer.Option("--engines/--no-engines", help="Load the installed engines and ask them, or do not.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check the installation, the engines, a model's markers and its chat template.

    What is checked: the package and how engines find it; whether its class answers to the parser names in
    each installed engine; variables that hide plugins; the ids of the markers; the template's start state in every
    mode; a canned split.
    """
    directory = model_directory(model, "--model") if model else None
    findings: list[Finding] = []
    if auto.asked(family) and directory is None:
        raise SetupError(auto.NOTHING, "--family auto", "add --model DIR, or name the family")
    # With a model at hand the family is read from it anyway.
    name = check_family(family) if family and not auto.asked(family) else None
    findings += guarded("package", checks.check_package)
    if directory is not None:
        if directory != Path(model).expanduser():
            findings.append(Finding("model", "info", f"{model} is looked at in {directory}"))
        inferred, found = _inferred(directory, findings)
        if name is None:
            name = inferred
            findings.append(found)
        elif inferred not in (None, name):
            text = f"{name} was asked for, but the model looks like {found.text}"
            findings.append(Finding("family", "warn", text, f"leave --family out, or serve with {inferred}"))
    found_engines = _engines(engines)
    findings += guarded("filters", partial(checks.check_filters, found_engines))
    findings += _on_engines(found_engines, name, asked=engines)
    if name is not None:
        findings += _on_model(name, directory, template)
    failed = any(finding.status == "fail" for finding in findings)
    commands: dict[str, dict[str, Any]] = {}
    if name is not None:
        asked = {engine.name: engine for engine in found_engines if engine.installed}
        commands = serve_commands(model or "MODEL", name, asked, directory)
    if as_json:
        paint.print_json(
            {"ok": not failed, "family": name, "findings": [f._asdict() for f in findings], "serve": commands}
        )
    else:
        _show(findings, commands, failed=failed)
    raise typer.Exit(1 if failed else 0)


def _inferred(model: Path, findings: list[Finding]) -> tuple[str | None, Finding]:
    found = infer_with_reason(model)
    findings += [Finding("model", "info" if note == NO_THOUGHT else "warn", note, _MEND) for note in found.notes]
    if found.family is not None:
        return found.family, Finding("family", "ok", f"{found.family}: {found.reason}")
    if found.needs_none:
        text = f"none needed: {found.reason}; serve it without --reasoning-parser"
        return None, Finding("family", "info", text)
    remedy = "name it yourself: --family NAME; `vllm-reasoning-ext families` lists them with their markers"
    return None, Finding("family", "fail", f"unknown: {found.reason}", remedy)


def _engines(load: bool) -> list[Engine]:
    found = [ask(name, "find") for name in ENGINES]
    here = [f"{engine.shown} {engine.version}" for engine in found if engine.installed]
    if not load or not here:
        return found
    with paint.waiting(
        f"loading {' and '.join(here)} to ask it; this can take a minute (--no-engines leaves it out) ..."
    ):
        return [ask(engine.name) if engine.installed else engine for engine in found]


def _on_engines(engines: list[Engine], family: str | None, *, asked: bool) -> list[Finding]:
    findings: list[Finding] = []
    for engine in engines:
        if not engine.installed:
            continue
        if asked:
            findings += guarded(engine.name, partial(checks.check_engine, engine, family))
        else:
            findings.append(Finding(engine.name, "info", f"{engine.shown} {engine.version} is here; it was not asked"))
    if not any(engine.installed for engine in engines):
        text = "neither vLLM nor SGLang is in this environment: library, command line and proxy work without"
        findings.append(Finding("engines", "info", text))
    return findings


def _on_model(family: str, model: Path | None, template: str) -> list[Finding]:
    """Look at tokenizer, template and split; with neither model nor template the packaged template stands in."""
    findings: list[Finding] = []
    tokenizer: Any = None
    if model is not None:
        try:
            tokenizer = load_tokenizer(model)
            findings += guarded("markers", partial(checks.check_markers, family, tokenizer))
        except SetupError as error:
            findings.append(Finding("markers", "fail", f"{error.problem} ({error.found})", error.remedy))
    if any(found.status == "fail" for found in findings) and tokenizer is not None:
        # Whatever a template shows without its markers only follows from that, and would bury it.
        text = "not looked at: the missing markers come first"
        return [
            *findings,
            Finding("template", "info", text),
            *guarded("split", partial(checks.check_split, family, None)),
        ]
    try:
        where = template or _own_or_packaged(model, family, findings)
        text, tokens = read_template(where)
        kit: Kit | None = Kit(family, text, tokens, tokenizer=tokenizer)
    except SetupError as error:
        # The packaged template is only a stand-in: that it cannot be looked at is no fault of this host.
        status = "fail" if model or template else "info"
        findings.append(Finding("template", status, f"{error.problem} ({error.found})", error.remedy))
        kit = None
    if kit is not None:
        findings += guarded("template", partial(checks.check_template, kit))
    findings += guarded("split", partial(checks.check_split, family, kit))
    return findings


def _own_or_packaged(model: Path | None, family: str, findings: list[Finding]) -> str:
    if model is not None and read_model_template(model)[0]:
        return str(model)
    path = str(template_path(family))
    whose = "the model directory has no chat template" if model else "no template was given"
    status = "warn" if model else "info"
    findings.append(
        Finding(
            "template",
            status,
            f"{whose}: the packaged one is looked at",
            f"serve with --chat-template {shlex.quote(path)}, or give the model's own with --template FILE"
            if model
            else "",
        )
    )
    return path


def _show(findings: list[Finding], commands: dict[str, dict[str, Any]], *, failed: bool) -> None:
    out = paint.console()
    last = ""
    for finding in findings:
        subject = finding.subject if finding.subject != last else ""
        last = finding.subject
        mark = _MARKS[finding.status]
        paint.line(out, (f"{subject:<9} ", "head"), (f"{mark:<5}", finding.status), paint.visible(finding.text))
        if finding.remedy and finding.status in ("warn", "fail"):
            paint.line(out, f"{'':<15}remedy: {paint.visible(finding.remedy)}")
    for number, found in enumerate(commands.values()):
        paint.line(out, ("run       " if number == 0 else " " * 10, "head"), f"{'':<5}{found['command']}")
    paint.line(out, ("FAILED", "fail") if failed else ("OK", "ok"))
