"""The command line's root: the commands, the help that teaches, and the exit codes."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from vllm_reasoning_ext._version import __version__
from vllm_reasoning_ext.cli import conform, doctor, families, infer, paint, proxy, split, template
from vllm_reasoning_ext.errors import SetupError

EPILOG: Final = """\b
Something is wrong with a running server?
  vllm-reasoning-ext doctor --model ./model        is everything in place, and what to change
  vllm-reasoning-ext split reply.txt --family qwen3 --explain   why this reply came out as it did
Which --reasoning-parser does this model need?
  vllm-reasoning-ext infer ./model                 the family, and the serve commands to copy
You write chat templates?
  vllm-reasoning-ext conform --family qwen3 --template chat_template.jinja --report out.html

\b
Exit codes: 0 right, 1 something is wrong (what, and the remedy, is printed), 2 the command
could not be carried out (a missing file, an unknown name). --json prints for programs.
Colours come on a terminal only; NO_COLOR=1 turns them off.
"""

PLAIN: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

app = typer.Typer(
    name="vllm-reasoning-ext",
    help="Split model output into reasoning, answer and tool calls; find out why it was split so.",
    epilog=EPILOG,
    context_settings=PLAIN,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Plain help is the same on a terminal, in a log and in the documentation, where a test compares it.
    rich_markup_mode=None,
)
for module, short in (
    (split, "Show how an output is split, and why."),
    (infer, "Tell a model's family; print the serve commands."),
    (doctor, "Check installation, engines, model and template."),
    (conform, "Check a chat template against a family's parser."),
    (template, "Print the path of a packaged chat template."),
    (proxy, "Move tags of a server's replies into their fields."),
    (families, "List the families and their markers."),
):
    name = module.__name__.rpartition(".")[2]
    app.command(name, short_help=short, epilog=module.EPILOG, context_settings=PLAIN)(module.command)


@app.command(context_settings=PLAIN)
def version(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Print the package's version."""
    if as_json:
        paint.print_json({"version": __version__})
    else:
        paint.line(paint.console(), __version__)


@app.callback()
def root() -> None:
    """Split model output into reasoning, answer and tool calls; find out why it was split so."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: what stands after the program's name; None for the process's own.

    Returns:
        the exit code: 0 right, 1 wrong, 2 the command could not be carried out.
    """
    for stream in (sys.stdout, sys.stderr):
        # A model's output may hold what this terminal's encoding cannot; that is no reason to fail.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # Without torch, transformers warns that it can only read tokenizers, which is all we ask of it.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        app(given, prog_name="vllm-reasoning-ext")
    except SetupError as error:
        _report(error, as_json="--json" in given)
        return 2
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    return 0


def _report(error: SetupError, *, as_json: bool) -> None:
    if as_json:
        paint.print_json({"error": {"problem": error.problem, "found": error.found, "remedy": error.remedy}})
    err = paint.console(stderr=True)
    paint.line(err, ("error: ", "fail"), error.problem)
    paint.line(err, f"  found in: {error.found}")
    paint.line(err, f"  remedy:   {error.remedy}")
