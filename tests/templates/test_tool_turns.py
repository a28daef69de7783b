"""What the templates write for tool calls and their results, and the message forms they take."""

from typing import Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("jinja2")

from tests.support.byte_tokenizer import FAMILIES, byte_tokenizer
from tests.support.conversations import CONVERSATIONS, WEATHER, Messages


def _call(name: str, arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


PARALLEL: Messages = [
    {"role": "user", "content": "Paris?"},
    {
        "role": "assistant",
        "reasoning_content": "need both",
        "content": "Let me look.",
        "tool_calls": [_call("get_weather", {"city": "Paris", "days": 3}), _call("get_time", {"zone": "UTC"})],
    },
    {"role": "tool", "name": "get_weather", "content": "20C"},
    {"role": "tool", "name": "get_time", "content": "noon"},
]


def _render(family: str, messages: Messages, **kwargs: Any) -> str:
    rendered = byte_tokenizer(family).apply_chat_template(
        messages, tools=[WEATHER], tokenize=False, add_generation_prompt=True, **kwargs
    )
    assert isinstance(rendered, str)
    return rendered


def _dsml(outer: str, gap: str) -> str:
    return (
        f"\n\n<｜DSML｜{outer}>\n"
        f'<｜DSML｜{gap}invoke name="get_weather">\n'
        f'<｜DSML｜{gap}parameter name="city" string="true">Paris</｜DSML｜{gap}parameter>\n'
        f'<｜DSML｜{gap}parameter name="days" string="false">3</｜DSML｜{gap}parameter>\n'
        f"</｜DSML｜{gap}invoke>\n"
        f'<｜DSML｜{gap}invoke name="get_time">\n'
        f'<｜DSML｜{gap}parameter name="zone" string="true">UTC</｜DSML｜{gap}parameter>\n'
        f"</｜DSML｜{gap}invoke>\n"
        f"</｜DSML｜{outer}><｜end▁of▁sentence｜>"
    )


_RESULTS_V4 = "<｜User｜><tool_result>20C</tool_result>\n\n<tool_result>noon</tool_result><｜Assistant｜><think>"

TURNS = {
    "qwen3 2504": (
        "qwen3",
        {},
        "<|im_start|>user\nParis?<|im_end|>\n<|im_start|>assistant\n<think>\nneed both\n</think>\n\nLet me look.\n"
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}\n</tool_call>\n'
        '<tool_call>\n{"name": "get_time", "arguments": {"zone": "UTC"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\n20C\n</tool_response>\n"
        "<tool_response>\nnoon\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
    ),
    "qwen3 3.5": (
        "qwen3",
        {"revision": "3.5"},
        "<|im_start|>assistant\n<think>\nneed both\n</think>\n\nLet me look.\n\n"
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n"
        "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>\n"
        "<tool_call>\n<function=get_time>\n<parameter=zone>\nUTC\n</parameter>\n</function>\n</tool_call>"
        "<|im_end|>\n<|im_start|>user\n<tool_response>\n20C\n</tool_response>\n"
        "<tool_response>\nnoon\n</tool_response><|im_end|>\n<|im_start|>assistant\n<think>\n",
    ),
    "glm 4.5": (
        "glm",
        {},
        "<|user|>Paris?<|assistant|>\n<think>need both</think>\nLet me look.\n"
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n"
        "<tool_call>get_time\n<arg_key>zone</arg_key>\n<arg_value>UTC</arg_value>\n</tool_call>"
        "<|observation|>\n<tool_response>\n20C\n</tool_response>\n<tool_response>\nnoon\n</tool_response>"
        "<|assistant|>",
    ),
    "glm 4.7": (
        "glm",
        {"revision": "4.7"},
        "<|user|>Paris?<|assistant|><think>need both</think>Let me look."
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value>"
        "<arg_key>days</arg_key><arg_value>3</arg_value></tool_call>"
        "<tool_call>get_time<arg_key>zone</arg_key><arg_value>UTC</arg_value></tool_call>"
        "<|observation|><tool_response>20C</tool_response><tool_response>noon</tool_response><|assistant|><think>",
    ),
    "minimax": (
        "minimax",
        {},
        "]~b]user\nParis?[e~[\n]~b]ai\n<think>\nneed both\n</think>\n\nLet me look.\n<minimax:tool_call>\n"
        '<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n'
        '<parameter name="days">3</parameter>\n</invoke>\n'
        '<invoke name="get_time">\n<parameter name="zone">UTC</parameter>\n</invoke>\n</minimax:tool_call>[e~[\n'
        "]~b]tool\n<response>20C</response>\n<response>noon</response>[e~[\n]~b]ai\n<think>\n",
    ),
    "minimax_m3": (
        "minimax_m3",
        {},
        "]~b]user\nParis?[e~[\n]~b]ai\n<mm:think>need both</mm:think>Let me look."
        ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="get_weather">'
        "]<]minimax[>[<city>Paris]<]minimax[>[</city>]<]minimax[>[<days>3]<]minimax[>[</days>]<]minimax[>[</invoke>\n"
        ']<]minimax[>[<invoke name="get_time">]<]minimax[>[<zone>UTC]<]minimax[>[</zone>]<]minimax[>[</invoke>\n'
        "]<]minimax[>[</tool_call>[e~[\n"
        "]~b]tool\n<response>20C</response>\n<response>noon</response>[e~[\n]~b]ai\n",
    ),
    "gemma4": (
        "gemma4",
        {"enable_thinking": True},
        "<|turn>user\nParis?<turn|>\n<|turn>model\n<|channel>thought\nneed both\n<channel|>Let me look."
        '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>'
        '<|tool_call>call:get_time{zone:<|"|>UTC<|"|>}<tool_call|>'
        '<|tool_response>response:get_weather{value:<|"|>20C<|"|>}<tool_response|>'
        '<|tool_response>response:get_time{value:<|"|>noon<|"|>}<tool_response|><|channel>thought\n',
    ),
    "gpt_oss": (
        "gpt_oss",
        {},
        "<|start|>user<|message|>Paris?<|end|><|start|>assistant<|channel|>analysis<|message|>need both<|end|>"
        "<|start|>assistant<|channel|>commentary<|message|>Let me look.<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
        '{"city": "Paris", "days": 3}<|call|>'
        "<|start|>assistant<|channel|>commentary to=functions.get_time <|constrain|>json<|message|>"
        '{"zone": "UTC"}<|call|>'
        '<|start|>functions.get_weather to=assistant<|channel|>commentary<|message|>"20C"<|end|>'
        '<|start|>functions.get_time to=assistant<|channel|>commentary<|message|>"noon"<|end|><|start|>assistant',
    ),
    "muse_glimmer": (
        "muse_glimmer",
        {},
        "<|start|>user<|message|>Paris?<|eot|><|start|>assistant to=self<|message|>need both<|eom|>"
        "<|start|>assistant to=user<|message|>Let me look.<|eom|>"
        '<|start|>assistant to=get_weather<|message|><atem:function_calls>\n<atem:invoke name="get_weather">\n'
        '<atem:parameter name="city">Paris</atem:parameter>\n<atem:parameter name="days">3</atem:parameter>\n'
        "</atem:invoke>\n</atem:function_calls><|eom|>"
        '<|start|>assistant to=get_time<|message|><atem:function_calls>\n<atem:invoke name="get_time">\n'
        '<atem:parameter name="zone">UTC</atem:parameter>\n</atem:invoke>\n</atem:function_calls><|eot|>'
        '<|start|>tool get_weather<|message|><tool_output name="get_weather">\n20C\n</tool_output><|eot|>'
        '<|start|>tool get_time<|message|><tool_output name="get_time">\nnoon\n</tool_output><|eot|>'
        "<|start|>assistant",
    ),
    "deepseek v3.2": (
        "deepseekv32",
        {"thinking": True},
        "<｜User｜>Paris?<｜Assistant｜><think>need both</think>Let me look."
        + _dsml("function_calls", "")
        + "\n\n<function_results>\n<result>20C</result>\n<result>noon</result>\n</function_results>\n\n<think>",
    ),
    "deepseek v4": (
        "deepseekv32",
        {"revision": "v4"},
        "<｜User｜>Paris?<｜Assistant｜><think>need both</think>Let me look." + _dsml("tool_calls", "") + _RESULTS_V4,
    ),
    "deepseek v4.1": (
        "deepseekv32",
        {"revision": "v4.1"},
        "<｜User｜>Paris?<｜Assistant｜><think>need both</think>Let me look." + _dsml(" calls", " ") + _RESULTS_V4,
    ),
    "deepseek v3.1": (
        "deepseekv32",
        {"revision": "v3.1"},
        "<｜User｜>Paris?<｜Assistant｜></think>Let me look.<｜tool▁calls▁begin｜>"
        '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Paris", "days": 3}<｜tool▁call▁end｜>'
        '<｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{"zone": "UTC"}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜><｜end▁of▁sentence｜>"
        "<｜tool▁output▁begin｜>20C<｜tool▁output▁end｜><｜tool▁output▁begin｜>noon<｜tool▁output▁end｜>",
    ),
}


@pytest.mark.parametrize("name", TURNS)
def test_parallel_calls_and_their_results(name: str) -> None:
    family, kwargs, tail = TURNS[name]
    rendered = _render(family, PARALLEL, **kwargs)
    assert rendered[-len(tail) :] == tail


@pytest.mark.parametrize("revision", ["v4", "v4.1"])
def test_deepseek_v4_joins_what_the_user_side_says_in_a_row(revision: str) -> None:
    asked = [*PARALLEL, {"role": "user", "content": "And Lyon?"}, {"role": "user", "content": "And Nice?"}]
    rendered = _render("deepseekv32", asked, revision=revision)
    assert rendered.endswith(
        "<｜User｜><tool_result>20C</tool_result>\n\n<tool_result>noon</tool_result>"
        "\n\nAnd Lyon?\n\nAnd Nice?<｜Assistant｜><think>"
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_tools_are_declared_once(family: str) -> None:
    assert _render(family, CONVERSATIONS["system_user"]).count("Tell the weather of a city.") == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_a_developer_message_is_a_system_message(family: str) -> None:
    asked = CONVERSATIONS["system_user"]
    developer = [{**asked[0], "role": "developer"}, *asked[1:]]
    assert _render(family, developer) == _render(family, asked)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_result_without_a_name_gets_the_last_calls_name(family: str) -> None:
    asked = CONVERSATIONS["tool_result_last"]
    unnamed = [{key: value for key, value in message.items() if key != "name"} for message in asked]
    assert _render(family, unnamed) == _render(family, asked)


@pytest.mark.parametrize("family", FAMILIES)
def test_ready_made_arguments_are_inserted_as_they_are(family: str) -> None:
    asked = CONVERSATIONS["tool_result_last"]
    ready = [asked[0], {**asked[1], "tool_calls": [_call("get_weather", '{"city": "Lyon"}')]}, asked[2]]
    assert _render(family, ready).count('{"city": "Lyon"}') == 1
