"""A tool marker inside an open block: what follows it is held until it is a call, a quotation or a draft (SPEC 5.1).

Theory of operation. `Phase` names what is known of the held text, `Decision` what the grammar has to do with it.

    CHECK   the text may become a call          -> OPEN (viable), REJECT (cannot be one), QUOTE is REJECT: a closer came
    OPEN    it is a call's beginning             -> DONE (its closing tag), FORCED (a closer stands in it)
    DONE    a whole call, only blanks since      -> CALL (tool marker, closer, end), REJECT (anything else: a draft)
    FORCED  a closer stood in the call           -> KEPT (its closing tag came soon), QUOTE (a second call, too long)
    KEPT    a whole call with a closer in it     -> CALL, or QUOTE (anything else)

CHECK, OPEN and DONE are bounded by `TOOL_HOLD_MAX` characters after the marker: then it is a call.
"""

from collections.abc import Collection
from enum import Enum, auto
from typing import Final, NamedTuple

from vllm_reasoning_ext.core.grammar.calls import Verdict, match_call
from vllm_reasoning_ext.core.limits import BLANK_HOLD_MAX, TOOL_HOLD_MAX
from vllm_reasoning_ext.core.record import Tool, tag_prefix


class Token(NamedTuple):
    """A run of text (marker "") or a marker, as the lexer gave it."""

    marker: str
    text: str
    real: bool


class Phase(Enum):
    CHECK = auto()
    OPEN = auto()
    DONE = auto()
    FORCED = auto()
    KEPT = auto()


class Decision(Enum):
    WAIT = "hold on"
    REJECT = "no call: the marker is reasoning, and what followed it is read once more"
    QUOTE = "quoted: all before the first closer is reasoning, and the closer closes"
    CALL = "a call"


_SECOND_OPENING: Final = 40
"""Characters after a tool marker that are compared with how the call began."""


class ClosingTag:
    """Recognises a call's closing tag, which may arrive as a marker, or as its fixed beginning and a name.

    Args:
        closers: the whole tags; none for a call that has none.

    Attributes:
        closers: as given.
        begun: the beginning of a tag whose name is still to come.
    """

    __slots__ = ("begun", "closers")

    def __init__(self, closers: tuple[str, ...]) -> None:
        self.closers = closers
        self.begun = ""

    def marker(self, marker: str, text: str) -> bool:
        """Take a marker; True when it is the closing tag."""
        self.begun = ""
        if marker in self.closers:
            return True
        if any(closer.startswith(marker) for closer in self.closers):
            self.begun = text
        return False

    def text(self, text: str) -> int:
        """Take text; return how many of its characters end the tag, 0 while none does."""
        if not self.begun:
            return 0
        tag = self.begun + text[: max(map(len, self.closers))]
        for closer in self.closers:
            if tag.startswith(closer):
                used = len(closer) - len(self.begun)
                self.begun = ""
                return used
        self.begun = tag if any(closer.startswith(tag) for closer in self.closers) else ""
        return 0


class CallHold:
    """What has come since a tool marker inside a block.

    Args:
        tool: whose call it may be.
        text: the tool marker's text.
        closers: the markers that close the block.
        openings: every tool marker of the family.
        heads: control tokens that begin a message or the answer: a whole call before one counts.

    Attributes:
        tool, text: as given.
        tokens: what has come after the marker.
        phase: what is known of it.
        tag: recognises the call's closing tag.
        end: how many of the tokens belong to a whole call.
        closer_at: which token is the first closer, once one has come.
    """

    __slots__ = (
        "_after",
        "_blanks",
        "_closers",
        "_heads",
        "_openings",
        "_since",
        "closer_at",
        "end",
        "phase",
        "tag",
        "text",
        "tokens",
        "tool",
    )

    def __init__(
        self, tool: Tool, text: str, closers: Collection[str], openings: Collection[str], heads: Collection[str] = ()
    ) -> None:
        self.tool = tool
        self.text = text
        self.tokens: list[Token] = []
        self.phase = Phase.CHECK
        self.tag = ClosingTag(fixed_closers(tool))
        self.end = 0
        self.closer_at = 0
        self._closers = closers
        self._openings = openings
        self._heads = heads
        self._after = ""  # the beginning of what has come, as text
        self._since = 0  # characters since the first closer
        self._blanks = 0  # characters since the closing tag

    @property
    def size(self) -> int:
        """How many characters are held."""
        return len(self.text) + sum([len(token.text) for token in self.tokens])

    @property
    def whole(self) -> bool:
        """True when the call's closing tag has come, or what ends a call without one."""
        return self.phase in (Phase.DONE, Phase.KEPT)

    def take_text(self, text: str) -> tuple[Decision, str]:
        """Take a run of text.

        Returns:
            the decision, and the text that was not taken: it is to be read again after the decision.
        """
        if self.whole:
            return self._take_trailing(text)
        used = self.tag.text(text) if self.phase is not Phase.CHECK else 0
        taken = text[:used] if used else text
        self._keep(Token("", taken, False))
        if used:
            self._close()
        elif self.phase is Phase.CHECK and self._check() is Verdict.NO:
            return Decision.REJECT, ""
        decision = self._bounded()
        rest = text[len(taken) :]
        if decision is Decision.WAIT and rest:
            return self.take_text(rest)
        return decision, rest

    def take_marker(self, marker: str, text: str, real: bool) -> tuple[Decision, bool]:
        """Take a marker.

        Returns:
            the decision, and whether the marker was taken; else it is to be read again after the decision.
        """
        if self.whole:
            follows = marker in self._openings or marker in self._closers or marker in self._heads
            return (Decision.CALL if follows else self._given_up()), False
        if marker in self._closers and not (self.phase is Phase.OPEN and marker in self.tag.closers):
            return self._take_closer(marker, text, real)
        if marker == self.tool.marker and self.phase is Phase.FORCED and not self._named():
            return Decision.QUOTE, False
        if marker in self._openings and self.phase is Phase.OPEN and not self.tag.closers:
            self._finish()
            return Decision.CALL, False
        closed = self.phase is not Phase.CHECK and self.tag.marker(marker, text)
        self._keep(Token(marker, text, real))
        if self.phase is Phase.CHECK:
            verdict = self._check()
            if verdict is Verdict.NO:
                return Decision.REJECT, True
            # The tag crosses the bound, which makes it a call: the tag ends it.
            closed = marker in self.tag.closers and (verdict is Verdict.YES or len(self._after) >= TOOL_HOLD_MAX)
        if closed:
            self._close()
        return self._bounded(), True

    def at_end(self) -> Decision:
        """Decide at the end of the output."""
        return Decision.QUOTE if self.phase is Phase.FORCED else Decision.CALL

    def _keep(self, token: Token) -> None:
        self.tokens.append(token)
        # Only the part that can decide is copied: the token itself may be a whole answer.
        self._after += token.text[: max(TOOL_HOLD_MAX - len(self._after), 0)]
        if self.phase is Phase.FORCED:
            self._since += len(token.text)

    def _check(self) -> Verdict:
        match = match_call(self.tool, self._after)
        if match.verdict is Verdict.YES:
            self.tag = ClosingTag(match.closers)
            self.phase = Phase.OPEN
        return match.verdict

    def _take_closer(self, marker: str, text: str, real: bool) -> tuple[Decision, bool]:
        if self.phase is Phase.CHECK:
            # Quoted: what came before it is reasoning, so nothing of it can be a call either.
            self.closer_at = len(self.tokens)
            self.tokens.append(Token(marker, text, real))
            return Decision.QUOTE, True
        if self.phase is Phase.OPEN and not self.tag.closers:
            self._finish()
            return Decision.CALL, False
        if self.phase is Phase.OPEN:
            self.phase = Phase.FORCED
            self.closer_at = len(self.tokens)
            self.tokens.append(Token(marker, text, real))
        else:
            self._keep(Token(marker, text, real))
        return self._bounded(), True

    def _take_trailing(self, text: str) -> tuple[Decision, str]:
        blank = len(text) - len(text.lstrip())
        if self.phase is Phase.KEPT:
            self._blanks += blank
            if blank < len(text) or self._blanks > BLANK_HOLD_MAX:
                return Decision.QUOTE, text
            self.tokens.append(Token("", text, False))
            return Decision.WAIT, ""
        if blank < len(text) and blank < TOOL_HOLD_MAX - len(self._after):
            return Decision.REJECT, text
        self._keep(Token("", text, False))
        return self._bounded(), ""

    def _close(self) -> None:
        """The closing tag has come."""
        self._finish()
        if self.phase is Phase.FORCED and self._since <= TOOL_HOLD_MAX and not self._second_opening():
            self.phase = Phase.KEPT
        elif self.phase is not Phase.FORCED:
            self.phase = Phase.DONE

    def _finish(self) -> None:
        self.end = len(self.tokens)
        if not self.tag.closers:
            self.phase = Phase.DONE

    def _bounded(self) -> Decision:
        """Decide what can be decided by what has come, and by how much."""
        if self.phase is Phase.FORCED:
            # A closing tag that came too late, or after a second opening, has left the phase as it was.
            return Decision.QUOTE if self._since > TOOL_HOLD_MAX or self.end else Decision.WAIT
        if self.phase is Phase.KEPT:
            return Decision.WAIT
        if self.phase is Phase.DONE and not self.tool.ends_thought:
            return Decision.CALL
        return Decision.CALL if len(self._after) >= TOOL_HOLD_MAX else Decision.WAIT

    def _given_up(self) -> Decision:
        return Decision.QUOTE if self.phase is Phase.KEPT else Decision.REJECT

    def _named(self) -> bool:
        """Tell whether the tool's marker also begins what stands inside a call, so that a name must tell them apart."""
        return any("{name}" in closer for closer in self.tool.closers)

    def _second_opening(self) -> bool:
        """Tell whether the same call is opened again before its closing tag (quoted calls are)."""
        began = self._after.lstrip(" ")[:_SECOND_OPENING].partition(">")[0].partition(" ")[0]
        for number, token in enumerate(self.tokens):
            if token.marker == self.tool.marker:
                if not self._named():
                    return True
                text = "".join([t.text for t in self.tokens[number + 1 :]])[:_SECOND_OPENING]
                if text.removeprefix(" ").startswith((f"{began}>", f"{began} ")):
                    return True
        return False


def fixed_closers(tool: Tool) -> tuple[str, ...]:
    """Give the closing tags of a tool that need no name of the call's beginning."""
    return tuple(closer for closer in tool.closers if tag_prefix(closer) == closer)
