"""From the reasoning detector to the tool parser: the events behind the text that SGLang passes on.

SGLang hands its tool parser the content as text only, so where a call begins and ends would have to be guessed
again. A context variable carries the events of the same text: the detector and the tool parser of one choice run
one right after the other in one task.
"""

from collections import deque
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Final

from vllm_reasoning_ext.core.events import CONTENT, TOOL, Event
from vllm_reasoning_ext.core.families import Family


class Handoff:
    """The content events of one output, on their way from its detector to its tool parser.

    Attributes:
        family: whose output it is.
    """

    __slots__ = ("_given", "family")

    def __init__(self, family: Family) -> None:
        self.family = family
        self._given: deque[tuple[str, list[Event]]] = deque()

    def give(self, events: Sequence[Event]) -> str:
        """Take over what a detector found.

        Returns:
            the text that SGLang gets: answer and calls as the model wrote them, nothing added.
        """
        text = shown(events)
        found = [event for event in events if event.kind is CONTENT or event.kind is TOOL]
        if found:
            self._given.append((text, found))
        return text

    def take(self, text: str) -> list[Event]:
        """Give the events behind the next text that SGLang passes on; a text of other origin is an answer."""
        events: list[Event] = []
        while self._given and text.startswith(self._given[0][0]):
            given, found = self._given.popleft()
            events += found
            text = text[len(given) :]
        if text:
            events.append(Event(CONTENT, text))
        return events


def shown(events: Sequence[Event]) -> str:
    """Join the content as the model wrote it, without what the core adds to a call for parsers of frames."""
    kinds = (event for event in events if event.kind is CONTENT or (event.kind is TOOL and not event.synthetic))
    return "".join([event.text for event in kinds])


_current: Final[ContextVar[Handoff | None]] = ContextVar("vllm_reasoning_ext_sglang_handoff", default=None)


def current() -> Handoff | None:
    """Give the handoff of the detector that ran last in this task; None when no tool parser follows it."""
    return _current.get()


def set_current(handoff: Handoff | None) -> None:
    """Make this the handoff of this task."""
    _current.set(handoff)
