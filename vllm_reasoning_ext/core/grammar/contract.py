"""Which grammar reads which family, and what every grammar answers."""

from typing import Protocol

from vllm_reasoning_ext.core.families import Family
from vllm_reasoning_ext.core.grammar.atem import AtemGrammar
from vllm_reasoning_ext.core.grammar.harmony import HarmonyGrammar
from vllm_reasoning_ext.core.grammar.marker import MarkerGrammar
from vllm_reasoning_ext.core.grammar.sink import Sink
from vllm_reasoning_ext.core.reading.lexer import Grammar
from vllm_reasoning_ext.core.state import StartState


class FamilyGrammar(Grammar, Protocol):
    """A grammar as splitter and counter use it."""

    ended_by: str

    @property
    def plain(self) -> str: ...

    @property
    def held(self) -> int: ...

    def run(self, text: str) -> str: ...

    def finish(self) -> None: ...


_GRAMMARS: dict[str, type[MarkerGrammar] | type[HarmonyGrammar] | type[AtemGrammar]] = {
    "marker": MarkerGrammar,
    "harmony": HarmonyGrammar,
    "atem": AtemGrammar,
}


def make_grammar(family: Family, start: StartState, sink: Sink, tools: bool) -> FamilyGrammar:
    """Make the grammar of one output."""
    return _GRAMMARS[family.grammar](family, start, sink, tools)
