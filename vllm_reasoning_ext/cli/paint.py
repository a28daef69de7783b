"""How the commands print: colour on a terminal, plain text elsewhere, JSON for programs."""

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console

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


def console(*, stderr: bool = False) -> "Console":
    """Make a console that prints text as it is: no markup, no guessing at numbers to colour."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


@contextlib.contextmanager
def waiting(for_what: str) -> Iterator[None]:
    """Say on standard error what a command waits for: a spinner on a terminal, else a line."""
    err = console(stderr=True)
    if painted(err):
        with err.status(for_what):
            yield
    else:
        line(err, for_what)
        yield


def painted(target: "Console") -> bool:
    """Tell whether to draw in colour: a terminal that is not dumb, and no NO_COLOR."""
    return (
        target.is_terminal
        and not target.is_dumb_terminal
        and not target.legacy_windows
        and not os.environ.get("NO_COLOR")
    )


def styled(text: str, style: str) -> str:
    """Colour a text, each of its lines by itself: a pager forgets the style at the end of a line.

    Args:
        text: the text.
        style: as rich writes it: "bold red".
    """
    from rich.style import Style

    render = Style.parse(style).render
    return "\n".join([render(row) for row in text.split("\n")])


Part = str | tuple[str, str]
"""A text, or a text and the name of a style."""


def line(target: "Console", *parts: Part) -> None:
    """Print one line; `(text, style)` is coloured where colours are wanted."""
    lines(target, [parts])


def lines(target: "Console", rows: Iterable[Sequence[Part]]) -> None:
    """Print many lines at once."""
    # Straight to the file: rich takes a tenth of a millisecond for a line, and a reply may have a million.
    colours = painted(target)
    target.file.write("".join([_line(parts, colours) for parts in rows]))


def _line(parts: Sequence[Part], colours: bool) -> str:
    texts = [(part, "") if isinstance(part, str) else part for part in parts]
    return "".join([styled(t, STYLES.get(style, style)) if colours else t for t, style in texts]) + "\n"


def columns(target: "Console", rows: Sequence[Sequence[tuple[str, str]]], *, indent: int = 4) -> None:
    """Print rows of (text, style) in columns as wide as their longest text.

    Args:
        target: where to.
        rows: of equal length.
        indent: where a line does not fit the terminal, its columns after the first stand below, so far in.
    """
    if not rows:
        return
    widths = [max(len(row[n][0]) for row in rows) for n in range(len(rows[0]))]
    narrow = sum(widths) + 2 * len(widths) > width(target)
    for row in rows:
        cells: list[Part] = [(f"{text:<{wide}}  ", style) for (text, style), wide in zip(row, widths, strict=True)]
        last = (row[-1][0], row[-1][1])
        if narrow:
            line(target, (row[0][0], row[0][1]))
            line(target, " " * indent, *cells[1:-1], last)
        else:
            line(target, *cells[:-1], last)


def width(target: "Console") -> int:
    """Tell how many characters a line may have: the terminal's, and anything where there is no terminal."""
    return target.width if target.is_terminal or "COLUMNS" in os.environ else 200


def print_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def print_json_line(value: Any) -> None:
    """Print one JSON document on a line of standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


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
