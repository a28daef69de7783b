"""JSON: what is read can be written, digit for digit."""

import pytest

from vllm_reasoning_ext.wire.jsontext import Digits, dumps, loads


@pytest.mark.parametrize(
    "number",
    [
        *("1e999", "-1e999", "-0", "-0.0", "1.50", "1E5", "1e-7", "0.1", "7", "1.7976931348623157e308", "9" * 30),
        *("9" * 5000, "0.1000000000000000055511151231257827"),
    ],
)
def test_a_number_keeps_its_digits(number: str) -> None:
    raw = f'{{"n":[{number},"{number}"]}}'.encode()
    assert dumps(loads(raw)) == raw


@pytest.mark.parametrize(("number", "truth"), [("-0", False), ("0.00", False), ("1e999", True), ("1.50", True)])
def test_a_number_is_as_true_as_its_value(number: str, truth: bool) -> None:
    read = loads(number.encode())
    assert isinstance(read, Digits)
    assert bool(read) is truth
    assert read == loads(number.encode())
    assert read != loads(b"1e998")
    assert hash(read) == hash(Digits(number))


def test_text_beside_such_a_number_is_not_touched() -> None:
    raw = '{"n":1e999,"t":"é \\" 1e999 \\n"}'.encode()
    assert dumps(loads(raw)) == raw
    assert dumps(loads(b'{"n":1e999,"t":"\\ud83d"}')) == b'{"n":1e999,"t":"\\ud83d"}'


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[" * 100_000, b"nul", b'{"a":1} x'])
def test_what_is_no_json_is_none(raw: bytes) -> None:
    assert loads(raw) is None


@pytest.mark.parametrize("raw", [b'\xef\xbb\xbf{"a":1}', '{"a":1}'.encode("utf-16"), b' \n{"a":1}\n '])
def test_byte_order_marks_and_blanks_are_read(raw: bytes) -> None:
    assert loads(raw) == {"a": 1}


def test_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match="set is no JSON"):
        dumps({"a": set()})
