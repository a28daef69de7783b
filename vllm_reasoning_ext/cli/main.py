"""The command line's root: the commands, the help that teaches, and the exit codes."""

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any, Final

import typer

from vllm_reasoning_ext._version import __version__
from vllm_reasoning_ext.errors import SetupError

PROGRAM: Final = "vllm-reasoning-ext"

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

COMMANDS: Final = {
    "split": "Show how an output is split, and why.",
    "infer": "Tell a model's family; print the serve commands.",
    "derive": "Read a family's record from a chat template.",
    "doctor": "Check installation, engines, model and template.",
    "conform": "Check a chat template against a family's parser.",
    "template": "Print the path of a packaged chat template.",
    "proxy": "Move tags of a server's replies into their fields.",
    "families": "List the families and their markers.",
    "version": "Print the package's version.",
}
"""Each command, in the module of its name, and its line in the help."""

VERSION: Final = (["version"], ["--version"], ["-V"])
"""What is answered at once: to run a command typer loads pydantic, which takes longer than all else here."""

WITHOUT_FAMILIES: Final = ("template", "version")

FAMILY_FILE: Final = Annotated[
    str,
    typer.Option(
        "--family-file",
        metavar="FILE",
        envvar="VLLM_REASONING_EXT_FAMILY_FILE",
        help="A family of your own: its record as JSON, as `derive --json` writes it.",
    ),
]

COMPLETION: Final = "_VLLM_REASONING_EXT_COMPLETE"
"""Set by the shell when it asks for completions, with the words so far in one of these:"""

WORDS: Final = ("_TYPER_COMPLETE_ARGS", "COMP_WORDS")


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
    if given in VERSION and COMPLETION not in os.environ:
        sys.stdout.write(f"{__version__}\n")
        return 0
    try:
        make_app(chosen(given))(given, prog_name=PROGRAM)
    except SetupError as error:
        _report(error, given)
        return 2
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    return 0


def chosen(arguments: Sequence[str]) -> str:
    """Name the command that the arguments ask for; "" for none of them."""
    words = list(arguments)
    if COMPLETION in os.environ:
        words = " ".join(os.environ.get(name, "") for name in WORDS).split()
        return next((word for word in words if word in COMMANDS), "")
    word = next((word for word in words if not word.startswith("-")), "")
    return word if word in COMMANDS else ""


def make_app(command: str) -> typer.Typer:
    """Make the command line with one command ready to run; the others are only listed.

    A command's module is imported when the command is asked for: `version` waits for no splitter and no template.
    """
    app = typer.Typer(
        name=PROGRAM,
        help="Split model output into reasoning, answer and tool calls; find out why it was split so.",
        epilog=EPILOG,
        context_settings=PLAIN,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        # Plain help is the same on a terminal, in a log and in the documentation, where a test compares it.
        rich_markup_mode=None,
    )
    app.callback()(_root)
    for name, short in COMMANDS.items():
        run, epilog = _loaded(name) if name == command else (_listed, None)
        app.command(name, short_help=short, epilog=epilog, context_settings=PLAIN)(run)
    return app


def _loaded(name: str) -> tuple[Callable[..., Any], str | None]:
    module = import_module(f"vllm_reasoning_ext.cli.{name}")
    run = module.command if name in WITHOUT_FAMILIES else with_family_file(module.command)
    return run, getattr(module, "EPILOG", None)


def with_family_file(run: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option that adds a family of the user's own; every command that knows families has it."""

    def command(*, family_file: str, **given: Any) -> Any:
        if family_file:
            from vllm_reasoning_ext.derive.record_file import register_files

            register_files(family_file)
        return run(**given)

    signature = inspect.signature(run)
    added = inspect.Parameter("family_file", inspect.Parameter.KEYWORD_ONLY, default="", annotation=FAMILY_FILE)
    command.__signature__ = signature.replace(parameters=[*signature.parameters.values(), added])  # type: ignore[attr-defined]
    command.__doc__ = run.__doc__
    return command


def _listed() -> None:
    """Stand in the list of commands."""


def _show_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"{__version__}\n")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Print the package's version."),
    ] = False,
) -> None:
    """Split model output into reasoning, answer and tool calls; find out why it was split so."""


def _report(error: SetupError, given: Sequence[str]) -> None:
    from vllm_reasoning_ext.cli import paint

    document = {"error": {"problem": error.problem, "found": error.found, "remedy": error.remedy}}
    if "--jsonl" in given:
        paint.print_json_line(document)
    elif "--json" in given:
        paint.print_json(document)
    err = paint.console(stderr=True)
    paint.line(err, ("error: ", "fail"), paint.visible(error.problem))
    paint.line(err, f"  found in: {paint.visible(error.found)}")
    paint.line(err, f"  remedy:   {paint.visible(error.remedy)}")
