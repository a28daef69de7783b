"""Run make targets in lanes side by side, every line of theirs with its target's name before it: `make test`.

    python tests/stages.py lint,test-light,test-sglang test-vllm

Each argument is a lane: its targets run one after another. An engine stage waits most of its time for one server to
start on one core, so two lanes on two cores take little more than the longer one, and one engine's environment is
built while the other lane tests. TEST_LANES=1 runs everything one after another; so does a machine with one core.
A target that fails stops no other: all that is wrong is seen at once. The flaky tests (tests/twice.py) of all
targets count together. Interrupted, it interrupts the targets and waits until they have ended their servers.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import Final, NamedTuple

from twice import FLAKY_MAX

FLAKY: Final = "FLAKY "


class Ended(NamedTuple):
    """A target that has run.

    Attributes:
        target: its name.
        status: make's exit status.
        seconds: how long it took.
        flaky: the tests that passed the second time only.
    """

    target: str
    status: int
    seconds: float
    flaky: tuple[str, ...]


class Stages:
    """The targets that run, have run, and will not run any more once it is stopped."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._printing = threading.Lock()
        self._running: set[int] = set()
        self.stopped = False
        self.ended: list[Ended] = []

    def lane(self, targets: Sequence[str]) -> None:
        """Run targets one after another."""
        for target in targets:
            if not self.stopped:
                self.ended.append(self._run(target))

    def stop(self, *_: int | FrameType | None) -> None:
        """Interrupt what runs, in its own process group, and start nothing more."""
        self.stopped = True
        for group in tuple(self._running):
            os.killpg(group, signal.SIGINT)

    def say(self, target: str, line: str) -> None:
        with self._printing:
            print(f"{target:>{self._width}} | {line}", flush=True)

    def _run(self, target: str) -> Ended:
        started = time.monotonic()
        flaky = []
        with subprocess.Popen(
            [os.environ.get("MAKE", "make"), "--no-print-directory", target],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as process:
            self._running.add(process.pid)
            assert process.stdout is not None
            for line in process.stdout:
                self.say(target, line.rstrip())
                if line.startswith(FLAKY):
                    flaky.append(line.removeprefix(FLAKY).strip())
            status = process.wait()
            self._running.discard(process.pid)
        ended = Ended(target, status, time.monotonic() - started, tuple(flaky))
        self.say(target, f"{'passed' if status == 0 else f'FAILED ({status})'} after {minutes(ended.seconds)}")
        return ended


def minutes(seconds: float) -> str:
    """Write a duration as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02} min"


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def main(arguments: Sequence[str]) -> int:
    """Run the lanes; give 0 if every target passed and no more than FLAKY_MAX tests were flaky."""
    lanes = [lane.split(",") for lane in arguments]
    targets = [target for lane in lanes for target in lane]
    if int(os.environ.get("TEST_LANES") or cores()) < len(lanes):
        lanes = [targets]
    stages = Stages(max(map(len, targets)))
    started = time.monotonic()
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, stages.stop)
    threads = [threading.Thread(target=stages.lane, args=(lane,)) for lane in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return verdict(stages, targets, time.monotonic() - started)


def verdict(stages: Stages, targets: Sequence[str], seconds: float) -> int:
    """Print what each target took and what was flaky; give the exit status."""
    print()
    for one in sorted(stages.ended, key=lambda one: targets.index(one.target)):
        stages.say(one.target, f"{minutes(one.seconds)}  {'passed' if one.status == 0 else 'FAILED'}")
    flaky = [f"{one.target}: {test}" for one in stages.ended for test in one.flaky]
    for test in flaky:
        print(f"{FLAKY}{test}")
    right = len(stages.ended) == len(targets) and not any(one.status for one in stages.ended)
    if len(flaky) > FLAKY_MAX:
        print(f"{len(flaky)} tests passed the second time only, and no more than {FLAKY_MAX} may")
        right = False
    print(f"{'all passed' if right else 'FAILED'} in {minutes(seconds)}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
