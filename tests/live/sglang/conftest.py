"""The SGLang servers of the live tests: one at a time, a tiny model per family with its own template."""

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.live.sglang.server import Server, running
from tests.support.more_outputs import SERVED_BY_AUTO
from vllm_reasoning_ext.demo.tiny_model import build_model

collect_ignore_glob = [] if importlib.util.find_spec("sglang") else ["test_*"]
"""Elsewhere these tests do not exist: `make test-sglang` runs them in an environment of their own."""

TEMPLATES: Final = Path(__file__).parents[3] / "templates"


class Setup(NamedTuple):
    """A pair of parsers, as an operator would start them, and the family whose outputs it serves."""

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
    parser = "auto" if family in SERVED_BY_AUTO else family
    parsers = ["--reasoning-parser", parser, *(["--tool-call-parser", tool_parser] if tool_parser else [])]
    return [*parsers, "--chat-template", str(TEMPLATES / f"{family}.jinja")]


class Served(NamedTuple):
    """A running setup and the tokenizer that scripts are written with."""

    setup: Setup
    server: Server
    tokenizer: Any


class Servers:
    """At most one running server: asking for another setup stops the one before."""

    def __init__(self, build: Callable[[str], tuple[Path, Any]], folder: Callable[[str], Path]) -> None:
        self._build, self._folder = build, folder
        self._running: ExitStack | None = None
        self._served: Served | None = None

    def stop(self) -> None:
        if self._running is not None:
            self._running.close()
        self._running = self._served = None

    def get(self, setup: Setup) -> Served:
        if self._served is not None and self._served.setup == setup:
            return self._served
        self.stop()
        model, tokenizer = self._build(setup.family)
        self._running = ExitStack()
        server = running(self._folder("server"), model, *arguments(setup.family, setup.tool_parser))
        self._served = Served(setup, self._running.enter_context(server), tokenizer)
        return self._served


@pytest.fixture(scope="session")
def servers(models: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Give the servers of the run."""
    pool = Servers(models, tmp_path_factory.mktemp)
    yield pool
    pool.stop()


@pytest.fixture
def served(request: pytest.FixtureRequest, servers: Servers) -> Served:
    """Give the running server of a test's setup."""
    return servers.get(request.param)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of one setup together, so that each server starts once."""
    order = {setup: place for place, setup in enumerate(SETUPS)}

    def place(item: pytest.Item) -> int:
        params = getattr(getattr(item, "callspec", None), "params", {})
        return order.get(params.get("served"), len(order))

    if any("served" in getattr(item, "fixturenames", ()) for item in items):
        items.sort(key=place)
