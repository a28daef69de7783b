"""What an installed engine says of our parsers, asked in a process of its own.

Loading an engine takes seconds, fills the log and may fail for reasons of its own, so the commands run this module
(`python -m vllm_reasoning_ext.cli.installed_engine vllm`) and read the last line of its output.
"""

import importlib.metadata
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext.engines.names import parser_names

ENGINES: Final = ("vllm", "sglang")
SHOWN: Final = {"vllm": "vLLM", "sglang": "SGLang"}
GROUPS: Final = {"vllm": "vllm.general_plugins", "sglang": "sglang.srt.plugins"}
"""The entry points each engine loads."""

FILTERS: Final = {"vllm": "VLLM_PLUGINS", "sglang": "SGLANG_PLUGINS"}
"""The variable that restricts each engine's plugins to the names it lists."""

ENTRY: Final = "reasoning_ext"
TIMEOUT: Final = 300
"""Seconds an engine may take to load; a cold disk needs a minute."""


class Engine(NamedTuple):
    """One engine of this environment.

    Attributes:
        name: "vllm" or "sglang".
        installed: it can be found; nothing was loaded to tell.
        version: its version; "" when not installed.
        parsers: of our parser names, the class that answers to each, as `module.Class`.
        tools: the names of its tool-call parsers.
        problem: why it could not be asked; "" when it answered.
    """

    name: str
    installed: bool
    version: str = ""
    parsers: Mapping[str, str] = {}
    tools: tuple[str, ...] = ()
    problem: str = ""

    @property
    def shown(self) -> str:
        """The engine's name as people write it."""
        return SHOWN[self.name]


def ask(name: str, *, load: bool = True) -> Engine:
    """Ask an engine of this environment.

    Args:
        name: "vllm" or "sglang".
        load: False only looks whether it is there.
    """
    if importlib.util.find_spec(name) is None:
        return Engine(name, installed=False)
    version = _version(name)
    if not load:
        return Engine(name, installed=True, version=version)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "vllm_reasoning_ext.cli.installed_engine", name],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Engine(name, installed=True, version=version, problem=f"it could not be started: {error}")
    return _read(name, version, done.stdout, done.stderr)


def _read(name: str, version: str, out: str, err: str) -> Engine:
    last = out.strip().splitlines()[-1:] or [""]
    try:
        found = json.loads(last[0])
        return Engine(name, True, found["version"] or version, found["parsers"], tuple(found["tools"]))
    except (ValueError, KeyError, TypeError):
        said = (err.strip().splitlines() or out.strip().splitlines() or ["it said nothing"])[-1]
        return Engine(name, True, version, problem=f"it cannot be imported: {said[:200]}")


def _version(name: str) -> str:
    for distribution in (name, f"{name}-cpu"):
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "of unknown version"


def _class(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}" if value is not None else ""


def _vllm() -> dict[str, Any]:
    import vllm
    from vllm.plugins import load_general_plugins
    from vllm.reasoning import ReasoningParserManager

    load_general_plugins()
    parsers = {}
    for name, _ in parser_names():
        try:
            parsers[name] = _class(ReasoningParserManager.get_reasoning_parser(name))
        except KeyError:
            continue
    try:
        from vllm.tool_parsers import ToolParserManager
    except ImportError:  # before 0.12
        from vllm.entrypoints.openai.tool_parsers import ToolParserManager
    return {"version": vllm.__version__, "parsers": parsers, "tools": ToolParserManager.list_registered()}


def _sglang() -> dict[str, Any]:
    import sglang
    from sglang.srt.plugins import load_plugins

    load_plugins()
    from sglang.srt.function_call.function_call_parser import FunctionCallParser
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    table = ReasoningParser.DetectorMap
    parsers = {name: _class(table.get(name.lower())) for name, _ in parser_names() if table.get(name.lower())}
    tools = sorted(FunctionCallParser.ToolCallParserEnum)
    return {"version": getattr(sglang, "__version__", ""), "parsers": parsers, "tools": tools}


_ASK: Final[dict[str, Callable[[], dict[str, Any]]]] = {"vllm": _vllm, "sglang": _sglang}


if __name__ == "__main__":
    print(json.dumps(_ASK[sys.argv[1]]()))
