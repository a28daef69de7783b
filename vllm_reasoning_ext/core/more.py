"""The records of the families beyond the seven that the engines name a parser for, and of some that they do not.

Sources: the parsers of vLLM 0.32 and 0.33 and of SGLang 0.5.23, and chat templates that were rendered; docs/families.md
says of each record which of the two it rests on.
"""

from dataclasses import replace
from typing import Final

from vllm_reasoning_ext.core.builtin import CALL_SHAPES, CHATML, DEEPSEEK
from vllm_reasoning_ext.core.record import BLANKS, ID, NAME, QUOTED_NAME, TEXT, Family, Part, Tool

_BLANKS, _NAME, _ID, _TEXT, _QUOTED_NAME = Part(BLANKS), Part(NAME), Part(ID), Part(TEXT), Part(QUOTED_NAME)
_JSON: Final = ((_BLANKS, "{", _BLANKS, '"'),)
_LIST: Final = ((_BLANKS, "[", _BLANKS, "{"),)
_ARG_KEYS: Final = ((_BLANKS, _NAME, _BLANKS, "<arg_key>"), (_BLANKS, _NAME, _BLANKS, "</tool_call>"))
_EOS: Final = "<｜end▁of▁sentence｜>"

_THINK = Family(
    name="think",
    opener="<think>",
    closer="</think>",
    turn_openers=(CHATML,),
    tool_marker="<tool_call>",
    call_shapes=CALL_SHAPES,
    tool_closers=("</tool_call>",),
    end_of_sequence=("<|im_end|>", "<|endoftext|>"),
    reasoning_start_str="<think>",
    reasoning_end_str="</think>",
)
"""What most models of the `<think>` family have in common."""


def _marked(name: str, opener: str, closer: str, **fields: object) -> Family:
    """Make a record of a family with markers of its own."""
    budget = {"reasoning_start_str": opener, "reasoning_end_str": closer}
    return Family(name=name, opener=opener, closer=closer, **budget, **fields)  # type: ignore[arg-type]


def _suffixed(name: str, suffixes: tuple[str, ...], **fields: object) -> Family:
    """Make the record of a family whose checkpoints write a suffix into every marker; these are known."""

    def tool(suffix: str) -> Tool:
        return Tool(f"<tool_calls{suffix}>", ((_BLANKS, f"<tool_call{suffix}>"),), (f"</tool_calls{suffix}>",))

    first, *others = suffixes
    return _marked(
        name,
        f"<think{first}>",
        f"</think{first}>",
        more_pairs=tuple((f"<think{s}>", f"</think{s}>") for s in others),
        turn_openers=tuple(f"<｜hy_Assistant{s}｜>" for s in suffixes),
        more_tools=tuple(map(tool, suffixes)),
        suffixes=suffixes,
        end_of_sequence=tuple(f"<｜hy_eos{s}｜>" for s in suffixes),
        **fields,
    )


_R1_TOOL: Final = Tool(
    "<｜tool▁calls▁begin｜>",
    ((_BLANKS, "<｜tool▁call▁begin｜>function<｜tool▁sep｜>", _NAME),),
    ("<｜tool▁calls▁end｜>",),
)
_V3_TOOL: Final = Tool(
    "<｜tool▁calls▁begin｜>",
    ((_BLANKS, "<｜tool▁call▁begin｜>", _NAME, "<｜tool▁sep｜>"),),
    ("<｜tool▁calls▁end｜>",),
)

_DEEPSEEK_V3 = replace(
    _THINK,
    name="deepseek_v3",
    engine_names=("deepseek-v3",),
    turn_openers=DEEPSEEK,
    tool_marker="",
    call_shapes=(),
    tool_closers=(),
    more_tools=(_V3_TOOL,),
    end_of_sequence=(_EOS,),
)

MORE: Final = (
    replace(
        _THINK,
        name="deepseek_r1",
        engine_names=("deepseek-r1",),
        always_open=True,
        turn_openers=(*DEEPSEEK, CHATML),
        # The distills write calls as their base models do.
        more_tools=(_R1_TOOL,),
        end_of_sequence=(_EOS, "<|im_end|>", "<|endoftext|>", "<|eot_id|>"),
    ),
    _DEEPSEEK_V3,
    replace(_DEEPSEEK_V3, name="holo2", engine_names=(), always_open=True, turn_openers=(*DEEPSEEK, CHATML)),
    replace(
        _THINK,
        name="ling3",
        always_open=True,
        turn_openers=("<role>ASSISTANT</role>\n",),
        call_shapes=_ARG_KEYS,
        end_of_sequence=("<|role_end|>",),
    ),
    replace(
        _THINK,
        name="poolside_v1",
        turn_openers=("<assistant>\n", "<assistant>"),
        call_shapes=_ARG_KEYS,
        end_of_sequence=("</assistant>",),
    ),
    replace(
        _THINK,
        name="kimi_k2",
        always_open=True,
        turn_openers=("<|im_assistant|>assistant<|im_middle|>",),
        tool_marker="<|tool_calls_section_begin|>",
        call_shapes=((_BLANKS, "<|tool_call_begin|>", _BLANKS, _ID, _BLANKS, "<|tool_call_argument_begin|>"),),
        tool_closers=("<|tool_calls_section_end|>",),
        more_tools=(
            Tool(
                "<|tool_call_begin|>",
                ((_BLANKS, _ID, _BLANKS, "<|tool_call_argument_begin|>"),),
                ("<|tool_call_end|>",),
            ),
        ),
        end_of_sequence=("<|im_end|>",),
    ),
    replace(
        _THINK,
        name="nemotron_nano_v2",
        turn_openers=("<SPECIAL_11>Assistant\n",),
        tool_marker="<TOOLCALL>",
        call_shapes=_LIST,
        tool_closers=("</TOOLCALL>",),
        end_of_sequence=("<SPECIAL_12>",),
    ),
    replace(
        _THINK,
        name="step3",
        always_open=True,
        turn_openers=(),
        tool_marker="<｜tool_calls_begin｜>",
        call_shapes=(
            (_BLANKS, "<｜tool_call_begin｜>", _BLANKS, "function<｜tool_sep｜><steptml:invoke name=", _QUOTED_NAME),
        ),
        tool_closers=("<｜tool_calls_end｜>",),
        end_of_sequence=(),
    ),
    _marked(
        "seed_oss",
        "<seed:think>",
        "</seed:think>",
        turn_openers=("<seed:bos>assistant\n",),
        tool_marker="<seed:tool_call>",
        call_shapes=((_BLANKS, "<function="),),
        tool_closers=("</seed:tool_call>",),
        end_of_sequence=("<seed:eos>",),
    ),
    replace(
        _THINK,
        name="minicpm5",
        tool_marker='<function name="',
        call_shapes=((_NAME, '">'),),
        tool_closers=("</function>",),
    ),
    replace(
        _THINK,
        name="interns1",
        tool_marker="<|action_start|> <|plugin|>",
        call_shapes=_JSON,
        tool_closers=("<|action_end|>",),
        parts=(("<|action_start|> <|plugin|>", ("<|action_start|>", "<|plugin|>")),),
    ),
    replace(
        _THINK,
        name="dots",
        tool_marker="<dots_function_call>",
        call_shapes=((_BLANKS, "<invoke name="),),
        tool_closers=("</dots_function_call>",),
    ),
    replace(
        _THINK,
        name="olmo3",
        always_open=True,
        tool_marker="<function_calls>",
        call_shapes=((_BLANKS, _NAME, "("),),
        tool_closers=("</function_calls>",),
    ),
    replace(
        _THINK,
        name="ernie45",
        always_open=True,
        answer=(("<response>", "</response>"),),
        call_shapes=_JSON,
        turn_openers=(),
        end_of_sequence=("</s>",),
    ),
    replace(
        _THINK,
        name="hunyuan_a13b",
        answer=(("<answer>", "</answer>"),),
        turn_openers=(),
        tool_marker="<tool_calls>",
        call_shapes=_LIST,
        tool_closers=("</tool_calls>",),
        end_of_sequence=("<|eos|>",),
    ),
    _suffixed("hunyuan", ("", ":opensource"), engine_names=("hy_v3", "hy_v4")),
    _marked(
        "k2_horizon",
        "<ifm|think>",
        "</ifm|think>",
        more_pairs=(("<ifm|think_fast>", "</ifm|think_fast>"), ("<ifm|think_faster>", "</ifm|think_faster>")),
        always_open=True,
        tool_marker="<ifm|tool_calls>",
        call_shapes=((_BLANKS, "<ifm|tool_call>"),),
        tool_closers=("</ifm|tool_calls>",),
        more_tools=(
            Tool(
                "<ifm|tool_call>",
                (*_JSON, (_BLANKS, _NAME, _BLANKS, "<ifm|arg_key>"), (_BLANKS, _NAME, _BLANKS, "</ifm|tool_call>")),
                ("</ifm|tool_call>",),
            ),
        ),
    ),
    _marked(
        "plamo3",
        "<|plamo:begin_think:plamo|>",
        "<|plamo:end_think:plamo|>",
        always_open=True,
        control_markers=True,
        tool_marker="<|plamo:begin_tool_requests:plamo|>",
        call_shapes=((_BLANKS, "<|plamo:begin_tool_request:plamo|>"),),
        tool_closers=("<|plamo:end_tool_requests:plamo|>",),
        parts=tuple(
            (f"<|plamo:{word}:plamo|>", (f"<|plamo:{word.partition('_')[0]}_", ":plamo|>"))
            for word in ("begin_think", "end_think", "begin_tool_requests", "end_tool_requests")
        ),
        end_of_sequence=("<|plamo:tag|>",),
    ),
    replace(
        _THINK,
        name="gigachat35",
        always_open=True,
        turn_openers=(),
        tool_marker="<｜GCML｜tool_calls>",
        call_shapes=((_BLANKS, "<｜GCML｜invoke name=", _QUOTED_NAME),),
        tool_closers=("</｜GCML｜tool_calls>",),
        end_of_sequence=("<|message_sep|>", "</s>"),
    ),
    replace(
        _THINK,
        name="iquest_q1",
        always_open=True,
        turn_openers=("<|iquest_assistant|>",),
        tool_marker="<iquest_tool_call>",
        call_shapes=((_BLANKS, _NAME, _BLANKS, "<arg_key>"), (_BLANKS, _NAME, _BLANKS, "</iquest_tool_call>")),
        tool_closers=("</iquest_tool_call>",),
        end_of_sequence=(),
    ),
    _marked("kimi", "◁think▷", "◁/think▷", turn_openers=("<|im_assistant|>assistant<|im_middle|>",)),
    replace(_THINK, name="reka", turn_openers=("<sep>assistant:",), call_shapes=_JSON, end_of_sequence=("<sep>",)),
    replace(
        _THINK,
        name="spark25",
        always_open=True,
        turn_openers=("<｜start▁of▁sentence｜><|Bot|>",),
        call_shapes=_ARG_KEYS,
        end_of_sequence=(_EOS,),
    ),
    replace(
        _THINK,
        name="lfm2",
        tool_marker="<|tool_call_start|>",
        call_shapes=((_BLANKS, "[", _BLANKS, _NAME, "("),),
        tool_closers=("<|tool_call_end|>",),
    ),
    replace(
        _THINK,
        name="rwkv",
        turn_openers=("\n\nAssistant:",),
        tool_marker="",
        call_shapes=(),
        tool_closers=(),
        end_of_sequence=(),
    ),
    replace(
        _THINK,
        name="kat_v1",
        # The model judges first, in a block that the prompt opens; then one word opens the thought, and the other says
        # that there is none.
        more_pairs=(("<judge>", "</judge>"), ("<think_on>", "</think>"), ("<think_on>", "<think_off>")),
        answer=(("<answer>", "</answer>"),),
        call_shapes=_JSON,
    ),
    _marked(
        "mistral",
        "[THINK]",
        "[/THINK]",
        # Magistral 2506 spells its tags, in a vocabulary that has no [THINK].
        text_pairs=(("<think>", "</think>"),),
        control_markers=True,
        turn_openers=("[/INST]", "[/TOOL_RESULTS]"),
        tool_marker="[TOOL_CALLS]",
        call_shapes=(
            (_NAME, "[ARGS]", _BLANKS, "{"),
            (_NAME, "[CALL_ID]", _ID, "[ARGS]", _BLANKS, "{"),
            (_NAME, _BLANKS, "{"),
            (_BLANKS, "[", _BLANKS, "{"),
        ),
        end_of_sequence=("</s>",),
    ),
    _marked(
        "cohere",
        "<|START_THINKING|>",
        "<|END_THINKING|>",
        engine_names=("cohere_command3", "cohere_command4"),
        control_markers=True,
        answer=(("<|START_RESPONSE|>", "<|END_RESPONSE|>"), ("<|START_TEXT|>", "<|END_TEXT|>")),
        turn_openers=("<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",),
        tool_marker="<|START_ACTION|>",
        call_shapes=((_BLANKS, "["),),
        tool_closers=("<|END_ACTION|>",),
        end_of_sequence=("<|END_OF_TURN_TOKEN|>",),
    ),
    _marked(
        "kimi_k3",
        "<|open|>think<|sep|>",
        "<|close|>think<|sep|>",
        control_markers=True,
        always_open=True,
        answer=(("<|open|>response<|sep|>", "<|close|>response<|sep|>"),),
        turn_openers=('<|open|>message role="assistant"<|sep|>',),
        tool_marker="<|open|>tools<|sep|>",
        call_shapes=((_BLANKS, "<|open|>call tool=", _QUOTED_NAME),),
        tool_closers=("<|close|>tools<|sep|>",),
        parts=tuple(
            (f"<|{edge}|>{word}<|sep|>", (f"<|{edge}|>", "<|sep|>"))
            for edge in ("open", "close")
            for word in ("think", "response", "tools")
        ),
        end_of_sequence=("<|close|>message<|sep|><|end_of_msg|>", "<|end_of_msg|>"),
    ),
    _marked(
        "inkling",
        "<|content_thinking|>",
        "<|end_message|>",
        more_pairs=(("<|content_thinking|>", "<|content_model_end_sampling|>"),),
        control_markers=True,
        answer=(
            ("<|content_text|>", "<|end_message|>"),
            ("<|content_text|>", "<|content_model_end_sampling|>"),
            ("<|content_invoke_tool_text|>", ""),
            ("<|content_tool_error|>", ""),
        ),
        further_markers=("<|message_model|>",),
        turn_openers=("<|message_model|>",),
        tool_marker="<|content_invoke_tool_json|>",
        call_shapes=((_BLANKS, "{", _BLANKS, '"name"'),),
        tool_closers=("<|end_message|>", "<|content_model_end_sampling|>"),
    ),
    _marked(
        "apertus",
        "<|inner_prefix|>",
        "<|inner_suffix|>",
        engine_names=("apertus2509",),
        control_markers=True,
        turn_openers=("<|assistant_start|>",),
        tool_marker="<|tools_prefix|>",
        call_shapes=((_BLANKS, "[", _BLANKS, "{", _BLANKS, _QUOTED_NAME, _BLANKS, ":"),),
        tool_closers=("<|tools_suffix|>",),
        ends_thought=False,
        end_of_sequence=("<|assistant_end|>",),
    ),
    _marked(
        "granite",
        "Here is my thought process:",
        "Here is my response:",
        more_pairs=(
            ("Here is my thought process:", "Here's my response:"),
            ("Here's my thought process:", "Here is my response:"),
            ("Here's my thought process:", "Here's my response:"),
        ),
        turn_openers=("<|start_of_role|>assistant<|end_of_role|>",),
        tool_marker="<|tool_call|>",
        call_shapes=_LIST,
        more_tools=(Tool("<tool_call>", _LIST),),
        end_of_sequence=("<|end_of_text|>",),
    ),
    replace(
        _THINK,
        name="granite33",
        answer=(("<response>", "</response>"),),
        turn_openers=("<|start_of_role|>assistant<|end_of_role|>",),
        tool_marker="<|tool_call|>",
        call_shapes=_LIST,
        tool_closers=(),
        more_tools=(Tool("<tool_call>", _LIST),),
        end_of_sequence=("<|end_of_text|>",),
    ),
    _marked(
        "apriel",
        "Here are my reasoning steps:",
        "[BEGIN FINAL RESPONSE]",
        answer=(("", "[END FINAL RESPONSE]"),),
        turn_openers=("<|begin_assistant|>\n", "<|assistant|>\n"),
        tool_marker="<tool_calls>",
        call_shapes=_LIST,
        tool_closers=("</tool_calls>",),
        end_of_sequence=("<|end|>",),
    ),
    _marked(
        "solar",
        "<|think|>",
        "<|end|>",
        control_markers=True,
        answer=(("<|content|>", "<|end|>"),),
        further_markers=("<|begin|>assistant",),
        turn_openers=("<|begin|>assistant",),
        tool_marker="<|tool_calls|>",
        call_shapes=((_BLANKS, "<|tool_call:begin|>"),),
        tool_closers=("<|calls|>",),
        parts=(("<|begin|>assistant", ("<|begin|>",)),),
        end_of_sequence=("<|end|>",),
    ),
)
"""Every record that is no one of the seven."""
