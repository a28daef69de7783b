"""Cutting an output into deltas for `split --chunks`: whole, per character, per token, by number, or at random."""

import random
from collections.abc import Iterator, Sequence

from vllm_reasoning_ext.conformance.char_tokenizer import Token
from vllm_reasoning_ext.conformance.runner import Fed
from vllm_reasoning_ext.errors import SetupError

RANDOM_MAX = 12
"""Most characters or tokens of a random delta."""


def cut(text: str, tokens: Sequence[Token] | None, how: str) -> list[Fed]:
    """Cut an output into deltas.

    Args:
        text: the output.
        tokens: the same as tokens; None where there are no ids.
        how: "whole", "char", "token", a number (characters a delta, or tokens where there are ids) or
            "random:SEED".

    Returns:
        deltas of text and token ids (None without tokens). One per character gives a token's id with its first
        character, since text may lag behind the ids but never lead.

    Raises:
        SetupError: `how` is none of these, or "token" without tokens.
    """
    if how == "char":
        return [(c, None) for c in text] if tokens is None else list(_characters(tokens))
    if how == "token" and tokens is None:
        raise SetupError(
            "--chunks token needs to know the tokens",
            "--chunks",
            "add --tokenizer DIR (and --ids FILE if you have them)",
        )
    units: Sequence[str | Token] = text if tokens is None else tokens
    return [_delta(units[start:end]) for start, end in _spans(len(units), how)]


def _characters(tokens: Sequence[Token]) -> Iterator[Fed]:
    waiting: list[int] = []
    for token in tokens:
        waiting.append(token.id)
        for character in token.text:
            yield character, waiting
            waiting = []
    if waiting:
        yield "", waiting


def _delta(units: Sequence[str | Token]) -> Fed:
    tokens = [unit for unit in units if isinstance(unit, Token)]
    if tokens:
        return "".join([token.text for token in tokens]), [token.id for token in tokens]
    return "".join([str(unit) for unit in units]), None


def _spans(length: int, how: str) -> Iterator[tuple[int, int]]:
    kind, _, seed = how.partition(":")
    at = 0
    chance = random.Random(seed)
    while at < length:
        if kind == "whole":
            width = length
        elif kind == "token":
            width = 1
        elif kind == "random":
            width = chance.randint(1, RANDOM_MAX)
        elif kind.isdigit() and int(kind) > 0 and not seed:
            width = int(kind)
        else:
            raise SetupError(
                f"--chunks {how} is no way to cut", "--chunks", "use whole, char, token, a number, or random:SEED"
            )
        yield at, min(at + width, length)
        at += width
