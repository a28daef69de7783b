"""The help texts in the documentation: `<!-- help:split -->`, a code block, `<!-- /help -->`.

`python -m tests.cli.help_blocks` writes them anew into every page that has such markers; a test compares them.
"""

import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from unittest import mock

from vllm_reasoning_ext.cli.main import main

ROOT: Final = Path(__file__).resolve().parents[2]
WIDTH: Final = "100"
BLOCK: Final = re.compile(r"(<!-- help:(?P<name>[a-z]*) -->\n)(?P<block>.*?)(<!-- /help -->)", re.DOTALL)


def pages() -> Iterator[Path]:
    """List the pages that may hold help blocks."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").glob("*.md"))


def help_text(name: str) -> str:
    """Return what `--help` prints for a command ("" for the root), at a fixed width and without colour."""
    out = io.StringIO()
    with mock.patch.dict(os.environ, {"COLUMNS": WIDTH, "NO_COLOR": "1"}), contextlib.redirect_stdout(out):
        code = main([name, "--help"] if name else ["--help"])
    assert code == 0
    return "\n".join(line.rstrip() for line in out.getvalue().strip("\n").splitlines())


def block(name: str) -> str:
    """Return the code block of a command as a page must have it."""
    return f"```text\n{help_text(name)}\n```\n"


def renewed(text: str) -> str:
    """Return a page with every help block as it should be."""
    return BLOCK.sub(lambda found: found[1] + block(found["name"]) + found[4], text)


if __name__ == "__main__":
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = renewed(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"{page.relative_to(ROOT)}: help blocks renewed")
