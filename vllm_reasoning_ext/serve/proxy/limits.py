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
        header_seconds: how long a client may take to send its headers, on a new connection or on a used one.
        body_seconds: how long a client may be silent while it sends a body.
        client_seconds: how long a client may leave a reply unread before its connection is dropped.
        connect_seconds: how long connecting to the upstream, or waiting for a free connection, may take.
        read_seconds: how long the upstream may be silent.
        write_seconds: how long one write to the upstream may take.
        shutdown_seconds: how long streams may go on after SIGTERM.
        connections: the most requests at a time; one more gets a 503.

    Raises:
        ValueError: a bound is no number above 0.
    """

    header_bytes: int = 64 * 1024
    body_bytes: int = 64 * 1024 * 1024
    header_seconds: float = 30.0
    body_seconds: float = 60.0
    client_seconds: float = 300.0
    connect_seconds: float = 10.0
    read_seconds: float = 600.0
    write_seconds: float = 60.0
    shutdown_seconds: int = 30
    connections: int = 1000

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            whole = isinstance(one.default, int)
            if not isinstance(value, int if whole else (int, float)) or isinstance(value, bool) or not _is_bound(value):
                raise ValueError(f"{one.name}={value!r} is no bound: use {_kind(whole)}")

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, options: Mapping[str, str] | None = None) -> "Limits":
        """Read the bounds: an option before its environment variable, that before the default.

        Args:
            environ: the environment; None is the process's. An empty variable counts as unset.
            options: texts of command-line options by the names that `limit_option` gives.

        Raises:
            SetupError: a value is no number above 0.
        """
        env = os.environ if environ is None else environ
        options = options or {}
        values: dict[str, Any] = {}
        for one in fields(cls):
            whole = isinstance(one.default, int)
            name, option = limit_variable(one.name), limit_option(one.name)
            if option in options:
                values[one.name] = _number(option, options[option].strip(), "the command line", whole=whole)
            elif env.get(name, "").strip():
                values[one.name] = _number(name, env[name].strip(), "the environment", whole=whole)
        return cls(**values)


def limit_variable(field: str) -> str:
    """Name the environment variable of a bound."""
    return LIMIT_PREFIX + field.upper()


def limit_option(field: str) -> str:
    """Name the command-line option of a bound."""
    return "--" + field.replace("_", "-")


def _number(name: str, text: str, found: str, *, whole: bool) -> int | float:
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        value = 0
    if not _is_bound(value):
        raise SetupError(f"{name}={text!r} is no bound", found, f"set {name} to {_kind(whole)}, or leave it out")
    return value


def _is_bound(value: float) -> bool:
    return 0 < value < float("inf")


def _kind(whole: bool) -> str:
    return "a whole number of 1 or more" if whole else "a number of seconds above 0"
