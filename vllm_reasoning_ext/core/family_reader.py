"""The road of a family's output: text and ids through the lexer, runs and markers through the grammar, events out.

Theory of operation. `feed` has two ways. Nearly every delta is text within a body, with no character that a marker
begins with: its ids are noted (`IdTrack.push`), the grammar is asked what of it goes out (`run`), and that is all. Any
other delta goes the whole way: the lexer cuts it into runs and markers (`Lexer.feed`), the grammar decides what they
are (`text`, `marker`) and puts events into the sink, and the sink hands them over.
"""

from collections.abc import Iterable
from typing import Final

from vllm_reasoning_ext.core.events import Delta
from vllm_reasoning_ext.core.grammar.contract import FamilyGrammar, Observer
from vllm_reasoning_ext.core.grammar.sink import Sink
from vllm_reasoning_ext.core.reading.ids import CONTEXT
from vllm_reasoning_ext.core.reading.lexer import Lexer

RECENT_MAX: Final = 32
"""Texts that `Lexer.recent` may have before it is cut: a deque that cuts itself is larger than the rest of a reader."""


class FamilyReader:
    """Reads one output of a family (`grammar.contract.OutputReader`).

    Args:
        lexer: cuts text into runs and markers, with the ids' help.
        grammar: what the lexer feeds.
        sink: where the grammar puts its events.
        firsts: the characters that a marker begins with.

    Attributes:
        max_held: the most characters that were kept back after a delta.
        unreleased: the characters that were fed and have not come out yet, whatever keeps them back.
    """

    __slots__ = ("_firsts", "_grammar", "_lexer", "_plain", "_sink", "max_held", "unreleased")

    def __init__(self, lexer: Lexer, grammar: FamilyGrammar, sink: Sink, firsts: tuple[str, ...]) -> None:
        self._lexer = lexer
        self._grammar = grammar
        self._sink = sink
        self._firsts = firsts
        self._plain = ""  # what plain text is now; "" where the whole way has to be gone
        self.max_held = 0
        self.unreleased = 0
        self._settle()

    @property
    def held(self) -> int:
        return len(self._lexer.held) + self._grammar.held

    @property
    def ended_by(self) -> str:
        return self._grammar.ended_by

    def observe(self, observer: Observer) -> None:
        self._lexer.observer = observer

    def feed(self, text: str, token_ids: Iterable[int] | None) -> Delta:
        lexer = self._lexer
        if self._plain and text:
            for first in self._firsts:
                if first in text:
                    break
            else:
                track = lexer.track
                if track is None or (token_ids is not None and track.push(token_ids)):
                    lexer.position += len(text)
                    if track is not None:
                        lexer.used_ids = True
                        recent = lexer.recent
                        recent.append(text)
                        if len(recent) > RECENT_MAX:
                            del recent[:-CONTEXT]
                    shown = self._grammar.run(text)
                    if not shown:
                        self._settle()
                        return Delta(self._sink.take())
                    if shown is not text:
                        self.unreleased += len(text) - len(shown)
                    plain = self._plain
                    if plain == "reasoning":
                        self._sink.reasoning_last = shown[-1]
                        return Delta.of_reasoning(shown)
                    if plain == "tool":
                        return Delta.of_tool(shown, self._grammar.recipient)
                    if plain == "content":
                        self._sink.answer_last = shown[-1]
                    return Delta.of_content(shown)
        lexer.feed(text, token_ids)
        self._settle()
        return Delta(self._sink.take())

    def finish(self) -> Delta:
        self._plain = ""
        self._lexer.finish()
        self._grammar.finish()
        return Delta(self._sink.take())

    def _settle(self) -> None:
        """Note what plain text is from here on, and how much is kept back."""
        tail = self._lexer.held
        held = len(tail) + self._grammar.held
        if held > self.max_held:
            self.max_held = held
        self.unreleased = held + self._sink.withheld_size if self._sink.withheld else held
        plain = "" if tail else self._grammar.plain
        self._plain = plain if plain and self._sink.passes(plain) else ""
