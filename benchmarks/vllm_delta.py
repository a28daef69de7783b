"""Cost of one token inside vLLM's parse path: ours beside a do-nothing parser and vLLM's own (`make bench`).

Thread CPU time, variants interleaved in one process, garbage collector frozen, results not kept; the ratio is the
median of the rounds' ratios to the do-nothing parser measured in the same round. Exit 1 when a target is missed.
"""

import gc
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.reasoning import ReasoningParser, ReasoningParserManager

from tests.support.vllm_drive import compose
from vllm_reasoning_ext.demo.tiny_model import TOKENS
from vllm_reasoning_ext.engines import register
from vllm_reasoning_ext.engines.vllm import compose as vllm_compose
from vllm_reasoning_ext.engines.vllm.lookup import DeltaMessage

LENGTHS = (1_000, 4_000, 16_000, 32_000)
ROUNDS = 5
VOCABULARY = 200_000
TEXT = (
    "the of and to a in is it that we can this so let me think about they want if 40 , . as be for have with from "
    "next start at point by get two cost each part take state or step value sum first more then which you there"
)
WORDS = TEXT.split()
"""A quarter of these end in `t` or `to`, which the ATEM grammar has to hold back, as in English text."""

HOOK_LIMIT, PLAIN_LIMIT, GROWTH_LIMIT, BUILTIN_FACTOR, SETUP_LIMIT = 1.5, 2.0, 1.2, 500, 100


class Nothing(ReasoningParser):
    """The least an engine-based parser can do."""

    engine_based_streaming = True

    def is_reasoning_end(self, input_ids: Any) -> bool:
        return False

    def extract_content_ids(self, input_ids: Any) -> Any:
        return input_ids

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str, None]:
        return model_output, None

    def extract_reasoning_streaming(self, previous: Any, current: Any, delta_text: str, *_: Any) -> Any:
        return DeltaMessage(reasoning=delta_text)


def big_tokenizer(family: str) -> tuple[Any, list[int]]:
    """Build a tokenizer of 200,000 entries, and give the ids of `WORDS` in it."""
    symbols = sorted(pre_tokenizers.ByteLevel.alphabet())
    entries = [*symbols, *(f"Ġ{word}" for word in dict.fromkeys(WORDS))]
    entries += [f"Ġunused{n}" for n in range(VOCABULARY - len(entries))]
    known = TOKENS[family]
    raw = Tokenizer(models.BPE(vocab={text: at for at, text in enumerate(entries)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens([AddedToken(text, normalized=False) for text in known.special])
    raw.add_tokens([AddedToken(text, normalized=False) for text in known.plain])
    return PreTrainedTokenizerFast(tokenizer_object=raw), [raw.token_to_id(f"Ġ{word}") for word in WORDS]


class Variant:
    """A composed parser class to be measured."""

    def __init__(self, label: str, cls: Any, longest: int = LENGTHS[-1], rounds: int = ROUNDS) -> None:
        self.label, self.cls, self.longest, self.rounds = label, cls, longest, rounds
        self.costs: dict[int, list[float]] = {length: [] for length in LENGTHS if length <= longest}


def variants(family: str, tokenizer: Any, builtin: str) -> list[Variant]:
    """Compose the do-nothing parser, ours through hook and plain contract, and vLLM's own."""
    hook = compose(family, None, tokenizer)
    known, vllm_compose.compose = vllm_compose.compose, lambda owner: None
    plain = compose(family, None, tokenizer)
    vllm_compose.compose = known
    slow = family == "muse_glimmer"
    own = Variant(f"vLLM's own {family}", compose(builtin, None, tokenizer), *((4_000, 1) if slow else ()))
    return [
        Variant("does nothing", compose("does_nothing", None, tokenizer)),
        Variant("ours, hook", hook),
        Variant("ours, plain", plain),
        own,
    ]


def run(
    cls: Any, tokenizer: Any, prompt: list[int], head: list[tuple[str, int]], deltas: list[tuple[str, list[int]]]
) -> float:
    """Stream one output; give the CPU time of one delta of it in microseconds."""
    request = ChatCompletionRequest(model="m", messages=[])
    parser = cls(tokenizer)
    for text, number in head:
        parser.parse_delta(text, [number], request, prompt, finished=False)
    parse = parser.parse_delta
    started = time.thread_time()
    for text, ids in deltas:
        parse(text, ids, request, prompt, finished=False)
    return (time.thread_time() - started) / len(deltas) * 1e6


def measure(family: str, prompt: str, head: str, builtin: str) -> tuple[list[Variant], float]:
    """Measure a family's variants at every length; also the set-up of one request, in microseconds."""
    tokenizer, words = big_tokenizer(family)
    prompt_ids = tokenizer.encode("What is it? " * 400 + prompt, add_special_tokens=False)
    head_ids = tokenizer.encode(head, add_special_tokens=False)
    opening = [(tokenizer.decode([number]), number) for number in head_ids]
    deltas = [(f" {WORDS[n % len(WORDS)]}", [words[n % len(WORDS)]]) for n in range(LENGTHS[-1])]
    found = variants(family, tokenizer, builtin)
    gc.collect()
    gc.freeze()
    for round_ in range(ROUNDS):
        for length in LENGTHS:
            for variant in found[round_ % len(found) :] + found[: round_ % len(found)]:
                if length <= variant.longest and round_ < variant.rounds:
                    cost = run(variant.cls, tokenizer, prompt_ids, opening, deltas[:length])
                    variant.costs[length].append(cost)
    return found, set_up(found[1].cls, tokenizer, prompt_ids, opening)


def set_up(cls: Any, tokenizer: Any, prompt: list[int], head: list[tuple[str, int]]) -> float:
    """Time what a request costs before its first token: construction, prompt, and an empty first delta."""
    request = ChatCompletionRequest(model="m", messages=[])
    costs = []
    for _ in range(200):
        started = time.thread_time()
        cls(tokenizer, None, chat_template_kwargs={}).parse_delta("", [], request, prompt, finished=False)
        costs.append((time.thread_time() - started) * 1e6)
    return statistics.median(costs)


def ratio(variant: Variant, base: Variant, length: int) -> float:
    """Give the median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(variant.costs[length], base.costs[length], strict=False))


def report(family: str, found: list[Variant], setup: float) -> list[str]:
    """Print a family's table; return the targets that were missed."""
    base, hook, plain, own = found
    print(f"\n{family}: us per token of reasoning, one token a delta (ratio to the do-nothing parser)")
    print(f"{'':26}" + "".join(f"{length:>18,}" for length in LENGTHS))
    for variant in found:
        cells = [
            f"{statistics.median(costs):10.1f} ({ratio(variant, base, length):.2f})"
            for length, costs in variant.costs.items()
        ]
        print(f"{variant.label:26}" + "".join(f"{cell:>18}" for cell in cells))
    print(f"set-up of a request, {VOCABULARY:,} vocabulary entries, {4_800:,} prompt tokens: {setup:.0f} us")
    checks: list[tuple[str, float, float, Callable[[float, float], bool]]] = []
    under: Callable[[float, float], bool] = lambda got, limit: got <= limit  # noqa: E731
    over: Callable[[float, float], bool] = lambda got, limit: got >= limit  # noqa: E731
    for label, variant, limit in (("hook", hook, HOOK_LIMIT), ("plain contract", plain, PLAIN_LIMIT)):
        worst = max(ratio(variant, base, length) for length in LENGTHS)
        checks.append((f"{label}: worst ratio to the do-nothing parser", worst, limit, under))
        first, last = variant.costs[LENGTHS[0]], variant.costs[LENGTHS[-1]]
        growth = statistics.median(b / a for a, b in zip(first, last, strict=True))
        checks.append((f"{label}: cost at 32,000 over cost at 1,000", growth, GROWTH_LIMIT, under))
    checks.append(("set-up of a request, us", setup, SETUP_LIMIT, under))
    if family == "muse_glimmer":
        factor = own.costs[4_000][0] / statistics.median(hook.costs[4_000])
        checks.append(("faster than vLLM's own at 4,000", factor, BUILTIN_FACTOR, over))
    missed = []
    for name, got, limit, holds in checks:
        met = holds(got, limit)
        word = "at most" if holds is under else "at least"
        print(f"  {'met   ' if met else 'MISSED'} {name}: {got:.2f} ({word} {limit:g})")
        if not met:
            missed.append(f"{family}: {name}")
    return missed


def main() -> int:
    """Measure both families; 1 when a target is missed."""
    lazy = ReasoningParserManager.lazy_parsers
    for family in ("muse_glimmer", "qwen3"):
        lazy.setdefault(f"builtin_{family}", lazy[family])
    ReasoningParserManager.register_module("does_nothing", module=Nothing)
    register.register_vllm()
    missed = []
    for family, prompt, head in (
        ("muse_glimmer", "<|eot|><|start|>assistant", " to=self<|message|>"),
        ("qwen3", "<|im_start|>assistant\n", "<think>\n"),
    ):
        print(f"measuring {family} ...", file=sys.stderr, flush=True)
        missed += report(family, *measure(family, prompt, head, f"builtin_{family}"))
    print("\n" + (f"missed: {'; '.join(missed)}" if missed else "every target is met"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
