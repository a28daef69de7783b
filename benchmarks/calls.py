"""Count the Python calls that one delta costs in each phase of an output, with and without token ids.

    python -m benchmarks.calls [FAMILY ...] [--write | --check]

Calls do not depend on the machine, so two versions of the package can be compared; time is measured elsewhere
(`benchmarks.core_phases`). One delta is one token of a byte-like tokenizer, words of four characters. `--check`, which
the tests do too, compares with `benchmarks/calls.json` and names what costs over `TOLERANCE` more; `--write` renews it.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext import Splitter
from vllm_reasoning_ext.conformance.char_tokenizer import CharTokenizer

_HARMONY: Final = "<|channel|>analysis<|message|>"
_WORDS: Final = "word and some more of it, so that it goes on. "
_CODE: Final = "if a < b and c[`x`] { d = '</'; } "
DENSE: Final = {
    "qwen3": "<think> </think> <tool_call> ",
    "deepseekv32": "<think> </think> <｜DSML｜ ",
    "minimax": "<think> </think> <minimax:tool_call> ",
    "minimax_m3": "<mm:think> </mm:think> ]<]minimax[>[<tool_call> ",
    "gemma4": "<|channel> x <|tool_call> ",
    "gpt_oss": "<|channel|>analysis<|message|>a<|end|><|start|>assistant",
    "muse_glimmer": "<|start|>assistant to=self<|message|>a<|eom|>",
}
CALLS: Final = {
    "qwen3": '<tool_call>\n{"name": "f", "arguments": {"a": "',
    "deepseekv32": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">',
    "minimax": '<minimax:tool_call>\n<invoke name="f">',
    "minimax_m3": ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="f">',
    "gemma4": "<|tool_call>call:f{a:",
    "gpt_oss": "<|channel|>commentary to=functions.f <|constrain|>json<|message|>",
    "muse_glimmer": '<|start|>assistant to=f<|message|><atem:function_calls>\n<atem:invoke name="f">',
}
OPENED: Final = {"gpt_oss": _HARMONY, "muse_glimmer": "<|start|>assistant to=self<|message|>"}
CLOSED: Final = {
    "gpt_oss": "<|start|>assistant<|channel|>final<|message|>",
    "muse_glimmer": "<|start|>assistant to=user<|message|>",
}


class Phase(NamedTuple):
    """A phase of an output: what brings the splitter there, and the text that is measured."""

    name: str
    before: str
    text: str


def phases(family: str) -> Iterator[Phase]:
    """List the phases of a family's outputs."""
    opened, closed = OPENED.get(family, ""), CLOSED.get(family, "x ")
    yield Phase("reasoning", f"{opened}so ", _WORDS)
    yield Phase("answer", closed, _WORDS)
    yield Phase("code", closed, _CODE)
    # A call is one at once in a channel, and after the hold in a block.
    yield Phase("tool slice", CALLS[family] + "v" * 600, _WORDS)
    yield Phase("dense", "", DENSE[family])


def deltas(text: str, length: int) -> Iterator[str]:
    """Cut a text into pieces of four characters."""
    whole = text * (length // len(text) + 1)
    for at in range(0, length, 4):
        yield whole[at : at + 4]


def count(family: str, phase: Phase, ids: bool, tokens: int = 400) -> float:
    """Count the Python calls per delta."""
    tokenizer: Any = CharTokenizer.of_family(family) if ids else None
    forced = family not in OPENED and phase.name in ("reasoning", "tool slice")
    splitter = Splitter(family, tokenizer=tokenizer, force_reasoning=forced or None, prompt=None if forced else "")
    if phase.before:
        splitter.feed(phase.before, _ids(tokenizer, phase.before))
    whole = "".join(deltas(phase.text, tokens * 4))
    pieces = _tokens(tokenizer, whole) if tokenizer else [(piece, None) for piece in deltas(phase.text, tokens * 4)]
    seen = 0

    def profile(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal seen
        seen += event == "call"

    for text, numbers in pieces[:8]:
        splitter.feed(text, numbers)
    sys.setprofile(profile)
    for text, numbers in pieces[8:]:
        splitter.feed(text, numbers)
    sys.setprofile(None)
    return seen / (len(pieces) - 8)


def _ids(tokenizer: Any, text: str) -> list[int] | None:
    return [token.id for token in tokenizer.tokens(text)] if tokenizer else None


def _tokens(tokenizer: Any, text: str) -> list[tuple[str, list[int] | None]]:
    """Group a text's tokens into deltas: a control token alone, up to four characters else."""
    found: list[tuple[str, list[int] | None]] = []
    for token in tokenizer.tokens(text):
        last = found[-1] if found else ("", None)
        if len(token.text) == 1 and last[1] is not None and len(last[1]) == len(last[0]) < 4:
            found[-1] = (last[0] + token.text, [*last[1], token.id])
        else:
            found.append((token.text, [token.id]))
    return found


BASELINE: Final = Path(__file__).with_suffix(".json")
TOLERANCE: Final = 1.05
"""How much more a delta may cost than the baseline says; less is always right."""

Costs = dict[str, list[float]]


def costs(families: Iterable[str]) -> Costs:
    """Count the calls of every phase: "family, phase" -> with ids, text alone."""
    return {
        f"{family}, {phase.name}": [round(count(family, phase, ids), 2) for ids in (True, False)]
        for family in families
        for phase in phases(family)
    }


def dearer(now: Costs, baseline: Costs) -> list[str]:
    """Name the phases that cost more than the baseline allows, or that it does not know."""
    found = [f"{phase}: not in {BASELINE.name}" for phase in now.keys() - baseline.keys()]
    for phase in now.keys() & baseline.keys():
        for what, new, old in zip(("with ids", "text alone"), now[phase], baseline[phase], strict=True):
            if new > old * TOLERANCE:
                found.append(f"{phase}, {what}: {new} calls a delta, {old} before")
    return sorted(found)


def main(arguments: list[str]) -> int:
    """Print a table, family and phase: calls with and without ids; write or check the baseline."""
    options = {a for a in arguments if a.startswith("--")}
    now = costs([a for a in arguments if a not in options] or CALLS)
    print(f"{'family, phase':26}{'with ids':>10}{'text alone':>12}")
    for phase, (with_ids, text) in now.items():
        print(f"{phase:26}{with_ids:>10.2f}{text:>12.2f}")
    if "--write" in options:
        BASELINE.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    if "--check" not in options:
        return 0
    found = dearer(now, json.loads(BASELINE.read_text(encoding="utf-8")))
    print("\n".join(found) or f"no phase costs over {TOLERANCE} of {BASELINE.name}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
