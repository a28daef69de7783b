"""A text that closes the answer if nothing but blanks and a call, or the end, follows it (SPEC 5.5)."""

from collections.abc import Mapping
from enum import Enum

from vllm_reasoning_ext.core.grammar.call_hold import Token
from vllm_reasoning_ext.core.grammar.calls import Verdict, match_call
from vllm_reasoning_ext.core.limits import BLANK_HOLD_MAX, TOOL_HOLD_MAX
from vllm_reasoning_ext.core.record import Tool


class Tail(Enum):
    WAIT = "hold on"
    CLOSES = "it closes the answer"
    TEXT = "it is text"


class AnswerTail:
    """Holds the answer's closer, as it seems, and what follows it.

    Args:
        closer: the marker.
        tools: the tool markers that are looked for.

    Attributes:
        closer: as given.
        rest: what has followed it.
    """

    __slots__ = ("_after", "_blanks", "_tool", "_tools", "closer", "rest")

    def __init__(self, closer: Token, tools: Mapping[str, Tool]) -> None:
        self.closer = closer
        self.rest: list[Token] = []
        self._tools = tools
        self._tool: Tool | None = None  # of the call that seems to follow
        self._blanks = 0
        self._after = ""

    @property
    def size(self) -> int:
        """How many characters are held."""
        return len(self.closer.text) + sum([len(token.text) for token in self.rest])

    def text(self, text: str) -> Tail:
        """Take text, which is kept in `rest` whatever it decides."""
        self.rest.append(Token("", text, False))
        if self._tool is not None:
            return self._check(text)
        self._blanks += len(text)
        return Tail.WAIT if self._blanks <= BLANK_HOLD_MAX and text.isspace() else Tail.TEXT

    def marker(self, marker: str, text: str, real: bool) -> Tail:
        """Take a marker, which is kept in `rest` whatever it decides."""
        self.rest.append(Token(marker, text, real))
        if self._tool is not None:
            return self._check(text)
        self._tool = self._tools.get(marker)
        return Tail.TEXT if self._tool is None else Tail.WAIT

    def _check(self, text: str) -> Tail:
        assert self._tool is not None
        self._after = (self._after + text[:TOOL_HOLD_MAX])[:TOOL_HOLD_MAX]
        verdict = match_call(self._tool, self._after).verdict
        if verdict is Verdict.YES:
            return Tail.CLOSES
        return Tail.TEXT if verdict is Verdict.NO or len(self._after) >= TOOL_HOLD_MAX else Tail.WAIT
