"""The command `version`."""

import json
import sys
from typing import Annotated

import typer

from vllm_reasoning_ext._version import __version__


def command(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Print the package's version."""
    sys.stdout.write(json.dumps({"version": __version__}) + "\n" if as_json else f"{__version__}\n")
