"""JSON as the surfaces need it: anything that cannot be read is None, anything that was read can be written."""

import json
from typing import Any, Final

# Made once: `json.dumps` with options makes an encoder for every call.
_PLAIN: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_ESCAPED: Final = json.JSONEncoder(separators=(",", ":")).encode


def loads(data: bytes) -> Any:
    """Decode JSON bytes; None for what is no JSON, or is nested or long beyond what the decoder takes."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def dumps(value: object) -> bytes:
    """Encode as compact UTF-8 JSON without a line break; lone surrogates stay as escapes."""
    try:
        return _PLAIN(value).encode()
    except UnicodeEncodeError:
        return _ESCAPED(value).encode()
