"""The command `derive`: a family's record, read from a chat template, with what proves each field."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from vllm_reasoning_ext.cli import paint
from vllm_reasoning_ext.cli.models import model_directory, model_files
from vllm_reasoning_ext.conformance.conform import Kit, run
from vllm_reasoning_ext.conformance.render import read_template
from vllm_reasoning_ext.conformance.report import Report
from vllm_reasoning_ext.conformance.tokenizers import load_tokenizer
from vllm_reasoning_ext.core.families import FAMILIES, register_family
from vllm_reasoning_ext.core.record import Family
from vllm_reasoning_ext.derive.derivation import Derivation, derive
from vllm_reasoning_ext.derive.record_file import as_fields, to_python
from vllm_reasoning_ext.derive.tool_parsers import ToolParsers, tool_parsers

EPILOG: Final = """\b
Examples:
  vllm-reasoning-ext derive ./model
  vllm-reasoning-ext derive chat_template.jinja --tokenizer ./model --json > record.json
  vllm-reasoning-ext split reply.txt --family derived --family-file record.json

\b
The template is rendered with past thoughts, calls, and every switch it reads; what stands
around them is the record. No model's name is looked at, so a renamed marker is found as
well. The record is then judged as `conform` does, and the exit code is 1 where a cell is
wrong or no reasoning was seen. --json is a record that --family-file and the variable
VLLM_REASONING_EXT_FAMILY_FILE read; a record that must last wants a name of its own in it.
"""

VALUE_MAX: Final = 60
"""Characters of a field's value on the terminal; --json has all of it."""


def command(
    source: Annotated[
        str, typer.Argument(metavar="MODEL_DIR|TEMPLATE", help="A model's directory, or a chat template's file.")
    ],
    *,
    tokenizer: Annotated[
        str, typer.Option(metavar="DIR|NAME", help="The model's tokenizer; a model directory's own unless given.")
    ] = "",
    name: Annotated[str, typer.Option(metavar="NAME", help="The record's name.")] = "derived",
    as_json: Annotated[bool, typer.Option("--json", help="Print the record as JSON, and nothing else.")] = False,
    as_python: Annotated[bool, typer.Option("--python", help="Print the record as Python, and nothing else.")] = False,
) -> None:
    """Read a family's record from a chat template, with what proves each field."""
    path = Path(source)
    if not path.is_file():
        path = model_directory(source, "MODEL_DIR")
    text, tokens = read_template(path)
    loaded = load_tokenizer(model_files(tokenizer, "--tokenizer")) if tokenizer else _own_tokenizer(path)
    found = derive(text, loaded, name=name, tokens=tokens)
    out = paint.console()
    if found.family is None:
        _show_none(paint.console(stderr=True), found)
        raise typer.Exit(1)
    if as_json:
        paint.print_json(as_fields(found.family))
    elif as_python:
        typer.echo(to_python(found.family), nl=False)
    else:
        _show(out, found, found.family)
    report = _judged(found, found.family, text, tokens, loaded, str(path))
    if not (as_json or as_python):
        verdict = ("OK: ", "ok") if report.right else ("FAILED: ", "fail")
        paint.line(out, verdict, f"conform: {report.summary()}")
    raise typer.Exit(0 if report.right else 1)


def _own_tokenizer(path: Path) -> Any:
    has_one = path.is_dir() and ((path / "tokenizer.json").exists() or (path / "tokenizer_config.json").exists())
    return load_tokenizer(path) if has_one else None


def _judged(
    found: Derivation, record: Family, text: str, tokens: Mapping[str, str], tokenizer: Any, where: str
) -> Report:
    """Judge the template with the record, as `conform` does."""
    if record.name not in FAMILIES:
        register_family(record)
    kit = Kit(record.name, text, dict(tokens), {}, tokenizer)
    rows = run(kit, kit.modes, "", lambda: None)
    missing = tuple(kit.missing_ids())
    return Report(record.name, where, "", {}, kit.renderer.through, missing, rows, f"{datetime.now():%Y-%m-%d %H:%M}")


def _show_none(err: Console, found: Derivation) -> None:
    paint.line(err, ("no reasoning: ", "warn"), "the chat template shows no thought, in any rendering")
    for line in (*found.warnings, *found.unseen):
        paint.line(err, f"              {paint.visible(line)}")
    paint.line(err, "remedy:       a model without reasoning needs no parser; for one with, name a family (`families`)")


def _show(out: Console, found: Derivation, record: Family) -> None:
    known = f"the built-in family {found.builtin}" if found.builtin else "no built-in family"
    also = f" (also {', '.join(found.matches[1:])})" if len(found.matches) > 1 else ""
    paint.line(out, ("record     ", "head"), f"{record.name}: {known}{also} reads what the template writes")
    why = {proof.field: proof.why for proof in found.proofs}
    rows = []
    for field, value in as_fields(record).items():
        shown = paint.visible(value if isinstance(value, str) else repr(value))
        shown = shown if len(shown) <= VALUE_MAX else shown[: VALUE_MAX - 1] + "…"
        rows.append(((field, ""), (shown, ""), (paint.visible(_reason(why, field)), "")))
    paint.columns(out, rows)
    for mode, start in found.starts.items():
        paint.line(out, ("start      ", "head"), f"{mode}: {start}")
    _show_parsers(out, tool_parsers(record if found.builtin is None else FAMILIES[found.builtin], record))
    for line in found.unseen:
        paint.line(out, ("not seen   ", "info"), paint.visible(line))
    for line in found.warnings:
        paint.line(out, ("WARN       ", "warn"), paint.visible(line))


def _reason(why: Mapping[str, str], field: str) -> str:
    """Find the proof of a field; one proof may stand for several fields."""
    return next((text for fields, text in why.items() if field in fields.split(", ")), "")


def _show_parsers(out: Console, parsers: ToolParsers) -> None:
    for engine, known in (("vLLM", parsers.vllm), ("SGLang", parsers.sglang)):
        text = f"--tool-call-parser {' or '.join(known)}" if known else "no tool-call parser is known to fit"
        paint.line(out, ("calls      ", "head"), f"{engine}: {text}")
