"""What an installed engine says of this package's parsers, asked in a process of its own.

Loading an engine takes seconds, fills the log and may fail for reasons of its own, so the commands run this module
(`python -m vllm_reasoning_ext.cli.installed_engine vllm`) and read the last line of its output. What only the names
of tool-call parsers are wanted for reads the engine's source instead.
"""

import ast
import importlib.metadata
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from vllm_reasoning_ext.engines.names import parser_names

ENGINES: Final = ("vllm", "sglang")
SHOWN: Final = {"vllm": "vLLM", "sglang": "SGLang"}
GROUPS: Final = {"vllm": "vllm.general_plugins", "sglang": "sglang.srt.plugins"}
"""The entry points each engine loads."""

FILTERS: Final = {"vllm": "VLLM_PLUGINS", "sglang": "SGLANG_PLUGINS"}
"""The variable that restricts each engine's plugins to the names it lists."""

TABLES: Final = {
    "vllm": (
        ("tool_parsers/__init__.py", "_TOOL_PARSERS_TO_REGISTER"),
        ("entrypoints/openai/tool_parsers/__init__.py", "_TOOL_PARSERS_TO_REGISTER"),  # before 0.12
    ),
    "sglang": (("srt/function_call/function_call_parser.py", "ToolCallParserEnum"),),
}
"""The file, and the dictionary in it, in which each engine lists its tool-call parsers."""

ENTRY: Final = "reasoning_ext"
TIMEOUT: Final = 300
"""Seconds an engine may take to load; a cold disk needs a minute."""


class Engine(NamedTuple):
    """One engine of this environment.

    Attributes:
        name: "vllm" or "sglang".
        installed: it can be found; nothing was loaded to tell.
        version: its version; "" when not installed.
        parsers: of this package's parser names, the class that answers to each, as `module.Class`.
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


How = Literal["find", "read", "load"]


def ask(name: str, how: How = "load") -> Engine:
    """Ask an engine of this environment.

    Args:
        name: "vllm" or "sglang".
        how: "find" only looks whether it is there; "read" also reads the names of its tool-call parsers from its
            source, in milliseconds, and loads it where that tells nothing; "load" lets it say all of it, after the
            seconds to minutes that importing it takes.
    """
    spec = importlib.util.find_spec(name)
    if spec is None:
        return Engine(name, installed=False)
    version = _version(name)
    if how == "find":
        return Engine(name, installed=True, version=version)
    if how == "read":
        for place in spec.submodule_search_locations or ():
            tools = read_tools(name, Path(place))
            if tools:
                return Engine(name, installed=True, version=version, tools=tools)
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


def read_tools(name: str, package: Path) -> tuple[str, ...]:
    """Read the names of an engine's tool-call parsers from its source; () where they do not stand in a table."""
    for file, table in TABLES[name]:
        try:
            tree = ast.parse((package / file).read_text(encoding="utf-8"))
        except (OSError, SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(target, ast.Name) and target.id == table for target in targets):
                    keys = [key.value for key in node.value.keys if isinstance(key, ast.Constant)]
                    return tuple(key for key in keys if isinstance(key, str))
    return ()


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
    for name in [parser.name for parser in parser_names()]:
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
    names = [parser.name for parser in parser_names()]
    parsers = {name: _class(table.get(name.lower())) for name in names if table.get(name.lower())}
    tools = sorted(FunctionCallParser.ToolCallParserEnum)
    return {"version": getattr(sglang, "__version__", ""), "parsers": parsers, "tools": tools}


_ASK: Final[dict[str, Callable[[], dict[str, Any]]]] = {"vllm": _vllm, "sglang": _sglang}


if __name__ == "__main__":
    print(json.dumps(_ASK[sys.argv[1]]()))
