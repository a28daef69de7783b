"""JSON as the surfaces need it: anything that cannot be read is None, anything that was read can be written.

A number keeps its digits: `1e999`, `-0` and `1.50` are written as they were read, though no float is spelled so.
"""

import json
import re
from secrets import token_hex
from typing import Any, Final

# Stands around a number's digits in an encoded string until they are put back; drawn, so that no text can hold it.
_MARK: Final = token_hex(16)
_MARKED: Final = re.compile(rf'"{_MARK}([-+.0-9eE]+)"')


class Digits:
    """A number whose spelling no int or float of Python keeps."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __bool__(self) -> bool:
        return self.text.strip("-0.") != ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digits) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def _float(text: str) -> float | Digits:
    value = float(text)
    return value if repr(value) == text else Digits(text)


def _int(text: str) -> int | Digits:
    # Python refuses longer ones, against attacks on their conversion.
    return Digits(text) if text == "-0" or len(text) > 4000 else int(text)


def _digits(value: object) -> str:
    if isinstance(value, Digits):
        return _MARK + value.text
    raise TypeError(f"{type(value).__name__} is no JSON")


# Made once: `json.loads` and `json.dumps` with options make a decoder or an encoder for every call.
_DECODE: Final = json.JSONDecoder(parse_float=_float, parse_int=_int).decode
_PLAIN: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_digits).encode
_ESCAPED: Final = json.JSONEncoder(separators=(",", ":"), default=_digits).encode


def loads(data: bytes) -> Any:
    """Decode JSON bytes; None for what is no JSON, or is nested beyond what the decoder takes."""
    try:
        return _DECODE(data.decode(json.detect_encoding(data), "surrogatepass"))
    except (ValueError, RecursionError):
        return None


def dumps(value: object) -> bytes:
    """Encode as compact UTF-8 JSON without a line break; lone surrogates stay as escapes."""
    text = _PLAIN(value)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        text = _ESCAPED(value)
        data = text.encode()
    return _MARKED.sub(r"\1", text).encode() if _MARK in text else data
