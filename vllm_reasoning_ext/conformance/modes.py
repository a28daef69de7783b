"""The modes a chat template is tried in: conversations, thinking switches, efforts, continued messages."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

Message = Mapping[str, Any]

THOUGHT: Final = "Weigh it first."
PARTIAL: Final = "The answer so"
CITY: Final = "Oslo"
FUNCTION: Final = "get_weather"

TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": FUNCTION,
        "description": "Tell the weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Mode(NamedTuple):
    """One way of rendering a template.

    Attributes:
        name: unique; `user`, `tool-result enable_thinking=false`, ...
        messages: the conversation.
        tools: the functions on offer.
        kwargs: template variables.
        go_on: the field of the last message that is to be continued, or "".
        asked: what the mode asks for: "on" or "off" for a thinking switch, else "".
    """

    name: str
    messages: tuple[Message, ...]
    tools: tuple[Message, ...] = ()
    kwargs: Mapping[str, Any] = {}
    go_on: str = ""
    asked: str = ""

    @property
    def base(self) -> str:
        """The name of its conversation."""
        return self.name.partition(" ")[0]


def modes_of(template: str, variables: frozenset[str], markers: tuple[str, ...]) -> list[Mode]:
    """List the modes of a template.

    Args:
        template: its text; values it compares a switch with are read from it.
        variables: those it reads.
        markers: the family's opener and closer and the like, for the user who quotes them.
    """
    plain = _conversations(markers)
    found = [plain[name] for name in plain]
    for switch, value, asked in _switches(template, variables):
        shown = str(value).lower() if isinstance(value, bool) else value
        for name in _BY_SWITCH[asked]:
            mode = plain[name]
            found.append(mode._replace(name=f"{name} {switch}={shown}", kwargs={switch: value}, asked=asked))
    return found


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(content: str, thought: str = "", calls: tuple[Message, ...] = ()) -> Message:
    """Build an assistant's message; its reasoning stands under every name that templates read."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if thought:
        message |= {"reasoning_content": thought, "reasoning": thought, "thinking": thought}
    if calls:
        message["tool_calls"] = list(calls)
    return message


def call(arguments: Any) -> Message:
    """Build a call of the one function."""
    return {"id": "call00001", "type": "function", "function": {"name": FUNCTION, "arguments": arguments}}


def _conversations(markers: tuple[str, ...]) -> dict[str, Mode]:
    question = _user("What is six times seven?")
    system = {"role": "system", "content": "Answer in one line."}
    result = {"role": "tool", "name": FUNCTION, "tool_call_id": "call00001", "content": '{"temp": 20}'}
    called = (_user("Weather?"), assistant("", THOUGHT, (call({"city": CITY}),)), result)
    earlier = (_user("Hi"), assistant("Hello.", THOUGHT), question)
    quoting = _user(f"What do {' and '.join(markers)} mean? {''.join(markers[:1])}")
    modes = (
        Mode("user", (question,)),
        Mode("system", (system, question)),
        Mode("tools", (question,), (TOOL,)),
        Mode("tool-result", called, (TOOL,)),
        Mode("history", earlier),
        Mode("quotes", (quoting,)),
        Mode("continue-answer", (question, assistant(PARTIAL)), go_on="content"),
        Mode("continue-after-thought", (question, assistant(PARTIAL, THOUGHT)), go_on="content"),
        Mode("continue-thought", (question, assistant("", THOUGHT)), go_on="reasoning_content"),
    )
    return {mode.name: mode for mode in modes}


def with_json_arguments(mode: Mode) -> Mode:
    """Give every call's arguments as JSON text, which some templates want in place of a mapping."""
    messages = []
    for message in mode.messages:
        calls = [call(json.dumps(each["function"]["arguments"])) for each in message.get("tool_calls", ())]
        messages.append({**message, "tool_calls": calls} if calls else message)
    return mode._replace(messages=tuple(messages))


_BY_SWITCH: Final = {
    "on": ("user", "tool-result", "continue-answer", "continue-thought"),
    "off": ("user", "tool-result", "continue-answer"),
    "": ("user",),
}
_SWITCHES: Final = ("enable_thinking", "thinking")
_MODE_VALUES: Final = {"enabled": "on", "thinking": "on", "adaptive": "on", "disabled": "off", "chat": "off"}
_EFFORTS: Final = ("none", "low", "medium", "high", "xhigh", "max")


def _switches(template: str, variables: frozenset[str]) -> list[tuple[str, Any, str]]:
    """List (variable, value, "on" | "off" | "") of every switch that the template reads."""
    found: list[tuple[str, Any, str]] = []
    for name in _SWITCHES:
        if name in variables:
            found += [(name, True, "on"), (name, False, "off")]
            break  # a template that reads both means the same by them
    if "thinking_mode" in variables:
        found += [("thinking_mode", value, asked) for value, asked in _MODE_VALUES.items() if _named(value, template)]
    for name in ("reasoning_effort", "reasoning_strength"):
        if name in variables:
            named = [value for value in _EFFORTS if _named(value, template)]
            found += [(name, value, "") for value in dict.fromkeys(["low", "high", *named])]
    return found


def _named(value: str, template: str) -> bool:
    return re.search(f"[\"']{value}[\"']", template) is not None
