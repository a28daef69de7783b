"""What `auto` chooses for a model, and why (SPEC section 8, steps 1 to 4)."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from vllm_reasoning_ext.core.families import FAMILIES, infer_by_name
from vllm_reasoning_ext.core.record import Family
from vllm_reasoning_ext.core.suffix import fitted
from vllm_reasoning_ext.derive.derivation import Derivation, derive
from vllm_reasoning_ext.derive.tool_parsers import ToolParsers, tool_parsers
from vllm_reasoning_ext.errors import SetupError


class Choice(NamedTuple):
    """The record for a model.

    Attributes:
        family: a built-in record or a derived one; None where the model shows no reasoning: all is content.
        reason: why, in one sentence without a full stop.
        tool_parsers: the engines' tool-call parsers that read its calls.
        warnings: what its operator should know; where `family` is None, the remedy.
        derivation: what the chat template showed; None where there is no template.
    """

    family: Family | None
    reason: str
    tool_parsers: ToolParsers
    warnings: tuple[str, ...]
    derivation: Derivation | None = None


def choose(
    template: str | None, tokenizer: Any = None, config: Mapping[str, Any] | None = None, name: str | None = None
) -> Choice:
    """Choose a model's family.

    Args:
        template: its chat template; None or "" where it has none.
        tokenizer: its tokenizer, if at hand.
        config: its `config.json`, if at hand.
        name: its name or directory; breaks ties, and decides only where nothing else does.

    Raises:
        SetupError: the template cannot be rendered, or nothing decides between several families.
    """
    found = derive(template, tokenizer) if template else None
    if found is not None and found.family is not None:
        return _by_template(found, found.family, name)
    elsewhere = _by_vocabulary(tokenizer, config, name) or _by_names(config, name)
    warnings = tuple(found.warnings) if found is not None else ()
    if elsewhere is not None:
        family, reason = elsewhere
        shown = "the chat template shows no reasoning marker" if template else "there is no chat template"
        if not (family.tools or family.channels):
            # Any model that thinks between such tokens would fit: nothing of its calls was seen.
            warnings += (f"{shown}, and family {family.name} writes no calls: name one if answers or calls go wrong",)
        return Choice(family, f"{shown}; {reason}", tool_parsers(family), warnings, found)
    seen = "the chat template shows no reasoning" if template else "there is no chat template"
    remedy = "if the model does reason, name its family: --reasoning-parser NAME (`vllm-reasoning-ext families`)"
    return Choice(
        None,
        f"{seen}, and neither vocabulary, config nor name tells a family",
        ToolParsers((), ()),
        (f"{seen}: everything is content; {remedy}", *warnings),
        found,
    )


def _by_template(found: Derivation, record: Family, name: str | None) -> Choice:
    """Take the built-in family that reads the template's output, the name breaking ties; else the derived record."""
    warnings = tuple(found.warnings)
    if not found.matches:
        proof = next((p for p in found.proofs if p.field in ("opener", "opener, closer")), None)
        reason = f"read from the chat template: {record.opener!r} … {record.closer!r} ({proof.why if proof else ''})"
        return Choice(record, reason, tool_parsers(record), warnings, found)
    named, _ = infer_by_name(name) if name else (None, "")
    chosen = named if named is not None and named in found.matches else found.matches[0]
    reason = f"the chat template writes what family {chosen} reads"
    others = [match for match in found.matches if match != chosen]
    if others and chosen == named:
        reason += f", and the name {name!r} says which of {', '.join(found.matches)}"
    elif others and not record.tools:
        # Only their calls could tell them apart, and this template writes none.
        warnings += (f"the chat template writes no calls: {', '.join(others)} fit as well; name one if calls go wrong",)
    return Choice(FAMILIES[chosen], reason, tool_parsers(FAMILIES[chosen], record), warnings, found)


def _by_vocabulary(tokenizer: Any, config: Mapping[str, Any] | None, name: str | None) -> tuple[Family, str] | None:
    """Find the families all of whose markers the vocabulary holds, and keep those that need the most."""
    vocabulary = _tokens(tokenizer)
    if not vocabulary:
        return None
    # A family whose checkpoints write a suffix into their markers is judged with the one that this vocabulary has.
    families = [fitted(family, tokenizer) for family in FAMILIES.values()]
    needs = {family: needed for family in families if (needed := _needed(family)) and needed <= vocabulary}
    fitting = [family for family, needed in needs.items() if not any(needed < other for other in needs.values())]
    if not fitting:
        return None
    if len(fitting) > 1:
        told = next((family for word in _words(config, name) if (family := infer_by_name(word)[0])), None)
        fitting = [family for family in fitting if family.name == told] or fitting
    if len(fitting) > 1:
        raise SetupError(
            "the vocabulary fits several families, and neither config nor name says which",
            ", ".join(family.name for family in fitting),
            f"name one: --reasoning-parser {fitting[0].name}",
        )
    return fitting[0], f"the vocabulary holds {', '.join(sorted(needs[fitting[0]]))}"


def _needed(family: Family) -> frozenset[str]:
    """List the tokens that tell a family: its boundaries and its tool marker, in their pieces where they have any."""
    parts = dict(family.parts)
    markers = [*family.boundaries, *(tool.marker for tool in family.tools[:1])]
    return frozenset(piece for marker in markers for piece in parts.get(marker, (marker,)))


def _tokens(tokenizer: Any) -> frozenset[str]:
    get = getattr(tokenizer, "get_vocab", None)
    return frozenset(get()) if get is not None else frozenset()


def _words(config: Mapping[str, Any] | None, name: str | None) -> Iterator[str]:
    """List what names the model: the config's type and architectures, then its name."""
    config = config or {}
    yield from (str(word) for word in (config.get("model_type"), *(config.get("architectures") or ())) if word)
    if name:
        yield name


def _by_names(config: Mapping[str, Any] | None, name: str | None) -> tuple[Family, str] | None:
    for word in _words(config, name):
        family, why = infer_by_name(word)
        if family is not None:
            return FAMILIES[family], why
    return None
