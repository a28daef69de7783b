"""Which grammar reads which family: the one place that turns a record's word into code."""

from typing import Final, NamedTuple

from vllm_reasoning_ext.core.grammar import atem, harmony
from vllm_reasoning_ext.core.grammar.contract import Channels, FamilyGrammar
from vllm_reasoning_ext.core.grammar.marker import MarkerGrammar
from vllm_reasoning_ext.core.grammar.sink import Sink
from vllm_reasoning_ext.core.record import Family
from vllm_reasoning_ext.core.state import StartState


class _Grammar(NamedTuple):
    make: type[MarkerGrammar] | type[harmony.HarmonyGrammar] | type[atem.AtemGrammar]
    channels: Channels | None


_GRAMMARS: Final = {
    "marker": _Grammar(MarkerGrammar, None),
    "harmony": _Grammar(harmony.HarmonyGrammar, harmony.HarmonyChannels()),
    "atem": _Grammar(atem.AtemGrammar, atem.AtemChannels()),
}


def make_grammar(family: Family, start: StartState, sink: Sink, tools: bool) -> FamilyGrammar:
    """Make the grammar of one output."""
    return _GRAMMARS[family.grammar].make(family, start, sink, tools)


def channels_of(family: Family) -> Channels | None:
    """Give the reader of a family's headers; None for a marker family."""
    return _GRAMMARS[family.grammar].channels
