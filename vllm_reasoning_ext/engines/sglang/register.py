"""Registration with SGLang: parser names, the app of HTTP workers, and hooks where requests are served."""

import logging
import multiprocessing
import os
from typing import Any, Final

from vllm_reasoning_ext._version import __version__
from vllm_reasoning_ext.core.families import AUTO
from vllm_reasoning_ext.engines.logs import sglang_log as log
from vllm_reasoning_ext.engines.names import KEEP_BUILTIN, kept_builtin, parser_names, unknown_kept

WORKER_APP: Final = "vllm_reasoning_ext.engines.sglang.app:app"
APP_PATH: Final = "SGLANG_HTTP_SERVER_APP_PATH"

_registered = False


def register() -> None:
    """Bind this package's names in SGLang's parser table; the second call does nothing.

    SGLang takes its `--reasoning-parser` choices from that table if the table's module is loaded, so the
    classes are bound at once, not lazily.
    """
    global _registered
    if _registered:
        return
    _registered = True

    from sglang.srt.parser.reasoning_parser import ReasoningParser

    misspelt = unknown_kept(tuple(ReasoningParser.DetectorMap))
    replaced = bind_names(ReasoningParser.DetectorMap)
    if misspelt:
        log.warning("%s: SGLang has no reasoning parser of its own named %s", KEEP_BUILTIN, misspelt)
    _list_names()
    # Workers are spawned: they inherit the variable, and import this app in place of SGLang's.
    os.environ.setdefault(APP_PATH, WORKER_APP)
    missing = []
    if serves_requests():
        from vllm_reasoning_ext.engines.sglang import hooks as sglang_hooks

        missing = sglang_hooks.install()
    _report(replaced, missing)


def bind_names(table: dict[str, Any]) -> list[str]:
    """Put this package's detectors into a parser table under each of their names.

    Args:
        table: parser name -> detector class; SGLang looks names up in lower case.

    Returns:
        the names whose detector of SGLang's own was replaced.
    """
    from vllm_reasoning_ext.engines.sglang.detector import SglangDetector, detector_class

    replaced = []
    for name, family, replaces in parser_names():
        key = name.lower()
        if key == AUTO[0]:
            continue  # SGLang resolves this word itself, and is answered there
        builtin = table.get(key)
        if builtin is not None and not issubclass(builtin, SglangDetector):
            if not replaces or kept_builtin(key):
                continue
            replaced.append(key)
        table[key] = detector_class(family)
    return replaced


def _list_names() -> None:
    """Add this package's names to the static list that SGLang >= 0.5.23 shows where the table is not loaded."""
    try:
        from sglang.srt.parser.reasoning_parser_names import REASONING_PARSER_NAMES as LISTED
    except ImportError:
        return
    LISTED.extend(known.name.lower() for known in parser_names() if known.name.lower() not in LISTED)


def serves_requests() -> bool:
    """Tell whether this process may answer HTTP requests.

    The scheduler and the detokenizer are children that SGLang starts on a function of its managers; loading
    the serving code there costs seconds for nothing. Any other process gets the hooks.
    """
    if multiprocessing.parent_process() is None:
        return True
    target = getattr(multiprocessing.current_process(), "_target", None)
    return not str(getattr(target, "__module__", "")).startswith("sglang.srt.managers.")


def _report(replaced: list[str], missing: list[str]) -> None:
    """Say once a process what was done; it is the only proof that the plugin is there."""
    parts = [f"vllm-reasoning-ext {__version__}: reasoning parsers registered"]
    if replaced:
        parts.append(
            f", replacing SGLang's own {', '.join(replaced)} (to keep SGLang's: "
            f"{KEEP_BUILTIN}={','.join(replaced)} or all; this package's stay there as <name>_ext)"
        )
    if missing:
        parts.append(f". Not found in this SGLang, so replies are split from less: {', '.join(missing)}")
    _say("".join(parts))


def _say(line: str) -> None:
    """Log a line at INFO: at once, or when SGLang has set up its log, which it does after loading plugins."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    from sglang.srt.utils import common

    ready = logging.getLogger().handlers and log.isEnabledFor(logging.INFO)
    if ready or not hasattr(common, "configure_logger"):
        log.info(line)
        return

    unsaid = [line]

    def after_configure(*_: Any, **__: Any) -> None:
        while unsaid:
            log.info(unsaid.pop())

    HookRegistry.register("sglang.srt.utils.common.configure_logger", after_configure, HookType.AFTER)
