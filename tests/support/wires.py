"""The one table of wires that library, vLLM and SGLang tests share (what a Wire is: serve/wires.py)."""

from typing import Final

from vllm_reasoning_ext.serve.wires import MUSE_GLIMMER, Wire, json_call

QWEN3: Final = (
    Wire(
        "thought then answer",
        "qwen3",
        "<think>\nSix times seven.\n</think>\n\nIt is 42.<|im_end|>",
        "Six times seven.",
        "It is 42.",
    ),
    Wire("plain answer", "qwen3", "It is 42.<|im_end|>", "", "It is 42."),
    Wire(
        "thought opened by the prompt",
        "qwen3",
        "Six times seven.\n</think>\n\nIt is 42.<|im_end|>",
        "Six times seven.",
        "It is 42.",
        prompt="thought",
        prefill="<think>\nHm. ",
    ),
    Wire(
        "block closed by the prompt",
        "qwen3",
        "It is 42.<|im_end|>",
        "",
        "It is 42.",
        kwargs={"enable_thinking": False},
    ),
    Wire(
        "thought, then a call",
        "qwen3",
        f"<think>\nLook it up.\n</think>\n\n{json_call('Oslo')}<|im_end|>",
        "Look it up.",
        "",
        ("Oslo",),
        raw=json_call("Oslo"),
    ),
    Wire(
        "a call in an open block",
        "qwen3",
        f"<think>\nLook it up.\n{json_call('Oslo')}<|im_end|>",
        "Look it up.",
        "",
        ("Oslo",),
        raw=json_call("Oslo"),
    ),
    Wire(
        "two calls, no thought",
        "qwen3",
        f"{json_call('Oslo')}\n{json_call('Rome')}<|im_end|>",
        "",
        "",
        ("Oslo", "Rome"),
        raw=f"{json_call('Oslo')}\n{json_call('Rome')}",
    ),
    Wire(
        "quoted closer in the thought",
        "qwen3",
        "<think>\nIt ends at ‹</think>›, they say.\n</think>\n\nYes.<|im_end|>",
        "It ends at </think>, they say.",
        "Yes.",
    ),
    Wire(
        "marker in the answer is text",
        "qwen3",
        "<think>\nShow it.\n</think>\n\nWrite <think> first.<|im_end|>",
        "Show it.",
        "Write <think> first.",
    ),
    Wire(
        "cut by max_tokens mid-thought",
        "qwen3",
        "<think>\nLet me think about✂ it.\n</think>\n\n42.<|im_end|>",
        "Let me think about",
    ),
    Wire(
        "continue an answer",
        "qwen3",
        " is 42.<|im_end|>",
        "",
        " is 42.",
        prompt="answer",
        prefill="The product",
    ),
)

WIRES: Final[tuple[Wire, ...]] = MUSE_GLIMMER + QWEN3


def of_family(family: str) -> list[Wire]:
    """Select a family's wires."""
    return [wire for wire in WIRES if wire.family == family]
