"""Records as files: written, read back the same, refused by field; the commands that take them."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")

from tests.cli.drive import run
from tests.derive.test_derivation import PLAIN, THINKING
from vllm_reasoning_ext import FAMILIES, Family
from vllm_reasoning_ext.derive import derive, from_json, read_record, to_json, to_python
from vllm_reasoning_ext.derive.record_file import FAMILY_FILE, register_files
from vllm_reasoning_ext.engines import register
from vllm_reasoning_ext.errors import SetupError

Capture = pytest.CaptureFixture[str]
MARKERS = [record for record in FAMILIES.values() if not record.channels]


@pytest.fixture(autouse=True)
def _families(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.delenv(FAMILY_FILE, raising=False)
    before = dict(FAMILIES)
    yield
    for name in FAMILIES.keys() - before.keys():
        del FAMILIES[name]


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "chat_template.jinja"
    path.write_text(THINKING)
    return path


@pytest.fixture
def record(tmp_path: Path) -> Path:
    found = derive(THINKING, name="musing").family
    assert found is not None
    path = tmp_path / "record.json"
    path.write_text(to_json(found), encoding="utf-8")
    return path


@pytest.mark.parametrize("family", MARKERS, ids=lambda record: record.name)
def test_every_record_is_read_back_the_same(family: Family) -> None:
    assert from_json(to_json(family)) == family


def test_python_registers_the_record() -> None:
    found = derive(THINKING, name="musing").family
    assert found is not None
    exec(to_python(found), {})
    assert FAMILIES["musing"].opener == "<muse>"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "no JSON"),
        ("[]", "must be a JSON object, not list"),
        ('{"opener": "<a>"}', "has no field 'name'"),
        ('{"name": "x", "opner": "<a>"}', "unknown field 'opner'"),
        ('{"name": "x", "opener": ["<a>"]}', "field 'opener' must be a string"),
        ('{"name": "x", "opener": "<a>", "closer": "</a>", "turn_openers": "<b>"}', "'turn_openers' must be a list"),
        ('{"name": "x", "opener": "<a>", "closer": "<a>"}', "two different markers"),
        ('{"name": "x", "opener": "<a>", "closer": "</a>", "call_shapes": [[{"part": "nope"}]]}', "one of blanks"),
    ],
)
def test_a_wrong_record_is_refused_by_field(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(SetupError) as caught:
        read_record(path)
    assert problem in caught.value.problem
    assert caught.value.found == str(path)
    assert caught.value.remedy


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"gone\.json"):
        register_files(str(tmp_path / "gone.json"))


def test_the_engines_register_what_the_variable_names(
    record: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(FAMILY_FILE, str(record))
    register._own_families(register.vllm_log)
    assert FAMILIES["musing"].closer == "</muse>"
    assert not caplog.records
    monkeypatch.setenv(FAMILY_FILE, str(record) + "x")
    register._own_families(register.vllm_log)
    (said,) = caplog.records
    assert said.levelname == "ERROR"
    assert FAMILY_FILE in said.getMessage()


# The commands.


def test_derive_shows_every_field_with_its_proof(capfd: Capture, template: Path) -> None:
    said = run(capfd, "derive", str(template))
    assert said.code == 0
    lines = said.out.splitlines()
    (opener,) = [line for line in lines if line.startswith("opener")]
    assert "<muse>" in opener
    assert "reasoning_content" in opener  # the rendering that proved it
    assert any(line.startswith("start") and "enable_thinking=false: content" in line for line in lines)
    assert lines[-1].startswith("OK: conform: ")


def test_derive_json_is_a_record_that_the_other_commands_take(capfd: Capture, template: Path, tmp_path: Path) -> None:
    said = run(capfd, "derive", str(template), "--name", "musing", "--json")
    assert said.code == 0
    assert json.loads(said.out)["opener"] == "<muse>"
    file = tmp_path / "r.json"
    file.write_text(said.out)
    reply = tmp_path / "reply.txt"
    reply.write_text("<muse>Six.</muse>Forty-two.")
    del FAMILIES["musing"]
    shown = run(capfd, "split", str(reply), "--family", "musing", "--family-file", str(file), "--json")
    assert shown.code == 0
    assert (json.loads(shown.out)["reasoning"], json.loads(shown.out)["content"]) == ("Six.", "Forty-two.")
    judged = run(capfd, "conform", "--family", "musing", "--template", str(template), "--family-file", str(file))
    assert judged.code == 0
    assert "OK: " in judged.out


def test_derive_python(capfd: Capture, template: Path) -> None:
    said = run(capfd, "derive", str(template), "--python")
    assert said.code == 0
    compile(said.out, "record.py", "exec")
    assert "register_family(" in said.out


def test_derive_says_where_there_is_no_reasoning(capfd: Capture, tmp_path: Path) -> None:
    path = tmp_path / "plain.jinja"
    path.write_text(PLAIN)
    said = run(capfd, "derive", str(path))
    assert (said.code, said.out) == (1, "")
    assert "shows no thought" in said.err
    assert "remedy" in said.err


def test_derive_of_a_broken_template_is_one_clear_error(capfd: Capture, tmp_path: Path) -> None:
    path = tmp_path / "broken.jinja"
    path.write_text("{% for %}")
    said = run(capfd, "derive", str(path))
    assert (said.code, said.out) == (2, "")
    assert "no valid Jinja" in said.err


def test_a_record_file_that_is_wrong_is_one_clear_error(capfd: Capture, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("{}")
    said = run(capfd, "families", "--family-file", str(path))
    assert (said.code, said.out) == (2, "")
    assert "has no field 'name'" in said.err
