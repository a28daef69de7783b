"""What a model of each family beyond the seven writes, in its own call syntax, for the tests of both engines."""

from collections.abc import Iterator

from vllm_reasoning_ext.conformance.modes import FUNCTION as KIT_FUNCTION
from vllm_reasoning_ext.conformance.outputs import CALLS
from vllm_reasoning_ext.core.more import MORE
from vllm_reasoning_ext.core.record import Family
from vllm_reasoning_ext.demo.outputs import FUNCTION, Output


def call_of(family: str) -> str:
    """Give one call of the demo's function in a family's syntax; "" where its models write none."""
    return CALLS.get(family, "").replace(KIT_FUNCTION, FUNCTION)


def outputs_of(record: Family) -> Iterator[Output]:
    """Make a family's outputs from its record; the prompt ends in its turn opener."""
    name, opener, closer = record.name, record.opener, record.closer
    end = (record.end_of_sequence or ("<|endoftext|>",))[0]
    call = call_of(name)
    yield Output(
        "thought then answer",
        name,
        f"{opener}\nSix times seven.\n{closer}\n\nIt is 42.{end}",
        "Six times seven.",
        "It is 42.",
    )
    if record.turn_openers or not record.always_open:
        yield Output("plain answer", name, f"It is 42.{end}", "", "It is 42.")
    yield Output(
        "cut by max_tokens mid-thought",
        name,
        f"{opener}\nLet me think about✂ it.\n{closer}42.{end}",
        "Let me think about",
    )
    if not call:
        return
    thought = "Look it up."
    yield Output(
        "thought, then a call", name, f"{opener}\n{thought}\n{closer}\n\n{call}{end}", thought, "", ("Oslo",), raw=call
    )
    if all(tool.ends_thought for tool in record.tools):
        yield Output(
            "a call in an open block", name, f"{opener}\n{thought}\n{call}{end}", thought, "", ("Oslo",), raw=call
        )


FAMILY_OUTPUTS = tuple(output for record in MORE for output in outputs_of(record))
"""Every output of every family beyond the seven."""
