"""Outputs drawn from pieces whose meaning is known: a text is answer, a call is a call.

What no parser can take for a call (broken arguments, a function that the request does not offer) is shown as the
model wrote it.
"""

import json
import random
from collections.abc import Callable
from typing import Final, NamedTuple

from vllm_reasoning_ext.demo.outputs import FUNCTION, Output, atem_call

THINKING: Final = {"thinking": True, "enable_thinking": True}
_M3: Final = "]<]minimax[>["
_DSML: Final = "｜DSML｜"


class Piece(NamedTuple):
    """Part of an output: what the model writes, what a client sees of it, and the city that it asks for."""

    script: str
    shown: str
    city: str | None = None


class Dialect(NamedTuple):
    """How a family writes.

    Attributes:
        family: the family.
        parser: SGLang's tool parser.
        thought: a first thought, with its end.
        answer: writes an answer.
        call: writes a call of a function with a city.
        broken: calls that no parser takes.
        joint: stands between two pieces.
        stop: what the last piece of a marker family is followed by; channel families end by their terminators.
    """

    family: str
    parser: str
    thought: str
    answer: Callable[[str], str]
    call: Callable[[str, str], str]
    broken: tuple[str, ...]
    joint: str = ""
    stop: str = ""


def qwen_call(name: str, city: str) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': {'city': city}}, ensure_ascii=False)}\n</tool_call>"


def coder_call(name: str, city: str) -> str:
    return f"<tool_call>\n<function={name}>\n<parameter=city>\n{city}\n</parameter>\n</function>\n</tool_call>"


def glm_call(name: str, city: str) -> str:
    return f"<tool_call>{name}\n<arg_key>city</arg_key>\n<arg_value>{city}</arg_value>\n</tool_call>"


def glm47_call(name: str, city: str) -> str:
    return f"<tool_call>{name}<arg_key>city</arg_key><arg_value>{city}</arg_value></tool_call>"


def minimax_call(name: str, city: str) -> str:
    return (
        f'<minimax:tool_call>\n<invoke name="{name}">\n<parameter name="city">{city}</parameter>\n'
        "</invoke>\n</minimax:tool_call>"
    )


def m3_call(name: str, city: str) -> str:
    inner = f'{_M3}<invoke name="{name}">{_M3}<city>{city}{_M3}</city>{_M3}</invoke>'
    return f"{_M3}<tool_call>\n{inner}\n{_M3}</tool_call>"


def gemma_call(name: str, city: str) -> str:
    return f'<|tool_call>call:{name}{{city:<|"|>{city}<|"|>}}<tool_call|>'


def dsml_call(name: str, city: str) -> str:
    return (
        f'<{_DSML}function_calls>\n<{_DSML}invoke name="{name}">\n'
        f'<{_DSML}parameter name="city" string="true">{city}</{_DSML}parameter>\n'
        f"</{_DSML}invoke>\n</{_DSML}function_calls>"
    )


def harmony_call(name: str, city: str) -> str:
    arguments = json.dumps({"city": city}, ensure_ascii=False)
    return f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}<|call|>"


def muse_call(name: str, city: str) -> str:
    inside = atem_call(city).replace(f'name="{FUNCTION}"', f'name="{name}"')
    return f"<|start|>assistant to={name}<|message|>{inside}<|eom|>"


def _same(text: str) -> str:
    return text


DIALECTS: Final = (
    Dialect(
        "qwen3", "qwen25", "<think>Six.\n</think>\n\n", _same, qwen_call,
        ("<tool_call>\n{\"name\": \"weather\"\n</tool_call>", "<tool_call>{\"name\": \"weather\"}</tool_call>"),
        stop="<|im_end|>",
    ),
    Dialect(
        "qwen3", "qwen3_coder", "<think>Six.\n</think>\n\n", _same, coder_call, (), stop="<|im_end|>"
    ),
    Dialect("qwen3", "glm45", "<think>Six.\n</think>\n\n", _same, glm_call, (), stop="<|im_end|>"),
    Dialect("qwen3", "glm47", "<think>Six.\n</think>\n\n", _same, glm47_call, (), stop="<|im_end|>"),
    Dialect("minimax", "minimax-m2", "Six.\n</think>\n\n", _same, minimax_call, (), stop="[e~["),
    Dialect("minimax_m3", "minimax-m3", "<mm:think>Six.</mm:think>", _same, m3_call, (), stop="[e~["),
    Dialect(
        "gemma4", "gemma4", "<|channel>thought\nSix.\n<channel|>", _same, gemma_call,
        ("<|tool_call>call:weather<tool_call|>",), stop="<turn|>",
    ),
    Dialect(
        "deepseekv32", "deepseekv32", "Six.</think>", _same, dsml_call,
        (f"<{_DSML}function_calls>\n</{_DSML}function_calls>",), stop="<｜end▁of▁sentence｜>",
    ),
    Dialect(
        "gpt_oss", "gpt-oss", "<|channel|>analysis<|message|>Six.<|end|>",
        "<|channel|>final<|message|>{}<|end|>".format, harmony_call,
        (
            "<|channel|>commentary to=functions.weather<|message|>not json<|call|>",
            "<|channel|>analysis to=python<|message|>print(1)<|call|>",
        ),
        joint="<|start|>assistant",
    ),
    Dialect(
        "muse_glimmer", "muse", " to=self<|message|>Six.<|eom|>",
        "<|start|>assistant to=user<|message|>{}<|eom|>".format, muse_call,
        (
            "<|start|>assistant to=weather<|message|>no call<|eom|>",
            "<|start|>assistant to=weather<|message|><atem:function_calls><|eom|>",
        ),
    ),
)  # fmt: skip
ANSWERS: Final = (
    "It is 42.",
    "x<b>a</b> {\"k\": 1}",
    "One.\n\nTwo.\n\n",
    "Write ‹<|eom|>›, ‹<|call|>› or ‹<|return|>›.",
    "the ‹<|channel|>›commentary part",
    "‹<|start|>›assistant‹<|channel|>›commentary to=functions.weather‹<|message|>›{}‹<|call|>› is a call",
    "use <atem:x> or <atem:invoke name=\"weather\"> here",
    "a <| b and <|weird|> and <| ",
    "Commentary: assistantfinal",
    "the <tool_call> tag, ünïcode ✓",
    "  indented",
)  # fmt: skip
CITIES: Final = ("Oslo", "Zürich", "a \"quoted\" name", "St. <b>John</b>", "{x}, [y]", "two words")  # fmt: skip


def drawn(dialect: Dialect, seed: int) -> list[Piece]:
    """Draw the pieces of an output; two answers never follow each other."""
    pick = random.Random(f"{dialect.parser} {seed}")
    pieces: list[Piece] = []
    for _ in range(pick.randint(1, 5)):
        kind = pick.choice(["answer", "call", "call", "unknown", "broken"])
        if kind == "answer" and not (pieces and pieces[-1].script.startswith(dialect.answer("")[:20])):
            text = pick.choice(ANSWERS)
            pieces.append(Piece(dialect.answer(text), text.replace("‹", "").replace("›", "")))
        elif kind == "unknown" or (kind == "broken" and not dialect.broken):
            text = dialect.call("stocks", "Oslo")
            pieces.append(Piece(text, text))
        elif kind == "broken":
            text = pick.choice(dialect.broken)
            pieces.append(Piece(text, text))
        else:
            city = pick.choice(CITIES)
            pieces.append(Piece(dialect.call(FUNCTION, city), "", city))
    return pieces


def written(dialect: Dialect, pieces: list[Piece]) -> Output:
    script = dialect.joint.join([dialect.thought, *(piece.script for piece in pieces)]) + dialect.stop
    return Output("drawn", dialect.family, script, kwargs=THINKING)


def expected(dialect: Dialect, pieces: list[Piece]) -> tuple[str, list[dict[str, str]]]:
    """Say what a client gets; the terminator of the last piece is the stop token, which has no text."""
    shown = "".join(piece.shown for piece in pieces)
    if not dialect.stop and pieces[-1].shown == pieces[-1].script:
        for stop in ("<|call|>", "<|eom|>"):
            shown = shown.removesuffix(stop)
    return shown, [{"city": piece.city} for piece in pieces if piece.city is not None]
