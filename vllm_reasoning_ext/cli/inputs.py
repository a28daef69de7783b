"""Reading what a command is given: texts, token ids and model directories; each fault names its remedy."""

import codecs
import difflib
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from vllm_reasoning_ext.cli import paint
from vllm_reasoning_ext.cli.engine_names import family_for
from vllm_reasoning_ext.core.families import FAMILIES, get_family
from vllm_reasoning_ext.errors import SetupError


def read_text(path: str) -> str:
    """Read a text to the character; `-` is standard input.

    What is no UTF-8 becomes U+FFFD, as engines decode it, and is told on standard error: tokenizers and readers of
    JSON refuse the lone surrogates that would keep the bytes.

    Raises:
        SetupError: it cannot be read.
    """
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise SetupError(
            f"cannot read {path}: {error.strerror}", path, "give an existing file, or - for standard input"
        ) from error
    if data.startswith(codecs.BOM_UTF8):
        told = f"{_shown(path)} begins with a UTF-8 byte order mark: it is left out"
        paint.line(paint.console(stderr=True), ("warning: ", "warn"), told)
        data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{_shown(path)} is not UTF-8"
        told = f"{where} (byte {error.start} is 0x{data[error.start]:02x}): \ufffd stands for what cannot be read"
        paint.line(paint.console(stderr=True), ("warning: ", "warn"), told)
        return data.decode("utf-8", errors="replace")


def _shown(path: str) -> str:
    return "standard input" if path == "-" else path


def read_ids(path: str) -> list[int]:
    """Read token ids: a JSON list, or numbers with anything but digits between them.

    Raises:
        SetupError: no list of whole numbers is there.
    """
    text = read_text(path)
    try:
        ids = json.loads(text)
    except ValueError:
        ids = [int(number) for number in re.findall(r"-?\d+", text)] if re.fullmatch(r"[-\d\s,;]+", text) else None
    if isinstance(ids, int):
        ids = [ids]
    if not isinstance(ids, list) or not all(isinstance(n, int) and not isinstance(n, bool) for n in ids):
        raise SetupError(
            f"{path} holds no list of token ids", path, "write the ids as [1, 2, 3], or as numbers with blanks between"
        )
    below = next((n for n in ids if n < 0), None)
    if below is not None:
        raise SetupError(
            f"{below} is no token id: ids are 0 or greater", path, "write the ids as the engine gives them: [1, 2, 3]"
        )
    return ids


Choice = TypeVar("Choice", bound=str)


def one_of(option: str, value: str, allowed: Sequence[Choice]) -> Choice:
    """Check an option's value.

    Args:
        option: its name, for the message.
        value: what was given.
        allowed: the values of its type, by `typing.get_args`.

    Raises:
        SetupError: it is none of them; the message suggests the nearest.
    """
    found = next((each for each in allowed if each == value), None)
    if found is not None:
        return found
    near = difflib.get_close_matches(value, allowed, n=1)
    hint = f", or did you mean {near[0]}?" if near else ""
    raise SetupError(f"{option} cannot be {value!r}", option, f"choose one of {', '.join(allowed)}{hint}")


def check_family(name: str, *, inline: bool = False) -> str:
    """Return the family's own name.

    Args:
        name: a family or an alias; a trailing `_ext`, as the engines know it, will do.
        inline: accept "inline" too.

    Raises:
        SetupError: nobody of that name; the message lists the names.
    """
    if name == "inline":
        if inline:
            return name
        raise SetupError(
            "inline tags belong to no model, so there is no template or tokenizer to look at",
            "--family inline",
            f"choose one of {', '.join(FAMILIES)}",
        )
    try:
        return get_family(name.removesuffix("_ext")).name
    except ValueError as error:
        other = family_for(name)
        if other is not None:
            problem = f"{name} is the name of {other[1]}, not of a family; the family that serves it is {other[0]}"
            raise SetupError(problem, f"--family {name}", f"--family {other[0]}") from error
        known = ", ".join([*FAMILIES, *(["inline"] if inline else [])])
        # The core's message ends in the names, "inline" among them, which not every command takes.
        problem = str(error).partition(" Known names")[0].removesuffix(".")
        raise SetupError(problem, f"--family {name}", f"choose one of {known}") from error
