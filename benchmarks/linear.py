"""Shows that splitting is linear: cost per character at 10 kB, 100 kB and 1 MB, and beside `str.find`.

usage: python -m benchmarks.linear [FAMILY ...] [-v]

For every family, on plain reasoning and on hostile text (every marker, every half of one, blank runs, drafts of calls,
`to=` floods), whole, in deltas of a token and in deltas with ids. The time is this process's own. A size below 1 MB is
split as often as makes the same number of characters, so that what disturbs the machine falls on all sizes alike:
the best of a few short runs against the best of a few long ones would be another comparison. Exit 1 when a character
costs more than 1.3 times as much at 1 MB as at 100 kB, or when `split()` of 1 MB of marker-free reasoning takes more
than 20 times as long as `str.find` over it.
"""

import argparse
import gc
import sys
from collections.abc import Callable, Iterator
from time import process_time_ns
from typing import Any, Final

from tests.support.strategies import NAMES
from vllm_reasoning_ext import FAMILIES, Splitter, split
from vllm_reasoning_ext.conformance.char_tokenizer import CharTokenizer
from vllm_reasoning_ext.core.grammar.tags import DEFAULT_TAGS

SIZES: Final = (10_000, 100_000, 1_000_000)
TIMES: Final = {10_000: 20, 100_000: 10, 1_000_000: 1}
"""Splits of a measurement; the two sizes that are compared take in 1 MB each."""
ROUNDS: Final = 2
MORE_ROUNDS: Final = 4
"""Rounds for a row that is over the bound after the first ones."""
GROWTH: Final = 1.3
TIMES_FIND: Final = 20
TOKEN: Final = 4
"""Characters (or ids) of a delta."""

PLAIN: Final = "Both numbers are even, so their sum is even; check it once more, then answer. "
_INSIDE: Final = {
    "gpt_oss": "<|start|>assistant<|channel|>analysis<|message|>",
    "muse_glimmer": "<|start|>assistant to=self<|message|>",
}
_CALLS: Final = {
    "deepseekv32": "<｜DSML｜calls>v</｜DSML｜calls> no ",
    "qwen3": '<tool_call>{"a": 1}</tool_call> no ',
    "minimax": "<minimax:tool_call><invoke name=x></minimax:tool_call> no ",
    "minimax_m3": "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=x>]<]minimax[>[</tool_call> no ",
    "gemma4": "<|tool_call>call:x{}<tool_call|> no ",
}


def options(name: str) -> dict[str, Any]:
    """Start inside reasoning."""
    return {"prompt": _INSIDE[name]} if name in _INSIDE else {"force_reasoning": True}


def texts(name: str) -> Iterator[tuple[str, str]]:
    """Give the kinds of text, each as a piece to be repeated."""
    pairs = tuple(tag for pair in DEFAULT_TAGS for tag in pair)
    markers = pairs if name == "inline" else FAMILIES[name].markers
    yield "plain", PLAIN
    yield "markers", "".join([*markers, *(f"{marker}a\n" for marker in markers)])
    yield "half markers", "".join(f"{marker[:-1]} {marker[0]}" for marker in markers)
    yield "blank runs", "\n " * 2000 + "a" + " " * 5000 + "b"
    yield "to= flood", "to=name to=" + "n" * 70 + " t to to=to="
    if name in _CALLS:
        yield "drafts of calls", _CALLS[name] + _CALLS[name][: len(FAMILIES[name].tool_marker) + 2]


def sized(piece: str, size: int) -> str:
    return (piece * (size // len(piece) + 1))[:size]


def whole(name: str, text: str) -> Callable[[], object]:
    return lambda: split(text, name, **options(name))


def in_tokens(name: str, text: str) -> Callable[[], object]:
    def run() -> None:
        splitter = Splitter(name, **options(name))
        # Cut here and not before: a list of all deltas would measure the memory it fills.
        for at in range(0, len(text), TOKEN):
            splitter.feed(text[at : at + TOKEN])
        splitter.finish()

    return run


def with_ids(name: str, text: str) -> Callable[[], object]:
    tokenizer = CharTokenizer.of_family(name)
    tokens = list(tokenizer.tokens(text))
    pieces, ids = [sys.intern(token.text) for token in tokens], [token.id for token in tokens]

    def run() -> None:
        splitter = Splitter(name, tokenizer=tokenizer, **options(name))
        for at in range(0, len(ids), TOKEN):
            splitter.feed("".join(pieces[at : at + TOKEN]), ids[at : at + TOKEN])
        splitter.finish()

    return run


WAYS: Final = {"whole": whole, "tokens": in_tokens, "ids": with_ids}


def cost(run: Callable[[], object], size: int) -> float:
    """Measure one size once, in nanoseconds per character."""
    spent = 0
    for _ in range(TIMES[size]):
        gc.collect()
        gc.disable()
        before = process_time_ns()
        run()
        spent += process_time_ns() - before
        gc.enable()
    return spent / (size * TIMES[size])


def growth(name: str, verbose: bool) -> Iterator[str]:
    """Measure a family; yield what grows too much."""
    for kind, piece in texts(name):
        for way, make in WAYS.items():
            if way == "ids" and (name == "inline" or kind not in ("plain", "markers")):
                continue
            runs = [make(name, sized(piece, size)) for size in SIZES]
            costs = [float("inf")] * len(SIZES)
            for turn in range(ROUNDS + MORE_ROUNDS):
                if turn >= ROUNDS and costs[2] <= GROWTH * costs[1]:
                    break
                costs = [min(old, cost(run, size)) for old, run, size in zip(costs, runs, SIZES, strict=True)]
            grown = costs[2] / costs[1]
            line = f"{name:13} {kind:18} {way:7}" + "".join(f"{ns:10.1f}" for ns in costs) + f"   x{grown:.2f}"
            if verbose or grown > GROWTH:
                print(line, flush=True)
            if grown > GROWTH:
                yield line


def beside_find(name: str) -> tuple[float, float]:
    """Measure `split()` and `str.find` over 1 MB of reasoning without markers, in microseconds."""
    text = sized(PLAIN, SIZES[2])
    needle = "</think>" if name == "inline" else FAMILIES[name].reasoning_end_str
    ways = (lambda: text.find(needle)), whole(name, text)
    found, ours = (min(cost(way, SIZES[2]) for _ in range(ROUNDS + 1)) for way in ways)
    return ours * SIZES[2] / 1000, found * SIZES[2] / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=NAMES)
    parser.add_argument("-v", action="store_true", help="print every line, not only what is wrong")
    args = parser.parse_args()
    print(f"nanoseconds per character at {', '.join(map(str, SIZES))} characters; growth from the second to the third")
    wrong = []
    for name in args.families:
        wrong.extend(growth(name, args.v))
        ours, found = beside_find(name)
        verdict = f"{name:13} split of 1 MB {ours:8.0f} us, str.find {found:6.0f} us: x{ours / found:.1f}"
        print(verdict, flush=True)
        if ours > TIMES_FIND * found:
            wrong.append(verdict)
    print(f"{len(wrong)} measurements over the bound (growth {GROWTH}, {TIMES_FIND} x str.find)")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
