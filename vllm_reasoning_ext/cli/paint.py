"""How the commands print: colour on a terminal, plain text elsewhere, JSON for programs."""

import json
import os
import sys
from typing import Any, Final

from rich.console import Console
from rich.text import Text

EDGE: Final = "▏"
"""Where one delta ended and the next began."""

STYLES: Final = {
    "reasoning": "dim italic",
    "content": "",
    "tool": "",
    "marker": "reverse",
    "edge": "cyan",
    "ok": "green",
    "warn": "yellow",
    "fail": "bold red",
    "info": "dim",
    "head": "bold",
}

LABELS: Final = {"reasoning": "reasoning", "content": "answer", "tool": "tool", "marker": "marker"}
"""What people call the kinds of events."""


def console(*, stderr: bool = False) -> Console:
    """Make a console that prints text as it is: no markup, no guessing at numbers to colour."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def painted(target: Console) -> bool:
    """Tell whether to draw in colour: a terminal that is not dumb, and no NO_COLOR."""
    return target.is_terminal and not target.is_dumb_terminal and not os.environ.get("NO_COLOR")


def line(target: Console, *parts: str | tuple[str, str]) -> None:
    """Print one line; a part is text, or text and the name of a style.

    Args:
        target: where to.
        parts: texts; `(text, style)` is coloured where colours are wanted.
    """
    if not painted(target):
        # Straight to the file: rich takes a tenth of a millisecond for a line, and a reply may have many.
        target.file.write("".join(part if isinstance(part, str) else part[0] for part in parts) + "\n")
        return
    text = Text()
    for part in parts:
        text.append(part) if isinstance(part, str) else text.append(part[0], STYLES.get(part[1], part[1]))
    target.print(text)


def print_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def visible(text: str, *, newlines: bool = False) -> str:
    """Spell control characters out, so that model text cannot steer a terminal.

    Args:
        text: anything.
        newlines: keep newlines and tabs as they are.
    """
    keep = "\n\t" if newlines else ""
    return "".join(c if c in keep or (c.isprintable() or c == " ") else _escape(c) for c in text)


def shorten(text: str, limit: int = 60, *, end: bool = False) -> str:
    """Quote a text on one line; a long one is cut in the middle, or at its beginning with `end`."""
    shown = visible(text)
    if len(shown) <= limit:
        return f"'{shown}'"
    if end:
        return f"'…{shown[-limit:]}'"
    return f"'{shown[: limit // 2]}…{shown[-limit // 2 :]}'"


def _escape(character: str) -> str:
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character) or ascii(character)[1:-1]
