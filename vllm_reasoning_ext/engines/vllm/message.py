"""vLLM's request and message objects, as far as the adapter reads and makes them."""

import json
import sys
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Final

from vllm_reasoning_ext.engines.vllm.lookup import DeltaMessage

_SETTINGS: Final = "--structured-outputs-config"


def message(reasoning: str, content: str) -> Any:
    """Build a DeltaMessage; None when there is nothing to send.

    Only what has text is set: vLLM serialises the fields that were set.
    """
    if reasoning and content:
        return DeltaMessage(reasoning=reasoning, content=content)
    if reasoning:
        return DeltaMessage(reasoning=reasoning)
    return DeltaMessage(content=content) if content else None


def offers_tools(request: Any) -> bool:
    """Tell whether the request lets the model call a tool."""
    return bool(getattr(request, "tools", None)) and getattr(request, "tool_choice", None) != "none"


def shows_reasoning(request: Any) -> bool:
    """Tell whether the client wants the reasoning."""
    return getattr(request, "include_reasoning", True) is not False


def answers_at_once(request: Any) -> bool:
    """Tell whether vLLM's grammar dictates the output from its first token, inside a block the prompt opened too.

    It does not wait for an answer where the client wants no reasoning, nor where the server's grammars bind in it.
    """
    if shows_reasoning(request) and not binds_in_reasoning():
        return False
    # Chat has `response_format`, Responses has `text.format`.
    asked = getattr(request, "response_format", None) or getattr(getattr(request, "text", None), "format", None)
    kind = asked.get("type") if isinstance(asked, dict) else getattr(asked, "type", None)
    return getattr(request, "structured_outputs", None) is not None or kind not in (None, "text")


@cache
def binds_in_reasoning() -> bool:
    """Tell whether this server's grammars bind inside reasoning too; its command line is all that says so here."""
    return enabled_in_reasoning(sys.argv)


def enabled_in_reasoning(arguments: Sequence[str]) -> bool:
    """Find `enable_in_reasoning` in vLLM's structured-outputs settings on a command line, in any of their forms."""
    pieces: list[str] = []
    for argument in arguments:
        name, given, value = argument.partition("=")
        pieces += [name, value] if given and name.startswith("-") else [argument]
    for option, value in pairwise([*pieces, ""]):
        name = option.replace("_", "-")
        if name in (f"{_SETTINGS}.enable-in-reasoning", "-so.enable-in-reasoning"):
            return value.lower() in ("true", "1", "") or value.startswith("-")
        if name in (_SETTINGS, "-so"):
            try:
                settings = json.loads(value)
            except ValueError:
                continue
            if isinstance(settings, dict) and settings.get("enable_in_reasoning") is True:
                return True
    return False


def finish_reason(
    request: Any,
    output: int,
    prompt: Sequence[int] | None,
    model_config: Any,
    ended: bool = False,
) -> str | None:
    """Tell whether an output was cut by a token limit; vLLM does not tell its parsers.

    Args:
        request: the chat or Responses request.
        output: the number of tokens generated.
        prompt: the prompt's token ids, if known.
        model_config: vLLM's ModelConfig, if known.
        ended: the last token is one that ends an output; vLLM looks at that first.

    Returns:
        "length", or None for anything else.
    """
    limits = [getattr(request, name, None) for name in ("max_completion_tokens", "max_tokens", "max_output_tokens")]
    limits.append(_server_limit(model_config))
    context = getattr(model_config, "max_model_len", None)
    if context is not None and prompt is not None:
        limits.append(context - len(prompt))
    known = [limit for limit in limits if isinstance(limit, int)]
    return "length" if known and output >= min(known) and not ended else None


_server_limits: dict[int, tuple[Any, Any]] = {}


def _server_limit(model_config: Any) -> Any:
    """Give the limit of the model's generation config or the server's override of it, read once a config."""
    found = _server_limits.get(id(model_config))
    if found is None:
        try:
            limit = model_config.get_diff_sampling_param().get("max_tokens")
        except Exception:  # no such config in this vLLM, or none that can be read: then there is no such limit
            limit = None
        found = _server_limits[id(model_config)] = model_config, limit
    return found[1]


def stop_lag(request: Any) -> int:
    """Tell how many characters vLLM keeps back of a stream because a stop string may begin in them."""
    stop = getattr(request, "stop", None) or ()
    texts = (stop,) if isinstance(stop, str) else stop
    return max([len(text) for text in texts if isinstance(text, str)], default=1) - 1
