"""Reading the start state from the rendered prompt: text, or token ids (SPEC section 4)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from vllm_reasoning_ext.core.events import REASONING, TOOL
from vllm_reasoning_ext.core.families import Family, get_family
from vllm_reasoning_ext.core.grammar import atem, harmony
from vllm_reasoning_ext.core.grammar.marker import MarkerGrammar, State
from vllm_reasoning_ext.core.grammar.sink import Sink
from vllm_reasoning_ext.core.reading.ids import decoder, single_ids
from vllm_reasoning_ext.core.reading.lexer import Lexer
from vllm_reasoning_ext.core.reading.markers import marker_set
from vllm_reasoning_ext.core.state import StartState

__all__ = ["StartState", "start_state"]

_UNDECIDED = StartState("undecided")
_ENDING_MAX = 40
"""Characters of a region that may be remembered: no prefilled answer is."""
_TAIL_TRIES = 4
"""Tails of a prompt that are decoded in search of a turn opener before all of it is: turns of others begin alike."""


def start_state(
    prompt: str | None,
    family: str | Family,
    *,
    prompt_token_ids: Sequence[int] | None = None,
    tokenizer: Any = None,
    turn_openers: Sequence[str] | None = None,
    force_reasoning: bool | None = None,
) -> StartState:
    """Decide from the rendered prompt where the output starts.

    Args:
        prompt: the rendered prompt's text; None when only ids are there, or nothing is known of it.
        family: the family or its name.
        prompt_token_ids: the prompt as token ids; only its end, from the last turn opener on, is decoded.
        tokenizer: decodes `prompt_token_ids`.
        turn_openers: further texts after which the assistant's turn begins.
        force_reasoning: None follows the evidence; True starts inside a block (channel families: inside a
            header); False makes "reasoning" and "header" undecided and leaves "content" alone.

    Returns:
        the start state, its `reason` in words.

    Raises:
        ValueError: the family is unknown, or ids were given without a tokenizer.
    """
    record = get_family(family) if isinstance(family, str) else family
    openers = (*record.turn_openers, *(turn_openers or ()))
    if prompt is None and prompt_token_ids is not None:
        if tokenizer is None:
            raise ValueError("prompt_token_ids need a tokenizer to be read; pass tokenizer=, or the prompt's text.")
        prompt = _tail_text(prompt_token_ids, openers, tokenizer)
    if prompt is None:
        state = _default(record, "no prompt was given")
    elif record.grammar == "marker":
        state = _marker_start(record, prompt, openers)
    else:
        state = _channel_start(record, prompt, openers)
    return _forced(record, state, force_reasoning)


def _forced(record: Family, state: StartState, force: bool | None) -> StartState:
    inside = "reasoning" if record.grammar == "marker" else "header"
    if force and state.kind != inside:
        return StartState("reasoning" if inside == "reasoning" else "header", reason="force_reasoning=True")
    if force is False and state.kind in ("reasoning", "header"):
        return StartState("undecided", reason=f"force_reasoning=False overrides: {state.reason}")
    return state


def _default(record: Family, why: str) -> StartState:
    if record.always_open:
        return StartState("reasoning", reason=f"{why}; {record.name} starts in reasoning by default")
    return replace(_UNDECIDED, reason=f"{why}; {record.name} starts undecided by default")


def _region(prompt: str, openers: Sequence[str]) -> tuple[str, str] | None:
    """Cut the prompt after its last turn opener; return that opener and the rest."""
    best, name = -1, ""
    for opener in openers:
        end = prompt.rfind(opener)
        if end >= 0 and end + len(opener) > best:
            best, name = end + len(opener), opener
    return (name, prompt[best:]) if best >= 0 else None


def _marker_start(record: Family, prompt: str, openers: Sequence[str]) -> StartState:
    found = _region(prompt, openers)
    if found is not None:
        read = _read_ending if len(found[1]) <= _ENDING_MAX else _read_region
        return read(record, *found)
    end = prompt.rstrip()
    label = record.label.rstrip()
    if end.endswith(record.opener):
        return StartState("reasoning", reason=f"no turn opener known; the prompt ends in {record.opener!r}")
    if label and end.endswith(record.opener + label):
        return StartState("reasoning", header=label, reason="no turn opener known; the prompt ends in the label")
    if end.endswith(record.closer):
        return StartState("content", reason=f"no turn opener known; the prompt ends in {record.closer!r}")
    return _default(record, "no turn opener known, and the prompt ends in no marker")


@lru_cache(maxsize=256)
def _read_ending(record: Family, opener: str, region: str) -> StartState:
    """Read a short region once: it is one of the few endings that templates write."""
    return _read_region(record, opener, region)


def _read_region(record: Family, opener: str, region: str) -> StartState:
    """Read the text after the turn opener by the family's own grammar."""
    sink = Sink()
    grammar = MarkerGrammar(record, _UNDECIDED, sink, tools=False)
    lexer = Lexer(marker_set(record.markers), grammar)
    lexer.feed(region, None)
    text = lexer.held
    if text:
        grammar.text(text)
    where = f"after the last {opener!r}"
    if grammar.in_block:
        label = record.label if record.label and f"{record.opener}{record.label}" in region else ""
        begun = any(event.kind is REASONING for event in sink.events)
        return StartState(
            "reasoning", header=label, body_begun=begun, opener=grammar.opener, reason=f"{where} a block is open"
        )
    # A head that holds something visible: it may be a label's beginning, for a prompt it is the answer's.
    begun = grammar.state is State.HEAD and bool(region.replace(record.closer, "").strip())
    if begun or grammar.in_answer:
        return StartState("content", answer_begun=True, reason=f"{where} the answer has begun")
    if grammar.state is State.LEAD:
        return StartState("content", opener=grammar.opener, reason=f"{where} the answer is opened")
    if grammar.state in (State.AFTER, State.SWALLOWED):
        return StartState("content", reason=f"{where} the block is closed")
    return StartState("undecided", reason=f"{where} nothing but blanks")


def _channel_start(record: Family, prompt: str, openers: Sequence[str]) -> StartState:
    """Read the text after the last header opener: an unfinished header, an open body, or a finished message."""
    found = _region(prompt, openers)
    if found is None:
        return _default(record, f"the prompt has no {openers[0]!r}")
    region = found[1]
    header, message, body = region.partition(atem.MESSAGE)
    if any(closer in (body if message else region) for closer in record.closing):
        return replace(_UNDECIDED, reason="the prompt's last message is finished")
    if not message:
        return StartState("header", header=header, reason=f"the prompt ends inside the header {header!r}")
    if record.grammar == "atem":
        recipient = atem.recipient_of(header)
        kind = atem.kind_of(recipient)
    else:
        recipient = harmony.tool_recipient(header)
        channel = header.partition(harmony.CHANNEL)[2].strip()
        kind = TOOL if recipient else harmony.kind_of(channel.split()[0] if channel else "")
    why = f"the prompt ends inside the body of {header!r}"
    return StartState(
        "reasoning" if kind is REASONING else "content",
        answer_begun=kind is not REASONING and bool(body),
        header=header,
        recipient=recipient if kind is TOOL else None,
        body_begun=bool(body),
        reason=why,
    )


def _tail_text(ids: Sequence[int], openers: tuple[str, ...], tokenizer: Any) -> str:
    """Decode the end of a prompt, from its last turn opener on; all of it where no opener is one token.

    The prompt is walked from its end and never copied whole: it may hold a hundred thousand ids.
    """
    decode = decoder(tokenizer)
    anchors = single_ids(tokenizer, _anchors(openers))
    tries = _TAIL_TRIES if anchors else 0
    for index in range(len(ids) - 1, -1, -1):
        if not tries:
            break
        if ids[index] in anchors:
            text = decode(list(ids[index:]))
            if _region(text, openers) is not None:
                return text
            tries -= 1
    return decode(list(ids))


@lru_cache(maxsize=64)
def _anchors(openers: tuple[str, ...]) -> tuple[str, ...]:
    """Name the control tokens that the openers begin with (the role word after one is ordinary text)."""
    tokens = ("<|im_start|>", "]~b]", "<|turn>")
    return tuple(next((t for t in tokens if opener.startswith(t)), opener) for opener in openers)
