"""The command `families`: the parser names, their grammars and markers."""

import sys
from typing import TYPE_CHECKING, Any, Final

import typer

from vllm_reasoning_ext.cli import paint
from vllm_reasoning_ext.cli.family_table import SERVES, markdown
from vllm_reasoning_ext.core.families import FAMILIES, Family
from vllm_reasoning_ext.core.grammar.tags import DEFAULT_TAGS

if TYPE_CHECKING:
    from rich.console import Console

EPILOG: Final = """\b
Each name is also there as <name>_ext in the engines, which never collides with a name of their own.
Where an engine calls its own parser of the same models otherwise (glm45, openai_gptoss), that name is
understood here as well; --json lists them as engine_names.
The markers are what the model writes; in a channel family they frame messages, not blocks.
"""

TABLE_MIN: Final = 90
"""Columns that a table of four needs to be read."""


def command(
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    as_markdown: bool = typer.Option(
        False, "--markdown", help="Print the page docs/families.md: tool parsers, prompts."
    ),
) -> None:
    """List the families: names for --reasoning-parser, grammar, markers, models."""
    if as_markdown:
        sys.stdout.write(markdown())
        return
    rows = [_row(record) for record in FAMILIES.values()]
    inline = {
        "name": "inline",
        "aliases": [],
        "engine_names": [],
        "grammar": "tags",
        "markers": [tag for pair in DEFAULT_TAGS for tag in pair],
        "serves": "tags in the text of any model (library, split and proxy)",
    }
    if as_json:
        paint.print_json({"families": [*rows, inline]})
        return
    out = paint.console()
    shown = {**inline, "markers": [*DEFAULT_TAGS[0], f"and {len(DEFAULT_TAGS) - 1} more pairs"]}
    if not paint.painted(out) or paint.width(out) < TABLE_MIN:
        _show_plain(out, [*rows, shown])
        return
    from rich.table import Table

    table = Table("name", "grammar", "models", "markers", show_lines=False)
    for row in [*rows, shown]:
        table.add_row(
            ", ".join([row["name"], *row["aliases"]]), row["grammar"], row["serves"], " ".join(row["markers"])
        )
    out.print(table)


def _show_plain(out: "Console", rows: list[dict[str, Any]]) -> None:
    names = [", ".join([row["name"], *row["aliases"]]) for row in rows]
    wide = max(map(len, names))
    narrow = paint.width(out) < TABLE_MIN
    for name, row in zip(names, rows, strict=True):
        markers = " ".join(row["markers"])
        if narrow:
            paint.line(out, f"{name:<{wide}} {row['grammar']}")
            paint.line(out, f"    {row['serves']}")
            paint.line(out, f"    {markers}")
        else:
            paint.line(out, f"{name:<{wide}} {row['grammar']:<8} {row['serves']}")
            paint.line(out, f"{'':<{wide}} {'':<8} {markers}")


def _row(record: Family) -> dict[str, Any]:
    main = list(record.required) if record.channels else [record.opener, record.closer, record.tool_marker]
    serves = SERVES.get(record.name)
    return {
        "name": record.name,
        "aliases": list(record.aliases),
        "engine_names": list(record.engine_names),
        "grammar": record.grammar,
        "markers": [marker for marker in [*main, *record.end_of_sequence] if marker],
        "serves": serves.models if serves is not None else "registered at run time",
    }
