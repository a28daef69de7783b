"""`--family auto`: the record that a tokenizer and a chat template show, and why, for the commands."""

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vllm_reasoning_ext.core.families import AUTO
from vllm_reasoning_ext.errors import SetupError

if TYPE_CHECKING:
    from vllm_reasoning_ext.core.record import Family


class Chosen(NamedTuple):
    """What `auto` means for a command.

    Attributes:
        family: the record.
        reason: why, in one sentence.
        warnings: what should be known of it.
    """

    family: "Family"
    reason: str
    warnings: tuple[str, ...]


NOTHING: Final = "'auto' reads the family from a tokenizer or a chat template, and neither was given"


def asked(family: str) -> bool:
    """Tell whether a family's name leaves the choice to tokenizer and template."""
    return family in AUTO


def choose_family(remedy: str, tokenizer: Any = None, template: str = "") -> Chosen:
    """Choose the family as the engines do for `--reasoning-parser auto`.

    Args:
        remedy: what to add to the command where there is nothing to go by.
        tokenizer: the model's, if it was given.
        template: its chat template; "" for the tokenizer's own.

    Raises:
        SetupError: nothing to go by, a template that cannot be rendered, or nothing that decides.
    """
    if tokenizer is None and not template:
        raise SetupError(NOTHING, "--family auto", remedy)
    from vllm_reasoning_ext.core.record import NO_REASONING
    from vllm_reasoning_ext.derive.served import choice_for

    choice = choice_for(tokenizer, template or None)
    return Chosen(choice.family or NO_REASONING, choice.reason, choice.warnings)
