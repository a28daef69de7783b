"""Every bound of the core, in one place, each with its reason (SPEC sections 2 and 5)."""

from typing import Final

BLANK_HOLD_MAX: Final = 4096
"""Characters of one blank run that may be kept back because they may still be dropped.

A longer run is text, whole: a model that prints blanks for ever must not fill the memory.
"""

TOOL_HOLD_MAX: Final = 512
"""Characters after a tool marker inside an open block before it is taken for a call.

A model that quotes the marker writes a few words more and closes the block; a call is a long payload.
"""

TEXT_LAG_MAX: Final = 256
"""Characters that the text may lag behind the token ids (stop strings, incomplete UTF-8)."""

ATEM_NAME_MAX: Final = 64
"""Characters of a recipient in a headerless switch `to=name<|message|>`; a full header has no such bound."""

ATEM_HEADER_SPAN: Final = 128
"""Characters after `<|start|>` within which the header's `<|message|>` must begin."""

HARMONY_HEADER_SPAN: Final = 256
"""Characters from a harmony header's first one, control tokens included, within which `<|message|>` must begin."""

IDS_PENDING_MAX: Final = 4096
"""Token ids that may wait undecoded; then those whose text must have come are decoded or forgotten."""

IDS_KEPT: Final = 4 * TEXT_LAG_MAX
"""Token ids whose text may still be on its way: an id stands for a byte at least, a character has four at most."""
