"""Markers with a suffix of the checkpoint's own, resolved against the vocabulary (SPEC 5.5): `<think:opensource>`."""

import re
import weakref
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from vllm_reasoning_ext.core.record import Family

_CACHE: "weakref.WeakKeyDictionary[Any, dict[Family, Family]]" = weakref.WeakKeyDictionary()


def fitted(record: Family, tokenizer: Any) -> Family:
    """Give the record with the one suffix that a tokenizer's vocabulary shows; found once per tokenizer.

    Args:
        record: a record with `suffixes`; any other comes back as it is.
        tokenizer: anything with `get_added_vocab` (transformers) or `get_vocab`.

    Returns:
        the record of that suffix alone; the record as given where the vocabulary shows no marker of the family, or
        markers with several suffixes.
    """
    if not record.suffixes or tokenizer is None:
        return record
    try:
        known = _CACHE.setdefault(tokenizer, {})
    except TypeError:  # not hashable, or not weakly referable
        known = {}
    if record not in known:
        found = _suffixes(record, _vocabulary(tokenizer))
        known[record] = spelled(record, found.pop()) if len(found) == 1 else record
    return known[record]


def spelled(record: Family, suffix: str) -> Family:
    """Write a record with one suffix in place of all that it knows."""
    known = max(record.suffixes, key=len)
    opener, closer = next(pair for pair in record.pairs if known in pair[0])
    changes: dict[str, Any] = {"opener": opener, "closer": closer, "more_pairs": (), "suffixes": (suffix,)}
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, tuple) and field.name not in changes:
            # Of what is there once for each suffix, one is kept.
            changes[field.name] = tuple(item for item in value if _holds(item, known)) or value
    changes |= {"reasoning_start_str": opener, "reasoning_end_str": closer}
    written: Family = _with(replace(record, **changes), known, suffix)
    return written


def _holds(value: Any, text: str) -> bool:
    return text in repr(value)


def _with(value: Any, known: str, suffix: str) -> Any:
    """Replace the suffix in every text of a record."""
    if isinstance(value, str):
        return value.replace(known, suffix)
    if isinstance(value, tuple):
        return tuple(_with(item, known, suffix) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {field.name: _with(getattr(value, field.name), known, suffix) for field in fields(value)}
        return replace(value, **changed)
    return value


def _suffixes(record: Family, vocabulary: Iterable[str]) -> set[str]:
    """List the suffixes that the vocabulary writes into the opener."""
    known = max(record.suffixes, key=len)
    opener = next(opener for opener, _ in record.pairs if known in opener)
    before, _, after = opener.partition(known)
    pattern = re.compile(f"{re.escape(before)}(:[^<>\\s]{{1,64}})?{re.escape(after)}")
    return {match[1] or "" for token in vocabulary if (match := pattern.fullmatch(token)) is not None}


def _vocabulary(tokenizer: Any) -> Iterable[str]:
    """List the added tokens where the tokenizer can tell them, else all: a marker of this kind is an added one."""
    get = getattr(tokenizer, "get_added_vocab", None) or getattr(tokenizer, "get_vocab", None)
    return get() if get is not None else ()
