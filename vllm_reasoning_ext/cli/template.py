"""The command `template`: where a packaged chat template lies."""

from typing import Annotated, Final

import typer

from vllm_reasoning_ext.cli import paint
from vllm_reasoning_ext.conformance.templates import template_directory, template_names, template_path

EPILOG: Final = """\b
Examples:
  vllm serve MODEL --chat-template "$(python -m vllm_reasoning_ext template muse_glimmer)"
  vllm-reasoning-ext template --list
"""


def command(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="A family's name, or glm.")] = "",
    *,
    every: Annotated[bool, typer.Option("--list", help="List the templates.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Print the template's text in place of its path.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the path of one of the package's own minimal chat templates.

    They frame turns, history, tool results and the generation prompt as the real templates do; the wording of
    the system turn is the package's own. Use a model's own template where you have it.
    """
    names = template_names() if every or not name else [name]
    if as_json:
        paint.print_json(
            {"directory": str(template_directory()), "templates": {n: str(template_path(n)) for n in names}}
        )
        return
    out = paint.console()
    for each in names:
        path = template_path(each)
        if show:
            out.out(path.read_text(encoding="utf-8"), end="", highlight=False)
        else:
            paint.line(out, f"{each:<14} {path}" if len(names) > 1 else str(path))
