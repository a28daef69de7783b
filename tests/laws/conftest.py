"""Hypothesis profiles of the laws, and how many outputs were tried: LAWS_PROFILE=laws is `make laws`."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.laws import tried

LEAST = 20_000

_COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}
settings.register_profile("share", max_examples=15, database=None, derandomize=True, **_COMMON)
settings.register_profile("laws", max_examples=280, **_COMMON)
PROFILE = os.environ.get("LAWS_PROFILE", "share")
settings.load_profile(PROFILE)


@pytest.fixture(scope="session", autouse=True)
def enough_examples() -> Iterator[None]:
    """Fail the whole `make laws` run if it has tried less than it promises."""
    yield
    if PROFILE == "laws" and not os.environ.get("LAWS_PART"):
        assert tried.total() >= LEAST, f"only {tried.total()} examples; raise max_examples in tests/laws/conftest.py"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"laws: {tried.total()} examples tried (profile {PROFILE})")
