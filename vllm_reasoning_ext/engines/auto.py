"""`auto` in an engine: which record a server's model gets, said once a process (SPEC section 8)."""

import logging
import multiprocessing
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from vllm_reasoning_ext._version import __version__
from vllm_reasoning_ext.core.record import NO_REASONING, Family
from vllm_reasoning_ext.derive.choice import Choice
from vllm_reasoning_ext.derive.served import choice_for

SERVED_TEMPLATE: Final = "_VLLM_REASONING_EXT_SERVED_TEMPLATE"
"""Environment variable by which a server hands its `--chat-template` to the processes that it starts."""

_OPTION: Final = "--chat-template"

_said: set[tuple[str | None, str, str]] = set()


def chosen(
    log: logging.Logger, engine: str, tokenizer: Any, request_template: str | None = None
) -> tuple[Family, Sequence[str]]:
    """Choose the record for a tokenizer, and say so once.

    Args:
        log: the engine's.
        engine: "vllm" or "sglang".
        tokenizer: what the server splits with.
        request_template: the chat template of one request, where it has its own.

    Returns:
        the record, `NO_REASONING` where the model shows none; and the engine's tool-call parsers that read its calls.

    Raises:
        SetupError: the template cannot be rendered, or nothing decides between several families.
    """
    served = served_template()
    choice = choice_for(tokenizer, request_template or served)
    family = choice.family or NO_REASONING
    parsers: Sequence[str] = getattr(choice.tool_parsers, engine)
    fact = (request_template, family.name, choice.reason)
    if fact not in _said:
        _said.add(fact)
        if request_template is None:
            _say(log, choice, parsers)
        elif family != (choice_for(tokenizer, served).family or NO_REASONING):
            log.warning(
                "--reasoning-parser auto: a request's own chat template writes what family %s reads (%s), so its reply "
                "is split by that; gates and budgets stay the server's. (Said once a template.)",
                family.name,
                choice.reason,
            )
    return family, parsers


def _say(log: logging.Logger, choice: Choice, parsers: Sequence[str]) -> None:
    # Several processes of a server decide, all alike; the one that people look at says so.
    info = logging.DEBUG if multiprocessing.current_process().name.startswith("EngineCore") else logging.INFO
    if choice.family is not None:
        calls = f"--tool-call-parser {parsers[0]} reads its calls" if parsers else "no tool-call parser is known to fit"
        template = "vllm-reasoning-ext %s: --reasoning-parser auto took family %s: %s; %s"
        log.log(info, template, __version__, choice.family.name, choice.reason, calls)
    if choice.warnings and info == logging.INFO:
        log.warning("--reasoning-parser auto: %s", "; ".join(choice.warnings))


def served_template() -> str | None:
    """Read the chat template that this server was told to use; None where it uses the tokenizer's."""
    given = os.environ.get(SERVED_TEMPLATE) or _argument(sys.argv)
    return template_text(given) if given else None


def template_text(given: str) -> str | None:
    """Read a `--chat-template`: a file, or the template itself; None for anything else (an engine's own name)."""
    try:
        if "{" not in given and Path(given).is_file():
            return Path(given).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    return given if "{" in given else None


def _argument(arguments: Sequence[str]) -> str:
    """Find the option's value on a command line, in either of its two forms."""
    for at, argument in enumerate(arguments):
        if argument == _OPTION:
            return next(iter(arguments[at + 1 :]), "")
        if argument.startswith(_OPTION + "="):
            return argument.removeprefix(_OPTION + "=")
    return ""
