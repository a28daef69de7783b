"""Hypothesis strategies: outputs full of markers, whole ones and halves, as text and as token ids."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from vllm_reasoning_ext import FAMILIES, Family
from vllm_reasoning_ext.conformance.char_tokenizer import CharTokenizer, Token
from vllm_reasoning_ext.core.grammar.tags import DEFAULT_TAGS

NAMES: Final = (*sorted(FAMILIES), "inline")
"""All families and the inline splitter."""

_WORDS: Final = (
    "a", "plan", "x < y", "é",
    "\u2029", "\ud800", "\0", "0", "<", "]<", "{", '"', "`", "```", "\n```py\n", "word " * 600,
)  # fmt: skip
_BLANKS: Final = (" ", "\n", "\n\n", "\t ", "\r\n", " " * 90, "\n" * 4097)
_CALLS: Final = (
    '{"name": "f"}', "f\n<arg_key>", "<function=f>", "call:f{}", '<invoke name="f">', "function_calls>\n", " calls>",
    'invoke name="f">', "tool_calls>", "toolcalls>", "f[ARGS]{", "[CALL_ID]a1", '[{"f": ', "[", '"f"', "functions.f:0",
    "<|open|>call tool=", "<tool_call:opensource>", "<ifm|tool_call>",
    '{\n "', "f</tool_call>", "]<]minimax[>[<invoke name=",
)  # fmt: skip
_HEADER: Final = (
    "analysis", "final", "commentary", "ANALYSIS", "thought", "thought\n", "assistant", "user", "tool", "to=",
    "to=self", "to=user", "to=f", "to=functions.f", " to=all", "to=" + "n" * 70, "json", "t", " to", "role" * 70,
)  # fmt: skip

_MARKERS: Final[dict[str, tuple[str, ...]]] = {
    **{name: record.markers for name, record in FAMILIES.items()},
    "inline": tuple(tag for pair in DEFAULT_TAGS for tag in pair),
}

PROMPTS: Final[dict[str, tuple[str, ...]]] = {
    "deepseekv32": ("<｜Assistant｜><think>", "<｜Assistant｜></think>", "<｜Assistant｜>", "<｜Assistant｜><think>so",
                    "</function_results>\n\n<think>", "<｜Assistant｜><think>a</think>Begun"),
    "qwen3": ("<|im_start|>assistant\n", "<|im_start|>assistant\n<think>\n",
              "<|im_start|>assistant\n<think>\n\n</think>\n\n",
              "<|assistant|></think>", "<|im_start|>assistant\nBegun", "no turn opener"),
    "minimax": ("]~b]ai\n<think>\n", "]~b]ai\n", "]~b]ai\n<think>\n\n</think>\n\n", "]~b]ai\nBegun"),
    "minimax_m3": ("]~b]ai\n", "]~b]ai\n<mm:think>", "]~b]ai\n</mm:think>", "]~b]ai\nBegun"),
    "gemma4": ("<|turn>model\n", "<|turn>model\n<|channel>thought\n", "<|turn>model\n<|channel>thought\n<channel|>",
               "<tool_response|>", "<|turn>model\n<|channel>tho"),
    "gpt_oss": ("<|start|>assistant", "<|start|>assistant<|channel|>", "<|start|>assistant<|channel|>analysis",
                "<|start|>assistant<|channel|>final<|message|>Begun",
                "<|start|>assistant<|channel|>analysis<|message|>",
                "<|start|>assistant to=functions.f<|channel|>commentary<|message|>{",
                "<|start|>user<|message|>q<|end|>"),
    "muse_glimmer": ("<|start|>assistant", "<|start|>assistant to=", "<|start|>assistant to=self<|message|>so",
                     "<|start|>assistant to=user<|message|>", "<|start|>assistant to=f<|message|>{", "<|eot|>"),
    "inline": (),
}  # fmt: skip
"""Prompt endings of every start state."""


def _endings(record: Family) -> tuple[str, ...]:
    """Make the prompt endings of a family that has none above, from what its record says."""
    turn = record.turn_openers[0] if record.turn_openers else ""
    opened = [opener for opener, _ in (*record.pairs, *record.answer) if opener]
    closed = "".join(record.pairs[0])
    return tuple(f"q{turn}{text}" for text in ("", "Begun", closed, f"{record.opener}so", *opened))


PROMPTS.update({name: _endings(record) for name, record in FAMILIES.items() if name not in PROMPTS})


class Sample(NamedTuple):
    """One output to feed."""

    family: str
    options: dict[str, Any]
    text: str
    tokens: tuple[Token, ...] = ()
    quoted: tuple[tuple[int, int], ...] = ()


def fragments(family: str) -> st.SearchStrategy[str]:
    """Draw a piece of an output: a marker, half of one, a word, a blank run, the beginning of a call or header."""
    markers = st.sampled_from(_MARKERS[family])
    halves = markers.flatmap(lambda m: st.integers(1, len(m) - 1).map(lambda n: m[:n]))
    tails = markers.flatmap(lambda m: st.integers(1, len(m) - 1).map(lambda n: m[n:]))
    words = st.sampled_from((*_WORDS, *_CALLS, *_HEADER))
    return st.one_of(markers, markers, words, st.sampled_from(_BLANKS), halves, tails)


def texts(family: str, size: int = 14) -> st.SearchStrategy[str]:
    """Draw an output rich in markers."""
    return st.lists(fragments(family), max_size=size).map("".join)


@st.composite
def options(draw: st.DrawFn, family: str) -> dict[str, Any]:
    """Draw arguments of `Splitter`: start states and every option of the family."""
    drawn: dict[str, Any] = {"joiner": draw(st.sampled_from(("\n", "\n\n", "")))}
    if draw(st.integers(0, 7)) == 0:
        drawn["floor"] = "promote"
    if family == "inline":
        drawn["where"] = draw(st.sampled_from(("prose", "anywhere", "head")))
        drawn["unclosed"] = draw(st.sampled_from(("reasoning", "content")))
        drawn["max_buffer_bytes"] = draw(st.sampled_from((5, 40, 65536)))
        drawn["tags"] = draw(st.sampled_from((None, None, "<a>...</a>,<ab>...</ab>")))
        return drawn
    drawn["prompt"] = draw(st.sampled_from((None, *PROMPTS[family])))
    drawn["force_reasoning"] = draw(st.sampled_from((None, None, True, False)))
    drawn["tools"] = draw(st.sampled_from((None, None, False)))
    drawn["stream_reasoning"] = draw(st.sampled_from((True, True, True, False)))
    return drawn


@st.composite
def text_samples(draw: st.DrawFn, family: str) -> Sample:
    """Draw an output as text."""
    return Sample(family, draw(options(family)), draw(texts(family)))


@st.composite
def id_samples(draw: st.DrawFn, family: str) -> Sample:
    """Draw an output as tokens, its markers quoted or real."""
    tokenizer = CharTokenizer.of_family(family)
    tokens: list[Token] = []
    quoted: list[tuple[int, int]] = []
    at = 0
    for fragment in draw(st.lists(fragments(family), max_size=12)):
        quote = fragment in _MARKERS[family] and draw(st.booleans())
        if quote:
            quoted.append((at, at + len(fragment)))
        tokens.extend(tokenizer.tokens(fragment, [(0, len(fragment))] if quote else ()))
        at += len(fragment)
    return Sample(family, draw(options(family)), "".join([t.text for t in tokens]), tuple(tokens), tuple(quoted))


@st.composite
def cuttings(draw: st.DrawFn, text: str) -> list[str]:
    """Cut a text at drawn places, some deltas being empty."""
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


@st.composite
def id_cuttings(draw: st.DrawFn, tokens: Sequence[Token], lag: int = 24) -> list[tuple[str, list[int]]]:
    """Cut an output into deltas of tokens, the text running up to `lag` characters behind the ids."""
    places = sorted(draw(st.lists(st.integers(0, len(tokens)), max_size=8)))
    deltas: list[tuple[str, list[int]]] = []
    waiting = ""
    for a, b in zip([0, *places], [*places, len(tokens)], strict=True):
        waiting += "".join([token.text for token in tokens[a:b]])
        keep = draw(st.integers(0, min(lag, len(waiting)))) if draw(st.booleans()) else 0
        deltas.append((waiting[: len(waiting) - keep], [token.id for token in tokens[a:b]]))
        waiting = waiting[len(waiting) - keep :]
    return [*deltas, (waiting, [])]
