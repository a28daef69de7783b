"""Run the contract tests against other vLLM versions' Python files, and print the support matrix (`make compat`).

The environment stays that of tests/envs/vllm.txt; only the `vllm` package in front of it changes. So this proves
the parsers' contracts, not the engines: what a version needs beyond (kernels, a newer dependency) is not tested.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

from tests.envs.vllm_trees import TREES, tree

ROOT: Final = Path(__file__).parents[1]
SUITES: Final = {
    "hook on and off": "tests/engines/test_vllm_contract.py",
    "tool parsers": "tests/engines/test_vllm_tools.py",
    "id methods, start-up": "tests/engines/test_vllm_adapter.py",
    "gpt_oss model type": "tests/engines/test_vllm_harmony.py",
    "metrics, floor": "tests/engines/test_vllm_metrics.py",
}
INSTALLED: Final = "installed"


class Outcome(NamedTuple):
    """Counts of one suite, and the last lines of its output."""

    passed: int
    failed: int
    skipped: int
    tail: str

    def __str__(self) -> str:
        total = self.passed + self.failed
        if total:
            return f"{self.passed} of {total}"
        return "vLLM's own" if self.skipped else "cannot run"

    @property
    def wrong(self) -> bool:
        """Tell whether a test failed, or none could be collected."""
        return bool(self.failed or not (self.passed or self.skipped))


def run(path: Path | None, suite: str) -> Outcome:
    """Run one suite with a tree in front of the installed vLLM."""
    env = dict(os.environ)
    if path is not None:
        env["PYTHONPATH"] = os.pathsep.join([str(path), str(ROOT)])
    command = [sys.executable, "-m", "pytest", "-m", "vllm", "--tb=line", "-o", "addopts=", suite]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    counts = dict.fromkeys(("passed", "failed", "error", "skipped"), 0)
    for number, word in re.findall(r"(\d+) (passed|failed|error|skipped)", done.stdout):
        counts[word] = int(number)
    tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
    return Outcome(counts["passed"], counts["failed"] + counts["error"], counts["skipped"], tail)


def main(versions: list[str]) -> int:
    """Print the matrix; 1 when a suite failed or could not run."""
    rows = {version: {} for version in versions or [*TREES, INSTALLED]}
    for version, found in rows.items():
        path = None if version == INSTALLED else tree(version)
        for name, suite in SUITES.items():
            print(f"vLLM {version}: {name} ...", file=sys.stderr, flush=True)
            found[name] = run(path, suite)
    print("| vLLM | " + " | ".join(SUITES) + " |")
    print("|-" * (len(SUITES) + 1) + "|")
    wrong = []
    for version, found in rows.items():
        print(f"| {version} | " + " | ".join(map(str, found.values())) + " |")
        wrong += [(version, name, o) for name, o in found.items() if o.wrong]
    for version, name, outcome in wrong:
        print(f"\nvLLM {version}, {name}:\n{outcome.tail}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
