"""The laws of SPEC section 2, each for every family, on text and on token ids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import tried
from tests.support.bounds import hold_bound
from tests.support.strategies import NAMES, Sample, cuttings, id_cuttings, id_samples, text_samples, texts
from vllm_reasoning_ext import Splitter
from vllm_reasoning_ext.conformance.char_tokenizer import CharTokenizer
from vllm_reasoning_ext.conformance.runner import Fed, Outcome, replay
from vllm_reasoning_ext.core.families import FAMILIES

FAMILY_NAMES = sorted(FAMILIES)
every_name = pytest.mark.parametrize("name", NAMES)
every_family = pytest.mark.parametrize("name", FAMILY_NAMES)
with_turns = pytest.mark.parametrize("name", [name for name in FAMILY_NAMES if FAMILIES[name].turn_openers])
with_ends = pytest.mark.parametrize("name", [name for name in FAMILY_NAMES if FAMILIES[name].end_of_sequence])


def run(sample: Sample, deltas: list[Fed], **more: object) -> Outcome:
    return replay(Splitter(sample.family, **{**sample.options, **more}), deltas)


def raw(outcome: Outcome) -> str:
    return "".join([text for kind, text in outcome.split if kind[0] != "+"])


def kinds(outcome: Outcome) -> list[str]:
    """What each character of the output is."""
    return [kind for kind, text in outcome.split if kind[0] != "+" for _ in text]


def closing_any(name: str) -> set[str]:
    """The closers that close a block whatever opened it: of several pairs the opener decides (SPEC 5.5, N2)."""
    pairs = FAMILIES[name].pairs
    of = {opener: {closer for other, closer in pairs if other == opener} for opener, _ in pairs}
    return set.intersection(*of.values()) if of else set()


@every_name
@given(st.data())
def test_text_chunk_and_lossless(name: str, data: st.DataObject) -> None:
    """Laws 1 and 2, and the visible fields join to what the events say."""
    tried.one()
    sample = data.draw(text_samples(name))
    whole = run(sample, [(sample.text, None)])
    assert raw(whole) == sample.text
    assert whole.reasoning == "".join(t for k, t in whole.split if k.endswith("reasoning"))
    assert whole.content == "".join(t for k, t in whole.split if k.endswith(("content", "tool")))
    assert run(sample, [(c, None) for c in sample.text]) == whole
    assert run(sample, [(part, None) for part in data.draw(cuttings(sample.text))]) == whole


@every_family
@given(st.data())
def test_ids_chunk_and_lossless(name: str, data: st.DataObject) -> None:
    """Laws 1 and 2 with ids: real and quoted markers mixed, the text up to 24 characters behind."""
    tried.one()
    sample = data.draw(id_samples(name))
    more = {"tokenizer": CharTokenizer.of_family(name)}
    whole = run(sample, [(sample.text, [t.id for t in sample.tokens])], **more)
    assert raw(whole) == sample.text
    assert run(sample, [(t.text, [t.id]) for t in sample.tokens], **more) == whole
    assert run(sample, data.draw(id_cuttings(sample.tokens)), **more) == whole


@every_name
@given(st.data())
def test_no_retraction_and_bounded_hold(name: str, data: st.DataObject) -> None:
    """Law 3: what has come out is a prefix of the whole; what is kept back is never more than documented."""
    tried.one()
    sample = data.draw(text_samples(name))
    live = {key: value for key, value in sample.options.items() if key not in ("stream_reasoning", "floor")}
    splitter = Splitter(name, **live)
    whole = replay(Splitter(name, **live), [(sample.text, None)])
    buffered = live["max_buffer_bytes"] if live.get("unclosed") == "content" else 0
    fed, released, reasoning, content = 0, "", "", ""
    for part in data.draw(cuttings(sample.text)):
        delta = splitter.feed(part)
        fed += len(part)
        released += "".join(e.text for e in delta.events if not e.synthetic)
        reasoning += delta.reasoning
        content += delta.content
        assert sample.text.startswith(released)
        assert whole.reasoning.startswith(reasoning)
        assert whole.content.startswith(content)
        assert fed - len(released) <= hold_bound(name, buffered)
        if name != "inline":
            assert splitter.held == fed - len(released)


@every_family
@given(st.data())
def test_no_marker_leaks(name: str, data: st.DataObject) -> None:
    """Law 4, with ids: where a real control token ends up, character by character."""
    tried.one()
    sample = data.draw(id_samples(name))
    tokenizer = CharTokenizer.of_family(name)
    outcome = run(sample, [(sample.text, [t.id for t in sample.tokens])], tokenizer=tokenizer)
    what, at, record = kinds(outcome), 0, FAMILIES[name]
    for token in sample.tokens:
        kind = what[at : at + len(token.text)]
        at += len(token.text)
        if token.text not in tokenizer.ids or token.text not in record.markers:
            continue
        if record.grammar != "marker" or token.text in record.end_of_sequence:
            assert set(kind) <= {"marker", "tool"}, (token, kind)
        elif token.text in closing_any(name):
            assert "reasoning" not in kind, (token, kind)
        # Any other marker of a marker family is text where SPEC 5.1 says so.


@every_family
@given(st.data())
def test_no_marker_leaks_by_text(name: str, data: st.DataObject) -> None:
    """Law 4 without ids: no spelling inside one piece of what is shown, but for those section 5 calls text."""
    tried.one()
    sample = data.draw(text_samples(name))
    record = FAMILIES[name]
    shown = [p for p in run(sample, [(sample.text, None)]).split if p[0] in ("reasoning", "content")]
    for kind, text in shown:
        if record.grammar == "harmony":
            assert not any(marker in text for marker in record.required)
        elif record.grammar == "atem":
            assert not any(marker in text for marker in ("<|eom|>", "<|eot|>", "<|end_of_text|>"))
        elif kind == "reasoning":
            assert not any(closer in text for closer in closing_any(name))


@every_family
@given(st.data())
def test_quoted_markers_survive(name: str, data: st.DataObject) -> None:
    """Law 5: a quoted marker is a word like any other: with another word in its place nothing else changes."""
    tried.one()
    sample = data.draw(id_samples(name))
    # A call's beginning is read from its text, so a quoted tag in one is no word like any other.
    more = {"tokenizer": CharTokenizer.of_family(name), "tools": False}
    text, tokens = sample.text, list(sample.tokens)
    whole = kinds(run(sample, [(text, [t.id for t in tokens])], **more))
    other = list(text)
    for start, end in sample.quoted:
        other[start + 1 : end - 1] = "~" * (end - start - 2)
    at, changed = 0, []
    for token in tokens:
        piece = "".join(other[at : at + len(token.text)])
        changed.append(token if piece == token.text else token._replace(id=ord(piece), text=piece))
        at += len(token.text)
    swapped = run(sample._replace(text="".join(other)), [("".join(other), [t.id for t in changed])], **more)
    assert kinds(swapped) == whole


@every_family
@given(st.data())
def test_ids_that_do_not_fit(name: str, data: st.DataObject) -> None:
    """Laws 2, 5 and 6: ids of another text, ids that stop coming, ids that come late: no error, nothing lost."""
    tried.one()
    sample, other = data.draw(id_samples(name)), data.draw(id_samples(name))
    ids = [t.id for t in other.tokens]
    parts = data.draw(cuttings(sample.text))
    deltas: list[Fed] = []
    for part in parts:
        take = data.draw(st.integers(0, 6))
        deltas.append((part, data.draw(st.sampled_from((None, ids[:take], ids[:take])))))
        ids = ids[take:]
    assert raw(run(sample, deltas, tokenizer=CharTokenizer.of_family(name))) == sample.text
    assert raw(run(sample, deltas, marker_ids=CharTokenizer.of_family(name).ids)) == sample.text


@every_family
@given(st.data())
def test_text_after_the_ids_stop(name: str, data: st.DataObject) -> None:
    """Law 5: ids in full, then a text delta without any: as if the rest had been fed by text, nothing lost."""
    tried.one()
    sample, rest = data.draw(id_samples(name)), data.draw(texts(name, 5))
    deltas: list[Fed] = [(t.text, [t.id]) for t in sample.tokens]
    outcome = run(sample, [*deltas, *[(c, None) for c in rest]], tokenizer=CharTokenizer.of_family(name))
    assert raw(outcome) == sample.text + rest


@with_ends
@given(st.data())
def test_a_stop_token_without_text(name: str, data: st.DataObject) -> None:
    """Law 5: a trimmed control token adds nothing to the text and changes no field but what a terminator may add."""
    tried.one()
    sample = data.draw(id_samples(name))
    tokenizer = CharTokenizer.of_family(name)
    record = FAMILIES[name]
    stop = record.end_of_sequence[0]
    deltas: list[Fed] = [(t.text, [t.id]) for t in sample.tokens]
    trimmed = run(sample, [*deltas, ("", [tokenizer.ids[stop]])], tokenizer=tokenizer)
    written = run(sample, [*deltas, (stop, [tokenizer.ids[stop]])], tokenizer=tokenizer)
    assert raw(trimmed) == sample.text
    assert raw(written) == sample.text + stop
    assert trimmed.reasoning == written.reasoning


@with_turns
@given(st.data())
def test_the_prompt_decides_by_its_region(name: str, data: st.DataObject) -> None:
    """Section 4: whatever stands before the last turn opener changes nothing."""
    tried.one()
    sample = data.draw(text_samples(name))
    prompt = sample.options.get("prompt")
    opener = FAMILIES[name].turn_openers[0]
    before = data.draw(texts(name, 6))
    if prompt is None or opener not in prompt:
        prompt = opener
    plain = run(sample, [(sample.text, None)], prompt=prompt)
    assert run(sample, [(sample.text, None)], prompt=f"{before}\n{prompt}") == plain


@every_name
@given(st.data())
def test_held_reasoning_and_floor_change_no_text(name: str, data: st.DataObject) -> None:
    """Section 3 and 6: `stream_reasoning=False` moves reasoning in time only; the floor only adds at the end."""
    tried.one()
    sample = data.draw(text_samples(name))
    plain = run(sample, [(sample.text, None)], stream_reasoning=True, floor="off")
    held = run(sample, [(c, None) for c in sample.text], stream_reasoning=False, floor="off")
    assert (held.reasoning, held.content) == (plain.reasoning, plain.content)
    raised = run(sample, [(sample.text, None)], stream_reasoning=True, floor="promote")
    assert raised.reasoning == plain.reasoning
    if not plain.content.strip() and plain.reasoning.strip():
        assert raised.content == plain.content + plain.reasoning.strip()
    else:
        assert raised == plain
