"""A tokenizer's `response_template` (transformers): it names the markers itself, so nothing need be guessed."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from vllm_reasoning_ext.derive.deduce import Deduced


class Named(NamedTuple):
    """The markers that a `response_template` names; "" or () where it names none.

    Attributes:
        opener, closer: around the thought.
        answer: around the answer; () where its opener is not named.
    """

    opener: str
    closer: str
    answer: tuple[str, str] | tuple[()]

    def outrank(self, found: Deduced) -> None:
        """Put the named markers in the place of those that renderings showed; say where they differ."""
        for field, named in (("opener", self.opener), ("closer", self.closer)):
            shown = getattr(found, field)
            if not named:
                continue
            if shown and shown != named:
                found.warnings.append(
                    f"the tokenizer's response_template names the {field} {named!r}, the template renders {shown!r}"
                )
            setattr(found, field, named)
            found.prove(field, named, "the tokenizer's response_template")


def named_markers(tokenizer: Any) -> Named | None:
    """Read the markers from a tokenizer's `response_template`; None where it has none, or none with a thought."""
    template = getattr(tokenizer, "response_template", None)
    fields = template.get("fields") if isinstance(template, Mapping) else None
    if not isinstance(fields, Mapping):
        return None
    thinking, content = fields.get("thinking"), fields.get("content")
    if not isinstance(thinking, Mapping):
        return None
    answer = (_literal(content, "open"), _literal(content, "close")) if isinstance(content, Mapping) else ("", "")
    return Named(_literal(thinking, "open"), _literal(thinking, "close"), answer if answer[0] else ())


def _literal(field: Mapping[str, Any], side: str) -> str:
    """Read a literal anchor; of several the first. A pattern names no text."""
    value = field.get(side)
    if isinstance(value, list | tuple):
        value = value[0] if value else ""
    return value.strip() if isinstance(value, str) else ""
