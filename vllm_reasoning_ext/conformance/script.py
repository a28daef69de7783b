"""The notation of scripted model outputs, and the token ids that a script stands for.

In a script, every marker is the real control token, except between ‹ and ›, where the same characters are
spelled with ordinary tokens (the model quotes the marker). `✂` is where `max_tokens` cuts the output.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

QUOTED: Final = re.compile("‹(.*?)›", re.DOTALL)
CUT: Final = "✂"


def script_ids(script: str, encode: Callable[[str], Sequence[int]]) -> list[int]:
    """Turn a script into token ids.

    Args:
        script: the script; `✂` is left out.
        encode: text -> ids, control tokens recognised and none added.

    Returns:
        the ids; quoted text is encoded character by character, so that no control token comes of it.
    """
    ids: list[int] = []
    for index, part in enumerate(QUOTED.split(script.replace(CUT, ""))):
        for piece in part if index % 2 else [part]:
            ids += encode(piece)
    return ids


def cut_at(script: str, encode: Callable[[str], Sequence[int]]) -> int | None:
    """Count the tokens before `✂`: the `max_tokens` of the request, or None."""
    before, mark, _ = script.partition(CUT)
    return len(script_ids(before, encode)) if mark else None
