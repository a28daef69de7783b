"""The entry points: names, replacement of the engine's own, opt-out, and that nothing heavy is imported."""

import logging
import subprocess
import sys
from types import ModuleType

import pytest

from vllm_reasoning_ext.core.builtin import SEVEN
from vllm_reasoning_ext.core.families import FAMILIES
from vllm_reasoning_ext.core.more import MORE
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


def ours(name: str) -> tuple[str, str]:
    module = register.VLLM_HARMONY if name == "gpt_oss" else register.VLLM_ADAPTER
    return module, class_name(name)


def test_every_family_alias_and_twin_is_bound(manager: Manager) -> None:
    register.register_vllm()
    for family in SEVEN:
        for parser in (family.name, *family.aliases):
            assert manager.lazy_parsers[parser] == ours(family.name)
    for name in FAMILIES:
        assert manager.lazy_parsers[f"{name}_ext"] == ours(name)
    assert manager.lazy_parsers["other"] == ("vllm.reasoning.other", "X")


def test_a_name_of_the_engine_stays_the_engine_s(manager: Manager) -> None:
    """Who asks vLLM for `glm45` or `kimi_k2` gets vLLM's parser: library and commands alone know these names."""
    register.register_vllm()
    seven = {name for family in SEVEN for name in (family.name, *family.aliases)}
    theirs = {name for family in FAMILIES.values() for name in family.engine_names}
    assert theirs
    assert not (theirs | {family.name for family in MORE}) & set(manager.lazy_parsers) - seven


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
    assert manager.lazy_parsers["qwen3_ext"] == ours("qwen3")
    assert manager.lazy_parsers["gpt_oss"] == ours("gpt_oss")  # no builtin of this name: always ours


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
