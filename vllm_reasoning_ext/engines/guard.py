"""A splitter that cannot raise: an engine must finish every reply, whatever fault of this package turns up."""

import logging
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final, TypeVar, cast

from vllm_reasoning_ext.core.events import CONTENT, Delta, Event
from vllm_reasoning_ext.core.grammar.contract import Observer
from vllm_reasoning_ext.core.record import Family
from vllm_reasoning_ext.core.splitter import Splitter
from vllm_reasoning_ext.core.state import StartState
from vllm_reasoning_ext.engines.logs import vllm_log

TEXTS_MAX: Final = 64
"""Texts remembered before the list is cut to what is kept back; cutting it each time would cost more."""

_logged: set[str] = set()


Method = TypeVar("Method", bound=Callable[..., Any])


def never_raises(answer: object) -> Callable[[Method], Method]:
    """Keep a fault in a method from the engine that calls it; it is logged once, without model text.

    Args:
        answer: what is returned in place of a result.
    """

    def guarded(method: Method) -> Method:
        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return method(*args, **kwargs)
            except Exception as error:
                cause = _cause(error)
                if cause not in _logged:
                    _logged.add(cause)
                    vllm_log.error("reasoning parser: %s failed (%s); taken as %r.", method.__name__, cause, answer)
                return answer

        return cast("Method", call)

    return guarded


class GuardedSplitter:
    """A `Splitter` whose faults are logged once, after which the output goes on as content.

    Args:
        log: where a fault is reported (without model text).
        family: as for `Splitter`; `options` too.
    """

    __slots__ = ("_log", "_splitter", "_texts", "start")

    def __init__(self, log: logging.Logger, family: str | Family, **options: Any) -> None:
        self._log = log
        self.start: StartState = StartState("undecided")
        self._splitter: Splitter | None = None
        self._texts: list[str] = []  # the last ones fed, as far back as text may be kept back
        try:
            self._splitter = Splitter(family, **options)
            self.start = self._splitter.start
        except Exception as error:
            self._fault(error)

    @property
    def ended_by(self) -> str:
        """How the last thought ended: "closer", "tool", or "" when it has not."""
        return self._splitter.ended_by if self._splitter is not None else ""

    @property
    def floored(self) -> bool:
        """The floor gave the reasoning as content."""
        return self._splitter is not None and self._splitter.floored

    @property
    def held(self) -> int:
        """The characters kept back now."""
        return self._splitter.held if self._splitter is not None else 0

    @property
    def max_held(self) -> int:
        """The most characters kept back after a feed."""
        return self._splitter.max_held if self._splitter is not None else 0

    def observe(self, observer: Observer) -> None:
        """Tell somebody how each marker spelling is read."""
        if self._splitter is not None:
            self._splitter.observe(observer)

    def feed(self, text: str, token_ids: Sequence[int] | None = None) -> Delta:
        """Feed one delta; after a fault the text is content."""
        splitter = self._splitter
        if splitter is not None:
            texts = self._texts
            if len(texts) > TEXTS_MAX:
                texts[:] = ["".join(texts)[-splitter.unreleased :]] if splitter.unreleased else []
            try:
                delta = splitter.feed(text, token_ids)
            except Exception as error:
                return self._give_up(error, text)
            texts.append(text)
            return delta
        return Delta.of_content(text) if text else Delta()

    def finish(self, reason: str | None = None) -> Delta:
        """Release what is held."""
        if self._splitter is not None:
            try:
                return self._splitter.finish(reason=reason)
            except Exception as error:
                return self._give_up(error, "")
        return Delta()

    def _give_up(self, error: Exception, text: str) -> Delta:
        """Go on without the splitter: what it kept back before this call, and this text, are content as they are."""
        self._fault(error)
        broken, self._splitter = self._splitter, None
        waiting = broken.unreleased if broken is not None else 0
        kept, self._texts = "".join(self._texts)[-waiting:] if waiting else "", []
        return Delta((Event(CONTENT, kept + text),)) if kept or text else Delta()

    def _fault(self, error: Exception) -> None:
        cause = _cause(error)
        if cause not in _logged:
            _logged.add(cause)
            self._log.error(
                "reasoning parser: internal fault (%s); the reply goes on as content. Please report it with this line.",
                cause,
            )


def _cause(error: Exception) -> str:
    """Name a fault and where it is, which says enough and holds no model text."""
    return f"{type(error).__name__} at {error.__traceback__ and _innermost(error)}"


def _innermost(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}" if trace is not None else "?"
