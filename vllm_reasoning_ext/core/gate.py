"""Has reasoning ended? The answer on token ids alone, for an engine's gates.

It reads the same family records as the splitter and decodes nothing but headers, so that an engine may ask at
every step.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from vllm_reasoning_ext.core.events import CONTENT, REASONING, Kind
from vllm_reasoning_ext.core.families import Family, get_family
from vllm_reasoning_ext.core.grammar import atem, harmony

Decode = Callable[[list[int]], str]

HEADER_IDS = 160
"""Token ids of a header that are looked at: a header's span in characters is no longer, and an id is one at least."""


def reasoning_ended(
    family: str | Family,
    ids: Sequence[int],
    delta_ids: Iterable[int],
    marker_ids: Mapping[str, int],
    decode: Decode | None = None,
) -> bool:
    """Tell whether reasoning ended anywhere inside the new ids (a grammar may constrain what comes after).

    Pure: the answer depends on the arguments only. What a delta of several ids has opened and closed again
    counts too.

    Args:
        family: the family or its name.
        ids: all ids so far, with or without the prompt's, the new ones included.
        delta_ids: the new ones.
        marker_ids: control token text -> id, from `core.ids.marker_ids`.
        decode: ids -> text, for the words of a channel's header; without it no channel family has an answer.

    Returns:
        True when the new ids close a block, or begin a body that is not reasoning.
    """
    record = get_family(family) if isinstance(family, str) else family
    new = list(delta_ids)
    if record.grammar == "marker":
        closer = marker_ids.get(record.closer)
        if closer is not None:
            return closer in new
        return decode is not None and _spelled(record.closer, ids, len(new), decode)
    message = marker_ids.get(atem.MESSAGE)
    if message is None or decode is None or message not in new:
        return False
    first = max(len(ids) - len(new), 0)
    return any(
        _opens_answer(record, ids, index, marker_ids, decode)
        for index in range(first, len(ids))
        if ids[index] == message
    )


def _spelled(closer: str, ids: Sequence[int], new: int, decode: Decode) -> bool:
    """Look for a closer that the tokenizer has no single id for, ending inside the new ids."""
    tail = list(ids[-(new + len(closer)) :])
    before = decode(tail[: len(tail) - new])
    return decode(tail).count(closer) > before.count(closer)


def _opens_answer(
    record: Family, ids: Sequence[int], index: int, marker_ids: Mapping[str, int], decode: Decode
) -> bool:
    """Tell whether the `<|message|>` at `index` begins a body that is no reasoning."""
    by_id = {number: text for text, number in marker_ids.items()}
    at = index
    inner = (harmony.CHANNEL, harmony.CONSTRAIN) if record.grammar == "harmony" else ()
    while at > 0 and index - at < HEADER_IDS and by_id.get(ids[at - 1], "") in ("", *inner):
        at -= 1
    before = by_id.get(ids[at - 1]) if at else None
    header = decode(list(ids[at:index]))
    if record.grammar == "harmony":
        kind, recipient = harmony_kind(header)
        return kind is CONTENT and recipient is None
    # The output alone begins inside the prompt's header, so no `<|start|>` stands before it.
    in_header = before in (atem.START, None)
    return atem_kind(header, in_header) not in (None, REASONING)


def harmony_kind(header: str) -> tuple[Kind, str | None]:
    """Say what a harmony header's body is, and the tool it is addressed to."""
    channel = header.partition(harmony.CHANNEL)[2].split()
    return harmony.kind_of(channel[0] if channel else ""), harmony.tool_recipient(header)


def atem_kind(header: str, in_header: bool) -> Kind | None:
    """Say what begins at an ATEM `<|message|>`; None where it is one without a role.

    Args:
        header: the text before it, back to the last control token.
        in_header: that control token is a `<|start|>`; else only a headerless switch begins a body.
    """
    if in_header:
        return atem.kind_of(atem.recipient_of(header))
    switch = atem.SWITCH.search(header)
    return atem.kind_of(switch.group(1)) if switch else None
