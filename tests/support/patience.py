"""How long the tests wait: deadlines that hold on a machine four times slower, and stretch by one variable.

Every deadline is written for an idle machine with two cores, many times over what it takes there; TEST_PATIENCE=3
makes each of them three times as long. Nothing waits longer for it but a test that waits for a deadline to pass.
"""

import os
from typing import Final

VARIABLE: Final = "TEST_PATIENCE"
FACTOR: Final = float(os.environ.get(VARIABLE) or 1)

START_SECONDS: Final = 600 * FACTOR
"""Until an engine's server answers (20 to 50 s when idle; two at a time, and a cold disk, take minutes)."""

REPLY_SECONDS: Final = 120 * FACTOR
"""Until an engine's reply, or the next piece of it, comes (well under a second when idle)."""

LOCAL_SECONDS: Final = 30 * FACTOR
"""Until something happens that takes milliseconds when idle: a scripted upstream's reply, a line in a log, a count."""


def stretched(seconds: float) -> float:
    """Give a deadline that a test waits to see pass, and which must not pass too early either."""
    return seconds * FACTOR
