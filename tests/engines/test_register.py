"""The entry points: names, replacement of the engine's own, opt-out, and that nothing heavy is imported."""

import logging
import subprocess
import sys
from types import ModuleType

import pytest

from vllm_reasoning_ext.core.families import FAMILIES
from vllm_reasoning_ext.engines import register
from vllm_reasoning_ext.engines.names import KEEP_BUILTIN, class_name


class Manager:
    """vLLM's registry, as far as registration sees it."""

    def __init__(self) -> None:
        self.reasoning_parsers: dict[str, type] = {}
        self.lazy_parsers = {
            "qwen3": ("vllm.reasoning.qwen3", "Qwen3"),
            "other": ("vllm.reasoning.other", "X"),
        }

    def register_lazy_module(self, name: str, module: str, cls: str) -> None:
        self.lazy_parsers[name] = (module, cls)


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Manager:
    module = ModuleType("vllm.reasoning")
    manager = Manager()
    module.ReasoningParserManager = manager
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    monkeypatch.setitem(sys.modules, "vllm.reasoning", module)
    monkeypatch.delenv(KEEP_BUILTIN, raising=False)
    return manager


def adapter(name: str) -> tuple[str, str]:
    module = register.VLLM_HARMONY if name == "gpt_oss" else register.VLLM_ADAPTER
    return module, class_name(name)


def test_every_family_alias_and_twin_is_bound(manager: Manager) -> None:
    register.register_vllm()
    for name, family in FAMILIES.items():
        for parser in (name, f"{name}_ext", *family.aliases):
            assert manager.lazy_parsers[parser] == adapter(name)
    assert manager.lazy_parsers["other"] == ("vllm.reasoning.other", "X")


def test_only_the_seven_take_an_engines_name(manager: Manager) -> None:
    own = ("vllm.reasoning.kimi_k2", "KimiK2")
    manager.lazy_parsers["kimi_k2"] = own
    register.register_vllm()
    assert manager.lazy_parsers["kimi_k2"] == own
    assert manager.lazy_parsers["kimi_k2_ext"] == adapter("kimi_k2")
    assert manager.lazy_parsers["reka"] == adapter("reka")  # a name that is free


def test_what_an_engine_calls_its_own_parser_is_not_bound(manager: Manager) -> None:
    """Who asks vLLM for `glm45` gets vLLM's parser: library and commands alone know these names."""
    register.register_vllm()
    theirs = {name for family in FAMILIES.values() for name in family.engine_names}
    assert "glm45" in theirs
    assert not theirs & set(manager.lazy_parsers)


def test_a_kept_name_that_is_none_is_told_with_the_likely_one(
    manager: Manager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(KEEP_BUILTIN, "qwen_3, qwen3, none")
    register.register_vllm()
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert said.startswith(KEEP_BUILTIN)
    assert said.endswith("named 'none', 'qwen_3' (did you mean qwen3?)")
    assert manager.lazy_parsers["qwen3"] == ("vllm.reasoning.qwen3", "Qwen3")


def test_an_already_imported_builtin_is_replaced(manager: Manager) -> None:
    manager.reasoning_parsers["qwen3"] = int
    register.register_vllm()
    assert "qwen3" not in manager.reasoning_parsers


@pytest.mark.parametrize(
    ("keep", "kept"),
    [("qwen3", True), ("muse_glimmer, qwen3", True), ("all", True), ("gemma4", False), ("", False)],
)
def test_the_operator_can_keep_the_builtin(
    manager: Manager, monkeypatch: pytest.MonkeyPatch, keep: str, kept: bool
) -> None:
    monkeypatch.setenv(KEEP_BUILTIN, keep)
    register.register_vllm()
    assert (manager.lazy_parsers["qwen3"] == ("vllm.reasoning.qwen3", "Qwen3")) is kept
    assert manager.lazy_parsers["qwen3_ext"] == adapter("qwen3")
    assert manager.lazy_parsers["gpt_oss"] == adapter("gpt_oss")  # no builtin of this name: always this package's


def test_one_info_line_names_the_replaced_and_the_way_back(manager: Manager, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, register.vllm_log.name)
    register.register_vllm()
    register.register_vllm()
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 1
    assert f"{KEEP_BUILTIN}=qwen3" in lines[0]


def test_a_broken_registry_is_reported_not_raised(
    manager: Manager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Manager, "register_lazy_module", None)
    register.register_vllm()
    assert "is not active" in caplog.text


@pytest.mark.parametrize("entry", ["register_vllm", "register_sglang"])
def test_registration_imports_nothing_heavy(entry: str) -> None:
    code = (
        "import sys\n"
        # Engines that are not installed: the entry point must come back without a word.
        "sys.modules['vllm'] = None; sys.modules['sglang'] = None\n"
        f"from vllm_reasoning_ext.engines.register import {entry} as entry\n"
        "entry()\n"
        "heavy = {'torch', 'transformers', 'tokenizers', 'pydantic', 'typer', 'rich', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
