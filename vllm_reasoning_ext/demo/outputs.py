"""Model outputs as readable scripts, with what a client must receive: shared by the demo and the tests.

In a script, every marker is the real control token, except between ‹ and ›, where the same characters are
spelled with ordinary tokens (the model quotes the marker). `✂` is where `max_tokens` cuts the output.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext.conformance.script import CUT, QUOTED

FUNCTION: Final = "weather"
"""The one function that every output with a call calls, with the argument `city`."""

TOOLS: Final[list[dict[str, Any]]] = [
    {
        "type": "function",
        "function": {
            "name": FUNCTION,
            "description": "Tell the weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]


class Output(NamedTuple):
    """One scripted model output and the reply a client must get.

    Attributes:
        name: what the output shows, unique within its family.
        family: the parser's name.
        script: what the model writes (see above).
        reasoning: the reasoning the client must get, to the character.
        content: the answer the client must get, without tool calls.
        cities: the argument `city` of each call of `weather`, in order.
        raw: what a tool parser downstream must get in content: answer and calls, verbatim; None: `content`.
        prompt: `turn` (a user turn, then the template's generation prompt), `answer` or `thought`
            (the prompt ends inside that body, `prefill`).
        prefill: the text that `continue_final_message` continues.
        kwargs: chat_template_kwargs of the request.
    """

    name: str
    family: str
    script: str
    reasoning: str = ""
    content: str = ""
    cities: tuple[str, ...] = ()
    raw: str | None = None
    prompt: str = "turn"
    prefill: str = ""
    kwargs: Mapping[str, Any] = {}

    @property
    def cut(self) -> bool:
        """Tell whether `max_tokens` cuts this output."""
        return CUT in self.script

    @property
    def text(self) -> str:
        """Give the characters the model writes, up to the cut."""
        return QUOTED.sub(r"\1", self.script.partition(CUT)[0])

    def messages(self) -> list[dict[str, str]]:
        """Build the conversation of the request."""
        turns = [{"role": "user", "content": "What is six times seven?"}]
        if self.prompt != "turn":
            turns.append({"role": "assistant", "content": self.prefill})
        return turns

    def request(self) -> dict[str, Any]:
        """Build the fields of a chat request that depend on the output (messages, tools, prompt mode)."""
        fields: dict[str, Any] = {"messages": self.messages()}
        if self.cities:
            fields["tools"] = TOOLS
        if self.kwargs:
            fields["chat_template_kwargs"] = dict(self.kwargs)
        if self.prompt != "turn":
            fields |= {"continue_final_message": True, "add_generation_prompt": False}
        return fields


def atem_call(city: str) -> str:
    """Write a call in the syntax of muse_glimmer."""
    return (
        f'<atem:function_calls>\n<atem:invoke name="{FUNCTION}">\n'
        f'<atem:parameter name="city">{city}</atem:parameter>\n</atem:invoke>\n</atem:function_calls>'
    )


def json_call(city: str) -> str:
    """Write a call in the JSON syntax of Qwen3 (2504, 2507)."""
    payload = json.dumps({"name": FUNCTION, "arguments": {"city": city}})
    return f"<tool_call>\n{payload}\n</tool_call>"


_SLICE = f"<|start|>assistant to={FUNCTION}<|message|>{atem_call('Oslo')}<|eom|>"

MUSE_GLIMMER: Final = (
    Output(
        "thought then answer",
        "muse_glimmer",
        " to=self<|message|>Six times seven.<|eom|><|start|>assistant to=user<|message|>It is 42.<|eot|>",
        "Six times seven.",
        "It is 42.",
    ),
    Output("plain answer, no channels", "muse_glimmer", "It is 42.<|eot|>", "", "It is 42."),
    Output("bare first header", "muse_glimmer", "assistant<|message|>It is 42.<|eot|>", "", "It is 42."),
    Output(
        "headerless switch",
        "muse_glimmer",
        " to=self<|message|>Six times seven.to=user<|message|>It is 42.<|eot|>",
        "Six times seven.",
        "It is 42.",
    ),
    Output(
        "thought, tool call, answer",
        "muse_glimmer",
        f" to=self<|message|>Look it up.<|eom|>{_SLICE}<|start|>assistant to=user<|message|>Looking.<|eot|>",
        "Look it up.",
        "Looking.",
        ("Oslo",),
        raw=f"{_SLICE}Looking.",
    ),
    Output(
        "quoted marker in the answer",
        "muse_glimmer",
        " to=self<|message|>Say it.<|eom|><|start|>assistant to=user<|message|>"
        "A body begins at ‹<|message|>› and ends at ‹<|eom|>›.<|eot|>",
        "Say it.",
        "A body begins at <|message|> and ends at <|eom|>.",
    ),
    Output(
        "cut by max_tokens mid-thought",
        "muse_glimmer",
        " to=self<|message|>Let me think about✂ it.<|eom|><|start|>assistant to=user<|message|>42.<|eot|>",
        "Let me think about",
    ),
    Output(
        "continue an answer",
        "muse_glimmer",
        " is 42.<|eot|>",
        "",
        " is 42.",
        prompt="answer",
        prefill="The product",
    ),
    Output(
        "continue a thought",
        "muse_glimmer",
        " times seven.<|eom|><|start|>assistant to=user<|message|>It is 42.<|eot|>",
        " times seven.",
        "It is 42.",
        prompt="thought",
        prefill="<|eom|><|start|>assistant to=self<|message|>Six",
    ),
)
"""The outputs of the demo."""
