"""What `split` is given: text, token ids or both, cut into deltas; and where the two do not belong together."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext.cli.chunks import cut
from vllm_reasoning_ext.cli.explain import Note
from vllm_reasoning_ext.cli.inputs import read_ids, read_text
from vllm_reasoning_ext.cli.paint import shorten
from vllm_reasoning_ext.conformance.char_tokenizer import Token
from vllm_reasoning_ext.conformance.runner import Fed
from vllm_reasoning_ext.conformance.tokenizers import check_given_back, encode, tokenise
from vllm_reasoning_ext.errors import SetupError

_SHOWN: Final = 24
"""Characters of each side that are shown where ids and text part."""

_UNKNOWN_SHOWN: Final = 5


class Output(NamedTuple):
    """An output, ready to be fed.

    Attributes:
        text: its characters.
        deltas: the same, cut.
        warnings: what the person should know before reading the split.
        notes: the same for `--explain`, with the place.
    """

    text: str
    deltas: list[Fed]
    warnings: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


def read_output(file: str, ids: str, tokenizer: Any, chunks: str) -> Output:
    """Read an output and cut it.

    Args:
        file: the text; "-" is standard input, or with ids no text of its own.
        ids: the file of its token ids; "" for none.
        tokenizer: the model's; None for none.
        chunks: how to cut, see `cut`.

    Raises:
        SetupError: a file cannot be read, or the tokenizer changes the text.
    """
    if ids and tokenizer is None:
        raise SetupError("--ids cannot be read without the tokenizer", "--ids", "add --tokenizer DIR")
    if ids:
        return _with_ids(file, read_ids(ids), tokenizer, chunks)
    text = read_text(file)
    if tokenizer is None:
        return Output(text, cut(text, None, chunks))
    tokens = tokenise(encode(text, tokenizer), tokenizer)
    check_given_back(text, "".join(token.text for token in tokens), "save the token ids and pass them with --ids")
    return Output(text, cut(text, tokens, chunks))


def _with_ids(file: str, ids: list[int], tokenizer: Any, chunks: str) -> Output:
    known = _known(ids, tokenizer)
    warnings = _unknown(ids, known)
    tokens = _tokens(ids, known, tokenizer)
    own = "".join(token.text for token in tokens)
    text = own if file == "-" else read_text(file)
    if ids and not own:
        warnings += (f"none of the {len(ids)} token ids gives any text with this tokenizer: is it the model's own?",)
    if text == own:
        return Output(text, cut(own, tokens, chunks), warnings)
    tokens, at, wanted = _aligned(tokens, text, _special(ids, known, tokenizer))
    if at is None:
        # Only tokens without text differ: what an engine sends when it trims stop tokens or skips special ones.
        return Output(text, cut(text, tokens, chunks), warnings)
    told = f"the ids give {shorten(wanted, _SHOWN)} where the text has {shorten(text[at : at + _SHOWN], _SHOWN)}"
    note = Note("ids", at, "", f"ids and text part here: {told}")
    warnings += (f"ids and text part at character {at}: {told}; from there on the text alone decides",)
    return Output(text, cut(text, tokens, chunks), warnings, (note,))


def _known(ids: Sequence[int], tokenizer: Any) -> list[bool]:
    look = getattr(tokenizer, "convert_ids_to_tokens", None) or getattr(tokenizer, "id_to_token", None)
    return [True] * len(ids) if look is None else [_has(look, n) for n in ids]


def _has(look: Any, number: int) -> bool:
    try:
        return look(number) is not None
    except Exception:  # tokenizers of pure Python raise what they like: KeyError, IndexError, OverflowError
        return False


def _unknown(ids: Sequence[int], known: Sequence[bool]) -> tuple[str, ...]:
    missing = list(dict.fromkeys(n for n, there in zip(ids, known, strict=True) if not there))
    if not missing:
        return ()
    shown = ", ".join(map(str, missing[:_UNKNOWN_SHOWN])) + (", ..." if len(missing) > _UNKNOWN_SHOWN else "")
    return (f"the tokenizer knows no token of id {shown}: they give no text. Is it the model's own tokenizer?",)


def _tokens(ids: Sequence[int], known: Sequence[bool], tokenizer: Any) -> list[Token]:
    """Give each id its text, none where the tokenizer does not know it."""
    told = iter(tokenise([n for n, there in zip(ids, known, strict=True) if there], tokenizer))
    return [next(told) if there else Token(n, "") for n, there in zip(ids, known, strict=True)]


def _special(ids: Sequence[int], known: Sequence[bool], tokenizer: Any) -> set[int]:
    """Find the special tokens: those that an engine leaves out of the text with `skip_special_tokens`."""
    there = {n for n, known_id in zip(ids, known, strict=True) if known_id}
    return {n for n in there if not tokenizer.decode([n], skip_special_tokens=True)}


def _aligned(tokens: Sequence[Token], text: str, special: set[int]) -> tuple[list[Token], int | None, str]:
    """Lay the ids along a text of its own.

    Args:
        tokens: each with the text it would give.
        text: the text there is.
        special: ids whose text may be missing.

    Returns:
        tokens with the characters of the text that each brings; where the two part, None if they do not but for
        tokens without text; and what the ids would have given there. All that is left of the text comes with the
        last token.
    """
    laid: list[Token] = []
    at = 0
    parted: int | None = None
    wanted = ""
    for number, token in enumerate(tokens):
        if parted is None and token.id not in special and not text.startswith(token.text, at):
            rest = tokens[number : number + _SHOWN]
            parted, wanted = at, "".join(each.text for each in rest)[:_SHOWN]
        fits = parted is None and text.startswith(token.text, at)
        shown = token.text if fits else ""
        at += len(shown)
        laid.append(token._replace(text=shown))
    if at < len(text):
        parted = at if parted is None else parted
        last = laid.pop() if laid else Token(0, "")
        laid.append(last._replace(text=last.text + text[at:]))
    return laid, parted, wanted
