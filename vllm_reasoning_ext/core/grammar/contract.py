"""What a grammar, and a reader of outputs, must do; no code, so that a reader of the road finds each step by name."""

from collections.abc import Iterable
from typing import Protocol

from vllm_reasoning_ext.core.events import Delta, Kind


class Observer(Protocol):
    """Who is told how spellings were read, for people who ask why; unset, it costs nothing."""

    def spelling(self, marker: str, position: int, real: bool | None) -> None:
        """Hear of a spelling.

        Args:
            marker: the spelling.
            position: where it begins, in characters of the text fed so far.
            real: True when a token id vouches for it, False when only the text says so, None when it is plain text.
        """

    def text_alone(self, why: str) -> None:
        """Hear that the ids no longer count from here on."""


class OutputReader(Protocol):
    """Reads one output to its end; a `Splitter` has one. Inline tags are one, a family behind the lexer the other."""

    @property
    def held(self) -> int:
        """How many characters are kept back because they may still become a marker."""

    @property
    def max_held(self) -> int:
        """The most characters that were kept back after a delta."""

    @property
    def unreleased(self) -> int:
        """How many of the characters fed before the last delta have not come out, if that delta has failed."""

    @property
    def ended_by(self) -> str:
        """How the last block ended: "closer", "tool", or "" while it is open or where there was none."""

    def observe(self, observer: Observer) -> None:
        """Tell somebody how each marker spelling is read."""

    def feed(self, text: str, token_ids: Iterable[int] | None) -> Delta:
        """Take one delta; return what could be decided. `Splitter.feed` says what the arguments mean."""

    def finish(self) -> Delta:
        """End the output; return what was kept back."""


class Grammar(Protocol):
    """What a lexer feeds: runs of plain text and markers, in the order of the output."""

    def text(self, text: str) -> None:
        """Take a run of plain text: it holds no marker, but may be cut anywhere."""

    def marker(self, marker: str, text: str, real: bool) -> None:
        """Take a marker.

        Args:
            marker: its spelling.
            text: the spelling, or "" for a control token whose text never came.
            real: True when a token id vouches for it, False when only the text says so.
        """


class FamilyGrammar(Grammar, Protocol):
    """The grammar of a family's outputs: what it decides it puts into its `Sink`.

    One grammar serves one output. Every character it is given goes into exactly one event, in order (law 2), and what
    it decides may depend on the characters only, never on how they were cut (law 1).

    Attributes:
        ended_by: as `OutputReader.ended_by`.
    """

    ended_by: str

    @property
    def recipient(self) -> str | None:
        """The tool that the open slice is addressed to, where a header names one."""

    @property
    def plain(self) -> str:
        """What plain text is now, where it needs no looking at; "" where it does.

        "reasoning", "content" (of an answer's body), "tool" (of the open slice), "loose" (content in no body).

        While it is not empty, `run` may be called in place of `text`, and only for text in which no character begins
        a marker.
        """

    @property
    def held(self) -> int:
        """How many characters are kept back; at most what `core/limits.py` allows."""

    def run(self, text: str) -> str:
        """Take non-empty plain text where `plain` says what it is.

        Returns:
            what goes out at once, earlier text that was kept back before it; "" where the sink has to be asked.
        """

    def finish(self) -> None:
        """End the output: decide what is kept back."""


class Channels(Protocol):
    """How the headers of a channel grammar are read, outside of an output: in a prompt, or by ids alone."""

    inner: tuple[str, ...]
    """Control tokens that may stand in a header before its `<|message|>`."""

    answers: frozenset[Kind]
    """What a body must be for an engine's structured answer to begin in it."""

    def body(self, header: str) -> tuple[Kind, str | None]:
        """Say what a header's body is, and the tool it is addressed to."""

    def switch(self, text: str) -> Kind | None:
        """Say what begins at a `<|message|>` that no header precedes, from the text before it; None for nothing."""
