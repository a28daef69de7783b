"""`--reasoning-parser auto` in SGLang, whose own word it is: the same name, this package's choice (SPEC section 8).

Theory of operation. SGLang resolves `auto` when its engine starts, after the plug-ins have loaded, and hands the answer
to its scheduler and to its HTTP workers. `take_auto` answers first, with `auto_ext`; each process then chooses by the
tokenizer that it has (`family_for`), all alike.
"""

import os
from typing import Any

from vllm_reasoning_ext.core.families import AUTO
from vllm_reasoning_ext.core.record import NO_REASONING, Family
from vllm_reasoning_ext.engines.auto import SERVED_TEMPLATE, chosen
from vllm_reasoning_ext.engines.logs import sglang_log as log
from vllm_reasoning_ext.engines.names import KEEP_BUILTIN, kept_builtin

_NAME, _PARSER = AUTO

_last: list[Family] = []


def family_for(tokenizer: Any) -> Family:
    """Choose the record for a tokenizer; without one, what this process chose last.

    Raises:
        SetupError: the template cannot be rendered, or nothing decides between several families.
    """
    if tokenizer is not None:
        _last[:] = [chosen(log, "sglang", tokenizer)[0]]
    return _last[0] if _last else NO_REASONING


def take_auto(server_args: Any) -> None:
    """Answer SGLang's question what `auto` is, unless the operator keeps SGLang's own answer.

    Raises:
        SetupError: as `family_for`.
    """
    view = _view(server_args)
    if view.reasoning_parser != _NAME or kept_builtin(_NAME):
        return
    _declare(server_args, _PARSER)
    template = getattr(view, "chat_template", None)
    if isinstance(template, str) and template:
        os.environ[SERVED_TEMPLATE] = template
    log.info("--reasoning-parser auto is answered by vllm-reasoning-ext; %s=auto keeps SGLang's own", KEEP_BUILTIN)
    tokenizer = _tokenizer(view)
    if tokenizer is None:
        return
    family, parsers = chosen(log, "sglang", tokenizer)
    given = getattr(view, "tool_call_parser", None)
    if parsers and given not in (None, _NAME, *parsers):
        log.warning(
            "--reasoning-parser auto took family %s, whose calls --tool-call-parser %s reads; this server's is %s",
            family.name,
            " or ".join(parsers),
            given,
        )


def _view(server_args: Any) -> Any:
    """Give the settings as SGLang has resolved them so far; before 0.5.23 those are the settings themselves."""
    try:
        from sglang.srt.arg_groups.model_override_base import resolving_view
    except ImportError:
        return server_args
    return resolving_view(server_args)


def _declare(server_args: Any, parser: str) -> None:
    try:
        from sglang.srt.arg_groups.overrides import declare_resolution
    except ImportError:
        server_args.reasoning_parser = parser
        return
    declare_resolution(server_args, "vllm-reasoning-ext", reasoning_parser=parser)


def _tokenizer(view: Any) -> Any:
    """Load the tokenizer as SGLang's own detection does; None where that fails: SGLang will say why itself."""
    from sglang.srt.utils.hf_transformers_utils import get_tokenizer

    try:
        return get_tokenizer(
            view.tokenizer_path or view.model_path,
            tokenizer_mode=view.tokenizer_mode,
            trust_remote_code=view.trust_remote_code,
            revision=view.revision,
        )
    except Exception as error:
        log.debug("auto: the tokenizer could not be loaded yet: %r", error)
        return None
