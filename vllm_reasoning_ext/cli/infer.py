"""The command `infer`: a model's family, and the commands that serve it."""

import shlex
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from vllm_reasoning_ext.cli import paint
from vllm_reasoning_ext.cli.installed_engine import ENGINES, SHOWN, Engine, ask
from vllm_reasoning_ext.cli.tool_parsers import tool_parser
from vllm_reasoning_ext.conformance.render import read_model_template
from vllm_reasoning_ext.core.families import FAMILIES
from vllm_reasoning_ext.errors import SetupError
from vllm_reasoning_ext.inference import infer_with_reason

EPILOG: Final = """\b
Examples:
  vllm-reasoning-ext infer Qwen/Qwen3-8B
  vllm-reasoning-ext infer ./model --no-engines

\b
A directory is judged by its config.json, then its chat template, then its names; a name
by itself. What begins with /, ./, ../ or ~ must be a directory of this machine. The
tool-call parsers named exist in the engines installed here; without an engine they are
those of vLLM 0.33 and SGLang 0.5.23, unchecked.
"""


def command(
    model: Annotated[str, typer.Argument(metavar="MODEL_DIR|NAME", help="A model's directory, or its name.")],
    *,
    engines: Annotated[
        bool, typer.Option("--engines/--no-engines", help="Ask the installed engines (seconds each), or do not.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tell a model's family and why, and print the serve commands to copy."""
    if model.startswith(("/", "./", "../", "~")):
        model = str(Path(model).expanduser())
        if not Path(model).is_dir():
            remedy = "give a model's directory on this machine, or its name as in Qwen/Qwen3-8B"
            raise SetupError(f"there is no directory {model}", "MODEL_DIR", remedy)
    family, reason = infer_with_reason(model)
    asked = {name: ask(name, load=False) for name in ENGINES}
    if engines and family is not None and any(engine.installed for engine in asked.values()):
        with paint.console(stderr=True).status("asking the installed engines ..."):
            asked = {name: ask(name) for name in ENGINES}
    commands = serve_commands(model, family, asked) if family is not None else {}
    if as_json:
        paint.print_json({"model": model, "family": family, "reason": reason, "serve": commands})
    else:
        _show(family, reason, commands)
    raise typer.Exit(0 if family is not None else 1)


def serve_commands(model: str, family: str, engines: dict[str, Engine]) -> dict[str, dict[str, Any]]:
    """Build the serve commands of a model.

    Args:
        model: its directory or name.
        family: its family.
        engines: the engines by name, as far as they were asked.

    Returns:
        engine -> the command, the tool-call parser in it (None for none) and where that parser was looked up.
    """
    template = read_model_template(Path(model))[0] if Path(model).is_dir() else ""
    name = Path(model).resolve().name if Path(model).is_dir() else model
    quoted = shlex.quote(model)
    found: dict[str, dict[str, Any]] = {}
    for engine in engines.values():
        known: Collection[str] | None = engine.tools or None
        parser = tool_parser(engine.name, family, name, template, known)
        if engine.name == "vllm":
            command = f"vllm serve {quoted} --reasoning-parser {family}"
            tools = f" --enable-auto-tool-choice --tool-call-parser {parser}"
        else:
            command = f"python -m sglang.launch_server --model-path {quoted} --reasoning-parser {family}"
            tools = f" --tool-call-parser {parser}"
        found[engine.name] = {
            "command": command + (tools if parser else ""),
            "tool_call_parser": parser,
            "checked": f"{engine.shown} {engine.version}" if known else None,
        }
    return found


def _show(family: str | None, reason: str, commands: dict[str, dict[str, Any]]) -> None:
    out = paint.console()
    if family is None:
        paint.line(out, ("family  ", "head"), ("unknown", "fail"))
        paint.line(out, ("why     ", "head"), reason)
        paint.line(out, ("remedy  ", "head"), f"choose one yourself: --reasoning-parser {' | '.join(FAMILIES)}")
        paint.line(
            out, "        `vllm-reasoning-ext families` shows the markers of each; compare them with a raw reply."
        )
        return
    paint.line(out, ("family  ", "head"), (family, "ok"))
    paint.line(out, ("why     ", "head"), reason)
    for engine, found in commands.items():
        checked = found["checked"]
        said = (
            f"tool-call parsers as in {checked}"
            if checked
            else "not installed here, or not asked: parser names unchecked"
        )
        paint.line(out, "")
        paint.line(out, (f"# {SHOWN[engine]} ({said})", "info"))
        paint.line(out, found["command"])
        if found["tool_call_parser"] is None:
            paint.line(out, ("# no tool-call parser for this model's calls there: they stay in the content", "warn"))
