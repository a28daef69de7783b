"""The pytest plugin, as a model repository runs it; and that it is inert elsewhere."""

import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("transformers")

from tests.support.byte_tokenizer import byte_tokenizer

EXAMPLE = Path(__file__).with_name("example_repo")


def pytest_in(repository: Path, *arguments: str) -> tuple[int, dict[str, str], str]:
    """Run pytest there; return its exit code, each test id's outcome, and what it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", "out.xml", *arguments]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    outcomes = {}
    if (repository / "out.xml").exists():
        for case in ElementTree.parse(repository / "out.xml").iter("testcase"):
            found = [child.tag for child in case if child.tag in ("failure", "skipped", "error")]
            outcomes[case.attrib["name"]] = found[0] if found else "passed"
    return done.returncode, outcomes, done.stdout + done.stderr


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "repository"))


def test_the_example_repository_is_right_and_each_cell_is_a_test(repository: Path) -> None:
    code, outcomes, said = pytest_in(repository)
    assert code == 0, said
    assert set(outcomes.values()) == {"passed"}
    assert "test_template[user | thought, answer]" in outcomes
    assert "test_template[tool-result enable_thinking=false | own form]" in outcomes
    assert len(outcomes) > 100


def test_a_broken_template_fails_by_name(repository: Path) -> None:
    template = repository / "chat_template.jinja"
    template.write_text(template.read_text().replace('"<think>\\n" ~', '"<thoughts>\\n" ~'))
    code, outcomes, said = pytest_in(repository, "-k", "user and own")
    assert code == 1
    assert outcomes["test_template[user | own form]"] == "failure"
    assert "the reasoning should be 'Weigh it first.', is ''" in said


def test_a_mode_that_the_template_refuses_is_skipped_with_its_words(repository: Path) -> None:
    template = repository / "chat_template.jinja"
    refusal = '{%- if enable_thinking is defined -%}{{- raise_exception("no switch here") -}}{%- endif -%}'
    template.write_text(refusal + template.read_text())
    code, outcomes, said = pytest_in(repository, "-rs", "-k", "refused")
    assert code == 0
    assert outcomes["test_template[user enable_thinking=true | refused]"] == "skipped"
    assert "no switch here" in said


def test_token_ids_are_tried_where_a_tokenizer_is_named(repository: Path) -> None:
    byte_tokenizer("qwen3").save_pretrained(repository / "tokenizer")
    test = repository / "tests" / "test_template.py"
    test.write_text(test.read_text().replace('jinja")', 'jinja", tokenizer="../tokenizer")'))
    code, outcomes, said = pytest_in(repository, "-k", "quoted")
    assert code == 0, said
    assert outcomes["test_template[user | quoted markers]"] == "passed"


def _marked(arguments: str) -> str:
    return (
        f"import pytest\n@pytest.mark.reasoning_conformance({arguments})\n"
        "def test_x(reasoning_case):\n    reasoning_case.check()\n"
    )


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("def test_x(reasoning_case): pass", "mark it with @pytest.mark.reasoning_conformance"),
        (
            'import pytest\n@pytest.mark.reasoning_conformance(family="qwen4", template="../chat_template.jinja")\n'
            "def test_x(reasoning_case): pass",
            "Did you mean 'qwen3'?",
        ),
        (
            'import pytest\n@pytest.mark.reasoning_conformance(family="qwen3", template="nowhere.jinja")\n'
            "def test_x(reasoning_case): pass",
            "cannot read the template",
        ),
        (_marked('family="qwen3", template="../chat_template.jinja", tokeniser="."'), "did you mean tokenizer?"),
        (_marked('family="qwen3", template="../chat_template.jinja", revison="3.5"'), "reads no variable revison"),
        (_marked('template="../chat_template.jinja"'), "family is missing: reasoning_conformance(family, template"),
        (_marked('"qwen3", "../chat_template.jinja", None, 4'), "too many arguments without a name"),
        (_marked('"qwen3", "../chat_template.jinja", family="qwen3"'), "family is given twice"),
        (_marked('family="qwen3", template="../chat_template.jinja", tokenizer="nowhere"'), "there is no "),
    ],
)
def test_misuse_names_the_remedy(repository: Path, test: str, words: str) -> None:
    (repository / "tests" / "test_template.py").write_text(test)
    code, _, said = pytest_in(repository)
    assert code != 0
    assert words in said
    # One message: no traceback through pytest, pluggy or the plug-in.
    assert not any(f"{name}:" in said for name in ("_caller.py", "_manager.py", "pytest_plugin.py", "python.py"))
    assert "Traceback" not in said


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, vllm_reasoning_ext.conformance.pytest_plugin\n"
        "heavy = {'jinja2', 'transformers', 'tokenizers', 'typer', 'rich'} & set(sys.modules)\n"
        "kit = [n for n in sys.modules if n.startswith('vllm_reasoning_ext.conformance.')]\n"
        "assert not heavy, heavy\n"
        "assert kit == ['vllm_reasoning_ext.conformance.pytest_plugin'], kit"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
