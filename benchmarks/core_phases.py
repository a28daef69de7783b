"""The core's cost of one token in every phase of an output, beside the parsers of others.

    python -m benchmarks.core_phases [FAMILY ...] [--all] [--json FILE] [--tokens N] [--rounds N]

Beside it runs whatever this environment has: the harmony parser that vLLM and SGLang use (Rust: process, delta,
channel, recipient), the family's own parser of vLLM, or SGLang's detector. Thread CPU time, everything interleaved in
one process, the garbage collector frozen, results not kept; a ratio is the median of the rounds' ratios. One delta is
one token: words of a text with their leading blanks, control tokens of the family as themselves.
"""

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.calls import CALLS, CLOSED, DENSE, OPENED
from vllm_reasoning_ext import FAMILIES, Splitter
from vllm_reasoning_ext.core.builtin import SEVEN

PROSE: Final = " so we take the next part of it and look at what that would mean if it were to go on for long , stop"
CODE: Final = " if ( a < b ) { return c [ ` x ` ] ; } // <div> is `code` \n\t for i in range ( n ) : x = y { 0 }"
UNDECIDED: Final = " well , the answer that it gave to this was as short as it can be"
HARMONY_DENSE: Final = "<|channel|>analysis<|message|> a<|end|><|start|>assistant"
SEVEN_NAMES: Final = tuple(record.name for record in SEVEN)

Deltas = list[tuple[str, list[int]]]


class WordTokenizer:
    """One id for each word that it has met, and for each control token of a family."""

    def __init__(self, control: Iterable[str]) -> None:
        self._texts: list[str] = []
        self._ids: dict[str, int] = {}
        self._control = sorted(control, key=len, reverse=True)
        for text in self._control:
            self._id(text)

    def _id(self, text: str) -> int:
        if text not in self._ids:
            self._ids[text] = len(self._texts)
            self._texts.append(text)
        return self._ids[text]

    def convert_tokens_to_ids(self, token: str) -> int | None:
        return self._ids.get(token)

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        return "".join([self._texts[n] for n in ids])

    def deltas(self, text: str) -> Deltas:
        """Cut a text into tokens: a control token, or a word with the blank before it."""
        return [(piece, [self._id(piece)]) for piece in self._pieces(text)]

    def _pieces(self, text: str) -> Iterator[str]:
        at = 0
        while at < len(text):
            control = next((t for t in self._control if text.startswith(t, at)), None)
            end = at + len(control) if control else at + 1
            while not control and end < len(text) and not text[end].isspace() and not self._control_at(text, end):
                end += 1
            yield text[at:end]
            at = end

    def _control_at(self, text: str, at: int) -> bool:
        return any(text.startswith(control, at) for control in self._control)


class Phase(NamedTuple):
    """What brings the splitter into the phase, and the text that is measured."""

    name: str
    before: str
    text: str
    forced: bool


def phases(family: str) -> Iterator[Phase]:
    """List the phases of a family's outputs."""
    record = FAMILIES[family]
    channels = record.channels
    opened = OPENED.get(family, "")
    closed = CLOSED.get(family, "x ")
    yield Phase("reasoning", f"{opened} so", PROSE, not channels)
    yield Phase("answer", closed, PROSE, False)
    yield Phase("undecided", "", UNDECIDED, False)
    yield Phase("code", closed, CODE, False)
    call = CALLS.get(family) or (record.tool_marker if not channels else "")
    if call:
        yield Phase("tool slice", call + "v" * 600, PROSE, not channels)
    dense = DENSE.get(family) or f"{record.opener} {record.closer} {record.tool_marker or ''} "
    yield Phase("dense", "", dense, False)


def stretched(text: str, tokenizer: WordTokenizer, tokens: int) -> Deltas:
    """Repeat a text until it has so many tokens."""
    once = tokenizer.deltas(text)
    return (once * (tokens // len(once) + 1))[:tokens]


Feed = Callable[[str, list[int]], object]


class Runner(NamedTuple):
    """A parser in a phase: how a fresh one is made, and the deltas it takes."""

    label: str
    make: Callable[[], Feed]
    deltas: Deltas

    def run(self) -> float:
        """Give the CPU time of one delta in microseconds."""
        feed = self.make()
        started = time.thread_time()
        for text, ids in self.deltas:
            feed(text, ids)
        return (time.thread_time() - started) / len(self.deltas) * 1e6


def ours(family: str, phase: Phase, tokenizer: WordTokenizer, deltas: Deltas, ids: bool) -> Runner:
    """The core, with or without token ids."""

    def make() -> Feed:
        splitter = Splitter(
            family,
            tokenizer=tokenizer if ids else None,
            force_reasoning=phase.forced or None,
            prompt=None if phase.forced else "",
        )
        for text, numbers in tokenizer.deltas(phase.before):
            splitter.feed(text, numbers if ids else None)
        if ids:
            return splitter.feed
        feed = splitter.feed
        return lambda text, _: feed(text)

    return Runner("core, ids" if ids else "core, text", make, deltas)


def rust(tokens: int, dense: bool) -> Runner | None:
    """The harmony parser of openai_harmony, on words or on its own markers."""
    try:
        import openai_harmony as harmony

        encoding = harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)
    except (ImportError, RuntimeError, OSError) as fault:  # its package has no vocabulary here and would fetch one
        if isinstance(fault, ImportError) or type(fault).__name__ == "HarmonyError":
            return None
        raise
    head = encoding.encode("<|channel|>analysis<|message|>", allowed_special="all")
    once = encoding.encode(HARMONY_DENSE if dense else PROSE, allowed_special="all")
    ids = [*(head if not dense else ()), *(once * (tokens // len(once) + 1))][:tokens]

    def make() -> Feed:
        parser = harmony.StreamableParser(encoding, role=harmony.Role.ASSISTANT)

        def feed(_: str, numbers: list[int]) -> object:
            parser.process(numbers[0])
            return parser.last_content_delta, parser.current_channel, parser.current_recipient

        return feed

    return Runner("Rust, dense" if dense else "Rust", make, [("", [number]) for number in ids])


SGLANG_NAMES: Final = {
    "qwen3": "qwen3", "deepseekv32": "deepseek-v3", "minimax": "minimax", "minimax_m3": "minimax-m3",
    "gemma4": "gemma4", "gpt_oss": "gpt-oss", "muse_glimmer": "muse",
}  # fmt: skip


def sglang(family: str, phase: Phase, tokenizer: WordTokenizer, deltas: Deltas) -> Runner | None:
    """SGLang's own detector for the family, where this environment has one."""
    try:
        from sglang.srt.parser.reasoning_parser import ReasoningParser
    except ImportError:
        return None
    if SGLANG_NAMES.get(family) not in ReasoningParser.DetectorMap:
        return None

    def make() -> Feed:
        parse = ReasoningParser(SGLANG_NAMES[family], force_reasoning=phase.forced).parse_stream_chunk
        for text, _ in tokenizer.deltas(phase.before):
            parse(text)
        return lambda text, _: parse(text)

    return Runner("SGLang's own", make, deltas)


VLLM_NAMES: Final = {
    "qwen3": "qwen3", "deepseekv32": "deepseek_v3", "minimax": "minimax_m2", "minimax_m3": "minimax_m3",
    "gemma4": "gemma4", "gpt_oss": "openai_gptoss", "muse_glimmer": "muse_glimmer",
}  # fmt: skip


def vllm(family: str, phase: Phase, tokenizer: WordTokenizer, deltas: Deltas) -> Runner | None:
    """The reasoning parser that vLLM has built in for the family, called as vLLM's plain contract calls it."""
    try:
        from benchmarks.vllm_own import streaming
    except ImportError:
        return None
    make = streaming(VLLM_NAMES[family], tokenizer.deltas(phase.before), deltas) if family in VLLM_NAMES else None
    return None if make is None else Runner("vLLM's own", make, deltas)


def runners(family: str, phase: Phase, tokens: int) -> list[Runner]:
    """List what is compared in a phase; the first is the unit."""
    record = FAMILIES[family]
    tokenizer = WordTokenizer(record.control)
    deltas = stretched(phase.text, tokenizer, tokens)
    found = [
        rust(tokens, phase.name == "dense"),
        ours(family, phase, tokenizer, deltas, True),
        ours(family, phase, tokenizer, deltas, False),
        sglang(family, phase, tokenizer, deltas),
        vllm(family, phase, tokenizer, deltas),
    ]
    return [runner for runner in found if runner is not None]


def measure(found: Sequence[Runner], rounds: int) -> dict[str, tuple[float, float]]:
    """Run everything in turn; give the median microseconds and the median ratio to the first, by label."""
    costs: dict[str, list[float]] = {runner.label: [] for runner in found}
    gc.collect()
    gc.freeze()
    gc.disable()
    for _ in range(rounds):
        for runner in found:
            costs[runner.label].append(runner.run())
    gc.enable()
    unit = costs[found[0].label]
    return {
        label: (statistics.median(us), statistics.median([a / b for a, b in zip(us, unit, strict=True)]))
        for label, us in costs.items()
    }


def main() -> None:
    """Print one line a family and phase: microseconds, and the ratio to the first column."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=[])
    parser.add_argument("--all", action="store_true", help="every family, not the seven only")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--tokens", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    rows = []
    for family in args.families or (FAMILIES if args.all else SEVEN_NAMES):
        for phase in phases(family):
            found = measure(runners(family, phase, args.tokens), args.rounds)
            rows.append({"family": family, "phase": phase.name, "costs": found})
            cells = "  ".join(f"{label} {us:5.2f} us {ratio:5.2f} x" for label, (us, ratio) in found.items())
            print(f"{family:14}{phase.name:11} {cells}", flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
