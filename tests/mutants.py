"""Counts how many small faults in the grammars the conformance cases alone would notice.

usage: python -m tests.mutants [--sample N] [--seed N] [--module NAME] [--show]

Each mutant is one change of one place in marker.py, harmony.py or atem.py: a comparison swapped, a number one
more or less, a condition negated, a branch or a statement left out. It is killed by the first case that comes out
otherwise, raises, or does not end. Exit 0; the survivors are printed for a person to judge.
"""

import argparse
import ast
import copy
import importlib
import random
import signal
import sys
import types
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from vllm_reasoning_ext.conformance.runner import Case, check_case, load_cases
from vllm_reasoning_ext.core import start
from vllm_reasoning_ext.core.families import get_family
from vllm_reasoning_ext.core.grammar import contract as registry
from vllm_reasoning_ext.core.grammar import marker

MODULES = {"marker": "MarkerGrammar", "harmony": "HarmonyGrammar", "atem": "AtemGrammar"}
SECONDS = 20
"""Of processor time: a mutant that makes one case take longer is killed: it does not end."""

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add,
}  # fmt: skip


class Mutant(NamedTuple):
    """One change: which module, which of its places, what is done there; `what` is "" for no change."""

    module: str
    number: int = 0
    what: str = ""

    def tree(self) -> ast.Module:
        """Build the changed module; built late, because a thousand of them fill the memory."""
        changed = copy.deepcopy(_parsed(self.module))
        if self.what:
            _apply(changed, _places(changed)[self.number], self.what)
        return ast.fix_missing_locations(changed)

    def __str__(self) -> str:
        node = _places(_parsed(self.module))[self.number]
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0) + 1
        return f"{self.module}.py:{line}:{column}: {self.what} in `{ast.unparse(node).splitlines()[0]}`"


def mutants(module: str) -> Iterator[Mutant]:
    """List every mutant of a module, in the order of its text."""
    for number, node in enumerate(_places(_parsed(module))):
        for what in _changes(node):
            yield Mutant(module, number, what)


@lru_cache
def _parsed(module: str) -> ast.Module:
    path = Path(str(importlib.import_module(f"vllm_reasoning_ext.core.{module}").__file__))
    return ast.parse(path.read_text(encoding="utf-8"))


def _places(tree: ast.Module) -> list[ast.AST]:
    """List the nodes of every function."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    return list(dict.fromkeys(node for function in functions for node in ast.walk(function) if node is not function))


def _changes(node: ast.AST) -> list[str]:
    """Name the changes that make sense at a place."""
    if isinstance(node, ast.Compare):
        return [f"swap {type(node.ops[0]).__name__}"] if type(node.ops[0]) in _SWAPS else []
    if isinstance(node, ast.BoolOp):
        return ["swap and/or", "drop the first operand", "drop the last operand"]
    if isinstance(node, ast.BinOp) and type(node.op) in _SWAPS:
        return ["swap + and -"]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return ["one more", "one less"]
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        return ["the other truth value"]
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        return ["negate the condition", *(["never"] if isinstance(node, ast.If) else [])]
    if isinstance(node, (ast.Assign, ast.AugAssign)) or (
        isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)
    ):
        return ["leave the statement out"]
    return []


def _apply(tree: ast.Module, node: Any, what: str) -> None:
    if what.startswith("swap"):
        if isinstance(node, ast.Compare):
            node.ops[0] = _SWAPS[type(node.ops[0])]()  # type: ignore[call-overload]
        else:
            node.op = _SWAPS[type(node.op)]()
    elif what == "drop the first operand":
        node.values[0] = node.values[1]
    elif what == "drop the last operand":
        node.values[-1] = node.values[-2]
    elif what in ("one more", "one less"):
        node.value += 1 if what == "one more" else -1
    elif what == "the other truth value":
        node.value = not node.value
    elif what == "negate the condition":
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif what == "never":
        node.test = ast.Constant(False)
    else:
        _replace(tree, node, ast.Pass())


def _replace(tree: ast.Module, old: ast.AST, new: ast.stmt) -> None:
    for parent in ast.walk(tree):
        for field in ("body", "orelse"):
            statements = getattr(parent, field, None)
            if isinstance(statements, list) and old in statements:
                statements[statements.index(old)] = new


def killer(mutant: Mutant, cases: list[Case]) -> str:
    """Run the cases against a mutant; give the id of the first that notices, "" if none does."""
    name = f"vllm_reasoning_ext.core.{mutant.module}"
    module = types.ModuleType(name)
    original = importlib.import_module(name)
    module.__dict__.update({"__name__": name, "__file__": original.__file__})
    saved = dict(registry._GRAMMARS)
    try:
        exec(compile(mutant.tree(), name, "exec"), module.__dict__)
        # What another mutant, or the true grammar, read out of a prompt must not be remembered.
        start._read_ending.cache_clear()
        # The start state is read by the marker grammar too, and asks for its states.
        if mutant.module == "marker":
            start.MarkerGrammar, start.State = module.__dict__["MarkerGrammar"], module.__dict__["State"]
        registry._GRAMMARS[mutant.module] = module.__dict__[MODULES[mutant.module]]
        for case in cases:
            name = case.id
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            if next(check_case(case), None) is not None:
                return case.id
    except Exception:
        return f"{name} (raises)"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        registry._GRAMMARS.update(saved)
        start.MarkerGrammar, start.State = marker.MarkerGrammar, marker.State
        start._read_ending.cache_clear()
    return ""


def _too_long(*_: object) -> None:
    raise TimeoutError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--module", choices=MODULES)
    parser.add_argument("--show", action="store_true", help="print every mutant and what killed it")
    args = parser.parse_args()
    signal.signal(signal.SIGPROF, _too_long)
    found = [mutant for module in ([args.module] if args.module else MODULES) for mutant in mutants(module)]
    print(f"{len(found)} mutants are possible", flush=True)
    chosen = random.Random(args.seed).sample(found, min(args.sample, len(found)))
    every = sorted(load_cases(), key=lambda case: len(case.text))
    cases = {module: [c for c in every if _grammar(c) == module] for module in MODULES}
    for module in dict.fromkeys(mutant.module for mutant in chosen):
        by = killer(Mutant(module), cases[module])
        assert not by, f"{module}.py unchanged is killed by {by}: no count would mean anything"
    survivors = []
    for mutant in chosen:
        by = killer(mutant, cases[mutant.module])
        if by:
            # What killed the last one often kills the next one of the same function.
            ours = cases[mutant.module]
            ours.sort(key=lambda case: case.id != by.split(" ")[0])
        else:
            survivors.append(mutant)
        if args.show or not by:
            print(f"{'killed by ' + by if by else 'SURVIVES'}: {mutant}", flush=True)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} killed, {len(survivors)} survive")
    sys.exit(0)


def _grammar(case: Case) -> str:
    return "" if case.family == "inline" else get_family(case.family).grammar


if __name__ == "__main__":
    main()
