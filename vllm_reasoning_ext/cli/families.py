"""The command `families`: the parser names, their grammars and markers."""

from typing import TYPE_CHECKING, Any, Final

import typer

from vllm_reasoning_ext.cli import paint
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

_SERVES: Final = {
    "deepseekv32": "DeepSeek V3.2, V4, V4.1",
    "qwen3": "Qwen3 to Qwen3.8, QwQ, GLM, R1 distills: any plain <think> model",
    "minimax": "MiniMax M2, M2.5, M2.7",
    "minimax_m3": "MiniMax M3",
    "gemma4": "Gemma 4",
    "gpt_oss": "gpt-oss (harmony)",
    "muse_glimmer": "Muse Glimmer (ATEM)",
    "deepseek_r1": "DeepSeek R1 and its distills",
    "deepseek_v3": "DeepSeek V3.1, V3.2-Exp",
    "holo2": "Holo2",
    "ling3": "Ling 3",
    "poolside_v1": "Laguna",
    "kimi_k2": "Kimi K2 Thinking, K2.5, K2.6",
    "nemotron_nano_v2": "Nemotron Nano v2",
    "step3": "Step 3",
    "seed_oss": "Seed-OSS",
    "minicpm5": "MiniCPM5",
    "interns1": "Intern-S1",
    "dots": "dots",
    "olmo3": "OLMo 3",
    "ernie45": "ERNIE 4.5 Thinking",
    "hunyuan_a13b": "Hunyuan A13B",
    "hunyuan": "Hunyuan 3, 4",
    "k2_horizon": "K2 Horizon",
    "plamo3": "PLaMo 3",
    "gigachat35": "GigaChat 3.5",
    "iquest_q1": "IQuest Q1",
    "kimi": "Kimi-VL Thinking",
    "reka": "Reka Edge",
    "spark25": "Spark 2.5",
    "lfm2": "LFM2, LFM2.5",
    "rwkv": "RWKV World",
    "kat_v1": "KAT-V1",
    "mistral": "Magistral, Ministral Reasoning, Mistral Small 4",
    "cohere": "Command R7B, Command A Reasoning and later",
    "kimi_k3": "Kimi K3",
    "inkling": "Inkling",
    "apertus": "Apertus",
    "granite": "Granite 3.2",
    "granite33": "Granite 3.3",
    "apriel": "Apriel 1.5, 1.6",
    "solar": "Solar Open",
}


def command(as_json: bool = typer.Option(False, "--json", help="Print JSON.")) -> None:
    """List the families: names for --reasoning-parser, grammar, markers, models."""
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
    main = [record.opener, record.closer, record.tool_marker] if record.grammar == "marker" else list(record.required)
    return {
        "name": record.name,
        "aliases": list(record.aliases),
        "engine_names": list(record.engine_names),
        "grammar": record.grammar,
        "markers": [marker for marker in [*main, *record.end_of_sequence] if marker],
        "serves": _SERVES.get(record.name, "registered at run time"),
    }
