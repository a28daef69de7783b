"""Counts the examples that the property tests have tried."""

_count = 0


def one() -> None:
    """Note one example."""
    global _count
    _count += 1


def total() -> int:
    """Give the number of examples so far."""
    return _count
