"""The one table of outputs that library, vLLM and SGLang tests share (what an Output is: demo/outputs.py)."""

from typing import Final

from vllm_reasoning_ext.demo.outputs import MUSE_GLIMMER, Output, json_call

QWEN3: Final = (
    Output(
        "thought then answer",
        "qwen3",
        "<think>\nSix times seven.\n</think>\n\nIt is 42.<|im_end|>",
        "Six times seven.",
        "It is 42.",
    ),
    Output("plain answer", "qwen3", "It is 42.<|im_end|>", "", "It is 42."),
    Output(
        "thought opened by the prompt",
        "qwen3",
        "Six times seven.\n</think>\n\nIt is 42.<|im_end|>",
        "Six times seven.",
        "It is 42.",
        prompt="thought",
        prefill="<think>\nHm. ",
    ),
    Output(
        "block closed by the prompt",
        "qwen3",
        "It is 42.<|im_end|>",
        "",
        "It is 42.",
        kwargs={"enable_thinking": False},
    ),
    Output(
        "thought, then a call",
        "qwen3",
        f"<think>\nLook it up.\n</think>\n\n{json_call('Oslo')}<|im_end|>",
        "Look it up.",
        "",
        ("Oslo",),
        raw=json_call("Oslo"),
    ),
    Output(
        "a call in an open block",
        "qwen3",
        f"<think>\nLook it up.\n{json_call('Oslo')}<|im_end|>",
        "Look it up.",
        "",
        ("Oslo",),
        raw=json_call("Oslo"),
    ),
    Output(
        "two calls, no thought",
        "qwen3",
        f"{json_call('Oslo')}\n{json_call('Rome')}<|im_end|>",
        "",
        "",
        ("Oslo", "Rome"),
        raw=f"{json_call('Oslo')}\n{json_call('Rome')}",
    ),
    Output(
        "quoted closer in the thought",
        "qwen3",
        "<think>\nIt ends at ‹</think>›, they say.\n</think>\n\nYes.<|im_end|>",
        "It ends at </think>, they say.",
        "Yes.",
    ),
    Output(
        "marker in the answer is text",
        "qwen3",
        "<think>\nShow it.\n</think>\n\nWrite <think> first.<|im_end|>",
        "Show it.",
        "Write <think> first.",
    ),
    Output(
        "cut by max_tokens mid-thought",
        "qwen3",
        "<think>\nLet me think about✂ it.\n</think>\n\n42.<|im_end|>",
        "Let me think about",
    ),
    Output(
        "continue an answer",
        "qwen3",
        " is 42.<|im_end|>",
        "",
        " is 42.",
        prompt="answer",
        prefill="The product",
    ),
)

OUTPUTS: Final[tuple[Output, ...]] = MUSE_GLIMMER + QWEN3


def of_family(family: str) -> list[Output]:
    """Select a family's outputs."""
    return [output for output in OUTPUTS if output.family == family]
