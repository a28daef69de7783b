"""What `auto` takes for the tokenizer that a process serves with: decided once, the same in every process."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from vllm_reasoning_ext.core.record import NO_REASONING, Family
from vllm_reasoning_ext.derive.choice import Choice, choose

_chosen: "WeakKeyDictionary[Any, dict[str | None, Choice]]" = WeakKeyDictionary()


def choice_for(tokenizer: Any, chat_template: str | None = None) -> Choice:
    """Choose the family of a model from what serves it; the same tokenizer and template again cost a look-up.

    Args:
        tokenizer: the model's; its own template, vocabulary, and the directory that it was loaded from count.
        chat_template: the template that prompts are rendered with, where it is another than the tokenizer's.

    Raises:
        SetupError: the template cannot be rendered, or nothing decides between several families.
    """
    try:
        known = _chosen.setdefault(tokenizer, {})
    except TypeError:  # None, or one that cannot be hashed or weakly referenced: decided anew
        known = {}
    choice = known.get(chat_template)
    if choice is None:
        template = chat_template or template_of(tokenizer)
        place = str(getattr(tokenizer, "name_or_path", "") or "")
        choice = known[chat_template] = choose(template, tokenizer, _config(place), place or None)
    return choice


def family_for(tokenizer: Any, chat_template: str | None = None) -> Family:
    """Choose the record for `auto` (`core.families.Chooser`); `NO_REASONING` where the model shows none."""
    return choice_for(tokenizer, chat_template).family or NO_REASONING


def template_of(tokenizer: Any) -> str | None:
    """Give a tokenizer's chat template; of several named ones the default, None where it has none."""
    template = getattr(tokenizer, "chat_template", None)
    if isinstance(template, Mapping):
        template = template.get("default") or next(iter(template.values()), None)
    return template if isinstance(template, str) and template else None


def _config(place: str) -> Mapping[str, Any] | None:
    try:
        config = json.loads((Path(place) / "config.json").read_text(encoding="utf-8")) if place else None
    except (OSError, ValueError):
        return None
    return config if isinstance(config, dict) else None
