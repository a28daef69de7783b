"""What bad input gets: a table of hostile outputs, each with what must come of it; nothing is timed."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.bounds import hold_bound
from tests.support.strategies import NAMES, PROMPTS
from vllm_reasoning_ext import FAMILIES, Splitter, split
from vllm_reasoning_ext.conformance.char_tokenizer import CharTokenizer
from vllm_reasoning_ext.core.builtin import SEVEN
from vllm_reasoning_ext.core.grammar.tags import DEFAULT_TAGS

MARKERS = {**{n: r.markers for n, r in FAMILIES.items()}, "inline": tuple(t for pair in DEFAULT_TAGS for t in pair)}
# What a body begins and ends with; the single token that opens is what is repeated a million times.
OPENERS = {
    **{name: record.opener or record.reasoning_start_str for name, record in FAMILIES.items()},
    "inline": "<think>",
}
ONE_OPENER = OPENERS | {"gpt_oss": "<|channel|>", "muse_glimmer": "<|start|>"}
CLOSERS = {name: record.closer or record.reasoning_end_str for name, record in FAMILIES.items()} | {
    "inline": "</think>"
}
FULL = {*(record.name for record in SEVEN), "inline"}
MILLION, SWITCHES, TEN_MB = 1_000_000, 100_000, 10_000_000


class Hostile(NamedTuple):
    """An output, and whether all of it is shown as content (None: SPEC says otherwise, only the laws hold)."""

    text: str
    all_content: bool | None


def hostile(name: str) -> Iterator[tuple[str, Hostile]]:
    # The families beyond the seven run on the same grammar: for them a twentieth shows as much.
    share = 1 if name in FULL else 20
    million, switches, ten_mb = MILLION // share, SWITCHES // share, TEN_MB // share
    others = sorted({marker for other in NAMES for marker in MARKERS[other]} - set(MARKERS[name]))
    foreign = "".join(m for m in others if not any(own in m for own in MARKERS[name]))
    yield "lone surrogates", Hostile("\ud800\udfff \udc00" * 1000, True)
    yield "NUL", Hostile("\0" * 100_000, True)
    yield "10 MB of <", Hostile("<" * ten_mb, True)
    yield "openers", Hostile(ONE_OPENER[name] * million, None)
    yield "closers only", Hostile(CLOSERS[name] * switches, None)
    yield "switches", Hostile((OPENERS[name] + "a" + CLOSERS[name]) * switches, None)
    yield "to= without end", Hostile("to=" * switches, True)
    yield "to=name without end", Hostile("to=" + "n" * million, True)
    yield "foreign", Hostile("x" + foreign, True)
    yield "blanks", Hostile(" \n" * million, None)
    yield "half markers", Hostile("".join(m[:-1] for m in MARKERS[name]) * 1000, None)


CASES = [pytest.param(name, case, id=f"{name}-{what}") for name in NAMES for what, case in hostile(name)]


def deltas(text: str) -> Iterator[str]:
    """Cut into a beginning of single characters and then large pieces, so that a table of megabytes stays quick."""
    yield from text[:200]
    for at in range(200, len(text), 65_537):
        yield text[at : at + 65_537]


@pytest.mark.parametrize(("name", "case"), CASES)
def test_hostile_output(name: str, case: Hostile) -> None:
    # The plainest start: nothing in the prompt opens a block, so text is answer.
    options: dict[str, Any] = {} if name == "inline" else {"force_reasoning": False}
    splitter = Splitter(name, **options)
    raw, content, released, fed = [], [], 0, 0
    for part in deltas(case.text):
        delta = splitter.feed(part)
        new = [event.text for event in delta.events if not event.synthetic]
        raw.extend(new)
        content.append(delta.content)
        released += sum(map(len, new))
        fed += len(part)
        assert fed - released <= hold_bound(name)
    last = splitter.finish()
    raw.extend(event.text for event in last.events if not event.synthetic)
    assert "".join(raw) == case.text
    if case.all_content:
        assert "".join([*content, last.content]) == case.text


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_markers_typed_in_the_prompt_change_nothing(name: str) -> None:
    """Every marker of every family, typed by the user before the last turn opener."""
    # A family whose models' turns nobody has seen is told the turn opener.
    told: dict[str, Any] = {} if FAMILIES[name].turn_openers else {"turn_openers": ("[assistant]",)}
    opener = (FAMILIES[name].turn_openers or told["turn_openers"])[0]
    ending = next((p[p.index(opener) :] for p in PROMPTS[name] if opener in p), opener)
    output = f"an answer, {OPENERS[name]}then{CLOSERS[name]} its end"
    typed = " ".join(marker for other in NAMES for marker in MARKERS[other])
    for order in (typed, " ".join(reversed(typed.split(" ")))):
        prompt = f"{opener}{order}\n{ending}"
        assert Splitter(name, prompt, **told).start.kind == Splitter(name, ending, **told).start.kind
        assert split(output, name, prompt=prompt, **told) == split(output, name, prompt=ending, **told)


@pytest.mark.parametrize("name", sorted(FAMILIES))
@pytest.mark.parametrize("ids", [[1], [0x200000] * 500, [ord("x")] * 5000, list(range(60, 90)) * 99])
def test_ids_that_match_no_text(name: str, ids: list[int]) -> None:
    """The text rules apply from where ids and text disagree; nothing is lost, nothing raised."""
    text = f"a{OPENERS[name]}b{CLOSERS[name]}c"
    splitter = Splitter(name, tokenizer=CharTokenizer.of_family(name))
    events = [e for c in text for e in splitter.feed(c, ids).events] + list(splitter.finish().events)
    assert "".join(e.text for e in events if not e.synthetic) == text


@pytest.mark.parametrize("name", NAMES)
def test_empty_deltas_and_text_without_ids(name: str) -> None:
    text = f"{OPENERS[name]}b{CLOSERS[name]}c"
    plain = split(text, name)
    given = {} if name == "inline" else {"tokenizer": CharTokenizer.of_family(name)}
    splitter = Splitter(name, **given)
    parts = [splitter.feed(part) for c in text for part in ("", c, "")]
    parts.append(splitter.finish())
    assert "".join(d.reasoning for d in parts) == plain.reasoning
    assert "".join(d.content for d in parts) == plain.content
    assert not splitter.held


@pytest.mark.parametrize("name", NAMES)
def test_a_finished_splitter_says_what_to_do(name: str) -> None:
    splitter = Splitter(name)
    splitter.finish()
    with pytest.raises(RuntimeError, match="new Splitter"):
        splitter.feed("x")
    with pytest.raises(RuntimeError, match="new Splitter"):
        splitter.finish()
