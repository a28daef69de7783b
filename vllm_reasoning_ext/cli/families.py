"""The command `families`: the parser names, their grammars and markers."""

from typing import Any, Final

import typer
from rich.table import Table

from vllm_reasoning_ext.cli import paint
from vllm_reasoning_ext.core.families import FAMILIES, Family
from vllm_reasoning_ext.core.grammar.tags import DEFAULT_TAGS

EPILOG: Final = """\b
Each name is also there as <name>_ext in the engines, which never collides with a name of their own.
The markers are what the model writes; in a channel family they frame messages, not blocks.
"""

_SERVES: Final = {
    "deepseekv32": "DeepSeek V3.2, V4, V4.1",
    "qwen3": "Qwen3 to Qwen3.8, QwQ, GLM, R1 distills: any plain <think> model",
    "minimax": "MiniMax M2, M2.5, M2.7",
    "minimax_m3": "MiniMax M3",
    "gemma4": "Gemma 4",
    "gpt_oss": "gpt-oss (harmony)",
    "muse_glimmer": "Muse Glimmer (ATEM)",
}


def command(as_json: bool = typer.Option(False, "--json", help="Print JSON.")) -> None:
    """List the families: names for --reasoning-parser, grammar, markers, models."""
    rows = [_row(record) for record in FAMILIES.values()]
    inline = {
        "name": "inline",
        "aliases": [],
        "grammar": "tags",
        "markers": [tag for pair in DEFAULT_TAGS for tag in pair],
        "serves": "tags in the text of any model (library, split and proxy)",
    }
    if as_json:
        paint.print_json({"families": [*rows, inline]})
        return
    out = paint.console()
    shown = {**inline, "markers": [*DEFAULT_TAGS[0], f"and {len(DEFAULT_TAGS) - 1} more pairs"]}
    if not paint.painted(out):
        for row in [*rows, shown]:
            names = ", ".join([row["name"], *row["aliases"]])
            paint.line(out, f"{names:<18} {row['grammar']:<8} {row['serves']}")
            paint.line(out, f"{'':<18} {'':<8} {' '.join(row['markers'])}")
        return
    table = Table("name", "grammar", "models", "markers", show_lines=False)
    for row in [*rows, shown]:
        table.add_row(
            ", ".join([row["name"], *row["aliases"]]), row["grammar"], row["serves"], " ".join(row["markers"])
        )
    out.print(table)


def _row(record: Family) -> dict[str, Any]:
    main = [record.opener, record.closer, record.tool_marker] if record.grammar == "marker" else list(record.required)
    return {
        "name": record.name,
        "aliases": list(record.aliases),
        "grammar": record.grammar,
        "markers": [marker for marker in [*main, *record.end_of_sequence] if marker],
        "serves": _SERVES.get(record.name, "registered at run time"),
    }
