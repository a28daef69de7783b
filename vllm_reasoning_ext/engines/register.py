"""The engines' entry points: put this package's parser names into an engine's registry, importing no parser.

vLLM calls `register_vllm` in every process it starts, GPU workers included, before it has parsed its command
line. So nothing here imports torch, a tokenizer or an adapter: a name is only bound to the module that is
imported when somebody chooses it.
"""

import importlib.util
import logging
import os
from typing import Any, Final

from vllm_reasoning_ext._version import __version__
from vllm_reasoning_ext.derive.record_file import FAMILY_FILE, register_files
from vllm_reasoning_ext.engines.logs import sglang_log, vllm_log
from vllm_reasoning_ext.engines.names import (
    KEEP_BUILTIN,
    ParserName,
    class_name,
    kept_builtin,
    parser_names,
    unknown_kept,
)
from vllm_reasoning_ext.errors import SetupError

VLLM_ADAPTER: Final = "vllm_reasoning_ext.engines.vllm.parser"
VLLM_HARMONY: Final = "vllm_reasoning_ext.engines.vllm.harmony"
VLLM_AUTO: Final = "vllm_reasoning_ext.engines.vllm.auto"
_HOMES: Final = {"gpt_oss": VLLM_HARMONY, "auto": VLLM_AUTO}
"""Where the parsers live that are not at home in `VLLM_ADAPTER`."""


def register_vllm() -> None:
    """Bind this package's names in vLLM's ReasoningParserManager (entry point of `vllm.general_plugins`).

    Idempotent; never raises, because vLLM does not catch what a plugin's function raises. One INFO line a
    process tells which of vLLM's own parsers are replaced and how to keep them.
    """
    try:
        from vllm.reasoning import ReasoningParserManager as Manager

        _own_families(vllm_log)
        builtin = {*Manager.reasoning_parsers, *getattr(Manager, "lazy_parsers", {})}
        replaced = [name.name for name in parser_names() if _bind(Manager, name)]
    except Exception as error:  # an unknown vLLM must still serve, without us
        vllm_log.warning("vllm-reasoning-ext %s is not active: %r", __version__, error)
        return
    misspelt = unknown_kept(builtin)
    if misspelt:
        vllm_log.warning("%s: vLLM has no reasoning parser of its own named %s", KEEP_BUILTIN, misspelt)
    if replaced:
        vllm_log.info(
            "vllm-reasoning-ext %s: its reasoning parsers replace vLLM's own of the name %s. "
            "To keep vLLM's: %s=%s (or all); this package's stay there as <name>_ext.",
            __version__,
            ", ".join(replaced),
            KEEP_BUILTIN,
            ",".join(replaced),
        )


def _own_families(log: logging.Logger) -> None:
    """Register the operator's record files; one that cannot be used costs its own name, and an ERROR says so."""
    try:
        register_files(os.environ.get(FAMILY_FILE, ""))
    except SetupError as error:
        log.error("%s: %s", FAMILY_FILE, error)  # noqa: TRY400 - the message says all there is


def _bind(manager: Any, parser: ParserName) -> bool:
    """Bind one name; True if a parser of the engine's own was replaced by this call."""
    name = parser.name
    adapter = (_HOMES.get(parser.family, VLLM_ADAPTER), class_name(parser.family))
    eager: dict[str, type] = manager.reasoning_parsers
    lazy = getattr(manager, "lazy_parsers", {})
    loaded = eager.get(name)
    if lazy.get(name) == adapter and (loaded is None or loaded.__module__.startswith("vllm_reasoning_ext.")):
        return False
    builtin = loaded is not None or name in lazy
    if builtin and (not parser.replaces or kept_builtin(name)):
        return False
    # The registry looks at loaded classes first: a lazy entry alone loses to one that was already imported.
    eager.pop(name, None)
    manager.register_lazy_module(name, *adapter)
    return builtin


def register_sglang() -> None:
    """Bind this package's names in SGLang (entry point of `sglang.srt.plugins`); never raises."""
    if importlib.util.find_spec("sglang") is None:
        return
    try:
        from vllm_reasoning_ext.engines.sglang.register import register

        _own_families(sglang_log)
        register()
    except Exception as error:  # an unknown SGLang must still serve, without us
        sglang_log.warning("vllm-reasoning-ext %s is not active: %r", __version__, error)
