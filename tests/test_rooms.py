"""The rooms of the package: imports run downward only, and in no circle (docs/architecture.md)."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import vllm_reasoning_ext

PACKAGE: Final = Path(vllm_reasoning_ext.__file__).parent
FLOORS: Final = {
    "errors": 0,
    "_version": 0,
    "core": 1,
    "wire": 2,
    "derive": 2,
    "engines": 3,
    "inference": 3,
    "serve": 3,
    "conformance": 4,
    "bulk": 4,
    "cli": 5,
    "demo": 5,
    "__main__": 6,
    "__init__": 6,
}
"""Room -> floor; a module imports from its own room and from lower floors."""

MODULES: Final = sorted(PACKAGE.rglob("*.py"))


def dotted(path: Path) -> str:
    """Name a module by its file."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


def room(module: str) -> str:
    """Name the room that a module of the package stands in."""
    return [*module.split("."), "__init__"][1]


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """List what a module imports from this package: (module, at its top rather than within a function)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {id(node) for statement in tree.body for node in ast.walk(statement) if not _function(statement)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vllm_reasoning_ext"):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in NAMES else str(node.module), id(node) in top
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("vllm_reasoning_ext"):
                    yield alias.name, id(node) in top


def _function(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


NAMES: Final = frozenset(map(dotted, MODULES))


def test_the_walk_sees_the_package() -> None:
    assert len(MODULES) > 90
    assert {room(name) for name in NAMES} <= FLOORS.keys()
    assert ("vllm_reasoning_ext.core.events", True) in set(imports(PACKAGE / "core" / "splitter.py"))


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_imports_run_downward(path: Path) -> None:
    own = room(dotted(path))
    for module, _ in imports(path):
        other = room(module)
        assert other == own or FLOORS[other] < FLOORS[own], f"{dotted(path)} imports {module}"


def test_no_circle() -> None:
    """Imports within functions count too: a circle that only the order of calls hides is one."""
    edges = {dotted(path): {module for module, _ in imports(path) if module in NAMES} for path in MODULES}
    done: set[str] = set()

    def visit(module: str, road: tuple[str, ...]) -> None:
        assert module not in road, " -> ".join((*road[road.index(module) :], module))
        if module not in done:
            for further in sorted(edges[module]):
                visit(further, (*road, module))
            done.add(module)

    for module in sorted(edges):
        visit(module, ())
