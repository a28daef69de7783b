"""The small commands, `infer`, `doctor` and `conform`, and the help texts in the documentation."""

import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("transformers")
pytest.importorskip("jinja2")

from tests.cli.drive import run
from tests.cli.help_blocks import BLOCK, block, help_text, pages
from tests.support.byte_tokenizer import byte_tokenizer
from vllm_reasoning_ext import FAMILIES, __version__
from vllm_reasoning_ext.cli import checks, doctor, infer, main
from vllm_reasoning_ext.cli import installed_engine as probe
from vllm_reasoning_ext.cli.installed_engine import Engine
from vllm_reasoning_ext.conformance.conform import Kit
from vllm_reasoning_ext.conformance.pytest_plugin import ReasoningCase
from vllm_reasoning_ext.conformance.templates import template_names, template_path
from vllm_reasoning_ext.conformance.tokenizers import load_tokenizer
from vllm_reasoning_ext.engines.names import parser_names

Capture = pytest.CaptureFixture[str]

COMMANDS = list(main.COMMANDS)

OURS = {name: f"vllm_reasoning_ext.engines.vllm.parser.{family}" for name, family, _ in parser_names()}
VLLM = Engine("vllm", True, "0.33.0", OURS, ("hermes", "qwen3_xml", "glm45", "glm47", "openai", "muse_glimmer"))
SGLANG = Engine("sglang", True, "0.5.23", OURS, ("qwen25", "glm45", "glm47", "gpt-oss", "muse"))
NONE = {"vllm": Engine("vllm", False), "sglang": Engine("sglang", False)}


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> dict[str, Engine]:
    """Let the commands find these engines, none at first, in place of those of this environment."""
    found = dict(NONE)
    for module in (doctor, infer):
        monkeypatch.setattr(module, "ask", lambda name, how="load": found[name])
    monkeypatch.setattr(checks.importlib.metadata, "entry_points", lambda group: [_Point()])
    for variable in ("VLLM_PLUGINS", "SGLANG_PLUGINS", "VLLM_REASONING_EXT_KEEP_BUILTIN"):
        monkeypatch.delenv(variable, raising=False)
    return found


class _Point:
    name = "reasoning_ext"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Model directories: tokenizer and template of a family, without weights."""
    root = tmp_path_factory.mktemp("models")
    for name in ("qwen3", "muse_glimmer", "glm"):
        byte_tokenizer(name).save_pretrained(root / name)
    return root


# The small commands


def test_version_template_and_families(capfd: Capture) -> None:
    assert run(capfd, "version").out == f"{__version__}\n"
    assert run(capfd, "version", "--json").document == {"version": __version__}
    path = Path(run(capfd, "template", "muse_glimmer").out.strip())
    assert (path.is_file(), path.name) == (True, "muse_glimmer.jinja")
    assert run(capfd, "template", "gpt-oss").out.strip().endswith("gpt_oss.jinja")
    assert run(capfd, "template", "muse_glimmer", "--show").out == path.read_text(encoding="utf-8")
    assert list(run(capfd, "template", "--json").document["templates"]) == template_names()
    said = run(capfd, "template", "qwen4")
    assert (said.code, "choose one of" in said.err) == (2, True)
    rows = run(capfd, "families", "--json").document["families"]
    assert {row["name"] for row in rows} == {*FAMILIES, "inline"}
    assert [row["name"] for row in rows if row["serves"] == "registered at run time"] == []
    assert "glm45" in next(row["engine_names"] for row in rows if row["name"] == "qwen3")
    plain = run(capfd, "families").out
    assert all(marker in plain for row in rows if row["name"] != "inline" for marker in row["markers"])


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version_is_an_option_too(capfd: Capture, flag: str) -> None:
    assert run(capfd, flag) == (0, f"{__version__}\n", "")


@pytest.mark.parametrize("arguments", [["version"], ["-V"], ["--help"], ["nonsense"]])
def test_a_command_imports_what_it_needs(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom vllm_reasoning_ext.cli.main import main\nmain(sys.argv[1:])\n"
        "print('loaded:', *sorted(n for n in sys.modules if n.startswith('vllm_reasoning_ext.') or n in "
        "('rich', 'jinja2', 'transformers', 'httpx', 'difflib', 'pydantic')))"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.rpartition("loaded: ")[2].split())
    own = {f"vllm_reasoning_ext.{name}" for name in ("_version", "errors", "cli", "cli.main", "cli.version")}
    # What is no command goes through all of typer to its usage error.
    usage = {"pydantic"} if arguments == ["nonsense"] else set()
    assert {"vllm_reasoning_ext.cli.main"} <= loaded <= own | {"difflib"} | usage


def test_the_public_names_are_there_though_nothing_is_loaded_before() -> None:
    code = (
        "import sys, vllm_reasoning_ext as ext\n"
        "assert 'vllm_reasoning_ext.core.splitter' not in sys.modules\n"
        "assert set(ext.__all__) <= set(dir(ext))\n"
        "assert all(getattr(ext, name) is not None for name in ext.__all__)\n"
        "assert ext.split('<think>a</think>b', 'qwen3').reasoning == 'a'\n"
        "assert not hasattr(ext, 'nothing')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("words", "number", "found"),
    [("vllm-reasoning-ext spl", 1, {"split"}), ("vllm-reasoning-ext conform --jun", 2, {"--junit"})],
)
def test_the_shell_completes_commands_and_their_options(
    capfd: Capture, monkeypatch: pytest.MonkeyPatch, words: str, number: int, found: set[str]
) -> None:
    monkeypatch.setenv("_VLLM_REASONING_EXT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(number))
    assert set(run(capfd).out.split()) == found


@pytest.mark.parametrize("columns", ["60", "200"])
@pytest.mark.parametrize(
    "arguments", [["families"], ["conform", "--family", "qwen3", "--template", "qwen3", "--set", "revision=2504"]]
)
def test_columns_hold_at_every_width(
    capfd: Capture, monkeypatch: pytest.MonkeyPatch, columns: str, arguments: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = run(capfd, *arguments).out.splitlines()
    shown = [line for line in lines if "start " in line] if arguments[0] == "conform" else lines
    starts = {line.index("start ") for line in shown} if arguments[0] == "conform" else {0}
    assert len(starts) == 1  # the second column begins at the same place in every line
    # No row of a table is longer than the terminal; only a list of markers may be.
    assert all(len(line) <= int(columns) for line in shown if "<" not in line)


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["nonsense"], 2), (["split"], 2), (["infer"], 2)])
def test_exit_codes_of_the_root(capfd: Capture, arguments: list[str], code: int) -> None:
    assert run(capfd, *arguments).code == code


def test_the_proxy_says_what_to_install(capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else real(name))
    said = run(capfd, "proxy", "--upstream", "http://127.0.0.1:1")
    assert said.code == 2
    assert "uvicorn" in said.err
    assert "pip install 'vllm-reasoning-ext[proxy]'" in said.err


@pytest.mark.parametrize(
    ("upstream", "why"),
    [
        ("http://x:99999", "Port out of range"),
        ("http://x:0", "nothing listens on port 0"),
        ("http://x:port", "'port'"),
        ("http://[x", "Invalid IPv6 URL"),
    ],
)
def test_the_proxy_refuses_a_port_that_cannot_be(capfd: Capture, upstream: str, why: str) -> None:
    said = run(capfd, "proxy", "--upstream", upstream, "--listen", "127.0.0.1:0")
    assert (said.code, said.out) == (2, "")
    assert f"{upstream!r} is no address (" in said.err
    assert why in said.err
    assert "a port is 1 to 65535" in said.err


# infer


@pytest.mark.parametrize(
    ("model", "family", "vllm", "sglang"),
    [
        ("Qwen/Qwen3-8B", "qwen3", "hermes", "qwen25"),
        ("Qwen/Qwen3.5-27B", "qwen3", "qwen3_xml", "qwen3_coder"),
        ("zai-org/GLM-4.5-Air", "qwen3", "glm45", "glm45"),
        ("zai-org/GLM-4.7", "qwen3", "glm47", "glm47"),
        ("openai/gpt-oss-20b", "gpt_oss", "openai", "gpt-oss"),
        ("deepseek-ai/DeepSeek-V3.2", "deepseekv32", "deepseek_v32", "deepseekv32"),
        ("deepseek-ai/DeepSeek-V4", "deepseekv32", "deepseek_v4", None),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "qwen3", None, None),
        ("MiniMaxAI/MiniMax-M2", "minimax", "minimax_m2", "minimax-m2"),
        ("MiniMaxAI/MiniMax-M3", "minimax_m3", "minimax_m3", "minimax-m3"),
        ("google/gemma-4-31b", "gemma4", "gemma4", "gemma4"),
        ("meta/muse-glimmer", "muse_glimmer", "muse_glimmer", "muse"),
    ],
)
def test_infer_by_name(
    capfd: Capture, engines: dict[str, Engine], model: str, family: str, vllm: str | None, sglang: str | None
) -> None:
    document = run(capfd, "infer", model, "--json").document
    assert document["family"] == family
    for engine, parser in (("vllm", vllm), ("sglang", sglang)):
        serve = document["serve"][engine]
        assert serve["tool_call_parser"] == parser
        assert serve["checked"] is None
        words = shlex.split(serve["command"])
        assert words[words.index("--reasoning-parser") + 1] == family
        assert (f"--tool-call-parser {parser}" in serve["command"]) is (parser is not None)


def test_infer_names_only_parsers_that_the_engine_has(capfd: Capture, engines: dict[str, Engine]) -> None:
    engines["vllm"] = VLLM._replace(tools=("qwen3_coder",))
    engines["sglang"] = SGLANG._replace(tools=())
    serve = run(capfd, "infer", "Qwen/Qwen3.5-27B", "--json").document["serve"]
    assert serve["vllm"]["tool_call_parser"] == "qwen3_coder"
    assert serve["vllm"]["checked"] == "vLLM 0.33.0"
    said = run(capfd, "infer", "Qwen/Qwen3-8B")
    assert "tool-call parsers as in vLLM 0.33.0" in said.out
    assert "no tool-call parser for this model's calls there" in said.out


def test_infer_reads_a_directory_and_says_when_it_cannot_tell(
    capfd: Capture, engines: dict[str, Engine], models: Path
) -> None:
    document = run(capfd, "infer", str(models / "glm"), "--json").document
    assert (document["family"], document["serve"]["vllm"]["tool_call_parser"]) == ("qwen3", "glm47")
    assert "chat template writes" in document["reason"]
    said = run(capfd, "infer", "somebody/else")
    assert said.code == 1
    assert "unknown" in said.out
    assert "--reasoning-parser deepseekv32 | qwen3" in said.out


@pytest.mark.parametrize("path", ["{here}/Qwen3-8B", "./Qwen3-8B", "../Qwen3-8B", "~/nowhere/Qwen3-8B"])
def test_infer_does_not_judge_a_missing_path_by_its_name(
    capfd: Capture, engines: dict[str, Engine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    said = run(capfd, "infer", path.format(here=tmp_path))
    assert (said.code, said.out) == (2, "")
    assert "there is no directory " in said.err
    assert "remedy: " in said.err


def test_infer_knows_the_home_directory(
    capfd: Capture, engines: dict[str, Engine], models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(models))
    document = run(capfd, "infer", "~/glm", "--json").document
    assert (document["model"], document["family"]) == (str(models / "glm"), "qwen3")


def _model(root: Path, **files: Any) -> Path:
    """Make a model directory of a few files; values that are no text become JSON."""
    root.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        file = root / {"template": "chat_template.jinja", "config": "config.json", "vocabulary": "tokenizer.json"}[name]
        file.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return root


V31 = "{{ '<think>' }}{{ '</think>' }}{{ '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + n + '<｜tool▁sep｜>' }}"


@pytest.mark.parametrize(
    ("name", "files", "family", "parser", "reason"),
    [
        # The template outranks name and config: V3.1's in a directory that says V3.2.
        (
            "DeepSeek-V3.2",
            {"template": V31, "config": {"model_type": "deepseek_v32"}},
            "qwen3",
            "deepseek_v31",
            "writes",
        ),
        ("DeepSeek-R1", {"template": V31 + "```json"}, "qwen3", "deepseek_v3", "writes '<think>'"),
        ("plain", {"template": V31 + "```json"}, "qwen3", "deepseek_v3", "writes '<think>'"),
        # No template: the vocabulary before the config, the config before the name.
        (
            "Qwen3-8B",
            {"vocabulary": {"v": "<｜DSML｜"}, "config": {"model_type": "deepseek_v4"}},
            "deepseekv32",
            "deepseek_v4",
            "vocabulary",
        ),
        ("Qwen3-8B", {"config": {"model_type": "minimax_m2"}}, "minimax", "minimax_m2", "model_type"),
        ("Qwen3-8B", {"config": {"architectures": ["GptOssForCausalLM"]}}, "gpt_oss", "openai", "matches"),
        ("Qwen3-8B", {}, "qwen3", "hermes", "matches"),
        # A call syntax that nobody here reads: no tool-call parser is named.
        ("kimi", {"template": "<think></think><|tool_call_begin|>"}, "qwen3", None, "writes '<think>'"),
        ("GLM-4.7", {"template": "<think></think><|tool_call_begin|>"}, "qwen3", None, "writes '<think>'"),
        ("coder", {"template": "<think><tool_call>\n<function="}, "qwen3", "qwen3_xml", "writes '<think>'"),
        ("mine", {"template": '<think><tool_call>{\\"name\\": '}, "qwen3", "hermes", "writes '<think>'"),
    ],
)
def test_infer_believes_the_template_first(
    capfd: Capture,
    engines: dict[str, Engine],
    tmp_path: Path,
    name: str,
    files: dict[str, Any],
    family: str,
    parser: str | None,
    reason: str,
) -> None:
    document = run(capfd, "infer", str(_model(tmp_path / name, **files)), "--json").document
    assert document["family"] == family
    assert reason in document["reason"]
    serve = document["serve"]["vllm"]
    assert serve["tool_call_parser"] == parser
    assert ("--tool-call-parser" in serve["command"]) is (parser is not None)
    assert ("not known" in str(serve["no_tool_call_parser"])) is (parser is None)


@pytest.mark.parametrize(
    ("model", "files"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", None),
        ("meta-llama/Llama-3.1-8B-Instruct", None),
        ("chat", {"template": "{{ messages[0].content }}"}),
    ],
)
def test_a_model_without_reasoning_is_told_that_it_needs_none(
    capfd: Capture, engines: dict[str, Engine], tmp_path: Path, model: str, files: dict[str, Any] | None
) -> None:
    given = str(_model(tmp_path / model, **files)) if files is not None else model
    said = run(capfd, "infer", given)
    assert (said.code, "family  none needed\n" in said.out) == (0, True)
    assert "serve it without --reasoning-parser" in said.out
    document = run(capfd, "infer", given, "--json").document
    assert (document["family"], document["needs_none"], document["serve"]) == (None, True, {})
    if files is not None:
        assert "none needed" in run(capfd, "doctor", "--model", given).out


def test_a_template_that_reasons_in_unknown_markers_is_not_called_plain(
    capfd: Capture, engines: dict[str, Engine], tmp_path: Path
) -> None:
    said = run(capfd, "infer", str(_model(tmp_path / "m", template="{{ m.reasoning_content }}[THINK]")))
    assert (said.code, "family  unknown" in said.out) == (1, True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{nonsense", "is no JSON (Expecting property name"),
        ("[1]", "holds no JSON object"),
        ('\ufeff{"model_type": "qwen3"}', "begins with a UTF-8 byte order mark"),
    ],
)
def test_a_broken_config_is_one_clear_line(
    capfd: Capture, engines: dict[str, Engine], tmp_path: Path, text: str, says: str
) -> None:
    model = _model(tmp_path / "Qwen3-8B", config=text)
    said = run(capfd, "infer", str(model))
    assert said.code == 0
    assert [says in line for line in said.out.splitlines() if line.startswith("note ")] == [True]
    _, findings = _findings(capfd, "--model", str(model))
    assert any(status == "warn" and says in found and remedy for _, status, found, remedy in findings)


@pytest.mark.parametrize("model", ["", "  "])
def test_no_model_is_one_clear_line(capfd: Capture, engines: dict[str, Engine], model: str) -> None:
    said = run(capfd, "infer", model)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("error: no model was named\n")


def test_models_of_the_hub_cache_are_found_by_name(
    capfd: Capture, engines: dict[str, Engine], models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    repository = tmp_path / "hub" / "models--some--model"
    snapshot = Path(shutil.copytree(models / "muse_glimmer", repository / "snapshots" / "0a1b"))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0a1b")
    document = run(capfd, "doctor", "--model", "some/model", "--json").document
    assert (document["family"], document["ok"]) == ("muse_glimmer", True)
    assert any(str(snapshot) in found["text"] for found in document["findings"])
    document = run(capfd, "infer", "some/model", "--json").document
    assert (document["family"], document["directory"]) == ("muse_glimmer", str(snapshot))
    assert "vllm serve some/model " in document["serve"]["vllm"]["command"]
    arguments = ["--family", "muse_glimmer", "--template", "some/model", "--tokenizer", "some/model", "--mode", "user"]
    assert run(capfd, "conform", *arguments).code == 0
    (repository / "refs" / "main").unlink()  # a download by revision leaves no ref
    assert run(capfd, "infer", "some/model", "--json").document["directory"] == str(snapshot)
    said = run(capfd, "doctor", "--model", "some/other")
    assert said.code == 2
    assert f"no such model in {tmp_path / 'hub'}" in said.err


VLLM_TABLE = (
    '_TOOL_PARSERS_TO_REGISTER = {"hermes": ("a", "B"), "qwen3_xml": ("c", "D")}\nraise RuntimeError("imported")\n'
)
SGLANG_TABLE = 'class P:\n    ToolCallParserEnum: dict[str, type] = {"qwen25": Q, "glm": G}\nimport torch_is_not_here\n'


@pytest.mark.parametrize(
    ("engine", "file", "source", "tools"),
    [
        ("vllm", "tool_parsers/__init__.py", VLLM_TABLE, ("hermes", "qwen3_xml")),
        ("vllm", "entrypoints/openai/tool_parsers/__init__.py", VLLM_TABLE, ("hermes", "qwen3_xml")),
        ("sglang", "srt/function_call/function_call_parser.py", SGLANG_TABLE, ("qwen25", "glm")),
        ("vllm", "tool_parsers/__init__.py", "elsewhere = {}", ()),
        ("vllm", "tool_parsers/__init__.py", "no python", ()),
        ("vllm", "nothing.py", "", ()),
    ],
)
def test_names_of_tool_parsers_are_read_without_loading_an_engine(
    tmp_path: Path, engine: str, file: str, source: str, tools: tuple[str, ...]
) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(source)
    assert probe.read_tools(engine, tmp_path) == tools


def test_infer_says_what_it_waits_for_without_a_terminal(capfd: Capture, engines: dict[str, Engine]) -> None:
    engines["vllm"] = VLLM
    said = run(capfd, "infer", "Qwen/Qwen3-8B")
    assert said.err == "asking vLLM 0.33.0 for its tool-call parsers ...\n"


# doctor


def test_doctor_works_without_any_engine(capfd: Capture, engines: dict[str, Engine]) -> None:
    said = run(capfd, "doctor")
    assert said.code == 0
    assert "neither vLLM nor SGLang is in this environment" in said.out
    assert said.out.endswith("OK\n")


@pytest.mark.parametrize("family", ["qwen3", "muse_glimmer"])
def test_doctor_of_a_model(capfd: Capture, engines: dict[str, Engine], models: Path, family: str) -> None:
    engines |= {"vllm": VLLM, "sglang": SGLANG}
    document = run(capfd, "doctor", "--model", str(models / family), "--json").document
    assert document["ok"] is True
    assert document["family"] == family
    said = {(f["subject"], f["status"]): f["text"] for f in document["findings"]}
    assert f"this package's class answers to {family}" in said["vllm", "ok"]
    assert f"this package's class answers to {family}" in said["sglang", "ok"]
    marker, number = {"qwen3": ("</think>", 151668), "muse_glimmer": ("<|message|>", 200023)}[family]
    assert f"{marker} {number}" in said["markers", "ok"]
    assert "as it must be" in said["split", "ok"]
    states = {f["text"].partition(":")[0]: f["text"].rpartition("-> ")[2] for f in document["findings"]}
    assert states["user"] == {"qwen3": "undecided", "muse_glimmer": "header"}[family]
    assert states["continue-answer"] == "content, answer begun"
    assert set(document["serve"]) == {"vllm", "sglang"}


def _findings(capfd: Capture, *arguments: str) -> tuple[int, list[tuple[str, str, str, str]]]:
    said = run(capfd, "doctor", *arguments, "--json")
    return said.code, [
        tuple(f[key] for key in ("subject", "status", "text", "remedy")) for f in said.document["findings"]
    ]


@pytest.mark.parametrize(
    ("engine", "environment", "says", "remedy"),
    [
        (VLLM, {"VLLM_PLUGINS": "other"}, "VLLM_PLUGINS=other hides this package", "VLLM_PLUGINS=other,reasoning_ext"),
        (VLLM, {"VLLM_PLUGINS": ""}, "VLLM_PLUGINS= hides this package", "VLLM_PLUGINS=reasoning_ext"),
        (SGLANG, {"SGLANG_PLUGINS": "none"}, "SGLANG_PLUGINS=none hides", "unset SGLANG_PLUGINS"),
        (VLLM._replace(parsers={}), {}, "knows none of this package's parsers", "pip show vllm-reasoning-ext"),
        (
            VLLM._replace(parsers={"qwen3": "vllm.Own"}),
            {},
            "knows none of this package's parsers; its own answer to qwen3",
            "unset VLLM_PLUGINS",
        ),
        (
            VLLM._replace(parsers={**OURS, "qwen3": "vllm.reasoning.qwen3.Qwen3ReasoningParser"}),
            {},
            "qwen3 is answered by vllm.reasoning.qwen3",
            "serve with qwen3_ext",
        ),
        (VLLM._replace(problem="it cannot be imported: no libcuda"), {}, "no libcuda", "python -c 'import vllm'"),
    ],
)
def test_doctor_finds_what_hides_us(
    capfd: Capture,
    engines: dict[str, Engine],
    monkeypatch: pytest.MonkeyPatch,
    engine: Engine,
    environment: dict[str, str],
    says: str,
    remedy: str,
) -> None:
    engines[engine.name] = engine
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    code, findings = _findings(capfd)
    failed = [found for found in findings if found[1] == "fail"]
    assert code == 1
    assert any(says in text and remedy in cure for _, _, text, cure in failed)
    assert run(capfd, "doctor").out.endswith("FAILED\n")


@pytest.mark.parametrize(
    "environment",
    [{"VLLM_PLUGINS": "other,reasoning_ext"}, {"VLLM_REASONING_EXT_KEEP_BUILTIN": "qwen3"}, {"SGLANG_PLUGINS": ""}],
)
def test_doctor_accepts_what_does_not_hide_us(
    capfd: Capture, engines: dict[str, Engine], monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    kept = {**OURS, "qwen3": "vllm.reasoning.Own"} if "KEEP" in next(iter(environment)) else OURS
    engines |= {"vllm": VLLM._replace(parsers=kept), "sglang": SGLANG}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    code, findings = _findings(capfd)
    assert code == 0, findings


def test_doctor_says_that_the_family_asked_for_is_another(
    capfd: Capture, engines: dict[str, Engine], models: Path
) -> None:
    _, findings = _findings(capfd, "--model", str(models / "muse_glimmer"), "--family", "gpt_oss")
    assert any("gpt_oss was asked for, but the model looks like muse_glimmer" in text for _, _, text, _ in findings)
    _, findings = _findings(capfd, "--model", str(models / "muse_glimmer"), "--family", "muse_glimmer")
    assert not any(subject == "family" for subject, *_ in findings)


def test_doctor_misses_the_entry_point(
    capfd: Capture, engines: dict[str, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engines["vllm"] = VLLM
    monkeypatch.setattr(checks.importlib.metadata, "entry_points", lambda group: [])
    code, findings = _findings(capfd)
    assert code == 1
    assert any("no entry point reasoning_ext in vllm.general_plugins" in text for _, _, text, _ in findings)


@pytest.mark.parametrize(
    ("family", "model", "status", "says"),
    [
        ("gpt_oss", "qwen3", "fail", "no single id for <|start|>"),  # an unk id must not count as present
        ("minimax_m3", "qwen3", "warn", "no single id for <mm:think>, </mm:think>: the text decides"),
        ("minimax", "qwen3", "fail", "holds none of the turn openers"),
    ],
)
def test_doctor_looks_at_markers_and_template(
    capfd: Capture, engines: dict[str, Engine], models: Path, family: str, model: str, status: str, says: str
) -> None:
    _, findings = _findings(capfd, "--model", str(models / model), "--family", family)
    assert any(found == status and says in text and remedy for _, found, text, remedy in findings), findings


def _tokenizer(models: Path, family: str, to: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Copy a model directory with a changed tokenizer.json."""
    shutil.copytree(models / family, to)
    document = json.loads((to / "tokenizer.json").read_text(encoding="utf-8"))
    change(document)
    (to / "tokenizer.json").write_text(json.dumps(document), encoding="utf-8")
    return to


def _not_added(*markers: str) -> Callable[[dict[str, Any]], object]:
    def change(document: dict[str, Any]) -> None:
        document["added_tokens"] = [token for token in document["added_tokens"] if token["content"] not in markers]

    return change


def test_doctor_shows_missing_markers_and_not_what_follows_from_them(
    capfd: Capture, engines: dict[str, Engine], models: Path, tmp_path: Path
) -> None:
    # Still in the vocabulary, but no added token: then every prompt spells it from ordinary ones.
    muse = _tokenizer(models, "muse_glimmer", tmp_path / "muse", _not_added("<|start|>"))
    code, findings = _findings(capfd, "--model", str(muse))
    wrong = [found for found in findings if found[1] in ("warn", "fail")]
    assert (code, [found[:2] for found in wrong]) == (1, [("markers", "fail")])
    assert "no single id for <|start|>; muse_glimmer cannot" in wrong[0][2]
    assert "the engine's own --tokenizer" in wrong[0][3]
    assert ("template", "info", "not looked at: the missing markers come first", "") in findings
    qwen = _tokenizer(models, "qwen3", tmp_path / "qwen", _not_added("<think>", "</think>", "<|im_start|>"))
    code, findings = _findings(capfd, "--model", str(qwen))
    wrong = [found for found in findings if found[1] in ("warn", "fail")]
    assert (code, [found[:2] for found in wrong]) == (0, [("markers", "warn")])


def test_doctor_says_a_problem_of_many_modes_once(capfd: Capture, engines: dict[str, Engine], models: Path) -> None:
    _, findings = _findings(capfd, "--template", str(models / "qwen3" / "chat_template.jinja"), "--family", "minimax")
    said = [text for _, _, text, _ in findings if "none of the turn openers" in text]
    assert len(said) == 1
    assert re.search(r"^user: .* \(and in \d+ modes more\)$", said[0])


def test_doctor_says_that_the_tokenizer_changes_text(
    capfd: Capture, engines: dict[str, Engine], models: Path, tmp_path: Path
) -> None:
    stripping = {"type": "Strip", "strip_left": True, "strip_right": True}
    model = _tokenizer(models, "qwen3", tmp_path / "m", lambda document: document.update(normalizer=stripping))
    code, findings = _findings(capfd, "--model", str(model))
    wrong = [(subject, text) for subject, status, text, _ in findings if status in ("warn", "fail")]
    assert code == 1
    assert [subject for subject, _ in wrong] == ["template"]
    assert "the tokenizer does not give the text back: '\\n<|im_start|>" in wrong[0][1]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--model", "nowhere"], 2, "there is no directory nowhere"),
        (["--family", "qwen4"], 2, "unknown reasoning family"),
        (["--family", "qwen3", "--template", "nowhere.jinja"], 1, "cannot read the template"),
        (["--model", "."], 1, "unknown"),
    ],
)
def test_doctor_on_nothing(
    capfd: Capture,
    engines: dict[str, Engine],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = run(capfd, "doctor", *arguments)
    assert said.code == code
    assert says in said.out + said.err
    assert "remedy: " in said.out + said.err


@pytest.mark.parametrize(
    ("out", "err", "problem"),
    [
        ('log line\n{"version": "0.33.0", "parsers": {"qwen3": "a.B"}, "tools": ["hermes"]}\n', "", ""),
        ("", "Traceback\nImportError: libcuda.so.1", "it cannot be imported: ImportError: libcuda.so.1"),
        ("no json here", "", "it cannot be imported: no json here"),
        ("", "", "it cannot be imported: it said nothing"),
    ],
)
def test_an_engine_is_asked_in_a_process_of_its_own(out: str, err: str, problem: str) -> None:
    engine = probe._read("vllm", "0", out, err)
    assert engine.problem == problem
    assert (engine.tools == ("hermes",)) is (not problem)


# conform


def test_conform_writes_every_report(capfd: Capture, tmp_path: Path, models: Path) -> None:
    html, junit = tmp_path / "out.html", tmp_path / "out.xml"
    arguments = ["conform", "--family", "muse_glimmer", "--template", str(models / "muse_glimmer"), "--mode", "user"]
    arguments += ["--tokenizer", str(models / "muse_glimmer"), "--report", str(html), "--junit", str(junit)]
    said = run(capfd, *arguments)
    assert said.code == 0
    assert said.out.splitlines()[-2].startswith("OK: ")
    assert html.read_text(encoding="utf-8").startswith("<!doctype html>")
    names = [case.attrib["name"] for case in ElementTree.parse(junit).iter("testcase")]
    assert "user | quoted markers" in names
    assert len(names) == len(set(names))
    document = run(capfd, *arguments, "--json").document
    assert [mode["mode"] for mode in document["modes"]] == ["user"]
    assert document["right"] is True


def test_conform_prints_a_command_that_tries_the_wrong_cell_again(capfd: Capture, tmp_path: Path) -> None:
    broken = tmp_path / "a broken template.jinja"
    text = run(capfd, "template", "qwen3", "--show").out
    broken.write_text(text.replace("<think>\\n", "<ponder>\\n"), encoding="utf-8")
    said = run(capfd, "conform", "--family", "qwen3", "--template", str(broken), "--set", "revision=2504")
    assert said.code == 1
    assert said.out.splitlines()[-1].startswith("FAILED: ")
    command = next(line.partition("again: ")[2] for line in said.out.splitlines() if "again: " in line)
    again = run(capfd, *shlex.split(command)[1:])
    assert again.code == 1
    assert "FAILED: 0 of 1 cell right in 1 mode " in again.out


@pytest.mark.parametrize(
    ("arguments", "problem", "remedy"),
    [
        (["--mode", "nothing"], "has no mode 'nothing'", "choose one of: user, system"),
        (["--output", "nothing"], "no output is called 'nothing'", "choose one of: start"),
        (["--mode", "user", "--output", "preamble"], "no mode tried has the output", "leave --output out"),
        (["--set", "revision"], "has no value", "--set enable_thinking=false"),
        (["--set", "revison=3.5"], "the template reads no variable revison", "did you mean revision?"),
        (["--template", "{bom}"], "begins with a UTF-8 byte order mark", "save it as UTF-8 without one"),
        (["--family", "inline"], "inline tags belong to no model", "choose one of deepseekv32"),
        (["--report", "nowhere/out.html", "--mode", "user"], "cannot write nowhere/out.html", "directory that exists"),
    ],
)
def test_conform_faults(
    capfd: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], problem: str, remedy: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bom.jinja").write_bytes(b"\xef\xbb\xbf{{ messages }}")
    given = [argument.format(bom="bom.jinja") for argument in arguments]
    said = run(capfd, "conform", "--family", "qwen3", "--template", "qwen3", *given)
    assert said.code == 2
    assert problem in said.err
    assert remedy in said.err


def test_conform_fails_where_the_tokenizer_lacks_a_control_token(capfd: Capture, models: Path) -> None:
    arguments = ["--family", "gpt_oss", "--template", "gpt_oss", "--tokenizer", str(models / "qwen3"), "--mode", "user"]
    said = run(capfd, "conform", *arguments)
    assert said.code == 1
    assert re.search(r"WRONG +the tokenizer has no single id for .*<\|channel\|>.*; gpt_oss cannot", said.out)


@pytest.mark.parametrize(
    ("normalizer", "shows"),
    [
        ({"type": "Strip", "strip_left": True, "strip_right": True}, "'\\nSix times seven?\\nFo' becomes 'Six"),
        ({"type": "Lowercase"}, "'Six times seven?\\nFor' becomes 'six"),
    ],
    ids=["strip", "lowercase"],
)
def test_conform_stops_where_the_tokenizer_changes_text(
    capfd: Capture, models: Path, tmp_path: Path, normalizer: dict[str, Any], shows: str
) -> None:
    changed = _tokenizer(models, "qwen3", tmp_path / "m", lambda document: document.update(normalizer=normalizer))
    arguments = ["conform", "--family", "qwen3", "--template", "qwen3", "--mode", "user"]
    said = run(capfd, *arguments, "--tokenizer", str(changed))
    assert (said.code, said.out) == (2, "")
    assert f"error: the tokenizer does not give the text back: {shows}" in said.err
    assert "remedy:   use the tokenizer the model came with" in said.err
    assert "law" not in said.err
    assert run(capfd, *arguments).code == 0
    kit = Kit("qwen3", template_path("qwen3").read_text(encoding="utf-8"), tokenizer=load_tokenizer(changed))
    with pytest.raises(pytest.fail.Exception, match=r"does not give the text back.*Remedy: use the tokenizer"):
        ReasoningCase(kit, kit.modes[0], "answer").check()


def test_conform_tries_no_ids_where_the_tokenizer_spells_a_marker(capfd: Capture, models: Path, tmp_path: Path) -> None:
    spelling = _tokenizer(models, "qwen3", tmp_path / "m", _not_added("<think>", "</think>"))
    arguments = ["--family", "qwen3", "--template", "qwen3", "--mode", "user", "--tokenizer", str(spelling)]
    document = run(capfd, "conform", *arguments, "--json").document
    assert (document["right"], document["missing_control_tokens"]) == (True, ["<think>", "</think>"])
    assert all(cell["right"] for mode in document["modes"] for cell in mode["cells"])
    assert not any(cell["output"] == "quoted markers" for mode in document["modes"] for cell in mode["cells"])


@pytest.mark.parametrize(
    ("family", "model", "code", "status"),
    [("qwen3", "qwen3", 0, "warn"), ("muse_glimmer", "muse_glimmer", 1, "fail")],
)
def test_doctor_and_conform_judge_a_tokenizer_without_markers_alike(
    capfd: Capture,
    engines: dict[str, Engine],
    models: Path,
    tmp_path: Path,
    family: str,
    model: str,
    code: int,
    status: str,
) -> None:
    missing = {"qwen3": ("<think>", "</think>"), "muse_glimmer": ("<|eom|>",)}[family]
    changed = str(_tokenizer(models, model, tmp_path / "m", _not_added(*missing)))
    by_doctor, findings = _findings(capfd, "--model", changed)
    judged = [found for found in findings if found[0] == "markers" and found[1] in ("warn", "fail")]
    said = run(capfd, "conform", "--family", family, "--template", changed, "--tokenizer", changed, "--mode", "user")
    assert (by_doctor, said.code, [found[1] for found in judged]) == (code, code, [status])
    assert judged[0][2] in said.out  # the same words, too
    assert said.out.splitlines()[-1].startswith("OK: " if code == 0 else "FAILED: 1 control token missing")


def test_output_names_are_listed_as_they_can_be_pasted(capfd: Capture) -> None:
    said = run(capfd, "conform", "--family", "qwen3", "--template", "qwen3", "--output", "thought")
    listed = shlex.split(said.err.partition("choose one of: ")[2].replace("',", "' ").replace("r,", "r "))
    assert "thought, answer" in listed


# The documentation


def test_every_command_is_in_the_help_and_teaches() -> None:
    root = help_text("")
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", root, re.MULTILINE)
        assert "--json" in help_text(name)
    assert "Exit codes: 0 right" in root


@pytest.mark.parametrize("page", [pytest.param(path, id=path.name) for path in pages()])
def test_help_blocks_in_the_documentation_are_what_help_prints(page: Path) -> None:
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        assert found["block"] == block(found["name"]), "run `python -m tests.cli.help_blocks`"


def test_the_page_of_the_command_line_has_all_of_them() -> None:
    page = next(path for path in pages() if path.name == "cli.md").read_text(encoding="utf-8")
    assert {found["name"] for found in BLOCK.finditer(page)} == {"", *COMMANDS}


def test_the_page_says_the_exit_codes_of_every_command() -> None:
    page = next(path for path in pages() if path.name == "cli.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]+`) \|[^|]+\|[^|]+\|[^|]+\|$", page.partition("<!-- help:")[0], re.MULTILINE)
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row)) == sorted(COMMANDS)


@pytest.mark.parametrize("page", [pytest.param(path, id=path.name) for path in pages()])
def test_options_that_the_documentation_names_exist(page: Path) -> None:
    every = " ".join([help_text(""), *[help_text(name) for name in COMMANDS]])
    known = set(re.findall(r"--[a-z-]+", every))
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for command, rest in re.findall(r"vllm-reasoning-ext ([a-z]+)([^\n|`]*)", text):
        assert command in COMMANDS
        assert set(re.findall(r"--[a-z-]+", rest)) <= known, rest


def test_every_symptom_begins_with_one_of_the_commands() -> None:
    page = next(path for path in pages() if path.name == "troubleshooting.md").read_text(encoding="utf-8")
    sections = page.split("\n## ")[1:]
    assert len(sections) >= 5
    for section in sections:
        first = re.search(r"```bash\n(\S+ \S+)", section)
        assert first is not None, section
        assert first[1].partition(" ")[2] in COMMANDS
        assert first.start() < 120, "the first step comes first"


def test_the_example_of_the_page_prints_what_it_says(
    capfd: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = next(path for path in pages() if path.name == "cli.md").read_text(encoding="utf-8")
    lines = re.search(r"```console\n(.*?)```", page, re.DOTALL)[1].splitlines()  # type: ignore[index]
    monkeypatch.chdir(tmp_path)
    shown = [line for line in lines if not line.startswith("$ ")]
    for line in (line[2:] for line in lines if line.startswith("$ ")):
        words = shlex.split(line)
        if words[0] == "printf":
            Path(words[3]).write_text(json.loads('"' + words[1].replace('"', '\\"') + '"'), encoding="utf-8")
        else:
            assert run(capfd, *words[1:]).out.splitlines() == shown
