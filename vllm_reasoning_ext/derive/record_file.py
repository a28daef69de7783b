"""A family record as a file, and as Python: written, read back, and refused by field (SPEC 5.5, `--family-file`)."""

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from vllm_reasoning_ext.core.families import check_record, register_family
from vllm_reasoning_ext.core.record import BLANKS, ID, NAME, ONE_SPACE, QUOTED_NAME, TEXT, WORD, Family, Part, Tool
from vllm_reasoning_ext.errors import SetupError

_PARTS: Final = (BLANKS, ONE_SPACE, NAME, WORD, QUOTED_NAME, ID, TEXT)
_REMEDY: Final = "correct the field; `vllm-reasoning-ext derive TEMPLATE --json` writes a valid record"
_SHAPES: Final = "call_shapes"
_PAIRS: Final = ("more_pairs", "text_pairs", "answer")


def to_json(family: Family) -> str:
    """Write a record as JSON: every field that differs from its default, parts of shapes as `{"part": "blanks"}`."""
    return json.dumps(as_fields(family), ensure_ascii=False, indent=2) + "\n"


def as_fields(family: Family) -> dict[str, Any]:
    """Write a record as values that JSON has, as `to_json` does."""
    return {field.name: _plain(getattr(family, field.name)) for field in fields(Family) if _told(family, field)}


def to_python(family: Family) -> str:
    """Write a record as a Python module that registers it."""
    parts = {part for shape in _shapes(family) for part in shape if isinstance(part, Part)}
    names = ["Family", *(["Part"] if parts else []), *(["Tool"] if family.more_tools else [])]
    lines = [
        "from vllm_reasoning_ext import register_family",
        f"from vllm_reasoning_ext.core.families import {', '.join(names)}",
        "",
        "register_family(",
        "    Family(",
        *(f"        {f.name}={getattr(family, f.name)!r}," for f in fields(Family) if _told(family, f)),
        "    )",
        ")",
        "",
    ]
    return "\n".join(lines)


def from_json(text: str, where: str = "the record") -> Family:
    """Read a record from JSON.

    Args:
        text: what `to_json` writes.
        where: the file's name, for errors.

    Raises:
        SetupError: the text is no JSON object, or a field is unknown, of a wrong type or cannot work.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise SetupError(f"the record is no JSON: {error}", where, _REMEDY) from error
    if not isinstance(value, dict):
        raise SetupError(f"the record must be a JSON object, not {type(value).__name__}", where, _REMEDY)
    known = {field.name: field for field in fields(Family)}
    read: dict[str, Any] = {}
    for name, given in value.items():
        if name not in known:
            raise SetupError(f"the record has an unknown field {name!r}", where, f"known: {', '.join(known)}")
        read[name] = _field(name, known[name].default if name != "name" else "", given, where)
    if not read.get("name"):
        raise SetupError("the record has no field 'name'", where, 'add "name": "my_family"')
    record = Family(**read)
    try:
        check_record(record)
    except ValueError as error:
        raise SetupError(f"the record cannot work: {error}", where, _REMEDY) from error
    return record


def read_record(path: str | Path) -> Family:
    """Read a record file.

    Raises:
        SetupError: there is no such file, or it holds no valid record.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(
            f"cannot read the record: {error}", str(path), "give a JSON file with a family record"
        ) from error
    return from_json(text, str(path))


FAMILY_FILE: Final = "VLLM_REASONING_EXT_FAMILY_FILE"
"""Environment variable: record files to register, separated as in PATH."""


def register_files(paths: str) -> list[Family]:
    """Register the records of files, for instance those that `FAMILY_FILE` names.

    Args:
        paths: one path, or several separated as in PATH.

    Raises:
        SetupError: a file cannot be read, holds no valid record, or a record whose name is taken.
    """
    found = []
    for path in filter(None, paths.split(os.pathsep)):
        record = read_record(path)
        try:
            found.append(register_family(record))
        except ValueError as error:
            raise SetupError(str(error).removesuffix("."), path, "give the record another name") from error
    return found


def _told(family: Family, field: Any) -> bool:
    return bool(field.name == "name" or getattr(family, field.name) != field.default)


def _shapes(family: Family) -> list[tuple[str | Part, ...]]:
    return [shape for tool in family.tools for shape in tool.shapes]


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        return {"part": value.what}
    if isinstance(value, Tool):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(Tool)}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _field(name: str, default: Any, given: Any, where: str) -> Any:
    if isinstance(default, bool | str):
        if type(given) is not type(default):
            raise _wrong(name, "true or false" if isinstance(default, bool) else "a string", given, where)
        return given
    if not isinstance(given, list):
        raise _wrong(name, "a list", given, where)
    if name == _SHAPES:
        return tuple(_shape(name, shape, where) for shape in given)
    if name == "more_tools":
        return tuple(_tool(name, tool, where) for tool in given)
    if name in _PAIRS:
        return tuple(_pair(name, pair, where) for pair in given)
    if name == "parts":
        return tuple(_made_of(name, entry, where) for entry in given)
    return _strings(name, given, where)


def _strings(name: str, given: Any, where: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(item, str) for item in given):
        raise _wrong(name, "a list of strings", given, where)
    return tuple(given)


def _pair(name: str, given: Any, where: str) -> tuple[str, str]:
    pair = _strings(name, given, where)
    if len(pair) != 2:
        raise _wrong(name, "a list of pairs of strings", given, where)
    return pair[0], pair[1]


def _made_of(name: str, given: Any, where: str) -> tuple[str, tuple[str, ...]]:
    if not isinstance(given, list) or len(given) != 2 or not isinstance(given[0], str):
        raise _wrong(name, "a list of [marker, [piece, ...]]", given, where)
    return given[0], _strings(name, given[1], where)


def _shape(name: str, given: Any, where: str) -> tuple[str | Part, ...]:
    if not isinstance(given, list) or not given:
        raise _wrong(name, "a list of lists", given, where)
    shape: list[str | Part] = []
    for piece in given:
        if isinstance(piece, str):
            shape.append(piece)
        elif isinstance(piece, dict) and set(piece) == {"part"} and piece["part"] in _PARTS:
            shape.append(Part(piece["part"]))
        else:
            raise _wrong(name, f'strings and {{"part": one of {", ".join(_PARTS)}}}', piece, where)
    return tuple(shape)


def _tool(name: str, given: Any, where: str) -> Tool:
    if not isinstance(given, dict) or not {"marker", "shapes"} <= set(given) <= {field.name for field in fields(Tool)}:
        raise _wrong(
            name, "a list of objects with marker, shapes, and optionally closers and ends_thought", given, where
        )
    marker, ends = given["marker"], given.get("ends_thought", True)
    if not isinstance(marker, str) or not isinstance(ends, bool) or not isinstance(given["shapes"], list):
        raise _wrong(name, "objects of a string, a list and true or false", given, where)
    shapes = tuple(_shape(f"{name}.shapes", shape, where) for shape in given["shapes"])
    return Tool(marker, shapes, _strings(f"{name}.closers", given.get("closers", []), where), ends)


def _wrong(name: str, wanted: str, given: Any, where: str) -> SetupError:
    shown = json.dumps(given, ensure_ascii=False)
    return SetupError(f"the record's field {name!r} must be {wanted}, not {shown[:120]}", where, _REMEDY)
