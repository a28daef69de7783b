"""The run of blanks that may still be dropped (SPEC 5.1, law 3)."""

from vllm_reasoning_ext.core.limits import BLANK_HOLD_MAX


class BlankRun:
    """Keeps a run of blanks back until it is known whether it is text.

    A run that grows over `BLANK_HOLD_MAX` characters is text, whole; what still comes of it then is text too.

    Attributes:
        held: the blanks kept back.
        over: the run is text: it has grown too long to be dropped, or something else stands in it.
    """

    __slots__ = ("held", "over")

    def __init__(self) -> None:
        self.held = ""
        self.over = False

    def add(self, blank: str) -> str:
        """Take further blanks.

        Returns:
            those that are text by now; "" while the run may be dropped.
        """
        if self.over:
            return blank
        self.held += blank
        if len(self.held) <= BLANK_HOLD_MAX:
            return ""
        self.over = True
        run, self.held = self.held, ""
        return run

    def take(self) -> str:
        """End the run; give what is kept back of it."""
        run, self.held, self.over = self.held, "", False
        return run

    def open(self, text: str) -> str:
        """Take text that is not blank: nothing of the run is dropped any more, until `take` ends it.

        Returns:
            what was kept back, and the text.
        """
        text, self.held, self.over = self.held + text, "", True
        return text

    def split(self) -> tuple[str, str]:
        """End the run before the first visible character of a block or an answer.

        Returns:
            the lines that are dropped, with their last newline, and the indentation that stays.
        """
        run = self.take()
        cut = run.rfind("\n") + 1
        return run[:cut], run[cut:]
