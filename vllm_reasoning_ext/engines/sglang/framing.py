"""How one tool slice of a channel family is spelled for SGLang's own parser class of that family.

SGLang's `muse` and `gpt-oss` tool parsers know one spelling of a call's header, and find markers by their text
alone. A slice is therefore written anew for them, in their spelling, with markers that its arguments quote made
harmless. What is written here goes into SGLang's class and nowhere else: no client ever sees it.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

MESSAGE: Final = "<|message|>"
CALL_TO_HARMONY: Final = "<|start|>assistant<|channel|>commentary to={}<|constrain|>json<|message|>{}<|call|>"
HARMONY_ENDS: Final = ("<|call|>", "<|end|>", "<|return|>")
HARMONY_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
CALL_TO_MUSE: Final = "<|start|>assistant to={}<|message|>{}<|eom|>"
MUSE_ENDS: Final = ("<|eom|>", "<|eot|>", "<|end_of_text|>")
# Stands in an end marker that a parameter quotes; a private-use character, which no tokenizer's text holds.
MUSE_GUARD: Final = "\ue0a5"


class Slice(NamedTuple):
    """A tool slice.

    Attributes:
        text: as the model wrote it.
        recipient: the tool it is addressed to.
        ended: it ended by itself; False: the output was cut in it.
    """

    text: str
    recipient: str
    ended: bool


class Frame(NamedTuple):
    """What goes into a parser class and what comes out of it.

    Attributes:
        write: spells a slice for the parser; None: it cannot be a call for it.
        read: gives the arguments as the model wrote them, from those that the parser found.
    """

    write: Callable[[Slice], str | None]
    read: Callable[[str], str]


def _body(call: Slice, ends: tuple[str, ...]) -> str | None:
    """Give what stands between the header and the terminator; None when no body began."""
    _, message, body = call.text.partition(MESSAGE)
    if not message:
        return None
    if call.ended:
        for end in ends:
            if body.endswith(end):
                return body.removesuffix(end)
    return body


def _write_harmony(call: Slice) -> str | None:
    body = _body(call, HARMONY_ENDS)
    if body is None or not HARMONY_NAME.fullmatch(call.recipient):
        return None
    if not call.ended and not body.rstrip().endswith("}"):
        return None  # cut: any other JSON, a number say, might have gone on
    # In JSON a "<" can only stand in a string, where the escape means the same and is no marker.
    return CALL_TO_HARMONY.format(call.recipient, body.replace("<", "\\u003c"))


def _write_muse(call: Slice) -> str | None:
    body = _body(call, MUSE_ENDS)
    if body is None:
        return None
    return CALL_TO_MUSE.format(call.recipient, body.replace("<|eo", f"<{MUSE_GUARD}|eo"))


def _read_muse(arguments: str) -> str:
    return arguments.replace(f"<{MUSE_GUARD}|eo", "<|eo")


FRAMES: Final = {
    ("harmony", "gpt-oss"): Frame(_write_harmony, str),
    ("atem", "muse"): Frame(_write_muse, _read_muse),
}
"""By the family's grammar and SGLang's `--tool-call-parser`."""
