"""How much a splitter may keep back, in characters, as `core/limits.py` documents it."""

from vllm_reasoning_ext.core.families import FAMILIES
from vllm_reasoning_ext.core.grammar.tags import DEFAULT_TAGS
from vllm_reasoning_ext.core.limits import (
    ATEM_HEADER_SPAN,
    ATEM_NAME_MAX,
    BLANK_HOLD_MAX,
    HARMONY_HEADER_SPAN,
    TOOL_HOLD_MAX,
)


def hold_bound(family: str, max_buffer_bytes: int = 0) -> int:
    """Add up what may be kept back at once after a delta: a blank run, a structure, a half-marker."""
    if family == "inline":
        longest = max(len(tag) for pair in DEFAULT_TAGS for tag in pair)
        return BLANK_HOLD_MAX + max_buffer_bytes + 2 * longest
    record = FAMILIES[family]
    longest = max(map(len, record.markers))
    half = longest - 1
    if record.grammar == "harmony":
        return BLANK_HOLD_MAX + HARMONY_HEADER_SPAN + half
    if record.grammar == "atem":
        return BLANK_HOLD_MAX + max(len("<|start|>") + ATEM_HEADER_SPAN, len("to=") + ATEM_NAME_MAX) + half
    # The label may be kept beside the blanks, and the blanks before a call beside the call; a closer forced into a
    # call doubles its room, and blanks may follow it, or an answer's closer.
    marker = max((len(tool.marker) for tool in record.tools), default=0)
    return 2 * BLANK_HOLD_MAX + len(record.label) + marker + 2 * TOOL_HOLD_MAX + 2 * longest + half
