"""Calls that are known to be calls: one that is handed on as a slice, one that stands in an answer."""

import sys
from collections.abc import Collection

from vllm_reasoning_ext.core.grammar.call_hold import ClosingTag, fixed_closers
from vllm_reasoning_ext.core.grammar.calls import Verdict, match_call
from vllm_reasoning_ext.core.limits import TOOL_HOLD_MAX
from vllm_reasoning_ext.core.record import Tool


class OpenCall:
    """A call that is being handed on: finds its closing tag, as soon as its beginning tells what that is.

    Args:
        tool: whose call it is.
        tag: its closing tag; None where its beginning is still to come.
    """

    __slots__ = ("_after", "_tag", "tool")

    def __init__(self, tool: Tool, tag: ClosingTag | None = None) -> None:
        self.tool = tool
        self._tag = tag
        self._after = ""

    @property
    def closers(self) -> tuple[str, ...]:
        """The closing tags, as far as they are known."""
        return self._tag.closers if self._tag is not None else ()

    @property
    def plain(self) -> bool:
        """True while text in which no marker begins can only be the call's: nothing is looked for in it."""
        return self._tag is not None and not self._tag.begun

    def text(self, text: str) -> int:
        """Take text; return how many of its characters end the call, 0 while none does."""
        used = self._tag.text(text) if self._tag is not None else 0
        if not used:
            self._look(text)
        return used

    def marker(self, marker: str, text: str) -> bool:
        """Take a marker; True when it ends the call."""
        self._look(text)
        return self._tag is not None and self._tag.marker(marker, text)

    def _look(self, text: str) -> None:
        if self._tag is not None:
            return
        self._after = (self._after + text[:TOOL_HOLD_MAX])[:TOOL_HOLD_MAX]
        match = match_call(self.tool, self._after)
        if match.verdict is not Verdict.MAYBE or len(self._after) >= TOOL_HOLD_MAX:
            self._tag = ClosingTag(match.closers or fixed_closers(self.tool))


class AnswerCall:
    """A tool marker in the answer of a family whose markers are control tokens: in a call nothing counts (SPEC 5.1).

    Args:
        tool: whose call it may be.
        real: a token id vouches for the marker; without, a call may have `TOOL_HOLD_MAX` characters.

    Attributes:
        over: the call has ended, or is none.
    """

    __slots__ = ("_after", "_left", "_tag", "_tool", "over")

    def __init__(self, tool: Tool, real: bool) -> None:
        self._tool = tool
        self._left = sys.maxsize if real else TOOL_HOLD_MAX
        self._after = ""
        self._tag: ClosingTag | None = None  # None while it is not known whether it is a call
        self.over = False

    def text(self, text: str) -> int:
        """Take text; return how many of its characters belong to the call."""
        self._left -= len(text)
        if self._tag is None:
            self._check(text)
            return len(text)
        used = self._tag.text(text)
        self.over = used > 0
        return used or len(text)

    def marker(self, marker: str, text: str, ends: Collection[str]) -> bool:
        """Take a marker; False when it does not belong to the call, which is over then.

        Args:
            marker, text: the marker.
            ends: what ends a call that has no closing tag.
        """
        outside = self._left <= 0 or (self._tag is not None and not self._tool.closers and marker in ends)
        tag = self._tag
        if not outside and tag is None:
            self._check(text)
            outside = self.over
        if outside:
            self.over = True
            return False
        self._left -= len(text)
        self.over = tag is not None and tag.marker(marker, text)
        return True

    def _check(self, text: str) -> None:
        self._after = (self._after + text[:TOOL_HOLD_MAX])[:TOOL_HOLD_MAX]
        match = match_call(self._tool, self._after)
        if match.verdict is Verdict.YES:
            self._tag = ClosingTag(match.closers)
        elif match.verdict is Verdict.NO or len(self._after) >= TOOL_HOLD_MAX:
            self.over = True
