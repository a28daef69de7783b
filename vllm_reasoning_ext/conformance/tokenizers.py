"""Loading a model's tokenizer from its directory, with transformers or with tokenizers alone."""

import importlib.util
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vllm_reasoning_ext.conformance.char_tokenizer import Token
from vllm_reasoning_ext.conformance.script import script_ids
from vllm_reasoning_ext.core.families import Family
from vllm_reasoning_ext.core.reading.ids import decoder, marker_ids
from vllm_reasoning_ext.errors import SetupError


def load_tokenizer(where: str | Path) -> Any:
    """Load a tokenizer; nothing is fetched from the network.

    Args:
        where: a model directory, or a `tokenizer.json`.

    Returns:
        a transformers tokenizer where transformers is installed and can read the directory, else a
        `tokenizers.Tokenizer`.

    Raises:
        SetupError: neither library is there, or the directory holds no tokenizer.
    """
    path = Path(where)
    if not path.exists():
        raise SetupError(f"there is no {path}", str(path), "give the directory of a model that is on this machine")
    directory = path if path.is_dir() else path.parent
    failed = ""
    if path.is_dir() and importlib.util.find_spec("transformers") is not None:
        from transformers import AutoTokenizer

        try:
            return AutoTokenizer.from_pretrained(str(directory), local_files_only=True)
        except Exception as error:  # a directory without config.json, a class it does not know, ...
            failed = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    file = directory / "tokenizer.json" if path.is_dir() else path
    if importlib.util.find_spec("tokenizers") is None:
        raise SetupError(
            "reading a tokenizer needs transformers or tokenizers",
            str(path),
            "pip install 'vllm-reasoning-ext[conformance]'",
        )
    if not file.is_file():
        raise SetupError(
            f"{directory} holds no tokenizer.json that could be read" + (f" ({failed})" if failed else ""),
            str(directory),
            "give the directory the model's tokenizer files are in",
        )
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # tokenizers raises plain Exception
        raise SetupError(f"{file} is no tokenizer ({error})", str(file), "give the file the model came with") from error


def tokenise(ids: Sequence[int], tokenizer: Any) -> list[Token]:
    """Give each token id the characters it brings, as an engine's detokeniser does.

    Args:
        ids: the output.
        tokenizer: decodes them.

    Returns:
        one token an id; an incomplete character comes with the id that completes it.
    """
    decode = decoder(tokenizer)
    tokens: list[Token] = []
    context, shown = 0, 0
    for number, token in enumerate(ids, 1):
        before = decode(list(ids[context:shown]))
        now = decode(list(ids[context:number]))
        waits = now.endswith("\ufffd") and number < len(ids)
        new = "" if waits or len(now) <= len(before) else now[len(before) :]
        if new:
            context, shown = shown, number
        tokens.append(Token(token, new))
    return tokens


def check_given_back(text: str, back: str, remedy: str) -> None:
    """Compare a text with what a tokenizer makes of it: without the very same characters ids prove nothing.

    Raises:
        SetupError: they differ; the message shows where, and gives the remedy.
    """
    if back != text:
        at = len(os.path.commonprefix([text, back]))
        raise SetupError(
            f"the tokenizer does not give the text back: {text[at : at + 20]!r} becomes {back[at : at + 20]!r}",
            "the tokenizer",
            remedy,
        )


def control_ids(family: Family, tokenizer: Any) -> dict[str, int]:
    """Resolve the control tokens that decode to their text and that their text encodes to.

    A marker that stands in the vocabulary, but is no added token, is spelled from ordinary tokens in every prompt.
    """
    return {
        text: number for text, number in marker_ids(family, tokenizer).items() if encode(text, tokenizer) == [number]
    }


def missing_markers(family: Family, ids: Mapping[str, int]) -> list[str]:
    """List the markers that begin or end a block and have no id; see `without_ids` for what follows from it."""
    pieces = dict(family.parts)

    def lacking(markers: Iterable[str]) -> list[str]:
        return [m for m in markers if m not in ids and not any(piece in ids for piece in pieces.get(m, ()))]

    if family.channels or not family.more_pairs:
        return lacking(family.boundaries)
    # A model writes one of the pairs; a checkpoint may have no token of the others.
    return min((lacking(pair) for pair in family.pairs), key=len)


def without_ids(family: Family, missing: Sequence[str]) -> tuple[bool, str, str]:
    """Say what it means that a tokenizer lacks markers; every command gives this one answer.

    Args:
        family: the family.
        missing: its markers without an id, at least one.

    Returns:
        whether the family cannot be served so, what is wrong, and the remedy.
    """
    lacks = f"the tokenizer has no single id for {', '.join(missing)}"
    if family.required:
        return (
            True,
            f"{lacks}; {family.name} cannot be told apart without",
            "serve with the tokenizer the model was trained with (the engine's own --tokenizer; in SGLang "
            "--tokenizer-path), or with the parser of the model's own family",
        )
    return (
        False,
        f"{lacks}: the text decides, and a marker that the model quotes cannot be told from a real one",
        "serve with the tokenizer the model was trained with, if this is not it; nothing else is needed",
    )


def encode(text: str, tokenizer: Any) -> list[int]:
    """Encode a text: every marker in it becomes its control token, and nothing is added around it."""
    encoded = tokenizer.encode(text, add_special_tokens=False)
    return list(getattr(encoded, "ids", encoded))


def spell(script: str, tokenizer: Any) -> list[int]:
    """Encode a script: markers as control tokens, but character by character between ‹ and ›."""
    return script_ids(script, lambda text: encode(text, tokenizer))
