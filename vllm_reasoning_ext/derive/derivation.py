"""`derive`: a family record read from a chat template, with what proves each field (SPEC section 8, step 2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vllm_reasoning_ext.core.families import FAMILIES, check_record
from vllm_reasoning_ext.core.grammar.calls import Verdict, match_call
from vllm_reasoning_ext.core.record import Family, Tool
from vllm_reasoning_ext.derive import deduce, tools
from vllm_reasoning_ext.derive.deduce import Deduced, Proof
from vllm_reasoning_ext.derive.lexicon import Lexicon
from vllm_reasoning_ext.derive.named import Named, named_markers
from vllm_reasoning_ext.derive.reading import Reading, read
from vllm_reasoning_ext.derive.sandbox import Sandbox
from vllm_reasoning_ext.derive.scenes import Scenes
from vllm_reasoning_ext.derive.vocabulary import Vocabulary
from vllm_reasoning_ext.errors import SetupError


@dataclass(frozen=True, slots=True)
class Derivation:
    """What a chat template shows.

    Attributes:
        family: the record; None where the template shows no reasoning.
        builtin: the name of a built-in family that is equal in all that matters; else None.
        matches: every built-in family that is, `builtin` being the first.
        starts: mode ("default", "enable_thinking=false", ...) -> "reasoning", "content", "undecided" or "header".
        proofs: why each field has its value.
        unseen: what no rendering showed.
        warnings: what is doubtful; a record without warnings was rendered, field by field.
    """

    family: Family | None
    builtin: str | None
    matches: Sequence[str]
    starts: Mapping[str, str]
    proofs: Sequence[Proof]
    unseen: Sequence[str]
    warnings: Sequence[str]


def derive_family(template: str, tokenizer: Any = None) -> Family:
    """Read a family record from a chat template.

    Args:
        template: the template's text.
        tokenizer: the model's tokenizer; its added tokens say where a composite marker ends.

    Raises:
        SetupError: the template shows no reasoning, or cannot be rendered.
    """
    found = derive(template, tokenizer)
    if found.family is None:
        seen = "; ".join([*found.warnings, *found.unseen]) or "no rendering with a thought, no marker in any prompt"
        raise SetupError("the chat template shows no reasoning", seen, "name a family: --reasoning-parser NAME")
    return found.family


def derive(
    template: str,
    tokenizer: Any = None,
    *,
    name: str = "derived",
    tokens: Mapping[str, str] | None = None,
    variables: Mapping[str, Any] | None = None,
) -> Derivation:
    """Read from a chat template what it shows of its model's output.

    Args:
        template: the template's text.
        tokenizer: the model's tokenizer (transformers or tokenizers), if at hand.
        name: the record's name.
        tokens: special tokens that the template names (`eos_token`, ...), where there is no tokenizer.
        variables: template variables that every rendering gets; they are no modes then.

    Raises:
        SetupError: jinja2 is missing, or the template cannot be rendered.
    """
    vocabulary = Vocabulary(tokenizer)
    with Sandbox(template) as sandbox:
        scenes = Scenes(sandbox, {**vocabulary.named, **(tokens or {})}, variables or {})
        markers = [*vocabulary.added, *scenes.tokens.values()]
        seen = sandbox.seen
        reading = read(scenes, Lexicon(markers, (*seen.texts, *seen.constants)))
        if not reading.prompts and reading.last is None and reading.plain is None:
            error = next(iter(scenes.errors.values()), "it wrote nothing")
            raise SetupError(
                f"the chat template cannot be rendered: {error}",
                "a conversation of one user message",
                "correct the template, or name a family: --reasoning-parser NAME",
            )
        return _conclude(reading, name, vocabulary, named_markers(tokenizer))


def _conclude(reading: Reading, name: str, vocabulary: Vocabulary, named: Named | None) -> Derivation:
    found = Deduced(reading)
    deduce.find_ends(found)
    deduce.find_turn(found)
    deduce.find_pair(found)
    if named is not None:
        named.outrank(found)
    if not found.opener or not found.closer:
        deduce.note_prose(found)
        return Derivation(None, None, (), {}, found.proofs, found.unseen, found.warnings)
    deduce.find_answer(found)
    if named is not None and named.answer:
        found.answers = [named.answer]
    calls = tools.find_tools(found)
    tools.find_tool_turns(found, next((closer for tool in calls for closer in tool.closers), ""))
    deduce.find_starts(found)
    found.prove("turn_openers", found.turn, "what every assistant turn begins with")
    record = vocabulary.fitted(_record(found, calls, name))
    if not vocabulary.added:
        found.unseen.append("which markers are control tokens: no tokenizer was given")
    missing = vocabulary.missing(record)
    if missing:
        found.warnings.append(f"the tokenizer has no token for {missing}: the model spells them from pieces, if at all")
    return _settled(found, record)


def _settled(found: Deduced, record: Family) -> Derivation:
    """Compare the record with the built-in families, and with what a record can say."""
    matches = [family.name for family in FAMILIES.values() if _is_read_by(found, record, family)]
    builtin = matches[0] if matches else None
    starts = dict(found.starts)
    if builtin is not None:
        own = FAMILIES[builtin]
        if own.channels:
            starts = dict.fromkeys(starts, "header")
            return Derivation(own, builtin, matches, starts, found.proofs, found.unseen, found.warnings)
        record = replace(
            record,
            turn_openers=tuple(dict.fromkeys((*record.turn_openers, *own.turn_openers))),
            end_of_sequence=tuple(dict.fromkeys((*record.end_of_sequence, *own.end_of_sequence))),
        )
    try:
        check_record(record)
    except ValueError as error:
        found.warnings.append(f"the record cannot be used as it is: {error}")
    return Derivation(record, builtin, matches, starts, found.proofs, found.unseen, found.warnings)


def _record(found: Deduced, calls: list[Tool], name: str) -> Family:
    first = calls[0] if calls else Tool("", ())
    turns = [turn for turn in (found.turn, *found.tool_turns) if turn.strip()]
    return Family(
        name=name,
        opener=found.opener,
        closer=found.closer,
        label=found.label,
        always_open=found.starts.get("default") == "reasoning",
        turn_openers=tuple(dict.fromkeys(turns)),
        answer=tuple(found.answers),
        tool_marker=first.marker,
        call_shapes=first.shapes,
        tool_closers=first.closers,
        ends_thought=first.ends_thought,
        more_tools=tuple(calls[1:]),
        end_of_sequence=tuple(found.ends),
        reasoning_start_str=found.opener + found.label,
        reasoning_end_str=found.closer,
    )


def _is_read_by(found: Deduced, record: Family, family: Family) -> bool:
    """Tell whether a built-in family reads this template's output as the record does."""
    if family.channels:
        return (record.opener, record.closer) == (family.reasoning_start_str.strip(), family.reasoning_end_str)
    # A family may know more pairs and answer markers than one template of it writes.
    around = any(opener for opener, _ in family.answer)
    return (
        record.label == family.label
        and set(record.pairs) <= set(family.pairs)
        and set(record.answer) <= set(family.answer)
        and (bool(record.answer) or not around)
        and all(_opens(turn, family) for turn in record.turn_openers)
        and _reads_calls(found, record, family)
    )


def _opens(turn: str, family: Family) -> bool:
    return any(turn.strip() == own.strip() for own in family.turn_openers)


def _reads_calls(found: Deduced, record: Family, family: Family) -> bool:
    calls = found.reading.calls
    if calls is None or not record.tool_marker:
        return calls is None
    at = (calls.before + calls.first).find(record.tool_marker)
    text = (calls.before + calls.first + calls.inner)[at:]
    for tool in family.tools:
        if text.startswith(tool.marker):
            match = match_call(tool, text[len(tool.marker) :])
            if match.verdict is Verdict.YES and set(record.tool_closers) <= set(match.closers):
                return True
    return False
