"""Outputs of the families beside muse_glimmer and qwen3, for the tests of both engines and the library."""

from typing import Final

from tests.support.outputs import OUTPUTS
from vllm_reasoning_ext.demo.outputs import FUNCTION, Output

_TO_FINAL: Final = "<|end|><|start|>assistant<|channel|>final<|message|>It is 42.<|return|>"
_ARGUMENTS: Final = '{"city": "Oslo"}'
_HARMONY_CALL: Final = f"<|channel|>commentary to=functions.{FUNCTION} <|constrain|>json<|message|>{_ARGUMENTS}"
_ROLE_CALL: Final = f"<|start|>assistant to=functions.{FUNCTION}<|channel|>commentary<|message|>{_ARGUMENTS}"
_ANALYSIS_CALL: Final = f"<|channel|>analysis to=functions.{FUNCTION} <|constrain|>json<|message|>{_ARGUMENTS}"
_LOOK_IT_UP: Final = "<|channel|>analysis<|message|>Look it up.<|end|><|start|>assistant"

GPT_OSS: Final = (
    Output(
        "thought then answer",
        "gpt_oss",
        f"<|channel|>analysis<|message|>Six times seven.{_TO_FINAL}",
        "Six times seven.",
        "It is 42.",
    ),
    Output("plain answer, no channels", "gpt_oss", "It is 42.<|return|>", "", "It is 42."),
    Output(
        "answer only",
        "gpt_oss",
        "<|channel|>final<|message|>It is 42.<|return|>",
        "",
        "It is 42.",
    ),
    # A tool slice is verbatim; the stop token <|call|> is trimmed by the engines, so `raw` has none.
    Output(
        "thought, then a call",
        "gpt_oss",
        f"{_LOOK_IT_UP}{_HARMONY_CALL}<|call|>",
        "Look it up.",
        "",
        ("Oslo",),
        raw=_HARMONY_CALL,
    ),
    Output(
        "recipient in the role part",
        "gpt_oss",
        f"<|channel|>analysis<|message|>Look it up.<|end|>{_ROLE_CALL}<|call|>",
        "Look it up.",
        "",
        ("Oslo",),
        raw=_ROLE_CALL,
    ),
    Output(
        "a call on the analysis channel",
        "gpt_oss",
        f"{_LOOK_IT_UP}{_ANALYSIS_CALL}<|call|>",
        "Look it up.",
        "",
        ("Oslo",),
        raw=_ANALYSIS_CALL,
    ),
    Output(
        "thought, preamble, call",
        "gpt_oss",
        f"{_LOOK_IT_UP}<|channel|>commentary<|message|>Looking.<|end|><|start|>assistant{_HARMONY_CALL}<|call|>",
        "Look it up.",
        "Looking.",
        ("Oslo",),
        raw=f"Looking.{_HARMONY_CALL}",
    ),
    Output(
        "quoted terminator in the thought",
        "gpt_oss",
        f"<|channel|>analysis<|message|>It ends at ‹<|end|>›, they say.{_TO_FINAL}",
        "It ends at <|end|>, they say.",
        "It is 42.",
    ),
    Output(
        "quoted markers in the answer",
        "gpt_oss",
        "<|channel|>final<|message|>‹<|channel|>› begins, ‹<|return|>› ends.<|return|>",
        "",
        "<|channel|> begins, <|return|> ends.",
    ),
    Output(
        "cut by max_tokens mid-thought",
        "gpt_oss",
        f"<|channel|>analysis<|message|>Let me think about✂ it.{_TO_FINAL}",
        "Let me think about",
    ),
    Output(
        "continue an answer",
        "gpt_oss",
        " is 42.<|return|>",
        "",
        " is 42.",
        prompt="answer",
        prefill="The product",
    ),
)

_ON: Final = {"enable_thinking": True}
_GEMMA_CALL: Final = f'<|tool_call>call:{FUNCTION}{{city:<|"|>Oslo<|"|>}}<tool_call|>'

GEMMA4: Final = (
    Output(
        "thought then answer",
        "gemma4",
        "<|channel>thought\nSix times seven.\n<channel|>It is 42.<turn|>",
        "Six times seven.",
        "It is 42.",
        kwargs=_ON,
    ),
    Output("plain answer", "gemma4", "It is 42.<turn|>", "", "It is 42.", kwargs=_ON),
    Output("block closed by the prompt", "gemma4", "It is 42.<turn|>", "", "It is 42."),
    Output(
        "no label",
        "gemma4",
        "<|channel>Six times seven.<channel|>It is 42.<turn|>",
        "Six times seven.",
        "It is 42.",
        kwargs=_ON,
    ),
    Output(
        "thought, then a call",
        "gemma4",
        f"<|channel>thought\nLook it up.\n<channel|>{_GEMMA_CALL}<|tool_response>",
        "Look it up.",
        "",
        ("Oslo",),
        raw=_GEMMA_CALL,
        kwargs=_ON,
    ),
    Output(
        "a call in an open block",
        "gemma4",
        f"<|channel>thought\nLook it up.\n{_GEMMA_CALL}<|tool_response>",
        "Look it up.",
        "",
        ("Oslo",),
        raw=_GEMMA_CALL,
        kwargs=_ON,
    ),
    Output(
        "quoted closer in the thought",
        "gemma4",
        "<|channel>thought\nIt ends at ‹<channel|>›, they say.\n<channel|>Yes.<turn|>",
        "It ends at <channel|>, they say.",
        "Yes.",
        kwargs=_ON,
    ),
    Output(
        "cut by max_tokens mid-thought",
        "gemma4",
        "<|channel>thought\nLet me think about✂ it.\n<channel|>42.<turn|>",
        "Let me think about",
        kwargs=_ON,
    ),
)

_MINIMAX_CALL: Final = (
    f'<minimax:tool_call>\n<invoke name="{FUNCTION}">\n<parameter name="city">Oslo</parameter>\n'
    "</invoke>\n</minimax:tool_call>"
)

MINIMAX: Final = (
    Output(
        "thought then answer",
        "minimax",
        "Six times seven.\n</think>\n\nIt is 42.[e~[",
        "Six times seven.",
        "It is 42.",
    ),
    Output(
        "a call in an open block",
        "minimax",
        f"Look it up.\n{_MINIMAX_CALL}[e~[",
        "Look it up.",
        "",
        ("Oslo",),
        raw=_MINIMAX_CALL,
    ),
    Output(
        "thought, then a call",
        "minimax",
        f"Look it up.\n</think>\n\n{_MINIMAX_CALL}[e~[",
        "Look it up.",
        "",
        ("Oslo",),
        raw=_MINIMAX_CALL,
    ),
    Output(
        "quoted closer in the thought",
        "minimax",
        "It ends at ‹</think>›, they say.\n</think>\n\nYes.[e~[",
        "It ends at </think>, they say.",
        "Yes.",
    ),
    Output(
        "cut by max_tokens mid-thought",
        "minimax",
        "Let me think about✂ it.\n</think>\n\n42.[e~[",
        "Let me think about",
    ),
)

_NS: Final = "]<]minimax[>["
_M3_CALL: Final = (
    f'{_NS}<tool_call>\n{_NS}<invoke name="{FUNCTION}">{_NS}<city>Oslo{_NS}</city>{_NS}</invoke>\n{_NS}</tool_call>'
)

MINIMAX_M3: Final = (
    Output(
        "thought then answer",
        "minimax_m3",
        "<mm:think>Six times seven.</mm:think>It is 42.[e~[",
        "Six times seven.",
        "It is 42.",
    ),
    Output("plain answer", "minimax_m3", "It is 42.[e~[", "", "It is 42."),
    Output("no thinking this turn", "minimax_m3", "</mm:think>It is 42.[e~[", "", "It is 42."),
    Output(
        "thought opened by the prompt",
        "minimax_m3",
        "Six times seven.</mm:think>It is 42.[e~[",
        "Six times seven.",
        "It is 42.",
        kwargs={"thinking_mode": "enabled"},
    ),
    Output(
        "block closed by the prompt",
        "minimax_m3",
        "It is 42.[e~[",
        "",
        "It is 42.",
        kwargs={"thinking_mode": "disabled"},
    ),
    Output(
        "thought, then a call",
        "minimax_m3",
        f"<mm:think>Look it up.</mm:think>{_M3_CALL}[e~[",
        "Look it up.",
        "",
        ("Oslo",),
        raw=_M3_CALL,
    ),
    Output(
        "a call in an open block",
        "minimax_m3",
        f"<mm:think>Look it up.\n{_M3_CALL}[e~[",
        "Look it up.",
        "",
        ("Oslo",),
        raw=_M3_CALL,
    ),
    Output(
        "quoted closer in the thought",
        "minimax_m3",
        "<mm:think>It ends at ‹</mm:think>›, they say.</mm:think>Yes.[e~[",
        "It ends at </mm:think>, they say.",
        "Yes.",
    ),
    Output(
        "cut by max_tokens mid-thought",
        "minimax_m3",
        "<mm:think>Let me think about✂ it.</mm:think>42.[e~[",
        "Let me think about",
    ),
)

_THINKING: Final = {"thinking": True}
_EOS: Final = "<｜end▁of▁sentence｜>"
_DSML_CALL: Final = (
    f'<｜DSML｜function_calls>\n<｜DSML｜invoke name="{FUNCTION}">\n'
    '<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n</｜DSML｜function_calls>"
)

DEEPSEEKV32: Final = (
    Output(
        "thought then answer",
        "deepseekv32",
        f"Six times seven.</think>It is 42.{_EOS}",
        "Six times seven.",
        "It is 42.",
        kwargs=_THINKING,
    ),
    Output(
        "chat mode",
        "deepseekv32",
        f"It is 42.{_EOS}",
        "",
        "It is 42.",
        kwargs={"thinking": False},
    ),
    Output(
        "thought, then a call",
        "deepseekv32",
        f"Look it up.</think>\n\n{_DSML_CALL}{_EOS}",
        "Look it up.",
        "",
        ("Oslo",),
        raw=_DSML_CALL,
        kwargs=_THINKING,
    ),
    Output(
        "a call in an open block",
        "deepseekv32",
        f"Look it up.\n\n{_DSML_CALL}{_EOS}",
        "Look it up.",
        "",
        ("Oslo",),
        raw=_DSML_CALL,
        kwargs=_THINKING,
    ),
    Output(
        "quoted closer in the thought",
        "deepseekv32",
        f"It ends at ‹</think>›, they say.</think>Yes.{_EOS}",
        "It ends at </think>, they say.",
        "Yes.",
        kwargs=_THINKING,
    ),
    Output(
        "cut by max_tokens mid-thought",
        "deepseekv32",
        f"Let me think about✂ it.</think>42.{_EOS}",
        "Let me think about",
        kwargs=_THINKING,
    ),
)

ALL_OUTPUTS: Final[tuple[Output, ...]] = (
    *OUTPUTS,
    *(
        output
        for output in GPT_OSS + GEMMA4 + MINIMAX + MINIMAX_M3 + DEEPSEEKV32
        if output.family not in {known.family for known in OUTPUTS}
    ),
)
"""Every output there is; a family that the shared table has by now comes from there."""

SERVED_BY_AUTO: Final = ("deepseekv32", "gemma4", "minimax")
"""Families that the live tests serve by `--reasoning-parser auto`, the others by their names: a reply is the same."""

TOOL_PARSERS: Final = {
    "deepseekv32": "deepseek_v32",
    "gemma4": "gemma4",
    "minimax": "minimax_m2",
    "minimax_m3": "minimax_m3",
    "muse_glimmer": "muse_glimmer",
    "qwen3": "hermes",
}
"""Family -> the tool parser of vLLM that reads its outputs; gpt_oss, where vLLM composes no parser, has none."""


def outputs_of(family: str) -> list[Output]:
    """Select a family's outputs."""
    return [output for output in ALL_OUTPUTS if output.family == family]


def reasoning_tokens(output: Output) -> int:
    """Count an output's reasoning tokens where one is a byte; a line break in them is a joiner, not the model's."""
    return len(output.reasoning.replace("\n", "").encode())
