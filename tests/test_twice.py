"""tests/twice.py: what fails once is named and forgiven, twice a run at most; what fails twice fails the run."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tests.support.patience import LOCAL_SECONDS

TWICE: Final = Path(__file__).parent / "twice.py"

TESTS: Final = """
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def first_time(name):
    seen = HERE / f"{name}.seen"
    if seen.exists():
        return False
    seen.touch()
    return True


@pytest.mark.parametrize("name", ["a b", "c::d[e]", "é"])
def test_late(name):
    assert not first_time(f"late {name.encode().hex()}")


@pytest.fixture
def slow():
    assert not first_time("slow")


@pytest.fixture
def sticky():
    yield
    assert not first_time("sticky")


def test_setup(slow):
    pass


def test_teardown(sticky):
    pass


def test_skipped_the_second_time():
    if not first_time("skipped"):
        pytest.skip("no longer")
    assert False


def test_wrong():
    assert False


def test_right():
    with (HERE / "right.runs").open("a") as runs:
        runs.write("x")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_some.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    return tmp_path


def twice(folder: Path, *tests: str) -> tuple[int, list[str], str]:
    """Run it on tests of the folder; give the exit status, the tests called flaky, and all it printed."""
    command = [sys.executable, str(TWICE), "-q", *(f"test_some.py::{test}" for test in tests)]
    # Without the plug-ins of this environment, which take longer to load than these tests to run.
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, encoding="utf-8", check=False)
    assert not done.stderr
    return done.returncode, re.findall(r"^FLAKY test_some\.py::(.*)$", done.stdout, re.MULTILINE), done.stdout


def test_all_pass(folder: Path) -> None:
    status, flaky, said = twice(folder, "test_right")
    assert (status, flaky) == (0, [])
    assert "twice:" not in said
    assert (folder / "right.runs").read_text() == "x"


@pytest.mark.parametrize("test", ["test_late[a b]", "test_late[c::d[e]]", "test_setup", "test_teardown"])
def test_one_that_passes_the_second_time_is_named(folder: Path, test: str) -> None:
    status, flaky, _ = twice(folder, test, "test_right")
    assert (status, flaky) == (0, [test])
    assert (folder / "right.runs").read_text() == "x"  # what passed does not run again


def test_two_are_forgiven(folder: Path) -> None:
    assert twice(folder, "test_setup", "test_teardown")[:2] == (0, ["test_setup", "test_teardown"])


def test_three_are_too_many(folder: Path) -> None:
    status, flaky, said = twice(folder, "test_late")
    assert status == 1
    assert len(flaky) == 3
    assert "0 failed again or did not run again, 3 flaky (at most 2 may be)" in said


def test_what_fails_twice_fails_the_run_and_is_not_flaky(folder: Path) -> None:
    status, flaky, said = twice(folder, "test_wrong", "test_setup")
    assert (status, flaky) == (1, ["test_setup"])
    assert said.count("FAILED test_some.py::test_wrong") == 2


def test_a_skip_the_second_time_is_no_pass(folder: Path) -> None:
    assert twice(folder, "test_skipped_the_second_time")[:2] == (1, [])


def test_a_run_that_cannot_collect_is_not_repeated(folder: Path) -> None:
    (folder / "test_some.py").write_text("import nothing_of_this_name\n", encoding="utf-8")
    status, flaky, said = twice(folder)
    assert (status, flaky) == (2, [])
    assert "twice:" not in said


def test_no_test_at_all_is_no_success(folder: Path) -> None:
    (folder / "test_some.py").write_text("", encoding="utf-8")
    assert twice(folder)[0] == 5


def test_a_run_that_dies_is_no_success(folder: Path) -> None:
    (folder / "test_some.py").write_text("import os\n\n\ndef test_dies():\n    os._exit(0)\n", encoding="utf-8")
    status, flaky, _ = twice(folder)
    assert (status, flaky) == (1, [])


PATIENT: Final = """
import time
from pathlib import Path

import pytest


@pytest.fixture
def server():
    Path("started").touch()
    yield
    time.sleep(1)
    Path("ended").touch()


def test_passes():
    pass


def test_waits(server):
    time.sleep(60)
"""


def test_an_interrupt_waits_until_the_fixtures_have_ended(folder: Path) -> None:
    (folder / "test_some.py").write_text(PATIENT, encoding="utf-8")
    command = [sys.executable, str(TWICE), "-q"]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    while not (folder / "started").exists():
        assert process.poll() is None
        time.sleep(0.05)
    # What has passed is seen while the rest still runs.
    assert select.select([process.stdout], [], [], LOCAL_SECONDS)[0]
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate()
    assert said.startswith(".")
    assert process.returncode == 2
    assert (folder / "ended").exists()
    assert "twice:" not in said
