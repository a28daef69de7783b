"""Reading the start state from the rendered prompt: text, or token ids (SPEC section 4)."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from vllm_reasoning_ext.core.events import REASONING
from vllm_reasoning_ext.core.families import resolve_family
from vllm_reasoning_ext.core.grammar.atem import MESSAGE
from vllm_reasoning_ext.core.grammar.choose import channels_of
from vllm_reasoning_ext.core.grammar.contract import Channels
from vllm_reasoning_ext.core.grammar.marker import MarkerGrammar, State
from vllm_reasoning_ext.core.grammar.sink import Sink
from vllm_reasoning_ext.core.reading.ids import decoder, single_tokens
from vllm_reasoning_ext.core.reading.lexer import Lexer
from vllm_reasoning_ext.core.reading.markers import marker_set
from vllm_reasoning_ext.core.record import Family
from vllm_reasoning_ext.core.state import StartKind, StartState

__all__ = ["StartState", "start_state"]

_UNDECIDED = StartState("undecided")
_ENDING_MAX = 40
"""Characters of a region that may be remembered: no prefilled answer is."""
_OPENER_IDS = 48
"""Token ids that are decoded to see whether a turn opener begins with them: an id is a character at least."""
_SWITCH_REACH = 96
"""Characters of a prompt's beginning in which its first turn's switch stands."""
_ANCHOR = re.compile(r"<\|[^<>|\s]+\|?>|<｜[^<>｜\s]+｜>|<[^<>|\s]+\|?>|\]~[a-z!]*b\]")
_CONTROL = re.compile(r"<\|.*|<｜.*|.*\|>|\]~.*")
"""Spellings that only a control token has; any other may be ordinary text in a tokenizer without it."""


def start_state(
    prompt: str | None,
    family: str | Family,
    *,
    prompt_token_ids: Sequence[int] | None = None,
    tokenizer: Any = None,
    turn_openers: str | Sequence[str] | None = None,
    force_reasoning: bool | None = None,
    chat_template: str | None = None,
) -> StartState:
    """Decide from the rendered prompt where the output starts.

    Args:
        prompt: the rendered prompt's text; None when only ids are there, or nothing is known of it.
        family: the family or its name, or "auto".
        prompt_token_ids: the prompt as token ids; only its end, from the last turn opener on, is decoded.
        tokenizer: decodes `prompt_token_ids`.
        turn_openers: further texts after which the assistant's turn begins; a string is one.
        force_reasoning: None follows the evidence; True starts inside a block (channel families: inside a
            header); False makes "reasoning" and "header" undecided and leaves "content" alone.
        chat_template: what "auto" goes by; the tokenizer's own if none is given.

    Returns:
        the start state, its `reason` in words.

    Raises:
        ValueError: the family is unknown, or ids were given without a tokenizer.
        SetupError: "auto" cannot decide.
    """
    record = resolve_family(family, tokenizer, chat_template)
    if not record.pairs and not record.channels:
        return StartState("content", answer_begun=True, reason="the model has no reasoning markers")
    further = (turn_openers,) if isinstance(turn_openers, str) else turn_openers or ()
    openers = (*record.turn_openers, *further)
    if prompt is None and prompt_token_ids is None:
        return _forced(record, _default(record, "no prompt was given"), force_reasoning)
    if prompt is not None:
        text, beginning = prompt, prompt[:_SWITCH_REACH]
        found = _region(prompt, openers)
    elif tokenizer is None:
        raise ValueError("prompt_token_ids need a tokenizer to be read; pass tokenizer=, or the prompt's text.")
    else:
        ids = prompt_token_ids or ()
        found = _region_of_ids(record, ids, openers, tokenizer)
        decode = decoder(tokenizer)
        text = "" if found is not None else decode(list(ids))
        beginning = decode(list(ids[:_OPENER_IDS])) if record.thinking_switch else ""
    channels = channels_of(record)
    if channels is not None:
        state = _channel_start(record, channels, found)
    else:
        state = _marker_start(record, found, text)
    if not _thinks(record, beginning):
        state = replace(state, thinking_off=True)
    return _forced(record, state, force_reasoning)


def _forced(record: Family, state: StartState, force: bool | None) -> StartState:
    inside: StartKind = "header" if record.channels else "reasoning"
    if force and state.kind != inside:
        return StartState(inside, reason="force_reasoning=True")
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


def _marker_start(record: Family, found: tuple[str, str] | None, prompt: str) -> StartState:
    if found is not None:
        read = _read_ending if len(found[1]) <= _ENDING_MAX else _read_region
        return read(record, *found)
    end = prompt.rstrip()
    label = record.label.rstrip()
    for opener, closer in record.pairs:
        if end.endswith(opener):
            return StartState("reasoning", opener=opener, reason=f"no turn opener known; the prompt ends in {opener!r}")
        if label and end.endswith(opener + label):
            return StartState("reasoning", header=label, reason="no turn opener known; the prompt ends in the label")
        if end.endswith(closer):
            return StartState("content", reason=f"no turn opener known; the prompt ends in {closer!r}")
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


def _channel_start(record: Family, channels: Channels, found: tuple[str, str] | None) -> StartState:
    """Read the text after the last header opener: an unfinished header, an open body, or a finished message."""
    if found is None:
        return _default(record, f"the prompt has no {record.turn_openers[0]!r}")
    region = found[1]
    header, message, body = region.partition(MESSAGE)
    if any(closer in (body if message else region) for closer in record.closing):
        return replace(_UNDECIDED, reason="the prompt's last message is finished")
    if not message:
        return StartState("header", header=header, reason=f"the prompt ends inside the header {header!r}")
    kind, recipient = channels.body(header)
    why = f"the prompt ends inside the body of {header!r}"
    return StartState(
        "reasoning" if kind is REASONING else "content",
        answer_begun=kind is not REASONING and bool(body),
        header=header,
        recipient=recipient,
        body_begun=bool(body),
        reason=why,
    )


def _region_of_ids(
    record: Family, ids: Sequence[int], openers: tuple[str, ...], tokenizer: Any
) -> tuple[str, str] | None:
    """Cut a prompt's ids after their last turn opener; return that opener and the text of the rest.

    An opener's control token has to be a real one: who types it opens no turn. The prompt is walked from its end and
    never copied whole, as it may hold a hundred thousand ids.
    """
    decode = decoder(tokenizer)
    real, spelled = _sorted_openers(record, openers, tokenizer)
    begin, name = 0, ""
    for index in range(len(ids) - 1, -1, -1):
        if ids[index] in real:
            text = decode(list(ids[index : index + _OPENER_IDS]))
            name = next((opener for opener in real[ids[index]] if text.startswith(opener)), "")
            if name:
                begin = index
                break
    text = decode(list(ids[begin:]))[len(name) :]
    return _region(text, spelled) or ((name, text) if name else None)


def _sorted_openers(
    record: Family, openers: tuple[str, ...], tokenizer: Any
) -> tuple[dict[int, tuple[str, ...]], tuple[str, ...]]:
    """Tell the openers that begin with a control token of this tokenizer, by its id, from those that are text."""
    ids = single_tokens(tokenizer, tuple(dict.fromkeys(filter(None, map(anchor, openers)))))
    # A tokenizer that knows none of the family's tokens cannot be asked; then the text has to do.
    asked = bool(ids or single_tokens(tokenizer, record.control))
    real: dict[int, tuple[str, ...]] = {}
    spelled = []
    for opener in openers:
        token = anchor(opener)
        if token in ids:
            # The longest first: one opener may begin another.
            found = (*real.get(ids[token], ()), opener)
            real[ids[token]] = tuple(sorted(found, key=len, reverse=True))
        elif not (asked and _CONTROL.fullmatch(token)):
            spelled.append(opener)
    return real, tuple(spelled)


@lru_cache(maxsize=256)
def anchor(opener: str) -> str:
    """Name the token that a turn opener begins with; "" for one that begins with ordinary text."""
    found = _ANCHOR.match(opener)
    return found.group() if found is not None else ""


def _thinks(record: Family, beginning: str) -> bool:
    """Tell whether a prompt's first turn has the switch that the family thinks with, if it has one."""
    first = beginning.find(anchor(record.thinking_switch))
    return not record.thinking_switch or (first >= 0 and beginning.startswith(record.thinking_switch, first))
