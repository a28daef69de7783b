"""The state an output starts in (SPEC section 4)."""

from dataclasses import dataclass
from typing import Literal

StartKind = Literal["reasoning", "content", "undecided", "header"]


@dataclass(frozen=True, slots=True)
class StartState:
    """Where the model's first character stands.

    Attributes:
        kind: "reasoning" (a block is open), "content" (it was closed, or none is wanted), "undecided" (the model
            opens the block itself, or answers) or "header" (inside an unfinished channel header).
        answer_begun: the prompt already holds the answer's beginning: nothing counts or is trimmed any more.
        header: the unfinished header, or the open body's header, as the prompt has it (gemma4: the label).
        recipient: whom the open body is addressed to; a tool's name where the prompt ends inside a call.
        body_begun: the open block or body already has text in the prompt.
        opener: the opener that the prompt wrote, of the block or of the answer; "" where none was seen.
        thinking_off: the prompt says that no thought is wanted; the model may open a block all the same, but an
            engine's grammar binds from the first token.
        reason: why, in words, for people.
    """

    kind: StartKind
    answer_begun: bool = False
    header: str = ""
    recipient: str | None = None
    body_begun: bool = False
    opener: str = ""
    thinking_off: bool = False
    reason: str = ""

    @property
    def ended(self) -> bool:
        """True where an engine's gate finds reasoning ended before the first token (SPEC section 4)."""
        return self.kind == "content" or self.thinking_off
