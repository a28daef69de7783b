"""Inline tags: what each rule gives, and that no way of cutting the text changes it."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vllm_reasoning_ext.core.events import CONTENT, REASONING, Event
from vllm_reasoning_ext.core.grammar.inline import Inline
from vllm_reasoning_ext.core.grammar.tags import DEFAULT_TAGS, Needles, parse_tags
from vllm_reasoning_ext.core.limits import BLANK_HOLD_MAX

UNTIMED = settings(deadline=None)
LONG = " " * (BLANK_HOLD_MAX + 1)
KEPT: dict[str, Any] = {"unclosed": "content"}
OPEN: dict[str, Any] = {"force_reasoning": True}
PREFIXES = [("<a", "</a>"), ("<ab", "</b>"), ("<abc>", "</c>")]
LONGEST_FIRST = PREFIXES[::-1]

# text, options, reasoning, content
CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("", {}, "", ""),
    ("  no tag\n", {}, "", "  no tag\n"),
    (" \n ", {}, "", " \n "),
    ("<think>why</think>so", {}, "why", "so"),
    *[(f"{opener}why{closer}so", {}, "why", "so") for opener, closer in DEFAULT_TAGS],
    # Exact spelling only; a half tag at the end is what it is.
    ("<THINK>x</THINK>", {}, "", "<THINK>x</THINK>"),
    ("<think >x</think >", {}, "", "<think >x</think >"),
    ("see <think", {}, "", "see <think"),
    ("<think>x</thin", {}, "x</thin", ""),
    ("a</think>b", {}, "", "a</think>b"),
    # The first opener wins and only its own closer closes.
    ("<think>a<reason>b</reason>c</think>d", {}, "a<reason>b</reason>c", "d"),
    ("<think>a</reason>b", {}, "a</reason>b", ""),
    # Blanks of the reasoning: the leading run up to its last newline, the trailing run whole.
    ("<think>\n  a \n b \n</think>x", {}, "  a \n b", "x"),
    ("<think>  a</think>x", {}, "  a", "x"),
    ("<think> \n </think>x", {}, "", "x"),
    ("<think>a \n", {}, "a", ""),
    ("<think> \n", {}, "", ""),
    (f"<think>{LONG}</think>x", {}, LONG, "x"),
    (f"<think>{LONG}a{LONG} b</think>x", {}, f"{LONG}a{LONG} b", "x"),
    (f"<think>a{LONG}</think>x", {}, f"a{LONG}", "x"),
    # Blanks of the answer: only a block before its first visible character drops them.
    ("<think>a</think>\n\n  x ", {}, "a", "  x "),
    (" \n<think>a</think> x", {}, "a", " x"),
    ("x <think>a</think>\n\ny", {}, "a", "x \n\ny"),
    ("<think>a</think> \n", {}, "a", ""),
    (f"<think>a</think>{LONG}\nx", {}, "a", f"{LONG}\nx"),
    (f"{LONG}<think>a</think>\nx", {}, "a", f"{LONG}\nx"),
    # The joiner stands between two blocks that say something.
    ("<think>a</think><think> </think><think>b</think>", {}, "a\nb", ""),
    ("<think>a</think>x<thought>b</thought>", {"joiner": "--"}, "a--b", "x"),
    ("<think>a</think><think>b</think>", {"joiner": ""}, "ab", ""),
    # Prose: not in a fence, not after a backtick.
    ("`<think>` is a tag", {}, "", "`<think>` is a tag"),
    ("```\n<think>a</think>\n```\n<think>b</think>", {}, "b", "```\n<think>a</think>\n```\n"),
    ("````<think>a</think>", {}, "", "````<think>a</think>"),
    ("``````x<think>a</think>", {}, "a", "``````x"),
    ("``x```y<think>a</think>", {}, "", "``x```y<think>a</think>"),
    ("`<think>a</think>", {"where": "anywhere"}, "a", "`"),
    # Head: before the answer only.
    (" \n<think>a</think>\n<think>b</think>x<think>c</think>", {"where": "head"}, "a\nb", "x<think>c</think>"),
    ("x<think>a</think>", {"where": "head"}, "", "x<think>a</think>"),
    (f"{LONG}<think>a</think>", {"where": "head"}, "", f"{LONG}<think>a</think>"),
    ("<think", {"where": "head"}, "", "<think"),
    # Kept back until closed: without a closer, verbatim.
    ("x<think>a</think>y<think>b", KEPT, "a", "xy<think>b"),
    (" \n<think>a \n", KEPT, "", " \n<think>a \n"),
    ("<think>a</think>\n<think> b", KEPT, "a", "<think> b"),
    ("<think>\n a \n</think>\nx", KEPT, " a", "x"),
    # The cap counts UTF-8 bytes between the tags: at it the block counts, over it nothing does any more.
    ("<think>éa</think>x", {**KEPT, "max_buffer_bytes": 3}, "éa", "x"),
    ("<think>éé</think>x<think>a</think>", {**KEPT, "max_buffer_bytes": 3}, "", "<think>éé</think>x<think>a</think>"),
    ("x<think>aaaaaaaa", {**KEPT, "max_buffer_bytes": 3}, "", "x<think>aaaaaaaa"),
    ("<think>a</think>x", {**KEPT, "max_buffer_bytes": 0}, "a", "x"),
    # Opened by the prompt.
    ("why\n</think>\nso", OPEN, "why", "so"),
    ("why</thought>so", OPEN, "why", "so"),
    (" \n<thought>a</think>b</thought>so", OPEN, "a</think>b", "so"),
    ("<th", OPEN, "<th", ""),
    ("<thx</think>y", OPEN, "<thx", "y"),
    (" \n", OPEN, "", ""),
    (f"{LONG}<think>a</think>x", OPEN, f"{LONG}<think>a", "x"),
    ("never closed \n", {**OPEN, **KEPT}, "", "never closed \n"),
    (" \n", {**OPEN, **KEPT}, "", " \n"),
    (" <think>never", {**OPEN, **KEPT}, "", " <think>never"),
    (" <think>a</think>\nx", {**OPEN, **KEPT}, "a", "x"),
    ("aaaa</think>x", {**OPEN, **KEPT, "max_buffer_bytes": 3}, "", "aaaa</think>x"),
    # Tags that are prefixes of one another: at one place the first listed wins, and is waited for.
    ("<abc></c>1", {"tags": PREFIXES}, "bc></c>1", ""),
    ("<abc>x</c>1<abd</b>2<ad</a>3", {"tags": LONGEST_FIRST}, "x\nd\nd", "123"),
    ("<ab", {"tags": LONGEST_FIRST}, "", ""),
    ("<aXb", {"tags": [("<aXc", "1"), ("X", "2")]}, "b", "<a"),
    ("x<s:t>a</s:t>", {"tags": "<s:t>...</s:t>"}, "a", "x"),
    ("\ud800<think>\udc00</think>\0", {}, "\udc00", "\ud800\0"),
    ("<think>\ud800</think>x", {**KEPT, "max_buffer_bytes": 3}, "\ud800", "x"),
]


def run(chunks: Iterable[str], options: dict[str, Any]) -> list[Event]:
    inline = Inline(**options)
    deltas = [*map(inline.feed, chunks), inline.finish()]
    return [event for delta in deltas for event in delta.events]


def shown(events: Iterable[Event]) -> tuple[str, str]:
    out = {REASONING: "", CONTENT: ""}
    for event in events:
        if event.kind in out:
            out[event.kind] += event.text
    return out[REASONING], out[CONTENT]


def cuts(text: str) -> Iterator[list[str]]:
    yield [text]
    if len(text) < 300:
        yield list(text)
        yield from ([text[:place], text[place:]] for place in range(len(text)))
    else:
        yield [text[place : place + 1000] for place in range(0, len(text), 1000)]
        yield [text[:place] for place in [BLANK_HOLD_MAX]] + list(text[BLANK_HOLD_MAX:])


@pytest.mark.parametrize(("text", "options", "reasoning", "content"), CASES)
def test_rules_hold_for_every_cut(text: str, options: dict[str, Any], reasoning: str, content: str) -> None:
    for chunks in cuts(text):
        events = run(chunks, options)
        assert shown(events) == (reasoning, content), chunks
        assert "".join(event.text for event in events if not event.synthetic) == text


PIECES = [
    *(tag for pair in (*DEFAULT_TAGS[:2], *PREFIXES) for tag in pair),
    "<think",
    "</thi",
    "<",
    "`",
    "```",
    "\n",
    " ",
    "word",
    "é",
]
OPTIONS = st.fixed_dictionaries(
    {
        "where": st.sampled_from(["prose", "anywhere", "head"]),
        "unclosed": st.sampled_from(["reasoning", "content"]),
        "max_buffer_bytes": st.sampled_from([2, 9, 65536]),
        "force_reasoning": st.sampled_from([None, True]),
        "tags": st.sampled_from([None, PREFIXES, LONGEST_FIRST]),
    }
)


@UNTIMED
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), OPTIONS, st.data())
def test_any_cut_gives_the_same_and_loses_nothing(text: str, options: dict[str, Any], data: st.DataObject) -> None:
    places = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    chunks = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    whole, cut = run([text], options), run(chunks, options)
    assert shown(cut) == shown(whole)
    assert "".join(event.text for event in cut if not event.synthetic) == text


@UNTIMED
@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join), st.sampled_from(["prose", "anywhere", "head"]))
def test_a_streamed_text_is_held_no_longer_than_a_tag_or_a_blank_run(text: str, where: str) -> None:
    inline = Inline(where=where)
    fed = given_out = ""
    for character in text:
        fed += character
        given_out += "".join(event.text for event in inline.feed(character).events if not event.synthetic)
        held = fed[len(given_out) :]
        assert len(held.lstrip()) < max(len(opener) for opener, _ in DEFAULT_TAGS)


@pytest.mark.parametrize(
    ("value", "strict", "pairs"),
    [
        (None, False, DEFAULT_TAGS),
        ("", False, DEFAULT_TAGS),
        ([], False, DEFAULT_TAGS),
        ("<a>...</a>", True, (("<a>", "</a>"),)),
        (" <a> ... </a> ,, [x]...[/x]", True, (("<a>", "</a>"), ("[x]", "[/x]"))),
        ("<a>...</a>,bad,...only,<b>...", False, (("<a>", "</a>"),)),
        ("bad", False, DEFAULT_TAGS),
        ([["<a>", "</a>"]], False, (("<a>", "</a>"),)),
    ],
)
def test_tag_pairs_are_read(value: Any, strict: bool, pairs: tuple[tuple[str, str], ...]) -> None:
    assert parse_tags(value, strict=strict) == pairs


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: parse_tags("<a>...</a>,bad", strict=True), "'bad' is no tag pair: write opener...closer"),
        (lambda: parse_tags(" , ", strict=True), "holds no tag pair"),
        (lambda: parse_tags([("<a>", "")]), "both non-empty strings"),
        (lambda: parse_tags(["<>"]), "give \\(opener, closer\\)"),
        (lambda: Inline(where="nowhere"), "use one of prose, anywhere, head"),
        (lambda: Inline(unclosed="lost"), "use one of reasoning, content"),
    ],
)
def test_misuse_names_the_remedy(make: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()


def test_a_finished_text_takes_no_more() -> None:
    inline = Inline()
    inline.finish()
    with pytest.raises(RuntimeError, match="make a new one"):
        inline.feed("x")
    with pytest.raises(RuntimeError, match="finished already"):
        inline.finish()


def test_a_search_in_a_whole_text_waits_for_nothing() -> None:
    needles = Needles(["<abc>", "<a"])
    assert needles.find("x<ab", 0, final=False) == (1, -1)
    assert needles.find("x<ab", 0, final=True) == (1, 1)
