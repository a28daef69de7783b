"""The settings of the middleware and the proxy, read from `THINK_EXTRACT_*` (names of seed 000)."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext.core.families import names
from vllm_reasoning_ext.core.grammar.inline import UNCLOSED, WHERE
from vllm_reasoning_ext.core.grammar.tags import parse_tags
from vllm_reasoning_ext.errors import SetupError
from vllm_reasoning_ext.serve.proxy.limits import Limits, limit_variable
from vllm_reasoning_ext.wire.translation import (
    INLINE,
    MESSAGES_POLICIES,
    REASONING_FIELDS,
    RESPONSES_EVENTS,
    SIGNATURES,
    Translation,
)

PREFIX: Final = "THINK_EXTRACT_"

_LIMITS: Final = frozenset(limit_variable(bound.name) for bound in fields(Limits))  # the proxy's own
_TRUE: Final = ("true", "1", "yes", "on")
_FALSE: Final = ("false", "0", "no", "off")


@dataclass(frozen=True, slots=True)
class Settings:
    """What is translated, and how.

    Attributes:
        enabled: False turns every surface off, whatever else is set.
        chat_enabled: chat completions are translated.
        responses_enabled: Responses are translated.
        translation: how; its `messages_policy` turns Anthropic messages on.
    """

    enabled: bool = True
    chat_enabled: bool = True
    responses_enabled: bool = True
    translation: Translation = field(default_factory=Translation)

    def translates(self, surface: str) -> bool:
        """Tell whether a surface ("chat", "messages", "responses") is translated."""
        if not self.enabled:
            return False
        if surface == "messages":
            return self.translation.messages_policy != "off"
        return self.chat_enabled if surface == "chat" else self.responses_enabled

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> "Settings":
        """Read the settings from the environment; an empty variable counts as unset.

        Raises:
            SetupError: a variable has a wrong value, or starts with the prefix and is none of ours.
        """
        env = os.environ if environ is None else environ
        known = {variable.name: variable for variable in VARIABLES}
        values: dict[str, Any] = {}
        for name, text in env.items():
            if not name.startswith(PREFIX) or name in _LIMITS:
                continue
            variable = known.get(name)
            if variable is None:
                near = get_close_matches(name, [*known, *_LIMITS], n=1)
                raise SetupError(
                    f"{name} is no setting",
                    "the environment",
                    f"unset it{f', or did you mean {near[0]}?' if near else ''}; known are: {', '.join(known)}",
                )
            if text.strip():
                values[variable.field] = variable.read(name, text.strip())
        own = {key: values.pop(key) for key in ("enabled", "chat_enabled", "responses_enabled") if key in values}
        return cls(**own, translation=replace(Translation(), **values))


class Variable(NamedTuple):
    """One environment variable.

    Attributes:
        name: the variable.
        field: the attribute of `Settings` or `Translation` that it sets.
        read: reads its value; raises SetupError.
        default: its default, as one would write it.
        meaning: one line for the documentation.
    """

    name: str
    field: str
    read: Callable[[str, str], Any]
    default: str
    meaning: str


def _flag(name: str, text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise SetupError(
        f"{name}={text!r} is neither true nor false", "the environment", f"set {name}=true or {name}=false"
    )


def _one_of(allowed: Sequence[str]) -> Callable[[str, str], str]:
    def read(name: str, text: str) -> str:
        if text in allowed:
            return text
        remedy = f"set {name} to one of: {', '.join(allowed)} (written just so)"
        raise SetupError(f"{name}={text!r} is unknown", "the environment", remedy)

    return read


def _family(name: str, text: str) -> str:
    return _one_of([INLINE, *names()])(name, text)


def _bytes(name: str, text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    remedy = f"set {name} to a whole number of 1 or more, or unset it for 65536"
    raise SetupError(f"{name}={text!r} is no number of bytes", "the environment", remedy)


def _pairs(name: str, text: str) -> tuple[tuple[str, str], ...]:
    try:
        return parse_tags(text, strict=True)
    except ValueError as error:
        remedy = f"set {name}='<think>...</think>,<thought>...</thought>', or unset it for the nine default pairs"
        raise SetupError(str(error), f"the environment, {name}", remedy) from None


VARIABLES: Final = (
    Variable(PREFIX + "ENABLED", "enabled", _flag, "true", "false turns everything off, whatever else is set"),
    Variable(PREFIX + "CHAT_ENABLED", "chat_enabled", _flag, "true", "translate chat completions"),
    Variable(PREFIX + "RESPONSES_ENABLED", "responses_enabled", _flag, "true", "translate OpenAI Responses"),
    Variable(
        PREFIX + "MESSAGES_POLICY",
        "messages_policy",
        _one_of(MESSAGES_POLICIES),
        "off",
        "Anthropic messages: off (tags stay), drop, unsigned (a thinking block) or redacted",
    ),
    Variable(
        PREFIX + "SIGNATURE",
        "signature",
        _one_of(SIGNATURES),
        "omit",
        "an unsigned thinking block has no `signature` (omit) or an empty one (empty)",
    ),
    Variable(
        PREFIX + "REASONING_FIELD",
        "reasoning_field",
        _one_of(REASONING_FIELDS),
        "reasoning_content",
        "the chat field that gets the reasoning: reasoning_content, reasoning or both",
    ),
    Variable(
        PREFIX + "RESPONSES_EVENTS",
        "responses_events",
        _one_of(RESPONSES_EVENTS),
        "full",
        "full: the whole life of a reasoning item; seed: added, deltas and done only, one item per message",
    ),
    Variable(PREFIX + "TAG_PAIRS", "tags", _pairs, "nine pairs", "tags, as `open...close,open...close`"),
    Variable(
        PREFIX + "WHERE",
        "where",
        _one_of(WHERE),
        "prose",
        "prose: not in a code fence, not after a backtick; anywhere; head: before the answer only",
    ),
    Variable(
        PREFIX + "UNCLOSED",
        "unclosed",
        _one_of(UNCLOSED),
        "content",
        "content: a block waits for its closer and is passed on verbatim without one; reasoning: it streams",
    ),
    Variable(
        PREFIX + "MAX_BUFFER_BYTES",
        "max_buffer_bytes",
        _bytes,
        "65536",
        "UTF-8 bytes a waiting block may have; over it, it is passed on verbatim, with all that follows",
    ),
    Variable(PREFIX + "FAMILY", "family", _family, "inline", "inline, or the grammar of one model family"),
    Variable(
        PREFIX + "IMPLICIT_OPEN",
        "implicit_open",
        _flag,
        "false",
        "the chat template has opened the block already: the reply starts inside it",
    ),
)
"""Every variable, in the order the documentation lists them."""
