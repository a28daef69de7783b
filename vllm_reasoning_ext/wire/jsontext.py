"""JSON as the surfaces need it: anything that cannot be read is None, anything that was read can be written."""

import json
from typing import Any


def loads(data: bytes) -> Any:
    """Decode JSON bytes; None for what is no JSON, or is nested or long beyond what the decoder takes."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def dumps(value: object) -> bytes:
    """Encode as compact UTF-8 JSON without a line break; lone surrogates stay as escapes."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()
