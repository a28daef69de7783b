"""Runs conformance cases: each whole, per character, per token and at every two-way cut, with token ids and late text.

A case says what every character of an output is; so it cannot lose one, and its text need not be written twice.
One line of a `.jsonl` file is one case:

    {"id": "qwen3-opener-01", "family": "qwen3", "why": "SPEC 5.1 opener: counts at the head",
     "split": [["marker", "<think>\\n"], ["reasoning", "a plan"], ["marker", "</think>"], ["content", "done"]]}

`split` lists pieces `[kind, text]` or `[kind, text, times]`. A kind with a plus sign (`+reasoning`) is text that the
splitter adds. Optional keys:

    options     arguments of `Splitter`, the prompt among them
    start       the kind of the start state
    finish      the finish reason
    recipients  of the tool slices, in order; neighbours to the same one count once
    ended       how the last reasoning ended: "closer", "tool" or ""
    live        what must come out right after which characters: `[fed, reasoning, content]`
    ids         "no": text alone, the default; "too": the same with token ids; "only": with ids alone
    quoted      spans `[start, end]` whose markers are spelled from ordinary tokens
    trimmed     control tokens at the end whose text never came
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext.conformance.char_tokenizer import CharTokenizer, Token
from vllm_reasoning_ext.core.events import TOOL, Event
from vllm_reasoning_ext.core.splitter import Splitter

LAGS: Final = (1, 2, 7, 24)
"""Characters that the text runs behind the ids in the late ways."""

ALL_CUTS_MAX: Final = 700
"""Characters up to which an output is cut at every place; a longer one near the borders of its pieces only."""

Piece = tuple[str, str]
"""A kind ("reasoning", "content", "tool", "marker", with a plus sign when added by the splitter) and its text."""

Fed = tuple[str, list[int] | None]
"""One delta: characters, and token ids if there are any."""


class Case(NamedTuple):
    """One output and what every character of it is; the module's text explains the fields."""

    id: str
    family: str
    why: str
    split: tuple[Piece, ...]
    options: Mapping[str, Any] = {}
    start: str = ""
    finish: str | None = None
    recipients: tuple[str, ...] = ()
    ended: str | None = None
    live: tuple[tuple[str, str, str], ...] = ()
    ids: str = "no"
    quoted: tuple[tuple[int, int], ...] = ()
    trimmed: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The output, as the model wrote it."""
        return "".join([text for kind, text in self.split if kind[0] != "+"])

    def shown(self, *kinds: str) -> str:
        """Join the texts of some kinds, added text included."""
        return "".join([text for kind, text in self.split if kind.lstrip("+") in kinds])


class Difference(NamedTuple):
    """Where a case came out wrong: how it was fed, what was looked at, and both values."""

    case: str
    way: str
    what: str
    want: object
    got: object

    def __str__(self) -> str:
        return f"{self.case}, {self.way}: {self.what} should be {self.want!r}, is {self.got!r}"


class Outcome(NamedTuple):
    """What a splitter made of an output: its pieces, neighbours of one kind joined."""

    split: tuple[Piece, ...]
    reasoning: str
    content: str
    recipients: tuple[str | None, ...]


def load_cases(source: Path | None = None, family: str | None = None) -> list[Case]:
    """Read cases.

    Args:
        source: a `.jsonl` file or a directory of such; None for the package's own.
        family: only this family's.

    Raises:
        ValueError: a line is no case; the message names file and line.
    """
    found = []
    for name, line, number in _lines(source):
        try:
            case = _parse(json.loads(line))
        except (KeyError, TypeError, ValueError) as error:
            problem = f"{name}:{number} is no conformance case ({error!r}); see conformance/runner.py"
            raise ValueError(problem) from error
        if family is None or case.family == family:
            found.append(case)
    return found


def check_case(
    case: Case,
    tokenizer: Any = None,
    tokens: Sequence[Token] | None = None,
    make: Callable[..., Splitter] = Splitter,
) -> Iterator[Difference]:
    """Feed a case in every way; yield what differs, nothing when all is right.

    Args:
        case: the case.
        tokenizer: for the ways with ids; None for a `CharTokenizer` of the family.
        tokens: the output as that tokenizer's tokens, trimmed ones not included; needed with a tokenizer of your own.
        make: builds the splitter.
    """
    want = merged(case.split)
    if case.ids != "only":
        for way, deltas in text_ways(case.text, borders(case)):
            yield from _compare(case, way, replay(make(case.family, **case.options), deltas, case.finish), want)
        yield from _check_live(case, make)
    if case.start:
        got = make(case.family, **case.options).start.kind
        if got != case.start:
            yield Difference(case.id, "start", "start state", case.start, got)
    if case.ids == "no":
        return
    tokenizer = tokenizer or CharTokenizer.of_family(case.family)
    tokens = list(tokenizer.tokens(case.text, case.quoted)) if tokens is None else tokens
    trimmed = [Token(tokenizer.convert_tokens_to_ids(text), "") for text in case.trimmed]
    for way, deltas in id_ways([*tokens, *trimmed]):
        splitter = make(case.family, tokenizer=tokenizer, **case.options)
        yield from _compare(case, way, replay(splitter, deltas, case.finish), want)


def replay(splitter: Splitter, deltas: Iterable[Fed], reason: str | None = None) -> Outcome:
    """Feed the deltas, finish, and join what comes out."""
    results = [splitter.feed(text, ids) for text, ids in deltas]
    results.append(splitter.finish(reason))
    events = [event for delta in results for event in delta.events]
    slices = groupby((event.kind is TOOL, event.recipient) for event in events)
    return Outcome(
        merged(map(as_piece, events)),
        "".join([delta.reasoning for delta in results]),
        "".join([delta.content for delta in results]),
        tuple(recipient for (is_tool, recipient), _ in slices if is_tool),
    )


def as_piece(event: Event) -> Piece:
    """Turn an event into a piece of a case."""
    return ("+" if event.synthetic else "") + event.kind.value, event.text


def merged(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Join neighbouring pieces of one kind; leave empty ones out."""
    joined: list[tuple[str, list[str]]] = []
    for kind, text in pieces:
        if joined and joined[-1][0] == kind:
            joined[-1][1].append(text)
        elif text:
            joined.append((kind, [text]))
    return tuple((kind, "".join(texts)) for kind, texts in joined)


def borders(case: Case) -> list[int]:
    """List where the pieces of a case begin, in characters of its output."""
    found, at = [], 0
    for kind, text in case.split:
        found.append(at)
        at += 0 if kind[0] == "+" else len(text)
    return found


def text_ways(text: str, near: Sequence[int] = ()) -> Iterator[tuple[str, list[Fed]]]:
    """Cut an output without ids: whole, per character, at every two-way cut, and with empty deltas between.

    Args:
        text: the output.
        near: places around which a long output is cut (see `ALL_CUTS_MAX`).
    """
    yield "whole", [(text, None)]
    yield "per character", [(c, None) for c in text]
    threes = [text[n : n + 3] for n in range(0, len(text), 3)]
    yield "in threes, with empty deltas", [(part, None) for three in threes for part in (three, "")]
    places: Iterable[int] = range(1, len(text))
    if len(text) > ALL_CUTS_MAX:
        around = {place + shift for place in near for shift in range(-20, 21)}
        places = sorted(place for place in around if 0 < place < len(text))
    for place in places:
        yield f"cut at {place}", [(text[:place], None), (text[place:], None)]


def id_ways(tokens: Sequence[Token]) -> Iterator[tuple[str, list[Fed]]]:
    """Cut an output with ids: whole, per token, at every two-way cut, and with the text behind the ids.

    Args:
        tokens: the output; a token with an empty text is one whose text never came.
    """
    yield "ids, whole", [_fed(tokens)]
    yield "ids, per token", [_fed([token]) for token in tokens]
    text = "".join([token.text for token in tokens])
    for lag in LAGS:
        deltas: list[Fed] = []
        given, written = 0, 0
        for token in tokens:
            written += len(token.text)
            upto = max(given, written - lag)
            deltas.append((text[given:upto], [token.id]))
            given = upto
        yield f"ids, text {lag} behind", [*deltas, (text[given:], [])]
    if len(tokens) <= ALL_CUTS_MAX:
        for place in range(1, len(tokens)):
            yield f"ids, cut at token {place}", [_fed(tokens[:place]), _fed(tokens[place:])]


def _fed(tokens: Sequence[Token]) -> Fed:
    return "".join([token.text for token in tokens]), [token.id for token in tokens]


def _compare(case: Case, way: str, got: Outcome, want: tuple[Piece, ...]) -> Iterator[Difference]:
    if got.split != want:
        yield Difference(case.id, way, "split", want, got.split)
    elif got.reasoning != case.shown("reasoning"):
        yield Difference(case.id, way, "reasoning", case.shown("reasoning"), got.reasoning)
    elif got.content != case.shown("content", "tool"):
        yield Difference(case.id, way, "content", case.shown("content", "tool"), got.content)
    elif case.recipients and got.recipients != case.recipients:
        yield Difference(case.id, way, "recipients", case.recipients, got.recipients)


def _check_live(case: Case, make: Callable[..., Splitter]) -> Iterator[Difference]:
    splitter, kept = make(case.family, **case.options), 0
    for number, (text, reasoning, content) in enumerate(case.live, 1):
        delta = splitter.feed(text)
        if (delta.reasoning, delta.content) != (reasoning, content):
            got = (delta.reasoning, delta.content)
            yield Difference(case.id, "live", f"delta {number} ({text!r})", (reasoning, content), got)
        kept += len(text) - sum(len(event.text) for event in delta.events if not event.synthetic)
        counted = case.family != "inline" and case.options.get("stream_reasoning", True)
        if counted and splitter.held != kept:
            yield Difference(case.id, "live", f"characters held after delta {number}", kept, splitter.held)
    if case.ended is not None:
        splitter = make(case.family, **case.options)
        replay(splitter, [(case.text, None)])
        if splitter.ended_by != case.ended:
            yield Difference(case.id, "whole", "how reasoning ended", case.ended, splitter.ended_by)


def _lines(source: Path | None) -> Iterator[tuple[str, str, int]]:
    root = resources.files("vllm_reasoning_ext.conformance") / "cases" if source is None else source
    files = [root] if root.is_file() else sorted(root.iterdir(), key=lambda file: file.name)
    for file in files:
        if file.name.endswith(".jsonl"):
            for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
                if line.strip():
                    yield file.name, line, number


_KEYS: Final = {"id", "family", "why", "split", *Case._field_defaults}


def _parse(row: Any) -> Case:
    if not isinstance(row, dict):
        raise TypeError("a case is a JSON object")
    unknown = row.keys() - _KEYS
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)}")
    if row.get("ids", "no") not in ("no", "too", "only"):
        raise ValueError("ids must be 'no', 'too' or 'only'")
    times = [(*piece, 1)[:3] for piece in row["split"]]
    fields: dict[str, Any] = {**row, "split": tuple((kind, text * count) for kind, text, count in times)}
    fields |= {key: tuple(map(tuple, row[key])) for key in ("live", "quoted") if key in row}
    fields |= {key: tuple(row[key]) for key in ("recipients", "trimmed") if key in row}
    fields["options"] = dict(row.get("options", {}))
    if isinstance(fields["options"].get("tags"), list):
        fields["options"]["tags"] = [tuple(pair) for pair in fields["options"]["tags"]]
    return Case(**fields)
