"""The measurement runs, and checks what it measures."""

import subprocess
import sys

from tests.support.patience import REPLY_SECONDS


def test_a_small_measurement() -> None:
    few = ["--streams", "5", "--tokens", "20", "--rounds", "1", "--pace", "0"]
    command = [sys.executable, "-m", "benchmarks.proxy", *few]
    done = subprocess.run(command, capture_output=True, text=True, timeout=REPLY_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    one, many, checked = done.stdout.splitlines()
    assert one.startswith("one stream at a time")
    assert many.startswith("5 streams at a time")
    # Two single ones, twice five for each of the two proxies; the round that opens the connections is not counted.
    assert checked == "22 streams checked to the character: nothing lost, nothing mixed"
