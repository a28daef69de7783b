"""Which parser names this package answers to in an engine, and which stay the engine's own."""

import os
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Final, NamedTuple

from vllm_reasoning_ext.core.builtin import SEVEN
from vllm_reasoning_ext.core.families import AUTO, FAMILIES

KEEP_BUILTIN: Final = "VLLM_REASONING_EXT_KEEP_BUILTIN"
"""Comma-separated parser names that stay the engine's own, or `all`."""


_SEVEN: Final = frozenset(record.name for record in SEVEN)
_BUILT_IN: Final = frozenset(FAMILIES)


class ParserName(NamedTuple):
    """A name that this package answers to.

    Attributes:
        name: the parser's name.
        family: whose outputs it splits.
        replaces: it takes the place of an engine's own parser of the name; else it is there where the name is free.
    """

    name: str
    family: str
    replaces: bool


def parser_names() -> Iterator[ParserName]:
    """List every parser name that this package answers to.

    The seven families, and those registered at run time, replace a parser of their name; the others leave it to the
    engine: who asks for `kimi_k2` gets the engine's. `<family>_ext` is always this package's (SPEC sections 7 and 8),
    and so is `auto`, whose family is read from the model (its "family" here is `auto`).
    """
    for name, family in tuple(FAMILIES.items()):
        replaces = name in _SEVEN or name not in _BUILT_IN
        for known in (name, *family.aliases):
            yield ParserName(known, name, replaces)
        yield ParserName(f"{name}_ext", name, True)
    for name in AUTO:
        yield ParserName(name, AUTO[0], True)


def served_name(family: str) -> str:
    """Give the parser name by which every engine serves a family with this package."""
    return f"{family}_ext" if family in _BUILT_IN and family not in _SEVEN else family


def kept_names() -> frozenset[str]:
    """Read which parsers the operator keeps as the engine's own; `all` is among them if so asked."""
    return frozenset(filter(None, (part.strip() for part in os.environ.get(KEEP_BUILTIN, "").split(","))))


def unknown_kept(builtin: Iterable[str]) -> str:
    """Say what in the operator's list is no parser of the engine, with the likely name; "" where all is right.

    Args:
        builtin: the engine's own parser names.
    """
    known = {name.lower(): name for name in (*builtin, AUTO[0], "all")}
    parts = []
    for name in sorted(kept_names()):
        if name.lower() not in known:
            near = get_close_matches(name.lower(), known, 1)
            parts.append(f"{name!r}" + (f" (did you mean {known[near[0]]}?)" if near else ""))
    return ", ".join(parts)


def kept_builtin(name: str) -> bool:
    """Tell whether the operator asked for the engine's own parser of this name."""
    kept = kept_names()
    return name in kept or "all" in kept


def class_name(family: str) -> str:
    """Name the adapter class of a family: `muse_glimmer` -> `MuseGlimmerParser`."""
    return "".join(part.capitalize() for part in family.split("_")) + "Parser"
