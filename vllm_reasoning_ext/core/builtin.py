"""The records of the seven families (SPEC section 5; markers: each model's format documentation)."""

from typing import Final

from vllm_reasoning_ext.core.record import BLANKS, NAME, ONE_SPACE, WORD, Family, Part

_SPACE, _BLANKS, _NAME, _WORD = Part(ONE_SPACE), Part(BLANKS), Part(NAME), Part(WORD)

CHATML: Final = "<|im_start|>assistant\n"
_GLM: Final = "<|assistant|>"
_MINIMAX: Final = "]~b]ai\n"
# DeepSeek's V3.2 renders tool results without a new assistant token, V3.1 ends them with a token of their own.
DEEPSEEK: Final = (
    "<｜Assistant｜>",
    "</function_results>",
    "<｜tool▁output▁end｜>",
    "<｜tool▁outputs▁end｜>",
)
_DSML: Final = "｜DSML｜"
_M3: Final = "]<]minimax[>["

CALL_SHAPES: Final = (
    (_BLANKS, "{", _BLANKS, '"'),
    (_BLANKS, "<function="),
    (_BLANKS, _NAME, _BLANKS, "<arg_key>"),
    (_BLANKS, _NAME, _BLANKS, "</tool_call>"),
)
"""What follows `<tool_call>`: JSON, a function tag, or a name and its first argument."""

SEVEN: Final = (
    Family(
        name="deepseekv32",
        engine_names=(
            "deepseek_v4",
            "deepseek_v41",
            "deepseek-v4",
            "deepseek-v41",
        ),
        opener="<think>",
        closer="</think>",
        always_open=True,
        turn_openers=DEEPSEEK,
        tool_marker=f"<{_DSML}",
        # Models garble the wrapper's name ("toolcalls"); the closing tag repeats what they wrote.
        call_shapes=((_SPACE, "invoke "), (_SPACE, _WORD, ">")),
        tool_closers=(f"</{_DSML}{{name}}>", f"</{_DSML} {{name}}>"),
        parts=((f"<{_DSML}", (_DSML,)), (f"</{_DSML}", (_DSML,))),
        end_of_sequence=("<｜end▁of▁sentence｜>",),
        reasoning_start_str="<think>",
        reasoning_end_str="</think>",
    ),
    Family(
        name="qwen3",
        aliases=("glm",),
        engine_names=(
            "qwen3-thinking",
            "glm45",
            "glm47",
            "nanbeige",
            "mimo",
            "minicpmv",
            "nemotron_v3",
            "nemotron_3",
            "granite_thinking_parser",
            "step3p5",
            "step5",
        ),
        opener="<think>",
        closer="</think>",
        turn_openers=(CHATML, _GLM, _MINIMAX, *DEEPSEEK),
        tool_marker="<tool_call>",
        call_shapes=CALL_SHAPES,
        tool_closers=("</tool_call>",),
        end_of_sequence=("<|im_end|>", "<|endoftext|>", "<｜end▁of▁sentence｜>", "<|user|>", "<|observation|>"),
        reasoning_start_str="<think>",
        reasoning_end_str="</think>",
    ),
    Family(
        name="minimax",
        engine_names=(
            "minimax_m2",
            "minimax-m2",
        ),
        opener="<think>",
        closer="</think>",
        always_open=True,
        turn_openers=(_MINIMAX,),
        tool_marker="<minimax:tool_call>",
        call_shapes=((_BLANKS, "<invoke name="),),
        tool_closers=("</minimax:tool_call>",),
        end_of_sequence=("[e~[",),
        reasoning_start_str="<think>",
        reasoning_end_str="</think>",
    ),
    Family(
        name="minimax_m3",
        engine_names=("minimax-m3",),
        opener="<mm:think>",
        closer="</mm:think>",
        turn_openers=(_MINIMAX,),
        tool_marker=f"{_M3}<tool_call>",
        call_shapes=((_BLANKS, f"{_M3}<invoke name="),),
        tool_closers=(f"{_M3}</tool_call>",),
        parts=(
            (f"{_M3}<tool_call>", (_M3, "<tool_call>")),
            (f"{_M3}</tool_call>", (_M3, "</tool_call>")),
        ),
        end_of_sequence=("[e~[",),
        reasoning_start_str="<mm:think>",
        reasoning_end_str="</mm:think>",
    ),
    Family(
        name="gemma4",
        opener="<|channel>",
        closer="<channel|>",
        label="thought\n",
        control_markers=True,
        thinking_switch="<|turn>system\n<|think|>",
        turn_openers=("<|turn>model\n", "<tool_response|>"),
        tool_marker="<|tool_call>",
        call_shapes=((_BLANKS, "call:"),),
        tool_closers=("<tool_call|>",),
        end_of_sequence=("<turn|>", "<eos>", "<|tool_response>"),
        reasoning_start_str="<|channel>thought\n",
        reasoning_end_str="<channel|>",
    ),
    Family(
        name="gpt_oss",
        grammar="harmony",
        aliases=("gpt-oss",),
        engine_names=(
            "openai_gptoss",
            "beam",
        ),
        turn_openers=("<|start|>",),
        required=(
            "<|start|>",
            "<|channel|>",
            "<|message|>",
            "<|constrain|>",
            "<|end|>",
            "<|return|>",
            "<|call|>",
        ),
        end_of_sequence=("<|endoftext|>",),
        reasoning_start_str="<|channel|>analysis<|message|>",
        reasoning_end_str="<|end|>",
    ),
    Family(
        name="muse_glimmer",
        grammar="atem",
        turn_openers=("<|start|>",),
        required=("<|start|>", "<|message|>", "<|eom|>", "<|eot|>"),
        end_of_sequence=("<|end_of_text|>",),
        reasoning_start_str=" to=self<|message|>",
        reasoning_end_str="<|eom|>",
    ),
)
