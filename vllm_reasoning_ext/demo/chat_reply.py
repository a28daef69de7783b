"""What a client receives from a chat request, streamed or not, in one comparable form."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from vllm_reasoning_ext.demo.outputs import FUNCTION, Output


class ChatReply(NamedTuple):
    """One choice of a chat reply, and the usage of its request.

    Attributes:
        reasoning: the reasoning text.
        answer: the content.
        calls: tool calls as (name, arguments), arguments decoded where they are JSON.
        finish: the finish reason.
        tokens: completion tokens of the request.
        reasoning_tokens: those that were reasoning, None where the server does not say.
    """

    reasoning: str
    answer: str
    calls: tuple[tuple[str, Any], ...]
    finish: str | None
    tokens: int
    reasoning_tokens: int | None

    @property
    def shown(self) -> tuple[str, str, tuple[tuple[str, Any], ...]]:
        """Give what a user sees: reasoning, answer, calls."""
        return self.reasoning, self.answer, self.calls


def wanted(output: Output) -> tuple[str, str, tuple[tuple[str, Any], ...]]:
    """Give what a user must see of an output."""
    return output.reasoning, output.content, tuple((FUNCTION, {"city": city}) for city in output.cities)


def from_body(body: Any, choice: int = 0) -> ChatReply:
    """Read a reply that came whole."""
    found = body["choices"][choice]
    message = found["message"]
    calls = tuple(
        (call["function"]["name"], _decoded(call["function"]["arguments"])) for call in message.get("tool_calls") or ()
    )
    return ChatReply(
        message.get("reasoning") or "",
        message.get("content") or "",
        calls,
        found["finish_reason"],
        *_usage(body.get("usage") or {}),
    )


def from_events(events: Sequence[Any], choice: int = 0) -> ChatReply:
    """Read a reply that came as chunks (with `stream_options.include_usage`)."""
    reasoning = answer = ""
    finish: str | None = None
    calls: dict[int, list[str]] = {}
    usage: Any = {}
    for event in events:
        usage = event.get("usage") or usage
        for part in event.get("choices", ()):
            if part["index"] != choice:
                continue
            delta = part["delta"]
            reasoning += delta.get("reasoning") or ""
            answer += delta.get("content") or ""
            finish = part.get("finish_reason") or finish
            for call in delta.get("tool_calls") or ():
                name, arguments = calls.setdefault(call["index"], ["", ""])
                function = call.get("function") or {}
                calls[call["index"]] = [
                    name + (function.get("name") or ""),
                    arguments + (function.get("arguments") or ""),
                ]
    read = tuple((name, _decoded(arguments)) for name, arguments in calls.values())
    return ChatReply(reasoning, answer, read, finish, *_usage(usage))


def _usage(usage: Any) -> tuple[int, int | None]:
    details = usage.get("completion_tokens_details") or {}
    return usage.get("completion_tokens") or 0, details.get("reasoning_tokens")


def _decoded(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
