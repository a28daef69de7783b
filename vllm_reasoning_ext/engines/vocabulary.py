"""What an adapter must know of a tokenizer, found once per tokenizer: marker ids, and how to decode."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from vllm_reasoning_ext.core.families import Family
from vllm_reasoning_ext.core.reading.decode import Decode
from vllm_reasoning_ext.core.reading.ids import decoder, marker_ids
from vllm_reasoning_ext.errors import SetupError


class Vocabulary(NamedTuple):
    """The facts of one tokenizer for one family.

    Attributes:
        ids: marker text -> token id, for the markers that are single tokens here.
        decode: token ids -> text, special tokens included.
        added: ids of every added token (special or not), those a tool parser may look for included.
        hidden: a marker of the family is lost when the detokenizer skips special tokens.
        missing: of a block's opener and closer, those that are no single token here.
    """

    ids: Mapping[str, int]
    decode: Decode
    added: frozenset[int]
    hidden: bool
    missing: tuple[str, ...] = ()


_known: "WeakKeyDictionary[Any, dict[Family, Vocabulary]]" = WeakKeyDictionary()


def vocabulary(family: Family, tokenizer: Any) -> Vocabulary:
    """Find a family's facts in a tokenizer; a second call with the same tokenizer costs one look-up.

    Raises:
        SetupError: a channel family's control tokens are missing, so that no output could ever be split.
    """
    try:
        per_family = _known.setdefault(tokenizer, {})
    except TypeError:  # not hashable, or no weak references: facts are then found anew
        per_family = {}
    facts = per_family.get(family)
    if facts is None:
        facts = per_family[family] = _read(family, tokenizer)
    return facts


def _read(family: Family, tokenizer: Any) -> Vocabulary:
    ids = marker_ids(family, tokenizer)
    missing = [marker for marker in family.required if marker not in ids]
    if missing:
        raise SetupError(
            f"the tokenizer has no single token for {', '.join(missing)}, "
            f"which the reasoning parser {family.name} needs",
            describe(tokenizer),
            "serve the model with the tokenizer it was trained with (--tokenizer DIR), or choose the "
            "--reasoning-parser of its own family; "
            "`python -m vllm_reasoning_ext doctor --model DIR` names it",
        )
    added: dict[str, int] = getattr(tokenizer, "get_added_vocab", dict)()

    # Asked by decoding: a tokenizer's list of special ids does not hold every token that decoding skips.
    hidden = any(
        tokenizer.decode([number], skip_special_tokens=True) != tokenizer.decode([number], skip_special_tokens=False)
        for text, number in ids.items()
        if text not in family.end_of_sequence
    )
    spelled = tuple(text for text in (family.opener, family.closer) if text and text not in ids)
    return Vocabulary(ids, decoder(tokenizer), frozenset(added.values()) | frozenset(ids.values()), hidden, spelled)


def describe(tokenizer: Any) -> str:
    """Name a tokenizer for an error message: where it was loaded from, and its class."""
    path = getattr(tokenizer, "name_or_path", "") or "unknown path"
    return f"{path} ({type(tokenizer).__name__})"
