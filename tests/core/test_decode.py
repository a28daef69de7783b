"""Ids decoded as they come give the text of the whole run: no character early, late or broken (SPEC 5.2, law 1)."""

import random

import pytest

from vllm_reasoning_ext.core.reading.decode import REPLACEMENT, TextOfIds

TEXTS = (
    "plain words",
    "😀👩‍👩‍👧‍👦🏳️‍🌈" * 5,
    "ᚠᛇᚻ᛫ᛒᛦᚦ" * 6,
    "𓀀𓂀𓃰𓆣" * 8,
    "naïve 六 😀 end",
    f"a {REPLACEMENT} written by the model {REPLACEMENT}",
)


class Chunks:
    """A tokenizer whose tokens are arbitrary runs of bytes, so that tokens end within characters in a row."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self.pieces: list[bytes] = []
        for size in sizes:
            if data:
                self.pieces.append(data[:size])
                data = data[size:]
        if data:
            self.pieces.append(data)

    @property
    def ids(self) -> list[int]:
        return list(range(len(self.pieces)))

    def decode(self, ids: list[int]) -> str:
        return b"".join(self.pieces[number] for number in ids).decode("utf-8", "replace")


def complete(data: bytes) -> str:
    """Give the characters of the bytes that are whole."""
    for cut in range(4):
        try:
            return data[: len(data) - cut].decode("utf-8")
        except UnicodeDecodeError:
            continue
    raise AssertionError(data)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("width", range(1, 13))
def test_a_stream_gives_each_character_as_soon_as_it_is_whole(text: str, width: int) -> None:
    randomly = random.Random(f"{text}{width}")
    data = text.encode()
    for _ in range(20):
        tokens = Chunks(data, [randomly.randint(1, 6) for _ in data])
        stream, given = TextOfIds(tokens.decode), ""
        for at in range(0, len(tokens.ids), width):
            given += stream.push(tokens.ids[at : at + width])
            whole = complete(b"".join(tokens.pieces[: at + width]))
            # A replacement character may be a broken one yet: it waits for what follows it.
            assert given.rstrip(REPLACEMENT) == whole.rstrip(REPLACEMENT)
        assert given + stream.end() == text


@pytest.mark.parametrize("broken", [b"ok \xf0\x9f", b"\xff\xfe then text", b"\xe2\x82 \xe2\x82\xac", b"\x80" * 40])
def test_broken_bytes_are_what_the_whole_decodes_to(broken: bytes) -> None:
    for width in (1, 2, 3, 5):
        tokens = Chunks(broken, [1] * len(broken))
        stream = TextOfIds(tokens.decode)
        pieces = [stream.push(tokens.ids[at : at + width]) for at in range(0, len(broken), width)]
        assert "".join(pieces) + stream.end() == tokens.decode(tokens.ids)


def test_no_ids_give_no_text() -> None:
    stream = TextOfIds(lambda ids: "x" * len(ids))
    assert stream.push([]) == stream.end() == ""


def test_a_long_run_is_decoded_in_short_pieces() -> None:
    asked: list[int] = []

    def decode(ids: list[int]) -> str:
        asked.append(len(ids))
        return "".join(map(chr, ids))

    stream = TextOfIds(decode)
    for number in range(5000):
        stream.push([97 + number % 26])
    assert max(asked) <= 17
