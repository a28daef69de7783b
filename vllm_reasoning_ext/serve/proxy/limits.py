"""The bounds of the proxy, and their environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from vllm_reasoning_ext.errors import SetupError

LIMIT_PREFIX: Final = "THINK_EXTRACT_PROXY_"


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of the proxy.

    Attributes:
        header_bytes: the most bytes a request's line and headers may have.
        body_bytes: the most bytes a request's body may have.
        header_seconds: how long a client may take to send its headers.
        connect_seconds: how long connecting to the upstream, or waiting for a free connection, may take.
        read_seconds: how long the upstream may be silent.
        write_seconds: how long one write to the upstream may take.
        shutdown_seconds: how long streams may go on after SIGTERM.
        connections: the most clients at a time; more get a 503.
    """

    header_bytes: int = 64 * 1024
    body_bytes: int = 64 * 1024 * 1024
    header_seconds: float = 30.0
    connect_seconds: float = 10.0
    read_seconds: float = 600.0
    write_seconds: float = 60.0
    shutdown_seconds: int = 30
    connections: int = 1000

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> "Limits":
        """Read the bounds from `THINK_EXTRACT_PROXY_*`; an empty variable counts as unset.

        Raises:
            SetupError: a value is no number above 0.
        """
        env = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        for one in fields(cls):
            name = limit_variable(one.name)
            text = env.get(name, "").strip()
            if text:
                values[one.name] = _number(name, text, whole=isinstance(one.default, int))
        return cls(**values)


def limit_variable(field: str) -> str:
    """Name the environment variable of a bound."""
    return LIMIT_PREFIX + field.upper()


def _number(name: str, text: str, *, whole: bool) -> int | float:
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        kind = "a whole number of 1 or more" if whole else "a number of seconds above 0"
        raise SetupError(f"{name}={text!r} is no bound", "the environment", f"set {name} to {kind}, or unset it")
    return value
