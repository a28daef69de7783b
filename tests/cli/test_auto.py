"""`--family auto` in the commands: what tokenizer and template show, said with the reason (SPEC section 8)."""

from pathlib import Path

import pytest

pytest.importorskip("transformers")
pytest.importorskip("jinja2")

from tests.cli.drive import run
from tests.support.byte_tokenizer import byte_tokenizer

Capture = pytest.CaptureFixture[str]

PLAN = (
    "{% for m in messages %}<bot:{{ m.role }}>{% if m.reasoning_content %}<plan>{{ m.reasoning_content }}</plan>"
    "{% endif %}{{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}<bot:assistant>{% endif %}"
)
PLAIN = (
    "{% for m in messages %}<bot:{{ m.role }}>{{ m.content }}<end>{% endfor %}"
    "{% if add_generation_prompt %}<bot:assistant>{% endif %}"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("models") / "unnamed"
    byte_tokenizer("qwen3").save_pretrained(path)
    return str(path)


def test_split_takes_the_family_that_the_tokenizer_shows_and_says_why(
    capfd: Capture, tmp_path: Path, model: str
) -> None:
    (tmp_path / "out").write_text("<think>hm</think>42")
    said = run(capfd, "split", str(tmp_path / "out"), "--family", "auto", "--tokenizer", model, "--json")
    document = said.document
    assert (said.code, document["family"], document["reasoning"], document["content"]) == (0, "qwen3", "hm", "42")
    assert said.err.startswith("auto: qwen3, because ")


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["split", "{out}", "--family", "auto"], "add --tokenizer DIR"),
        (["doctor", "--family", "auto", "--no-engines"], "add --model DIR"),
    ],
)
def test_auto_with_nothing_to_go_by_is_one_clear_fault(
    capfd: Capture, tmp_path: Path, arguments: list[str], remedy: str
) -> None:
    (tmp_path / "out").write_text("x")
    said = run(capfd, *[each.format(out=tmp_path / "out") for each in arguments])
    assert (said.code, said.out) == (2, "")
    assert "neither was given" in said.err
    assert remedy in said.err


def test_doctor_reads_the_family_from_the_model(capfd: Capture, model: str) -> None:
    document = run(capfd, "doctor", "--family", "auto", "--model", model, "--no-engines", "--json").document
    assert (document["ok"], document["family"]) == (True, "qwen3")


def test_conform_judges_a_template_of_markers_that_nobody_knows_with_its_own_record(
    capfd: Capture, tmp_path: Path
) -> None:
    template = tmp_path / "chat_template.jinja"
    template.write_text(PLAN)
    said = run(capfd, "conform", "--family", "auto", "--template", str(template))
    assert said.code == 0, said.out
    assert "because" in said.out.splitlines()[0]
    assert "OK: " in said.out
    assert run(capfd, "conform", "--family", "qwen3", "--template", str(template)).code == 1


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_template_without_reasoning_needs_no_family(capfd: Capture, tmp_path: Path, form: list[str]) -> None:
    template = tmp_path / "chat_template.jinja"
    template.write_text(PLAIN)
    said = run(capfd, "conform", "--family", "auto", "--template", str(template), *form)
    assert (said.code, said.err) == (0, "")
    if form:
        assert (said.document["ok"], said.document["family"]) == (True, None)
    else:
        assert "none needed" in said.out
