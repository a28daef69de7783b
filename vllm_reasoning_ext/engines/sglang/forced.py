"""`tool_choice` "required" or a named function, for gpt-oss: a grammar that binds from the first token.

SGLang's own harmony tag begins where a message's header does, behind the thought and its `<|start|>assistant`, and
may stay empty. Held back until a thought is over it would open too late for a call and never for an output without
a thought; so it is given the thought and at least one call, and binds at once.
"""

from typing import Any, Final

THOUGHT: Final = {
    "type": "optional",
    "content": {
        "type": "sequence",
        "elements": [
            {
                "type": "tag",
                "begin": "<|channel|>analysis<|message|>",
                "content": {"type": "any_text"},
                "end": "<|end|>",
            },
            {"type": "const_string", "value": "<|start|>assistant"},
        ],
    },
}


def is_forced(tool_choice: Any) -> bool:
    """Tell whether a request's `tool_choice` asks for a call."""
    return tool_choice == "required" or not (tool_choice is None or isinstance(tool_choice, str))


def with_thought(constraint: Any) -> Any:
    """Rewrite SGLang's constraint for a forced call.

    Args:
        constraint: a pair of kind and value; the value of a structural tag is xgrammar's model.

    Returns:
        the pair with a thought first and at least one call; None when it is no harmony tag.
    """
    if constraint is None or constraint[0] != "structural_tag":
        return None
    tag = constraint[1]
    fields = tag.model_dump(by_alias=True)
    calls = fields.get("format") or {}
    if calls.get("type") == "optional":
        calls = calls["content"]
    if calls.get("type") != "tags_with_separator":
        return None
    forced = {**fields, "format": {"type": "sequence", "elements": [THOUGHT, {**calls, "at_least_one": True}]}}
    return constraint[0], type(tag).model_validate(forced)
