"""Replay a wire through SGLang's own ReasoningParser, the way its serving code calls it."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from vllm_reasoning_ext import start_state
from vllm_reasoning_ext.core.state import StartState
from vllm_reasoning_ext.serve.tiny_model import TOKENS, build_tokenizer, encode
from vllm_reasoning_ext.serve.wires import TOOLS, Wire, cut_at, script_ids

TEMPLATES: Final = Path(__file__).parents[2] / "templates"

tokenizer_of: Final[Callable[[str], Any]] = cache(lambda family: build_tokenizer(TOKENS[family]))


def prompt_ids(wire: Wire) -> list[int]:
    """Render the prompt of a wire's request."""
    tokenizer = tokenizer_of(wire.family)
    continued = wire.prompt != "turn"
    text = tokenizer.apply_chat_template(
        wire.messages(),
        tools=TOOLS if wire.cities else None,
        chat_template=(TEMPLATES / f"{wire.family}.jinja").read_text(encoding="utf-8"),
        tokenize=False,
        add_generation_prompt=not continued,
        continue_final_message=continued,
        **wire.kwargs,
    )
    return encode(tokenizer, text)


def start_of(wire: Wire) -> StartState:
    """Read the start state of a wire's request from its rendered prompt."""
    return start_state(None, wire.family, prompt_token_ids=prompt_ids(wire), tokenizer=tokenizer_of(wire.family))


def output_ids(wire: Wire) -> list[int]:
    """Give the ids that the model wrote, up to the cut."""

    def ids(text: str) -> list[int]:
        return encode(tokenizer_of(wire.family), text)

    return script_ids(wire.script, ids)[: cut_at(wire.script, ids)]


def pieces(wire: Wire, width: int) -> Iterator[tuple[str, list[int]]]:
    """Cut an output as SGLang streams it.

    Args:
        wire: the output.
        width: tokens a piece.

    Yields:
        the new text and all ids up to now. Incomplete characters wait, and the stop token is trimmed from the
        text, yet its id is there.
    """
    tokenizer = tokenizer_of(wire.family)
    ids = output_ids(wire)
    visible = len(ids) if wire.cut else len(ids) - 1
    shown = ""
    for end in range(width, len(ids) + width, width):
        text = tokenizer.decode(ids[: min(end, visible)], skip_special_tokens=False)
        if text.endswith("\ufffd"):
            text = text[: -len("\ufffd")]
        yield text[len(shown) :], ids[:end]
        shown = text


class Serving(SimpleNamespace):
    """What the hooks ask of SGLang's serving object."""

    def __init__(self, family: str, tool_parser: str | None = None) -> None:
        super().__init__(
            reasoning_parser=family,
            tool_call_parser=tool_parser,
            tokenizer_manager=SimpleNamespace(tokenizer=tokenizer_of(family)),
        )
