"""The settings of the middleware and the proxy, read from `THINK_EXTRACT_*` (names of seed 000)."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext.core.families import AUTO, FAMILIES, Family, names
from vllm_reasoning_ext.core.grammar.tags import parse_tags
from vllm_reasoning_ext.core.record import NO_REASONING
from vllm_reasoning_ext.derive.choice import choose
from vllm_reasoning_ext.errors import SetupError
from vllm_reasoning_ext.serve.proxy.limits import Limits, limit_variable
from vllm_reasoning_ext.wire.translation import CHOICES, INLINE, Translation

AUTO_AT: Final = f"{AUTO[0]}:"
_log = logging.getLogger(__name__)

PREFIX: Final = "THINK_EXTRACT_"

_LIMITS: Final = frozenset(limit_variable(bound.name) for bound in fields(Limits))  # the proxy's own
_OWN: Final = ("enabled", "chat_enabled", "responses_enabled")  # of `Settings`; the others are of `Translation`
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

    Raises:
        ValueError: a switch is neither True nor False.
    """

    enabled: bool = True
    chat_enabled: bool = True
    responses_enabled: bool = True
    translation: Translation = field(default_factory=Translation)

    def __post_init__(self) -> None:
        for name in _OWN:
            if type(getattr(self, name)) is not bool:
                raise ValueError(f"{name}={getattr(self, name)!r} is neither True nor False")

    def translates(self, surface: str) -> bool:
        """Tell whether a surface ("chat", "messages", "responses") is translated."""
        if not self.enabled:
            return False
        if surface == "messages":
            return self.translation.messages_policy != "off"
        return self.chat_enabled if surface == "chat" else self.responses_enabled

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, options: Mapping[str, str] | None = None) -> "Settings":
        """Read the settings: an option before its environment variable, that before the default.

        Args:
            environ: the environment; None is the process's. An empty variable counts as unset.
            options: texts of command-line options by the names that `Variable.option` gives.

        Raises:
            SetupError: a value is wrong, or a variable starts with the prefix and is not known.
        """
        env = os.environ if environ is None else environ
        options = options or {}
        _check_names(env)
        values: dict[str, Any] = {}
        for variable in VARIABLES:
            if variable.option in options:
                text = options[variable.option]
                values[variable.field] = variable.read(variable.option, text.strip(), "the command line")
            elif env.get(variable.name, "").strip():
                values[variable.field] = variable.read(variable.name, env[variable.name].strip(), "the environment")
        own = {key: values.pop(key) for key in _OWN if key in values}
        return cls(**own, translation=replace(Translation(), **values))


def _check_names(env: Mapping[str, str]) -> None:
    known = [variable.name for variable in VARIABLES]
    for name in env:
        if name.startswith(PREFIX) and name not in _LIMITS and name not in known:
            near = get_close_matches(name, [*known, *_LIMITS], n=1)
            raise SetupError(
                f"{name} is no setting",
                "the environment",
                f"unset it{f', or did you mean {near[0]}?' if near else ''}; known are: {', '.join(known)}",
            )


Reader = Callable[[str, str, str], Any]
"""Reads a value: the name of the setting, its text, and where it was found, for the error."""


class Variable(NamedTuple):
    """One setting: an environment variable, and an option of the command `proxy`.

    Attributes:
        name: the variable.
        field: the attribute of `Settings` or `Translation` that it sets.
        read: reads its value; raises SetupError.
        default: its default, as one would write it.
        meaning: one line for the documentation.
    """

    name: str
    field: str
    read: Reader
    default: str
    meaning: str

    @property
    def option(self) -> str:
        """The command-line option, `--max-buffer-bytes` for `THINK_EXTRACT_MAX_BUFFER_BYTES`."""
        return "--" + self.name.removeprefix(PREFIX).lower().replace("_", "-")


def _flag(name: str, text: str, found: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise SetupError(f"{name}={text!r} is neither true nor false", found, f"set {name}=true or {name}=false")


def _one_of(allowed: Sequence[str]) -> Reader:
    def read(name: str, text: str, found: str) -> str:
        if text in allowed:
            return text
        remedy = f"set {name} to one of: {', '.join(allowed)} (written just so)"
        raise SetupError(f"{name}={text!r} is unknown", found, remedy)

    return read


def _auto(name: str, text: str, found: str) -> Family:
    """Read `auto:PATH`: the family that a chat template shows; decided here, once, for no prompt passes by."""
    place = Path(text.partition(":")[2])
    if not text.startswith(AUTO_AT) or not place.name:
        remedy = f"set {name}={AUTO_AT}chat_template.jinja (or a model's directory), or name a family"
        raise SetupError(f"{name}={text!r}: auto reads the family from a chat template", found, remedy)
    file = place / "chat_template.jinja" if place.is_dir() else place
    try:
        template = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{name}={text!r}: {error}", found, "give a chat template's file") from error
    choice = choose(template)
    for warning in choice.warnings:
        _log.warning("%s: %s", name, warning)
    return choice.family or NO_REASONING


def _family(name: str, text: str, found: str) -> str | Family:
    if text.startswith(AUTO[0]):
        return _auto(name, text, found)
    # Every alias will do; the remedy lists each family once.
    read = _one_of([INLINE, *FAMILIES])
    return text if text in names() else str(read(name, text, found))


def _bytes(name: str, text: str, found: str) -> int:
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    remedy = f"set {name} to a whole number of 1 or more, or leave it out for 65536"
    raise SetupError(f"{name}={text!r} is no number of bytes", found, remedy)


def _pairs(name: str, text: str, found: str) -> tuple[tuple[str, str], ...]:
    try:
        return parse_tags(text, strict=True)
    except ValueError as error:
        remedy = f"set {name}='<think>...</think>,<thought>...</thought>', or leave it out for the nine default pairs"
        raise SetupError(str(error), f"{found}, {name}", remedy) from None


VARIABLES: Final = (
    Variable(PREFIX + "ENABLED", "enabled", _flag, "true", "false turns everything off, whatever else is set"),
    Variable(PREFIX + "CHAT_ENABLED", "chat_enabled", _flag, "true", "translate chat completions"),
    Variable(PREFIX + "RESPONSES_ENABLED", "responses_enabled", _flag, "true", "translate OpenAI Responses"),
    Variable(
        PREFIX + "MESSAGES_POLICY",
        "messages_policy",
        _one_of(CHOICES["messages_policy"]),
        "off",
        "Anthropic messages: off (tags stay), drop, unsigned (a thinking block) or redacted",
    ),
    Variable(
        PREFIX + "SIGNATURE",
        "signature",
        _one_of(CHOICES["signature"]),
        "omit",
        "an unsigned thinking block has no `signature` (omit) or an empty one (empty)",
    ),
    Variable(
        PREFIX + "REASONING_FIELD",
        "reasoning_field",
        _one_of(CHOICES["reasoning_field"]),
        "reasoning_content",
        "the chat field that gets the reasoning: reasoning_content, reasoning or both",
    ),
    Variable(
        PREFIX + "RESPONSES_EVENTS",
        "responses_events",
        _one_of(CHOICES["responses_events"]),
        "full",
        "full: the whole life of a reasoning item; seed: added, deltas and done only, one item per message",
    ),
    Variable(PREFIX + "TAG_PAIRS", "tags", _pairs, "nine pairs", "tags, as `open...close,open...close`"),
    Variable(
        PREFIX + "WHERE",
        "where",
        _one_of(CHOICES["where"]),
        "prose",
        "prose: not in a code fence, not after a backtick; anywhere; head: before the answer only",
    ),
    Variable(
        PREFIX + "UNCLOSED",
        "unclosed",
        _one_of(CHOICES["unclosed"]),
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
    Variable(
        PREFIX + "FAMILY",
        "family",
        _family,
        "inline",
        "inline, a model family, or auto:FILE, what a chat template (or a model's directory) shows",
    ),
    Variable(
        PREFIX + "IMPLICIT_OPEN",
        "implicit_open",
        _flag,
        "false",
        "the chat template has opened the block already: the reply starts inside it",
    ),
)
"""Every variable, in the order the documentation lists them."""
