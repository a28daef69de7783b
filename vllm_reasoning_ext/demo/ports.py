"""A port for a server that the demo or a test starts: nobody else of this package takes it meanwhile."""

import fcntl
import socket
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import IO, Final, NamedTuple

from vllm_reasoning_ext.errors import SetupError

TAKEN: Final = ("address already in use", "EADDRINUSE")
"""What a server's log says where another process took the port between the choice and the use."""

TRIES: Final = 5
"""Ports tried before the fault is given up on: it is another one then."""


class Port(NamedTuple):
    """A port that is this process's to give to a server.

    Attributes:
        number: the port.
        lock: an open file whose lock tells other processes; the port is given back when it closes.
    """

    number: int
    lock: IO[str]

    def release(self) -> None:
        """Give the port back."""
        self.lock.close()


def reserve(first: int, last: int, without: Collection[int] = ()) -> Port:
    """Reserve a free port of 127.0.0.1.

    Args:
        first, last: the range.
        without: ports of it that turned out to be taken.

    Raises:
        SetupError: none is free.
    """
    for number in range(first, last + 1):
        if number in without:
            continue
        # vLLM shares its port (SO_REUSEPORT), so two servers on one would answer each other's requests unnoticed.
        lock = (Path(tempfile.gettempdir()) / f"vllm-reasoning-ext-port-{number}.lock").open("a")
        if _locked(lock) and _free(number):
            return Port(number, lock)
        lock.close()
    raise SetupError(
        f"no free port on 127.0.0.1 from {first} to {last}", "this machine", "end a server that runs there"
    )


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _free(number: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", number)) != 0


def was_taken(log: str) -> bool:
    """Tell by a server's log whether it ended because its port was taken."""
    return any(sign.lower() in log.lower() for sign in TAKEN)
