"""Which parser names this package answers to in an engine, and which stay the engine's own."""

import os
from collections.abc import Iterator
from typing import Final

from vllm_reasoning_ext.core.families import FAMILIES
from vllm_reasoning_ext.core.more import MORE

KEEP_BUILTIN: Final = "VLLM_REASONING_EXT_KEEP_BUILTIN"
"""Comma-separated parser names that stay the engine's own, or `all`."""


_ONLY_EXT: Final = frozenset(record.name for record in MORE)
"""Families whose plain names are the engines' own: who asks for `kimi_k2` gets the engine's parser."""


def parser_names() -> Iterator[tuple[str, str]]:
    """List every parser name we answer to, with the name of its family.

    Returns:
        pairs (parser name, family name): the seven families and those registered at run time, with their aliases; and
        of every family `<family>_ext`, which never collides with a name of the engine (SPEC sections 7 and 8).
    """
    for name, family in FAMILIES.items():
        if name not in _ONLY_EXT:
            yield name, name
            for alias in family.aliases:
                yield alias, name
        yield f"{name}_ext", name


def kept_builtin(name: str) -> bool:
    """Tell whether the operator asked for the engine's own parser of this name."""
    kept = {part.strip() for part in os.environ.get(KEEP_BUILTIN, "").split(",")}
    return name in kept or "all" in kept


def class_name(family: str) -> str:
    """Name the adapter class of a family: `muse_glimmer` -> `MuseGlimmerParser`."""
    return "".join(part.capitalize() for part in family.split("_")) + "Parser"
