"""The SGLang servers of the live tests: one at a time, a tiny model per family with its own template."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

pytest.importorskip("sglang")

from tests.live.sglang.server import Server, running
from vllm_reasoning_ext.serve.tiny_model import build_model

TEMPLATES: Final = Path(__file__).parents[3] / "templates"


class Setup(NamedTuple):
    """A pair of parsers, as an operator would start them, and the family whose wires it serves."""

    family: str
    tool_parser: str

    @property
    def name(self) -> str:
        return f"{self.family}+{self.tool_parser}"


SETUPS: Final = (
    Setup("muse_glimmer", "muse"),
    Setup("gpt_oss", "gpt-oss"),
    Setup("qwen3", "qwen25"),
    Setup("gemma4", "gemma4"),
    Setup("minimax_m3", "minimax-m3"),
    Setup("deepseekv32", "deepseekv32"),
)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Build a family's model once; call it with the family's name."""
    root = tmp_path_factory.mktemp("models")

    def build(family: str) -> tuple[Path, Any]:
        tokenizer = build_model(root / family, family)
        return root / family, tokenizer

    return build


def arguments(family: str, tool_parser: str | None) -> list[str]:
    """Build the arguments of a served family."""
    parsers = ["--reasoning-parser", family, *(["--tool-call-parser", tool_parser] if tool_parser else [])]
    return [*parsers, "--chat-template", str(TEMPLATES / f"{family}.jinja")]


class Served(NamedTuple):
    """A running setup and the tokenizer that scripts are written with."""

    setup: Setup
    server: Server
    tokenizer: Any


@pytest.fixture(scope="session")
def served(
    request: pytest.FixtureRequest, models: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """Run the server of a setup for all its tests."""
    setup: Setup = request.param
    model, tokenizer = models(setup.family)
    folder = tmp_path_factory.mktemp("server")
    with running(folder, model, *arguments(setup.family, setup.tool_parser)) as server:
        yield Served(setup, server, tokenizer)
