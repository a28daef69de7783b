"""Replay a wire as an engine streams it: text that lags, ids that lead, a stop token that only the ids have."""

from collections.abc import Iterator
from typing import Any, Final

from tests.support.byte_tokenizer import byte_tokenizer
from vllm_reasoning_ext import start_state
from vllm_reasoning_ext.core.state import StartState
from vllm_reasoning_ext.serve.tiny_model import encode
from vllm_reasoning_ext.serve.wires import TOOLS, Wire, cut_at, script_ids

tokenizer_of: Final[Any] = byte_tokenizer


def prompt_ids(wire: Wire) -> list[int]:
    """Render the prompt of a wire's request."""
    tokenizer = tokenizer_of(wire.family)
    continued = wire.prompt != "turn"
    text = tokenizer.apply_chat_template(
        wire.messages(),
        tools=TOOLS if wire.cities else None,
        tokenize=False,
        add_generation_prompt=not continued,
        continue_final_message=continued,
        **wire.kwargs,
    )
    return encode(tokenizer, text)


def start_of(wire: Wire) -> StartState:
    """Read the start state of a wire's request from its rendered prompt."""
    return start_state(None, wire.family, prompt_token_ids=prompt_ids(wire), tokenizer=tokenizer_of(wire.family))


def raw(wire: Wire) -> str:
    """Give the content before a tool parser has read it."""
    return wire.content if wire.raw is None else wire.raw


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
