"""Settings from the environment: defaults, the gate, and an error with a remedy for every wrong value."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from vllm_reasoning_ext.cli.main import main
from vllm_reasoning_ext.core.grammar.tags import DEFAULT_TAGS
from vllm_reasoning_ext.errors import SetupError
from vllm_reasoning_ext.serve.middleware import ReasoningMiddleware
from vllm_reasoning_ext.serve.proxy.limits import Limits, limit_option, limit_variable
from vllm_reasoning_ext.serve.settings import PREFIX, VARIABLES, Settings, Variable
from vllm_reasoning_ext.wire.translation import CHOICES, Translation

DOCS = Path(__file__).parents[2] / "docs" / "translation.md"


def read(**variables: str) -> Settings:
    return Settings.from_env({PREFIX + name: value for name, value in variables.items()} | {"HOME": "/"})


@pytest.mark.parametrize(
    ("variables", "on"),
    [
        ({}, ["chat", "responses"]),
        ({"ENABLED": " "}, ["chat", "responses"]),
        ({"ENABLED": "false"}, []),
        ({"ENABLED": "0", "CHAT_ENABLED": "true", "RESPONSES_ENABLED": "1", "MESSAGES_POLICY": "unsigned"}, []),
        ({"CHAT_ENABLED": "No"}, ["responses"]),
        ({"RESPONSES_ENABLED": "off"}, ["chat"]),
        ({"MESSAGES_POLICY": "off"}, ["chat", "responses"]),
        ({"MESSAGES_POLICY": "redacted", "ENABLED": "ON"}, ["chat", "messages", "responses"]),
        ({"MESSAGES_POLICY": "drop", "CHAT_ENABLED": "false"}, ["messages", "responses"]),
    ],
)
def test_which_surfaces_are_on(variables: dict[str, str], on: list[str]) -> None:
    settings = read(**variables)
    assert [surface for surface in ("chat", "messages", "responses") if settings.translates(surface)] == on


@pytest.mark.parametrize(
    ("variables", "field", "value"),
    [
        ({}, "tags", DEFAULT_TAGS),
        ({}, "unclosed", "content"),
        ({}, "max_buffer_bytes", 65536),
        ({}, "reasoning_field", "reasoning_content"),
        ({"TAG_PAIRS": "<a>...</a>, <b>...</b>"}, "tags", (("<a>", "</a>"), ("<b>", "</b>"))),
        ({"MAX_BUFFER_BYTES": "10"}, "max_buffer_bytes", 10),
        ({"WHERE": "head"}, "where", "head"),
        ({"UNCLOSED": "reasoning"}, "unclosed", "reasoning"),
        ({"FAMILY": "glm"}, "family", "glm"),
        ({"IMPLICIT_OPEN": "yes"}, "implicit_open", True),
        ({"REASONING_FIELD": "both"}, "reasoning_field", "both"),
        ({"SIGNATURE": "empty"}, "signature", "empty"),
        ({"RESPONSES_EVENTS": "seed"}, "responses_events", "seed"),
    ],
)
def test_values(variables: dict[str, str], field: str, value: Any) -> None:
    assert getattr(read(**variables).translation, field) == value


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ENABLED", "maybe", "ENABLED='maybe' is neither true nor false.*set THINK_EXTRACT_ENABLED=true"),
        ("MESSAGES_POLICY", "Unsigned", "one of: off, drop, unsigned, redacted"),
        ("SIGNATURE", "fake", "one of: omit, empty"),
        ("REASONING_FIELD", "thinking", "one of: reasoning_content, reasoning, both"),
        ("RESPONSES_EVENTS", "none", "one of: full, seed"),
        ("WHERE", "here", "one of: prose, anywhere, head"),
        ("UNCLOSED", "drop", "one of: reasoning, content"),
        ("FAMILY", "gpt9", "one of: inline, deepseekv32, qwen3, minimax"),
        ("MAX_BUFFER_BYTES", "64k", "whole number of 1 or more"),
        ("MAX_BUFFER_BYTES", "0", "whole number of 1 or more"),
        ("MAX_BUFFER_BYTES", "-5", "whole number of 1 or more"),
        ("TAG_PAIRS", "<a>...</a>,bad", "'bad' is no tag pair.*THINK_EXTRACT_TAG_PAIRS='<think>"),
        ("IMPLICIT_OPEN", "2", "neither true nor false"),
        ("CHAT_ENABLE", "true", "did you mean THINK_EXTRACT_CHAT_ENABLED"),
        ("XYZ", "1", "THINK_EXTRACT_XYZ is no setting.*known are: THINK_EXTRACT_ENABLED"),
    ],
)
def test_a_wrong_value_stops_with_a_remedy(name: str, value: str, says: str) -> None:
    with pytest.raises(SetupError, match=says):
        read(**{name: value})


def test_bounds_of_the_proxy_are_read() -> None:
    env = {"THINK_EXTRACT_PROXY_READ_SECONDS": "1.5", "THINK_EXTRACT_PROXY_BODY_BYTES": "10", "X": "1"}
    assert Limits.from_env(env) == Limits(read_seconds=1.5, body_bytes=10)
    assert Settings.from_env(env) == Settings()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("READ_SECONDS", "soon", "a number of seconds above 0"),
        ("READ_SECONDS", "nan", "a number of seconds above 0"),
        ("READ_SECONDS", "inf", "a number of seconds above 0"),
        ("CONNECTIONS", "0", "a whole number of 1 or more"),
        ("CONNECTIONS", "1.5", "a whole number of 1 or more"),
    ],
)
def test_a_wrong_bound_stops_with_a_remedy(name: str, value: str, says: str) -> None:
    with pytest.raises(SetupError, match=says):
        Limits.from_env({f"THINK_EXTRACT_PROXY_{name}": value})


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: Settings(enabled="no"), "enabled='no' is neither True nor False"),
        (lambda: Settings(chat_enabled=None), "chat_enabled=None is neither"),
        (lambda: Limits(read_seconds=0), "read_seconds=0 is no bound: use a number of seconds above 0"),
        (lambda: Limits(read_seconds=float("nan")), "read_seconds=nan is no bound"),
        (lambda: Limits(read_seconds="5"), "read_seconds='5' is no bound"),
        (lambda: Limits(connections=1.5), "connections=1.5 is no bound: use a whole number of 1 or more"),
        (lambda: Limits(connections=True), "connections=True is no bound"),
    ],
)
def test_settings_made_in_python_are_checked_too(made: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        made()


def test_an_option_outranks_the_environment_and_that_the_default() -> None:
    env = {"THINK_EXTRACT_UNCLOSED": "reasoning", "THINK_EXTRACT_WHERE": "wrong"}
    settings = Settings.from_env(env, {"--where": "head", "--implicit-open": "true", "--unknown": "is not looked at"})
    assert settings == Settings(translation=Translation(unclosed="reasoning", where="head", implicit_open=True))
    bounds = {"THINK_EXTRACT_PROXY_READ_SECONDS": "7", "THINK_EXTRACT_PROXY_BODY_BYTES": "wrong"}
    assert Limits.from_env(bounds, {"--body-bytes": "9"}) == Limits(read_seconds=7, body_bytes=9)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"--unclosed": "drop"}, "--unclosed='drop' is unknown.*set --unclosed to one of: reasoning, content"),
        ({"--max-buffer-bytes": ""}, "--max-buffer-bytes='' is no number of bytes"),
        ({"--tag-pairs": "x"}, "'x' is no tag pair.*command line, --tag-pairs"),
    ],
)
def test_a_wrong_option_stops_with_a_remedy(options: dict[str, str], says: str) -> None:
    with pytest.raises(SetupError, match=says) as raised:
        Settings.from_env({}, options)
    assert "the command line" in raised.value.found


def started(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[Settings, Limits]:
    """Run the command up to the point where it would serve."""
    seen: list[Any] = []
    monkeypatch.setattr("vllm_reasoning_ext.serve.proxy.app.serve_proxy", lambda *given, **_: seen.extend(given))
    assert main(["proxy", "--upstream", "http://127.0.0.1:9", *arguments]) == 0
    return seen[2], seen[3]


@pytest.mark.parametrize("variable", VARIABLES, ids=lambda variable: variable.field)
def test_every_setting_is_an_option_of_the_command(monkeypatch: pytest.MonkeyPatch, variable: Variable) -> None:
    texts = {"max_buffer_bytes": "9", "tags": "<a>...</a>", "family": "glm"} | {
        name: words[-1] for name, words in CHOICES.items()
    }
    text = texts.get(variable.field)
    if text is None:  # a switch
        arguments = [variable.option if variable.default == "false" else f"--no-{variable.option[2:]}"]
        text = "true" if variable.default == "false" else "false"
    else:
        arguments = [variable.option, text]
    settings, limits = started(monkeypatch, *arguments)
    assert settings == Settings.from_env({variable.name: text})
    assert settings != Settings() or text == variable.default
    assert limits == Limits()


@pytest.mark.parametrize("bound", [bound.name for bound in dataclasses.fields(Limits)])
def test_every_bound_is_an_option_of_the_command(monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    settings, limits = started(monkeypatch, limit_option(bound), "9")
    assert limits == Limits(**{bound: 9})
    assert settings == Settings()


def test_the_middleware_reads_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async def app(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setenv("THINK_EXTRACT_MESSAGES_POLICY", "drop")
    assert ReasoningMiddleware(app).settings == Settings(translation=Translation(messages_policy="drop"))
    monkeypatch.setenv("THINK_EXTRACT_MESSAGES_POLICY", "garbage")
    with pytest.raises(SetupError, match="one of: off, drop, unsigned, redacted"):
        ReasoningMiddleware(app)


@pytest.mark.skipif(not DOCS.exists(), reason="the documentation is not in the installed package")
def test_the_documentation_lists_every_variable_with_its_default() -> None:
    rows = {}
    for line in DOCS.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 3 and cells[0].startswith(f"`{PREFIX}"):
            rows[cells[0].strip("`")] = (cells[1].strip("`"), cells[2])
    bounds = {limit_variable(bound.name): str(bound.default).removesuffix(".0") for bound in dataclasses.fields(Limits)}
    assert {name: rows.pop(name)[0] for name in bounds} == bounds
    assert rows == {variable.name: (variable.default, variable.meaning) for variable in VARIABLES}


THINKING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<muse>{{ m.reasoning_content }}</muse>{% endif %}"
    "{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.mark.parametrize("directory", [False, True])
def test_a_family_is_read_from_a_chat_template_once_at_start(tmp_path: Path, *, directory: bool) -> None:
    (tmp_path / "chat_template.jinja").write_text(THINKING)
    place = tmp_path if directory else tmp_path / "chat_template.jinja"
    translation = read(FAMILY=f"auto:{place}").translation
    delta = translation.once("<muse>a</muse>b", "chat")
    assert (delta.reasoning, delta.content) == ("a", "b")


def test_a_template_without_reasoning_leaves_the_text_and_warns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "t.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    translation = read(FAMILY=f"auto:{tmp_path / 't.jinja'}").translation
    assert translation.once("<think>a</think>b", "chat").content == "<think>a</think>b"
    assert "everything is content" in caplog.text


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("auto", "auto reads the family from a chat template.*set THINK_EXTRACT_FAMILY=auto:chat_template.jinja"),
        ("auto:", "auto reads the family from a chat template"),
        ("auto:/no/such/file", "No such file"),
    ],
)
def test_auto_without_a_template_stops_with_a_remedy(value: str, says: str) -> None:
    with pytest.raises(SetupError, match=says):
        read(FAMILY=value)
