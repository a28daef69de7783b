"""Run the command line in this process, and read what it says."""

import json
from typing import Any, NamedTuple

import pytest

from vllm_reasoning_ext.cli.main import main


class Said(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Its standard output, read as JSON."""
        return json.loads(self.out)


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> Said:
    """Run one command."""
    capfd.readouterr()
    code = main(arguments)
    said = capfd.readouterr()
    return Said(code, said.out, said.err)
