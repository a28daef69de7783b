"""Outputs of gpt-oss models, well-formed and broken: what a client must get, whatever vLLM's own parser makes of it."""

from typing import Final

from vllm_reasoning_ext.demo.outputs import Output

_FINAL: Final = "<|start|>assistant<|channel|>final<|message|>"
_CALL: Final = '{"city": "Oslo"}<|call|>'


def _output(name: str, script: str, reasoning: str = "", content: str = "", cities: tuple[str, ...] = ()) -> Output:
    return Output(name, "gpt_oss", script, reasoning, content, cities)


HARMONY_OUTPUTS: Final = (
    _output(
        "thought then answer",
        f"<|channel|>analysis<|message|>Six times seven.<|end|>{_FINAL}It is 42.<|return|>",
        "Six times seven.",
        "It is 42.",
    ),
    _output(
        "thought, then a call",
        "<|channel|>analysis<|message|>Look it up.<|end|><|start|>assistant<|channel|>commentary "
        f"to=functions.weather <|constrain|>json<|message|>{_CALL}",
        "Look it up.",
        "",
        ("Oslo",),
    ),
    _output(
        "recipient in the role",
        f"<|channel|>analysis<|message|>Look.<|end|><|start|>assistant to=functions.weather"
        f"<|channel|>commentary json<|message|>{_CALL}",
        "Look.",
        "",
        ("Oslo",),
    ),
    _output(
        "preamble, then a call",
        "<|channel|>commentary<|message|>Looking.<|end|><|start|>assistant<|channel|>commentary "
        f"to=functions.weather <|constrain|>json<|message|>{_CALL}",
        "",
        "Looking.",
        ("Oslo",),
    ),
    _output(
        "call on the analysis channel",
        f"<|channel|>analysis to=functions.weather code<|message|>{_CALL}",
        "",
        "",
        ("Oslo",),
    ),
    _output("plain text", "It is 42.<|return|>", "", "It is 42."),
    _output(
        "missing message token",
        "<|channel|>analysis<|message|>Six.<|end|><|start|>assistant<|channel|>final It is 42.<|return|>",
        "Six.",
        "It is 42.",
    ),
    _output(
        "garbled header",
        "<|channel|>analysis<|message|>Six.<|end|><|start|>assistxyz<|channel|>final<|message|>It is 42.<|return|>",
        "Six.",
        "It is 42.",
    ),
    _output("stray end", f"<|end|><|end|>{_FINAL}It is 42.<|return|>", "", "It is 42."),
    _output("cut header", "<|channel|>analysis<|message|>Six.<|end|><|start|>assistant✂<|channel|>final", "Six."),
    _output(
        "thought not closed",
        f"<|channel|>analysis<|message|>Six.{_FINAL}It is 42.<|return|>",
        "Six.",
        "It is 42.",
    ),
    _output(
        "quoted marker",
        f"<|channel|>analysis<|message|>A ‹<|end|>› ends it.<|end|>{_FINAL}Write ‹<|message|>›.<|return|>",
        "A <|end|> ends it.",
        "Write <|message|>.",
    ),
    _output(
        "markers quoted in an argument",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.weather "
        '<|constrain|>json<|message|>{"city": "‹<|end|>›‹<|start|>›assistant‹<|call|>›"}<|call|>',
        "Hm.",
        "",
        ("<|end|><|start|>assistant<|call|>",),
    ),
    _output("cut mid-thought", "<|channel|>analysis<|message|>Let me th✂ink.<|end|>", "Let me th"),
    _output(
        "two thoughts, two answers",
        f"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|>"
        f"{_FINAL}c<|end|>{_FINAL}d<|return|>",
        "a\nb",
        "c\nd",
    ),
)
