"""Draws the two pictures of the README: the split of a stream, and its cost against the output's length.

usage: python -m benchmarks.drawings [--check | --measure]

Without an option both files in docs/ are written anew from what is known: the split of a real splitter, and the times
in `benchmarks/drawings.json`. `--measure` takes those times first (a minute; this thread's CPU time, the best of three
rounds, interleaved). `--check`, which a test does too, says whether the files are what would be written.
"""

import json
import sys
from collections.abc import Callable, Iterator
from html import escape
from math import log10
from pathlib import Path
from time import thread_time_ns
from typing import Final, NamedTuple

from vllm_reasoning_ext import Splitter
from vllm_reasoning_ext.core.events import Delta

ROOT: Final = Path(__file__).resolve().parents[1]
BELOW: Final = (
    "The prompt ended in <think>. What may still become a marker, or a blank that may be dropped,",
    "waits for the next delta. Nothing that went out is taken back.",
)
COLOURS: Final = ("#2456c4", "#2a8a3a", "#c0392b")
TIMES: Final = ROOT / "benchmarks" / "drawings.json"
SPLIT_SVG: Final = ROOT / "docs" / "split.svg"
COST_SVG: Final = ROOT / "docs" / "cost.svg"

PROMPT: Final = "<|im_start|>user\n6 x 7?<|im_end|>\n<|im_start|>assistant\n<think>\n"
STREAM: Final = ("Six sev", "ens: 42.", "\n</th", "ink>\n\nIt ", "is 42.", "<|im_end|>")

LENGTHS: Final = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000)
"""Tokens of thought."""
TOKEN: Final = "word"
ROUNDS: Final = 3
WHOLE_TEXT: Final = "searching the whole text at each token"

STYLE: Final = (
    "text{font:13px ui-monospace,monospace;fill:#222}.dim{fill:#667}.b{font-weight:bold}"
    ".bg{fill:#fff}.reasoning{fill:#dbe7ff}.content{fill:#d9f2dc}.marker{fill:#eee}.held{fill:#fff3c9}"
    ".axis{stroke:#889;stroke-width:1}.line{fill:none;stroke-width:2}"
)
CHARACTER: Final = 8
"""Pixels of a character of the font above, near enough."""


class Row(NamedTuple):
    """A delta of the drawing: what came in, and what each field got for it."""

    given: str
    reasoning: str
    content: str
    marker: str


def rows() -> Iterator[Row]:
    """Feed the drawing's stream to a splitter."""
    splitter = Splitter("qwen3", PROMPT)
    for text in STREAM:
        yield _row(text, splitter.feed(text))
    yield _row("(end)", splitter.finish("stop"))


def _row(given: str, delta: Delta) -> Row:
    marker = "".join(event.text for event in delta.events if event.kind == "marker")
    return Row(given, delta.reasoning, delta.content, marker)


def draw_split() -> str:
    """Draw the stream: a line a delta, a column a field."""
    heads = ("the model writes", "reasoning", "content", "marker, shown nowhere")
    kinds = ("held", "reasoning", "content", "marker")
    starts = (10, 200, 390, 560)
    body = [_text(x, 24, head, "b") for x, head in zip(starts, heads, strict=True)]
    y = 44
    for row in rows():
        for x, kind, text in zip(starts, kinds, row, strict=True):
            if text:
                shown = text.replace("\n", "\u21b5")
                wide = CHARACTER * len(shown) + 12
                shape = "" if text == "(end)" else f'<rect class="{kind}" x="{x}" y="{y}" width="{wide}" height="22"/>'
                body.append(shape + _text(x + 6, y + 16, shown, "dim" if text == "(end)" else ""))
        y += 28
    body.append(
        _text(10, y + 14, "The prompt ended in <think>. What may still become a marker, or a blank that", "dim")
    )
    body.append(_text(10, y + 32, "is dropped, waits for the next delta; nothing that went out is taken back.", "dim"))
    return _svg(760, y + 44, "A stream of deltas, split into reasoning, content and markers", body)


def measure() -> dict[str, list[float]]:
    """Time the last part of outputs of every length, in microseconds a token."""
    ways: dict[str, Callable[[], Callable[[str], object]]] = {
        "qwen3": lambda: Splitter("qwen3", PROMPT).feed,
        "muse_glimmer": _inside_muse,
        WHOLE_TEXT: _whole_text,
    }
    found = {name: [float("inf")] * len(LENGTHS) for name in ways}
    for _ in range(ROUNDS):
        for name, make in ways.items():
            for at, took in enumerate(_costs(make())):
                found[name][at] = min(found[name][at], took)
    return {name: [round(took, 2) for took in costs] for name, costs in found.items()}


def _costs(feed: Callable[[str], object]) -> Iterator[float]:
    """Feed one output through all lengths; yield what a token costs in the last quarter before each."""
    fed = 0
    for length in LENGTHS:
        quarter = length // 4
        for _ in range(length - quarter - fed):
            feed(TOKEN)
        before = thread_time_ns()
        for _ in range(quarter):
            feed(TOKEN)
        yield (thread_time_ns() - before) / 1000 / quarter
        fed = length


def _inside_muse() -> Callable[[str], object]:
    splitter = Splitter("muse_glimmer")
    splitter.feed("<|start|>assistant to=self<|message|>")
    return splitter.feed


def _whole_text() -> Callable[[str], object]:
    """Make the reader that most parsers are: it keeps the text and looks for both tags in all of it, each time."""
    kept = "<think>"

    def feed(delta: str) -> str:
        nonlocal kept
        kept = f"{kept}{delta}"
        return kept.partition("<think>")[2].partition("</think>")[0]

    return feed


def draw_cost(times: dict[str, list[float]]) -> str:
    """Draw microseconds a token against tokens so far, both logarithmic."""
    left, right, top, bottom = 70, 560, 40, 300
    least, most = -1, max(2, 1 + int(log10(max(max(costs) for costs in times.values()))))
    span = log10(LENGTHS[-1] / LENGTHS[0])

    def place(length: int, cost: float) -> tuple[float, float]:
        x = left + (right - left) * log10(length / LENGTHS[0]) / span
        return round(x, 1), round(bottom - (bottom - top) * (log10(cost) - least) / (most - least), 1)

    body = [_text(10, 22, "Microseconds a token, against the tokens written before it", "b")]
    for power in range(least, most + 1):
        y = place(LENGTHS[0], 10.0**power)[1]
        body.append(f'<path class="axis" d="M{left} {y}H{right}" stroke-dasharray="2 4"/>')
        body.append(_text(20, y + 4, f"{10.0**power:g}", "dim"))
    body += [_text(place(length, 1)[0] - 14, bottom + 20, f"{length // 1000}k", "dim") for length in LENGTHS]
    y = bottom + 46
    for (name, costs), colour in zip(times.items(), COLOURS, strict=True):
        points = [place(length, cost) for length, cost in zip(LENGTHS, costs, strict=True)]
        line = " ".join(f"{px},{py}" for px, py in points)
        body.append(f'<polyline class="line" stroke="{colour}" points="{line}"/>')
        body.append(f'<path class="line" stroke="{colour}" d="M20 {y - 4}h24"/>')
        body.append(_text(52, y, f"{name}: {costs[0]:g} at 1k, {costs[-1]:g} at 32k", ""))
        y += 20
    return _svg(600, y, "Cost of a token against the length of the output", body)


def _text(x: float, y: float, text: str, kind: str) -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x}" y="{y}" xml:space="preserve">{escape(text)}</text>'


def _svg(wide: int, high: float, title: str, body: list[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" role="img">'
    parts = [head, f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>"]
    return "\n".join([*parts, '<rect class="bg" width="100%" height="100%"/>', *body, "</svg>"]) + "\n"


def drawings() -> dict[Path, str]:
    """Draw both, from the times as they were measured last."""
    times = json.loads(TIMES.read_text(encoding="utf-8"))
    return {SPLIT_SVG: draw_split(), COST_SVG: draw_cost(times)}


def main(arguments: list[str]) -> int:
    """Write the drawings, or compare them; 1 when they differ."""
    if "--measure" in arguments:
        times = measure()
        TIMES.write_text(json.dumps(times, indent=1) + "\n", encoding="utf-8")
        for name, costs in times.items():
            print(f"{name}: " + ", ".join(f"{cost:g}" for cost in costs) + " us a token")
    if "--check" in arguments:
        old = [path.name for path, text in drawings().items() if path.read_text(encoding="utf-8") != text]
        if old:
            print(f"not as it would be drawn: {', '.join(old)}; run python -m benchmarks.drawings")
        return 1 if old else 0
    for path, text in drawings().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
