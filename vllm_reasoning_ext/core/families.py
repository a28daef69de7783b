"""The families by name, how one is looked up and how one is added (SPEC sections 3 and 5)."""

import difflib
import re
from dataclasses import fields, replace
from typing import Any, Final, Protocol

from vllm_reasoning_ext.core.builtin import SEVEN
from vllm_reasoning_ext.core.more import MORE
from vllm_reasoning_ext.core.record import Family, MarkerPair, Part, Shape, Tool
from vllm_reasoning_ext.core.suffix import fitted

__all__ = [
    "FAMILIES",
    "Family",
    "MarkerPair",
    "Part",
    "Shape",
    "Tool",
    "get_family",
    "infer_by_name",
    "names",
    "register_family",
]

AUTO: Final = ("auto", "auto_ext")
"""Names under which the family is read from a tokenizer and a chat template (SPEC section 8)."""

FAMILIES: Final[dict[str, Family]] = {record.name: record for record in (*SEVEN, *MORE)}
"""The families by name; `register_family` adds to it."""

_APPEND_THINK: Final = (
    "under it the engine puts <think> before the text and leaves all of it in the content; "
    "minimax splits the same models"
)
_NO_FORM: Final = (
    "under it the engine follows the response_template of a tokenizer, whatever its markers; "
    "auto reads that template too"
)

LEFT_OUT: Final = {
    "muse": "in vLLM it follows the rules of Muse Spark, in SGLang those of Muse Glimmer; the latter are muse_glimmer",
    "musespark1x": "in vLLM it follows the rules of Muse Spark, for which there is no family; muse_glimmer reads a "
    "message without recipient as answer, Spark as reasoning",
    "minimax_m2_append_think": _APPEND_THINK,
    "minimax-append-think": _APPEND_THINK,
    "hf": _NO_FORM,
    "response_template": _NO_FORM,
}
"""Parser names of the engines that no family answers to, and why."""


def names() -> list[str]:
    """List every parser name, aliases and the engines' own names included."""
    return [name for record in FAMILIES.values() for name in (record.name, *record.aliases, *record.engine_names)]


class Chooser(Protocol):
    """Decides what `auto` means."""

    def __call__(self, tokenizer: Any, chat_template: str | None) -> Family:
        """Choose the record for a tokenizer and a chat template, either of which may be None."""


_chooser: list[Chooser] = []


def use_chooser(chooser: Chooser) -> None:
    """Set who decides what `auto` means: reading chat templates is no matter of the core."""
    _chooser[:] = [chooser]


def resolve_family(family: str | Family, tokenizer: Any = None, chat_template: str | None = None) -> Family:
    """Give the record that is meant: a record itself, one by name, or what `auto` chooses.

    Args:
        family: a record, a name, an alias, or `auto`.
        tokenizer, chat_template: what `auto` goes by; the tokenizer's own template if none is given. The tokenizer also
            tells the suffix of a family whose checkpoints write one into their markers.

    Raises:
        ValueError: the name is unknown, or `auto` was given nothing to go by.
        SetupError: the chat template cannot be rendered, or nothing decides between several families.
    """
    if isinstance(family, Family):
        return fitted(family, tokenizer) if family.suffixes else family
    if family not in AUTO:
        record = get_family(family)
        return fitted(record, tokenizer) if record.suffixes else record
    if tokenizer is None and not chat_template:
        raise ValueError(
            "'auto' reads the family from a tokenizer or a chat template: give tokenizer= or chat_template=."
        )
    (chooser,) = _chooser
    return chooser(tokenizer, chat_template)


def get_family(name: str) -> Family:
    """Look a family up by its name, one of its aliases or what an engine calls its own parser of the same models.

    Raises:
        ValueError: the name is unknown; the message lists the names and suggests the nearest.
    """
    record = FAMILIES.get(name)
    if record is not None:
        return record
    for record in FAMILIES.values():
        if name in record.aliases or name in record.engine_names:
            return record
    if name in AUTO:
        raise ValueError("'auto' has no record of its own: it is read from a tokenizer or a chat template.")
    if name in LEFT_OUT:
        raise ValueError(f"{name!r} is an engine's parser, not a family: {LEFT_OUT[name]}.")
    if name == "inline":
        raise ValueError("'inline' is no family with markers of its own; only Splitter and split() take it.")
    known = [*names(), "inline"]
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"unknown reasoning family {name!r}.{hint} Known names: {', '.join(sorted(known))}.")


def register_family(record: Family) -> Family:
    """Add a marker family at run time (SPEC section 3, 5.5).

    Args:
        record: the new family; `dataclasses.replace` of an existing record is the short way to one.

    Returns:
        the record as registered, its budget strings filled in. The same record may be registered again.

    Raises:
        ValueError: it cannot work, or its name is taken by another record; the message names field and remedy.
    """
    check_record(record)
    filled = replace(
        record,
        reasoning_start_str=record.reasoning_start_str or record.opener,
        reasoning_end_str=record.reasoning_end_str or record.closer,
    )
    if FAMILIES.get(record.name) == filled:
        return FAMILIES[record.name]
    for name in (record.name, *record.aliases, *record.engine_names):
        if name in ("inline", *AUTO) or name in names():
            raise ValueError(f"the family name {name!r} is taken by another record; choose another.")
        if name.endswith("_ext"):
            raise ValueError(f"name {name!r}: '_ext' is what engines' registries add; choose a name without it.")
    FAMILIES[record.name] = filled
    return filled


def check_record(record: Family) -> None:
    """Refuse a record that no output could be split by.

    Raises:
        ValueError: the message names the field and the remedy.
    """
    name = record.name
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, str) != isinstance(field.default, str) and field.name != "name":
            wanted = "a string" if isinstance(field.default, str) else "a tuple"
            hint = f", e.g. ({value!r},)" if isinstance(value, str) else ""
            raise ValueError(f"{name!r}: {field.name} must be {wanted}{hint}, not {value!r}.")
    if record.channels:
        raise ValueError(f"{name!r}: only marker families can be registered; use grammar='marker'.")
    if not name or not record.opener or not all(opener and closer for opener, closer in record.pairs):
        raise ValueError(f"{name!r}: a marker family needs a name and two different markers, opener and closer.")
    if record.tool_marker and not record.call_shapes:
        raise ValueError(f"{name!r}: a tool_marker needs call_shapes beside it: how its calls begin.")
    _check_markers(record)


def _check_markers(record: Family) -> None:
    openers = {opener for opener, _ in record.pairs}
    for opener, closer in record.pairs:
        if opener == closer:
            raise ValueError(f"{record.name!r}: a pair needs two different markers; opener and closer are {opener!r}.")
    for tool in record.tools:
        if not tool.marker or not tool.shapes:
            raise ValueError(f"{record.name!r}: more_tools: a Tool needs a marker and shapes.")
        if tool.marker in openers or tool.marker in {closer for _, closer in record.pairs}:
            raise ValueError(f"{record.name!r}: the tool_marker {tool.marker!r} is an opener or closer as well.")
    for marker in record.markers:
        longer = next((m for m in record.markers if m != marker and m.startswith(marker)), None)
        if longer is not None:
            raise ValueError(
                f"{record.name!r}: the marker {marker!r} begins the marker {longer!r}, so what it is would depend on "
                "how the output is cut; leave one of them out."
            )


# Order matters: a special case stands before the family it is a case of. Every pattern of a row must match.
_INFERENCE: Final = (
    ((r"gpt[-_]?oss",), "gpt_oss"),
    ((r"muse", r"glimmer"), "muse_glimmer"),
    ((r"deepseek", r"v4|v3\.2|v32"), "deepseekv32"),
    ((r"deepseek", r"r1|v3\.1|v31"), "qwen3"),
    ((r"kimi[-_ ]?k3",), "kimi_k3"),
    ((r"kimi[-_ ]?k2(?!.*instruct)",), "kimi_k2"),
    ((r"kimi", r"k1\.5|vl.*think"), "kimi"),
    ((r"seed[-_ ]?oss",), "seed_oss"),
    ((r"magistral|ministral.*reasoning|mistral[-_ ](small[-_ ]4|medium[-_ ]3\.5)",), "mistral"),
    ((r"command[-_ ]?(a|r7b)\b",), "cohere"),
    ((r"nemotron.*nano", r"v2"), "nemotron_nano_v2"),
    ((r"nemotron[-_ ]?3",), "qwen3"),
    ((r"granite[-_ ]?3\.2",), "granite"),
    ((r"granite[-_ ]?3\.3",), "granite33"),
    ((r"granite[-_ ]?4\.2",), "qwen3"),
    ((r"hunyuan.*a13b",), "hunyuan_a13b"),
    ((r"\bhy[-_ ]?[34]\b|hunyuan[-_ ]?[34]\b",), "hunyuan"),
    ((r"step[-_ ]?(3[.p][57]|5)\b",), "qwen3"),
    ((r"step[-_ ]?3\b",), "step3"),
    ((r"\bling[-_ ]?3",), "ling3"),
    ((r"laguna",), "poolside_v1"),
    ((r"olmo[-_ ]?3.*think",), "olmo3"),
    ((r"ernie[-_ ]?4\.5.*think",), "ernie45"),
    ((r"k2[-_ ]?horizon",), "k2_horizon"),
    ((r"plamo[-_ ]?3",), "plamo3"),
    ((r"gigachat[-_ ]?3\.5",), "gigachat35"),
    ((r"iquest", r"q1"), "iquest_q1"),
    ((r"reka[-_ ]?edge",), "reka"),
    ((r"(^|/)spark[-_ ]?2\.5",), "spark25"),
    ((r"minicpm[-_ ]?5",), "minicpm5"),
    ((r"\bmimo[-_ ]|bielik.*v3|smollm3|baichuan[-_ ]?m2",), "qwen3"),
    ((r"lfm2\.5",), "lfm2"),
    ((r"rwkv",), "rwkv"),
    ((r"\bkat[-_ ]?v1",), "kat_v1"),
    ((r"inkling",), "inkling"),
    ((r"apertus",), "apertus"),
    ((r"apriel",), "apriel"),
    ((r"solar[-_ ]?open",), "solar"),
    ((r"holo2",), "holo2"),
    ((r"intern[-_ ]?s1",), "interns1"),
    ((r"qwen[-_ ]?3",), "qwen3"),
    ((r"qwq",), "qwen3"),
    ((r"glm",), "qwen3"),
    ((r"minimax[-_]?m3",), "minimax_m3"),
    ((r"minimax",), "minimax"),
    ((r"gemma[-_ ]?4",), "gemma4"),
)


def infer_by_name(name: str) -> tuple[str | None, str]:
    """Decide the family from a model's name.

    Returns:
        the family name (None when unknown) and the reason in words.
    """
    lowered = name.lower()
    for patterns, family in _INFERENCE:
        if all(re.search(pattern, lowered) for pattern in patterns):
            return family, f"the name {name!r} matches {' and '.join(map(repr, patterns))}"
    return None, f"the name {name!r} matches no known family"
