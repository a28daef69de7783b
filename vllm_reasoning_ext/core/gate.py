"""Has reasoning ended? The answer on token ids alone, for an engine's gates.

It reads the same family records as the splitter and decodes nothing but headers, so that an engine may ask at
every step.
"""

from collections.abc import Iterable, Mapping, Sequence

from vllm_reasoning_ext.core.events import Kind
from vllm_reasoning_ext.core.families import get_family
from vllm_reasoning_ext.core.grammar.atem import MESSAGE, START
from vllm_reasoning_ext.core.grammar.choose import channels_of
from vllm_reasoning_ext.core.grammar.contract import Channels
from vllm_reasoning_ext.core.grammar.roles import roles_of
from vllm_reasoning_ext.core.reading.decode import Decode
from vllm_reasoning_ext.core.record import Family

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
    channels = channels_of(record)
    if channels is None:
        return _closed(record, ids, new, marker_ids, decode)
    message = marker_ids.get(MESSAGE)
    if message is None or decode is None or message not in new:
        return False
    first = max(len(ids) - len(new), 0)
    return any(
        _body_kind(channels, ids, index, marker_ids, decode) in channels.answers
        for index in range(first, len(ids))
        if ids[index] == message
    )


def _closed(
    record: Family, ids: Sequence[int], new: Sequence[int], marker_ids: Mapping[str, int], decode: Decode | None
) -> bool:
    """Tell whether the new ids hold a marker that ends a block of a marker family."""
    roles = roles_of(record)
    for marker in roles.closers | roles.answer_openers:
        number = marker_ids.get(marker)
        if number is not None:
            if number in new:
                return True
        elif decode is not None:
            pieces = dict(record.parts).get(marker, ())
            real = {piece: marker_ids[piece] for piece in pieces if piece in marker_ids}
            if _assembled(marker, real, ids, len(new), decode) if real else _spelled(marker, ids, len(new), decode):
                return True
    return False


def _assembled(marker: str, real: Mapping[str, int], ids: Sequence[int], new: int, decode: Decode) -> bool:
    """Look for a marker of several tokens, ending inside the new ids, in which these pieces are control tokens."""
    last = next((number for piece, number in real.items() if marker.endswith(piece)), None)
    for end in range(max(len(ids) - new, 0), len(ids)):
        if last is not None and ids[end] != last:
            continue
        start = end
        while start > 0 and end - start < len(marker) and len(decode(list(ids[start : end + 1]))) < len(marker):
            start -= 1
        window = iter(ids[start : end + 1])
        if decode(list(ids[start : end + 1])).endswith(marker) and all(number in window for number in real.values()):
            return True
    return False


def _spelled(marker: str, ids: Sequence[int], new: int, decode: Decode) -> bool:
    """Look for a marker that the tokenizer has no single id for, ending inside the new ids."""
    tail = list(ids[-(new + len(marker)) :])
    before = decode(tail[: len(tail) - new])
    return decode(tail).count(marker) > before.count(marker)


def _body_kind(
    channels: Channels, ids: Sequence[int], index: int, marker_ids: Mapping[str, int], decode: Decode
) -> Kind | None:
    """Say what begins at the `<|message|>` at `index`; None where it begins nothing."""
    by_id = {number: text for text, number in marker_ids.items()}
    at = index
    while at > 0 and index - at < HEADER_IDS and by_id.get(ids[at - 1], "") in ("", *channels.inner):
        at -= 1
    before = by_id.get(ids[at - 1]) if at else None
    header = decode(list(ids[at:index]))
    # The output alone begins inside the prompt's header, so no `<|start|>` stands before it.
    return channels.body(header)[0] if before in (START, None) else channels.switch(header)
