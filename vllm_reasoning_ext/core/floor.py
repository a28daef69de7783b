"""The floor: a reply that has only reasoning is not left empty (SPEC section 6)."""

from collections.abc import Sequence
from typing import Literal

from vllm_reasoning_ext.core.events import CONTENT, REASONING, TOOL, Event

FloorPolicy = Literal["off", "promote"]
"""Whether the floor is there."""


class Floor:
    """Watches one output and gives its reasoning as content too where nothing else was said."""

    __slots__ = ("_answered", "_reasoning")

    def __init__(self) -> None:
        self._answered = False  # a visible character of content, or a tool call
        self._reasoning: list[str] = []

    def note(self, events: Sequence[Event]) -> None:
        if self._answered:
            return
        for event in events:
            if event.kind is REASONING:
                self._reasoning.append(event.text)
            elif event.kind is TOOL or (event.kind is CONTENT and not event.text.isspace()):
                self._answered = True
                self._reasoning.clear()
                return

    def promote(self, reason: str | None) -> Event | None:
        """Decide at the end of the output.

        Args:
            reason: the finish reason; a reply cut by "length" is not finished, so nothing is promoted.

        Returns:
            the synthetic content event, or None.
        """
        text = "".join(self._reasoning).strip()
        if self._answered or reason == "length" or not text:
            return None
        return Event(CONTENT, text, synthetic=True)
