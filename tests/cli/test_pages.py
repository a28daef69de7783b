"""README and docs say what is so: their code runs, their links lead somewhere, their tables are the package's."""

import re
from pathlib import Path
from typing import Final

import pytest

import vllm_reasoning_ext
from benchmarks import drawings
from tests.cli.help_blocks import ROOT, pages
from vllm_reasoning_ext.core.builtin import SEVEN
from vllm_reasoning_ext.core.families import FAMILIES, LEFT_OUT, get_family
from vllm_reasoning_ext.core.more import MORE
from vllm_reasoning_ext.engines.names import parser_names

PACKAGE: Final = Path(vllm_reasoning_ext.__file__).parent
OTHERS: Final = tuple(ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"))
PAGES: Final = (*pages(), *OTHERS)
BUILT_IN: Final = (*SEVEN, *MORE)
SPEC: Final = (ROOT / "docs" / "SPEC.md").read_text(encoding="utf-8")
CITED: Final = re.compile(r"SPEC(?: sections?)? ((?:\d(?:\.\d)?(?:-\d(?:\.\d)?)?(?:, | and |,)?)+)")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def sources() -> list[Path]:
    return [path for kind in ("*.py", "*.jsonl", "*.jinja") for path in sorted(PACKAGE.rglob(kind))]


def anchors(page: Path) -> set[str]:
    """List the anchors that a page's headings make, as GitHub writes them."""
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.fixture
def families(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget afterwards what the examples register."""
    for name in set(FAMILIES) - {record.name for record in BUILT_IN}:
        monkeypatch.delitem(FAMILIES, name)


@pytest.mark.parametrize("name", ["README.md", "docs/library.md"])
def test_the_python_of_a_page_runs(name: str, families: None, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", text(name), re.DOTALL)
    assert sum(block.count("assert ") for block in blocks) >= 2
    before = dict(FAMILIES)
    scope: dict[str, object] = {}
    try:
        for block in blocks:
            exec(block, scope)
    finally:
        FAMILIES.clear()
        FAMILIES.update(before)


def test_the_library_page_has_every_public_name() -> None:
    page = text("docs/library.md")
    missing = [name for name in vllm_reasoning_ext.__all__ if f"`{name}" not in page and f"{name}`" not in page]
    assert missing == ["__version__"]


@pytest.mark.parametrize("page", [pytest.param(path, id=path.name) for path in PAGES])
def test_links_lead_to_pages_and_headings_that_are_there(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" in target or "`" in target:
            continue
        file, _, anchor = target.partition("#")
        found = (page.parent / file) if file else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_every_page_that_the_package_cites_is_in_the_repository() -> None:
    cited = {
        (path.name, found) for path in sources() for found in re.findall(r"[\w/.-]+\.md\b", path.read_text("utf-8"))
    }
    assert {"models.md", "docs/translation.md"} & {found for _, found in cited}
    for name, found in cited:
        assert any((root / found).is_file() for root in (ROOT, ROOT / "docs")), f"{name} cites {found}"


def test_every_row_of_the_models_page_that_a_case_cites_is_there() -> None:
    rows = {int(row) for row in re.findall(r"^(\d+)\. ", text("docs/models.md"), re.MULTILINE)}
    cited = {
        int(row) for path in sources() for row in re.findall(r"models\.md row (\d+)", path.read_text(encoding="utf-8"))
    }
    assert len(cited) > 10
    assert cited <= rows


def test_every_section_of_the_spec_that_is_cited_is_there() -> None:
    heads = set(re.findall(r"^#+ (\d(?:\.\d)?)\.? ", SPEC, re.MULTILINE))
    assert {"1", "2", "5", "5.1", "5.5", "8"} <= heads
    count = 0
    for path in [*sources(), *PAGES]:
        for found in CITED.findall(path.read_text(encoding="utf-8")):
            for section in re.findall(r"\d(?:\.\d)?", found):
                count += 1
                assert section in heads, f"{path.name}: SPEC {section}"
    assert count > 100
    assert "reference/" not in SPEC
    assert '"docs/SPEC.md" = "vllm_reasoning_ext/SPEC.md"' in text("pyproject.toml")


def test_the_page_of_names_is_what_the_package_understands() -> None:
    page = text("docs/migration.md")
    rows = re.findall(r"^\| ([^|]+) \| `(\w+)` \| `(\w+)` \| [^|]+ \|$", page, re.MULTILINE)
    assert [family for _, family, _ in rows] == [record.name for record in BUILT_IN]
    served = {name.name: name for name in parser_names()}
    for theirs, family, parser in rows:
        record = get_family(family)
        assert tuple(re.findall(r"`([^`]+)`", theirs)) == (*record.aliases, *record.engine_names)
        assert (served[parser].family, served[parser].replaces) == (family, True)
    left = re.findall(r"^\| `([^`]+)` \| [^|]+ \|$", page.partition("no family answers to")[2], re.MULTILINE)
    assert left == list(LEFT_OUT)


def test_the_readme_counts_the_families() -> None:
    readme = text("README.md")
    assert f"for {len(BUILT_IN)} model families" in readme
    assert f"{len(MORE)} more families" in readme
    rows = re.findall(r"^\| `(\w+)`[^|]*\|[^|]+\|[^\n]+\|$", readme.partition("## Families")[2], re.MULTILINE)
    assert sorted(rows[: len(SEVEN)]) == sorted(record.name for record in SEVEN)


def test_the_bounds_of_a_hold_in_the_readme_are_the_cores() -> None:
    from vllm_reasoning_ext.core.limits import BLANK_HOLD_MAX, TOOL_HOLD_MAX

    assert f"at most {TOOL_HOLD_MAX} characters of a possible" in text("README.md")
    assert f"{BLANK_HOLD_MAX:,} of one run of blanks" in text("README.md")


def test_the_drawings_are_what_their_command_draws() -> None:
    for path, drawn in drawings.drawings().items():
        assert path.read_text(encoding="utf-8") == drawn, "run `python -m benchmarks.drawings`"
        assert f"](docs/{path.name})" in text("README.md")
    rows = list(drawings.rows())
    assert "".join(row.reasoning for row in rows) == "Six sevens: 42."
    assert "".join(row.content for row in rows) == "It is 42."


def test_supported_versions_are_those_of_the_counted_matrix() -> None:
    readme = text("README.md").partition("## Supported")[2]
    matrix = text("CONTRIBUTING.md").partition("<!-- matrix -->")[2].partition("<!-- /matrix -->")[0]
    versions = re.findall(r"^\| (0\.\d+)\.(\d+) \|", matrix, re.MULTILINE)
    assert len(versions) >= 6
    for minor, patch in versions:
        assert f"{minor}.{patch}" in readme or minor in readme
