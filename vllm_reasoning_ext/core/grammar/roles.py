"""What each marker of a family's record does: the record, turned into tables for the marker grammar."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from vllm_reasoning_ext.core.record import Family, Tool


@dataclass(frozen=True, slots=True)
class Roles:
    """The jobs of a record's markers; one marker may have several, what is open then decides.

    Attributes:
        closers_of: opener -> the closers that close its block.
        closers: every pair's closers.
        answer_openers, answer_closers: the texts around the answer.
        tools: tool marker -> tool.
        ends: end-of-sequence texts.
        hidden: of a family whose markers are control tokens, those that are never shown (SPEC 5.1): all but the
            ones that belong to calls, and those of its pairs that are ordinary text.
        heads: those of the hidden that begin something other than a thought: a message, the answer.
    """

    closers_of: Mapping[str, frozenset[str]]
    closers: frozenset[str]
    answer_openers: frozenset[str]
    answer_closers: frozenset[str]
    tools: Mapping[str, Tool]
    ends: frozenset[str]
    hidden: frozenset[str]
    heads: frozenset[str]


@lru_cache(maxsize=256)
def roles_of(family: Family) -> Roles:
    """Prepare the tables of a record; made once for each."""
    closers_of: dict[str, frozenset[str]] = {}
    for opener, closer in family.pairs:
        closers_of[opener] = closers_of.get(opener, frozenset()) | {closer}
    closers = frozenset(closer for _, closer in family.pairs)
    openers = frozenset(opener for opener, _ in family.answer if opener)
    ends = frozenset(closer for _, closer in family.answer if closer)
    spelled = {marker for pair in family.text_pairs for marker in pair}
    hidden = frozenset((*closers_of, *closers, *openers, *ends, *family.further_markers)) - spelled
    return Roles(
        closers_of=closers_of,
        closers=closers,
        answer_openers=openers,
        answer_closers=ends,
        tools={tool.marker: tool for tool in family.tools},
        ends=frozenset(family.end_of_sequence),
        hidden=hidden if family.control_markers else frozenset(),
        heads=openers.union(family.further_markers) if family.control_markers else frozenset(),
    )


@lru_cache(maxsize=256)
def only_real(family: Family) -> frozenset[str]:
    """Name the markers that count only when an id vouches for them: end-of-sequence texts with no other job."""
    roles = roles_of(family)
    return roles.ends - roles.closers - roles.answer_closers - roles.tools.keys()


@lru_cache(maxsize=256)
def closing(family: Family) -> frozenset[str]:
    """Name the markers that may lack their text at the end of an output (trimmed stop tokens)."""
    return frozenset(family.closing)
