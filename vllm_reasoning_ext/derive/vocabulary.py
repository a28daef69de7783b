"""What a tokenizer adds to a template's markers: which are tokens, which are control tokens, what they are made of."""

from dataclasses import replace
from typing import Any

from vllm_reasoning_ext.core.record import Family


class Vocabulary:
    """The added tokens of a tokenizer.

    Args:
        tokenizer: a transformers or tokenizers tokenizer, or None.
    """

    def __init__(self, tokenizer: Any) -> None:
        named = getattr(tokenizer, "special_tokens_map", None) or {}
        self.named = {name: str(value) for name, value in named.items() if name.endswith("_token") and value}
        decoder = getattr(tokenizer, "added_tokens_decoder", None)
        if decoder is None and hasattr(tokenizer, "get_added_tokens_decoder"):
            decoder = tokenizer.get_added_tokens_decoder()
        tokens = list((decoder or {}).values())
        self.added = tuple(str(getattr(token, "content", token)) for token in tokens)
        self.control = frozenset(str(token.content) for token in tokens if getattr(token, "special", False))

    def fitted(self, record: Family) -> Family:
        """Say in a record which markers are control tokens, and of which tokens a marker is made."""
        if not self.added:
            return record
        boundaries = {marker for pair in record.pairs for marker in pair}
        parts = {marker: self._pieces(marker) for marker in record.markers if marker not in self.added}
        return replace(
            record,
            control_markers=boundaries <= self.control,
            parts=tuple((marker, pieces) for marker, pieces in parts.items() if pieces),
        )

    def missing(self, record: Family) -> list[str]:
        """List the boundaries of which no piece is a token."""
        if not self.added:
            return []
        return [m for m in record.boundaries if m not in self.added and not self._pieces(m)]

    def _pieces(self, marker: str) -> tuple[str, ...]:
        found: list[str] = []
        at = 0
        while at < len(marker):
            longest = max(
                (token for token in self.added if token and marker.startswith(token, at)), key=len, default=""
            )
            if longest.strip():
                found.append(longest)
            at += len(longest) or 1
        return tuple(dict.fromkeys(found))
