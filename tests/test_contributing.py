"""CONTRIBUTING.md and docs/architecture.md say what is so: targets, minutes, paths, hooks, the example of a case."""

import ast
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
import yaml

import vllm_reasoning_ext
from vllm_reasoning_ext.conformance.runner import check_case, load_cases

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = Path(vllm_reasoning_ext.__file__).parent
PAGES: Final = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("CONTRIBUTING.md", "docs/architecture.md")}
CONTRIBUTING: Final = PAGES["CONTRIBUTING.md"]
MAKEFILE: Final = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOW: Final = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="the development targets need make")


def make(*arguments: str) -> str:
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def helped() -> dict[str, str]:
    """Read `make help`: target -> what it does."""
    return dict(line.split("\t", 1) for line in make("help").splitlines())


def named(page: str) -> set[str]:
    """List the targets that a page names: `make lint test-light`, with a variable before it or at a line's start."""
    commands = re.findall(r"(?:`|^|run: )(?:[A-Z_]+=\S+ )*make ((?:[a-z][a-z-]* ?)+)", page, re.MULTILINE)
    return {target for command in commands for target in command.split()}


def rows() -> dict[str, str]:
    """Read the table of targets: target -> minutes."""
    return dict(re.findall(r"^\| `make ([a-z-]+)` \| .* \| (\d*) ?\|$", CONTRIBUTING, re.MULTILINE))


def test_the_search_finds_targets() -> None:
    assert named("`make a b-c` x\nmake d   # e\n`T=1 make f`; make g\n- run: make h\n") == {"a", "b-c", "d", "f", "h"}
    assert {"test", "test-light", "venv"} <= named(CONTRIBUTING)


@pytest.mark.parametrize("page", [*PAGES.values(), WORKFLOW], ids=[*PAGES, "workflow"])
def test_every_target_named_exists_and_make_help_lists_it(page: str, helped: dict[str, str]) -> None:
    assert named(page) - helped.keys() == set()


def test_the_table_has_every_target_that_proves_something(helped: dict[str, str]) -> None:
    assert rows().keys() == helped.keys() - {"help", "venv", "format", "clean"}


def test_the_minutes_are_those_that_the_targets_say(helped: dict[str, str]) -> None:
    said = {target: "".join(re.findall(r"about (\d+) minutes?", text)[:1]) for target, text in helped.items()}
    assert {target: said[target] for target in rows()} == rows()


def test_a_long_target_says_first_what_it_does(helped: dict[str, str]) -> None:
    # A bare # begins a comment in make: the command that prints the line had lost its end, and make test ended.
    said = make("--dry-run", "lint").splitlines()
    command = next(line for line in said if line.startswith("sed "))
    printed = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == f"lint: {helped['lint']}"


def test_the_workflow_runs_the_stages_of_make_test() -> None:
    stages = re.findall(r"tests/stages\.py (.*)", MAKEFILE)[0]
    engines = yaml.safe_load(WORKFLOW)["jobs"]["engines"]["strategy"]["matrix"]["target"]
    assert named(WORKFLOW) | set(engines) == set(re.split("[ ,]", stages))


def test_pre_commit_runs_what_make_lint_runs() -> None:
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert local["repo"] == "local"
    linted = [line for line in make("--dry-run", "lint").splitlines() if re.match(r"\.venv/bin/(ruff|mypy)", line)]
    assert [hook["entry"] for hook in local["hooks"]] == linted
    assert len(linted) == 3


def exists(name: str) -> bool:
    """Find a path in the checkout, or its end in the package."""
    inside = (path.relative_to(PACKAGE.parent).as_posix() for path in PACKAGE.rglob("*"))
    return (ROOT / name).exists() or any(f"/{path}".endswith(f"/{name.rstrip('/')}") for path in inside)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_every_file_named_exists(page: str) -> None:
    found = set(re.findall(r"`([\w./-]+\.(?:py|sh|txt|toml|jsonl|md)|[\w./-]+/)`", page))
    assert len(found) > 3
    placeholders = {name for name in found if "NAME" in name}
    assert [name for name in sorted(found - placeholders) if not exists(name)] == []


def test_the_page_says_why_each_hook_into_sglang_is_there() -> None:
    tree = ast.parse((PACKAGE / "engines" / "sglang" / "hooks.py").read_text(encoding="utf-8"))
    (hooks,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "HOOKS"
    )
    assert hooks is not None
    texts = [node.value for node in ast.walk(hooks) if isinstance(node, ast.Constant)]
    targets = {str(text).rpartition(".")[2] for text in texts} - {"BEFORE", "AFTER", "AROUND"}
    assert len(targets) > 5
    assert [target for target in sorted(targets) if target not in PAGES["docs/architecture.md"]] == []


def test_the_example_of_a_case_is_right(tmp_path: Path) -> None:
    (line,) = re.findall(r"```json\n\s*(\{.*\})\n", CONTRIBUTING)
    file = tmp_path / "example.jsonl"
    file.write_text(line, encoding="utf-8")
    (case,) = load_cases(file)
    assert [str(difference) for difference in check_case(case)] == []
    assert case.id in CONTRIBUTING.replace(line, "")  # the command that tries it
    assert json.loads(line)["why"].startswith("SPEC")
