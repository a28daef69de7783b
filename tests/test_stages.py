"""tests/stages.py: make targets in lanes, all of them run, and their flaky tests counted together."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the development targets need a POSIX system")

STAGES: Final = Path(__file__).parent / "stages.py"

MAKEFILE: Final = """
one two:
\t@echo this is $@
bad:
\t@echo something is wrong >&2; exit 3
late:
\t@echo "FLAKY tests/test_a.py::test_b[c d]"
later:
\t@echo "FLAKY tests/test_a.py::test_e"; echo "FLAKY tests/test_a.py::test_f"
meets:
\t@mkfifo pipe; echo met > pipe
other:
\t@while [ ! -p pipe ]; do sleep 0.05; done; cat pipe
long:
\t@trap 'touch tidied; exit 1' INT; touch started; while :; do sleep 0.1; done
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Makefile").write_text(MAKEFILE, encoding="utf-8")
    return tmp_path


def start(folder: Path, *lanes: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "TEST_"))}
    return subprocess.Popen(
        [sys.executable, str(STAGES), *lanes],
        cwd=folder,
        env={**own, "TEST_LANES": "2", **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )


def run(folder: Path, *lanes: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    process = start(folder, *lanes, env=env)
    said, _ = process.communicate()
    return process.returncode, said


@pytest.mark.parametrize("env", [{}, {"TEST_LANES": "1"}])
def test_every_target_runs_and_says_its_name(folder: Path, env: dict[str, str]) -> None:
    status, said = run(folder, "one", "two", env=env)
    assert status == 0
    assert "one | this is one\n" in said
    assert "two | this is two\n" in said


def test_lanes_run_side_by_side(folder: Path) -> None:
    """Each of the two waits for the other, so that one after another they would never end."""
    status, said = run(folder, "meets", "other")
    assert status == 0
    assert "other | met\n" in said


def test_one_lane_runs_in_order(folder: Path) -> None:
    said = run(folder, "one,two", "late", env={"TEST_LANES": "1"})[1]
    assert said.index("this is one") < said.index("this is two") < said.index("FLAKY")


def test_a_target_that_fails_stops_no_other_and_fails_the_run(folder: Path) -> None:
    status, said = run(folder, "bad,one", "two")
    assert status == 1
    assert "bad | something is wrong" in said
    assert "this is one" in said
    assert "this is two" in said


def test_flaky_tests_of_all_targets_are_named_and_count_together(folder: Path) -> None:
    status, said = run(folder, "late", "one")
    assert status == 0
    assert "\nFLAKY late: tests/test_a.py::test_b[c d]\n" in said
    assert run(folder, "later", "one")[0] == 0
    status, said = run(folder, "late", "later")
    assert status == 1
    assert "3 tests passed the second time only, and no more than 2 may" in said


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_lets_the_targets_tidy_up_and_starts_no_other(folder: Path, sign: signal.Signals) -> None:
    process = start(folder, "long,one")
    while not (folder / "started").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(sign)
    said, _ = process.communicate()
    assert process.returncode == 1
    assert (folder / "tidied").exists()
    assert "this is one" not in said
