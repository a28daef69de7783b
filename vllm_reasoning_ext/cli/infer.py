"""The command `infer`: a model's family, and the commands that serve it."""

import shlex
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from vllm_reasoning_ext.cli import paint
from vllm_reasoning_ext.cli.installed_engine import ENGINES, SHOWN, Engine, ask
from vllm_reasoning_ext.cli.models import find_model
from vllm_reasoning_ext.cli.tool_parsers import tool_parser
from vllm_reasoning_ext.conformance.render import read_model_template
from vllm_reasoning_ext.core.families import FAMILIES
from vllm_reasoning_ext.engines.names import served_name
from vllm_reasoning_ext.inference import Inference, infer_with_reason, model_type

if TYPE_CHECKING:
    from rich.console import Console

EPILOG: Final = """\b
Examples:
  vllm-reasoning-ext infer Qwen/Qwen3-8B
  vllm-reasoning-ext infer ./model --no-engines

\b
A directory is judged by its chat template; where that shows no marker by its vocabulary,
its config.json, then its names. ORG/NAME is looked up in the local hub cache, and judged
by its name where it is not there. What begins with /, ./, ../ or ~ must be a directory of
this machine. The tool-call parsers named exist in the engines installed here; without an
engine they are those of vLLM 0.33 and SGLang 0.5.23, unchecked. Exit code 0 also means
that the model needs no reasoning parser.
"""


def command(
    model: Annotated[str, typer.Argument(metavar="MODEL_DIR|NAME", help="A model's directory, or its name.")],
    *,
    engines: Annotated[
        bool,
        typer.Option("--engines/--no-engines", help="Look up the installed engines' tool-call parsers, or do not."),
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tell a model's family and why, and print the serve commands to copy."""
    directory = find_model(model, "MODEL_DIR")
    if directory is not None and Path(model).expanduser().is_dir():
        model = str(directory)
    found = infer_with_reason(model if directory is None else directory)
    asked = {name: ask(name, "find") for name in ENGINES}
    if engines and found.family is not None:
        asked = _tools_of(asked)
    commands = serve_commands(model, found.family, asked, directory) if found.family is not None else {}
    if as_json:
        paint.print_json(
            {
                "model": model,
                "directory": None if directory is None else str(directory),
                **found._asdict(),
                "serve": commands,
            }
        )
    else:
        _show(found, commands, "" if directory is None or str(directory) == model else str(directory))
    raise typer.Exit(0 if found.family is not None or found.needs_none else 1)


def _tools_of(engines: dict[str, Engine]) -> dict[str, Engine]:
    """Ask the installed engines for their tool-call parsers."""
    found = dict(engines)
    for name, engine in engines.items():
        if engine.installed:
            with paint.waiting(f"asking {engine.shown} {engine.version} for its tool-call parsers ..."):
                found[name] = ask(name, "read")
    return found


def serve_commands(
    model: str, family: str, engines: dict[str, Engine], directory: Path | None
) -> dict[str, dict[str, Any]]:
    """Build the serve commands of a model.

    Args:
        model: its directory or name.
        family: its family.
        engines: the engines by name, as far as they were asked.
        directory: where its files lie; None when they are not on this machine.

    Returns:
        engine -> the command, the tool-call parser in it (None for none, and why) and where that was looked up.
    """
    template = read_model_template(directory)[0] if directory is not None else ""
    parser_name = served_name(family)
    name = directory.resolve().name if directory is not None and Path(model).is_dir() else model
    if directory is not None:
        name += f" {model_type(directory)}"
    quoted = shlex.quote(model)
    found: dict[str, dict[str, Any]] = {}
    for engine in engines.values():
        known: Collection[str] | None = engine.tools or None
        parser, why = tool_parser(engine.name, family, name, template, known)
        if engine.name == "vllm":
            command = f"vllm serve {quoted} --reasoning-parser {parser_name}"
            tools = f" --enable-auto-tool-choice --tool-call-parser {parser}"
        else:
            command = f"python -m sglang.launch_server --model-path {quoted} --reasoning-parser {parser_name}"
            tools = f" --tool-call-parser {parser}"
        found[engine.name] = {
            "command": command + (tools if parser else ""),
            "tool_call_parser": parser,
            "no_tool_call_parser": why or None,
            "checked": f"{engine.shown} {engine.version}" if known else None,
        }
    return found


def _show(found: Inference, commands: dict[str, dict[str, Any]], directory: str) -> None:
    out = paint.console()
    verdict = (
        (found.family, "ok") if found.family else ("none needed", "ok") if found.needs_none else ("unknown", "fail")
    )
    paint.line(out, ("family  ", "head"), (str(verdict[0]), verdict[1]))
    paint.line(out, ("why     ", "head"), paint.visible(found.reason))
    if directory:
        paint.line(out, ("read in ", "head"), directory)
    for note in found.notes:
        paint.line(out, ("note    ", "warn"), paint.visible(note))
    if found.needs_none:
        paint.line(out, ("so      ", "head"), "serve it without --reasoning-parser")
    elif found.family is None:
        paint.line(out, ("remedy  ", "head"), f"choose one yourself: --reasoning-parser {' | '.join(FAMILIES)}")
        paint.line(
            out, "        `vllm-reasoning-ext families` shows the markers of each; compare them with a raw reply."
        )
    for engine, command in commands.items():
        _show_command(out, SHOWN[engine], command)


def _show_command(out: "Console", engine: str, found: dict[str, Any]) -> None:
    checked = found["checked"]
    said = (
        f"tool-call parsers as in {checked}" if checked else "not installed here, or not asked: parser names unchecked"
    )
    paint.line(out, "")
    paint.line(out, (f"# {engine} ({said})", "info"))
    paint.line(out, found["command"])
    if found["no_tool_call_parser"]:
        paint.line(out, (f"# {found['no_tool_call_parser']}", "warn"))
