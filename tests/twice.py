"""Run pytest, and what failed once more: a test that then passes is FLAKY, named, and no more than two may be.

    python tests/twice.py [pytest arguments]

Real servers on a busy machine can be late for a deadline of a test; a fault fails both times, and both outputs stay
above each other to be read. Each run is a process of its own, so that the second finds no server, module or fixture
of the first. The exit status is pytest's own (a run that could not collect is not repeated); it is 0 after a second
run only if everything passed there and at most FLAKY_MAX tests needed it.
"""

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

FLAKY_MAX: Final = 2
AGAIN_MAX: Final = 10
"""Failures after which the second run ends: where so much fails twice, the rest teaches nothing."""

TESTS_FAILED: Final = 1
"""pytest's exit status for it; every other one but 0 means that the run itself went wrong."""


class Outcomes:
    """Pytest plug-in: which tests passed and which failed, setup and teardown included.

    Args:
        record: the file to write them to when the run ends.
        only: the ids of the tests to run; None runs all that pytest selects.
    """

    def __init__(self, record: Path, only: frozenset[str] | None) -> None:
        self._record, self._only = record, only
        self._passed: dict[str, None] = {}
        self._failed: dict[str, None] = {}

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        if self._only is not None:
            config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in self._only])
            items[:] = [item for item in items if item.nodeid in self._only]

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._failed[report.nodeid] = None
        elif report.when == "call" and report.passed:
            self._passed[report.nodeid] = None

    def pytest_sessionfinish(self) -> None:
        passed = [test for test in self._passed if test not in self._failed]
        self._record.write_text(json.dumps({"passed": passed, "failed": list(self._failed)}), encoding="utf-8")


def run(arguments: Sequence[str], record: Path, only: Sequence[str] | None = None) -> tuple[int, dict[str, list[str]]]:
    """Run pytest in a process of its own; give its exit status and the tests that passed and failed."""
    order = {"record": str(record), "only": only, "arguments": list(arguments)}
    # -P: this file's folder is no place to import from; the tests' own root is in pytest's settings.
    command = [sys.executable, "-P", __file__, "--one-run"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
        # An interrupt reaches pytest as well, which ends its servers first: wait for that.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        process.communicate(json.dumps(order))
        signal.signal(signal.SIGINT, before)
    status = process.returncode
    if not record.exists():
        return status or TESTS_FAILED, {"passed": [], "failed": []}
    outcomes: dict[str, list[str]] = json.loads(record.read_text(encoding="utf-8"))
    return status, outcomes


def one_run(order: dict[str, Any]) -> int:
    """Run pytest in this process, as `run` asked for it."""
    import pytest

    only = None if order["only"] is None else frozenset(order["only"])
    return int(pytest.main(order["arguments"], plugins=[Outcomes(Path(order["record"]), only)]))


def main(arguments: Sequence[str]) -> int:
    """Run the tests, then the failed ones again; give the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        status, first = run(arguments, Path(folder) / "first.json")
        if status != TESTS_FAILED or not first["failed"]:
            return status
        print(f"twice: failed {len(first['failed'])}, which run once more", flush=True)
        again = [*arguments, "--maxfail", str(AGAIN_MAX)]
        _, second = run(again, Path(folder) / "second.json", first["failed"])
    flaky = [test for test in first["failed"] if test in second["passed"]]
    for test in flaky:
        print(f"FLAKY {test}")
    faults = len(first["failed"]) - len(flaky)
    print(f"twice: {faults} failed again or did not run again, {len(flaky)} flaky (at most {FLAKY_MAX} may be)")
    return TESTS_FAILED if faults or len(flaky) > FLAKY_MAX else 0


if __name__ == "__main__":
    sys.exit(one_run(json.load(sys.stdin)) if sys.argv[1:] == ["--one-run"] else main(sys.argv[1:]))
