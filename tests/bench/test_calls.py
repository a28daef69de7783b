"""What a delta costs in Python calls: the same on every machine, so a test can hold it (`make calls` renews)."""

import json

import pytest

from benchmarks.calls import BASELINE, CALLS, costs, dearer


@pytest.mark.parametrize("family", CALLS)
def test_no_phase_costs_more_calls_than_the_baseline(family: str) -> None:
    baseline = json.loads(BASELINE.read_text(encoding="utf-8"))
    now = costs([family])
    assert len(now) == 5
    assert not dearer(now, baseline)


def test_what_costs_more_is_named() -> None:
    now = {"a, answer": [2.0, 1.06], "a, code": [1.0, 1.0], "b, answer": [1.0, 1.0]}
    assert dearer(now, {"a, answer": [2.0, 1.0], "a, code": [2.0, 2.0]}) == [
        "a, answer, text alone: 1.06 calls a delta, 1.0 before",
        "b, answer: not in calls.json",
    ]
