"""Replay an output as an engine streams it: text that lags, ids that lead, a stop token that only the ids have."""

from collections.abc import Iterator
from typing import Any, Final

from tests.support.byte_tokenizer import byte_tokenizer
from vllm_reasoning_ext import start_state
from vllm_reasoning_ext.conformance.script import cut_at, script_ids
from vllm_reasoning_ext.core.state import StartState
from vllm_reasoning_ext.demo.outputs import TOOLS, Output
from vllm_reasoning_ext.demo.tiny_model import encode

tokenizer_of: Final[Any] = byte_tokenizer


def prompt_ids(output: Output) -> list[int]:
    """Render the prompt of an output's request."""
    tokenizer = tokenizer_of(output.family)
    continued = output.prompt != "turn"
    text = tokenizer.apply_chat_template(
        output.messages(),
        tools=TOOLS if output.cities else None,
        tokenize=False,
        add_generation_prompt=not continued,
        continue_final_message=continued,
        **output.kwargs,
    )
    return encode(tokenizer, text)


def start_of(output: Output) -> StartState:
    """Read the start state of an output's request from its rendered prompt."""
    return start_state(None, output.family, prompt_token_ids=prompt_ids(output), tokenizer=tokenizer_of(output.family))


def raw(output: Output) -> str:
    """Give the content before a tool parser has read it."""
    return output.content if output.raw is None else output.raw


def output_ids(output: Output) -> list[int]:
    """Give the ids that the model wrote, up to the cut."""

    def ids(text: str) -> list[int]:
        return encode(tokenizer_of(output.family), text)

    return script_ids(output.script, ids)[: cut_at(output.script, ids)]


def pieces(output: Output, width: int) -> Iterator[tuple[str, list[int]]]:
    """Cut an output as SGLang streams it.

    Args:
        output: the output.
        width: tokens a piece.

    Yields:
        the new text and all ids up to now. Incomplete characters wait, and the stop token is trimmed from the
        text, yet its id is there.
    """
    tokenizer = tokenizer_of(output.family)
    ids = output_ids(output)
    visible = len(ids) if output.cut else len(ids) - 1
    shown = ""
    for end in range(width, len(ids) + width, width):
        text = tokenizer.decode(ids[: min(end, visible)], skip_special_tokens=False)
        if text.endswith("\ufffd"):
            text = text[: -len("\ufffd")]
        yield text[len(shown) :], ids[:end]
        shown = text
