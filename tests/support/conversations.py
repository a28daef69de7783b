"""Small conversations that bring out how a chat template ends its prompt, and how to render them."""

from collections.abc import Mapping
from typing import Any, Final

from tests.support.byte_tokenizer import byte_tokenizer

Messages = list[dict[str, Any]]

WEATHER: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tell the weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}

TURN_OPENERS: Final[dict[str, tuple[str, ...]]] = {
    "deepseekv32": ("<｜Assistant｜>", "</function_results>", "<｜tool▁output▁end｜>"),
    "qwen3": ("<|im_start|>assistant\n",),
    "glm": ("<|assistant|>",),
    "minimax": ("]~b]ai\n",),
    "minimax_m3": ("]~b]ai\n",),
    "gemma4": ("<|turn>model\n", "<tool_response|>"),
    "gpt_oss": ("<|start|>",),
    "muse_glimmer": ("<|start|>",),
}
"""What an assistant turn begins with, per family; for the channel families, any message."""


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _assistant(content: str, reasoning: str | None = None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    return message if reasoning is None else {**message, "reasoning_content": reasoning}


def _called(result: str, reasoning: str | None) -> Messages:
    call = {"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}
    asked = {**_assistant("", reasoning), "tool_calls": [call]}
    return [_user("Weather in Paris?"), asked, {"role": "tool", "name": "get_weather", "content": result}]


_RESULT: Final = '{"temp":20}'

CONVERSATIONS: Final[dict[str, Messages]] = {
    "user_last": [_user("Hi")],
    "system_user": [{"role": "system", "content": "Sys."}, _user("Hi")],
    "multi_turn_plain": [_user("Hi"), _assistant("Hello."), _user("Again")],
    "multi_turn_reasoning": [_user("Hi"), _assistant("Hello.", "prior thought"), _user("Again")],
    "assistant_last_reason(agp)": [_user("Hi"), _assistant("Hello.", "prior thought")],
    "tool_result_last": _called(_RESULT, "need the tool"),
    "tool_result_last_noreason": _called(_RESULT, None),
    "tool_result_then_user": [
        *_called(_RESULT, "need the tool"),
        _assistant("20C.", "now answer"),
        _user("Again"),
    ],
    "user_quotes_open": [_user("What does <think> / <mm:think> / <|channel>thought\n mean?")],
    "tool_result_quotes_open": _called("log: <think> unfinished <mm:think>  <|channel>thought\n", None),
    "tool_result_quotes_close": _called("log: </think> </mm:think> <channel|>", None),
    "system_quotes_open": [
        {"role": "system", "content": "Wrap thoughts in <think> tags, <mm:think> tags."},
        _user("Hi"),
    ],
    "prior_assistant_quotes_open": [
        _user("Hi"),
        _assistant("The tag is <think> or <mm:think>."),
        _user("Again"),
    ],
    "cfm:content": [_user("Hi"), _assistant("Partial ans")],
    "cfm:reasoning+content": [_user("Hi"), _assistant("Partial ans", "thought A")],
    "cfm:reasoning_only": [_user("Hi"), _assistant("", "thought A")],
    "cfm:inline_open_think": [_user("Hi"), _assistant("<think>\nI was thinking")],
    "cfm-reasoning:thought": [_user("Hi"), _assistant("", "thought A")],
    "cfm-reasoning:empty": [_user("Hi"), _assistant("", "")],
    "open:thought": [_user("Hi"), _assistant("", "thought A")],
}
"""Name -> messages. `cfm:` continues the last content, `cfm-reasoning:` the last reasoning (transformers'
continue_final_message); `open:` leaves the last reasoning open by our templates' `continue_reasoning`."""


def as_parts(messages: Messages) -> Messages:
    """Return the conversation with every content as a list of two text parts, the engines' other form."""
    halves = ((message, len(message["content"]) // 2) for message in messages)
    return [
        {
            **message,
            "content": [{"type": "text", "text": t} for t in (message["content"][:h], message["content"][h:])],
        }
        for message, h in halves
    ]


def render(
    family: str,
    conversation: str,
    kwargs: Mapping[str, Any],
    *,
    parts: bool = False,
    reasoning: str = "reasoning_content",
) -> str:
    """Render one of the conversations with the family's own template through transformers.

    Args:
        family: a template's name.
        conversation: a key of `CONVERSATIONS`; its prefix chooses how the prompt ends.
        kwargs: template variables (`revision`, `enable_thinking`, ...).
        parts: give every content as a list of text parts.
        reasoning: the message field that carries reasoning.

    Returns:
        The prompt's text.
    """
    messages = as_parts(CONVERSATIONS[conversation]) if parts else CONVERSATIONS[conversation]
    renamed = [{reasoning if k == "reasoning_content" else k: v for k, v in m.items()} for m in messages]
    how = conversation.partition(":")[0]
    ending: dict[str, Any] = {
        "cfm": {"continue_final_message": True},
        "cfm-reasoning": {"continue_final_message": reasoning},
        "open": {"continue_reasoning": True},
    }.get(how, {"add_generation_prompt": True})
    tools = [WEATHER] if any("tool_calls" in message for message in messages) else None
    rendered = byte_tokenizer(family).apply_chat_template(renamed, tools=tools, tokenize=False, **ending, **kwargs)
    assert isinstance(rendered, str)
    return rendered


def after_last_opener(rendered: str, family: str) -> str:
    """Return the text after the last turn opener of a prompt."""
    ends = [rendered.rfind(opener) + len(opener) for opener in TURN_OPENERS[family] if opener in rendered]
    assert ends, f"no turn opener of {family} in {rendered!r}"
    return rendered[max(ends) :]
