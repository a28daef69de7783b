"""The smallest tokenizer that can quote a marker: one id per character, and one per control token."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from vllm_reasoning_ext.core.families import get_family
from vllm_reasoning_ext.core.start import anchor

FIRST_CONTROL_ID: Final = 0x200000
"""Ids below are code points."""


class Token(NamedTuple):
    """One token of an output: its id and the characters it stands for."""

    id: int
    text: str


class CharTokenizer:
    """A stand-in for a real tokenizer, as far as the core asks: look a token up, decode ids.

    Args:
        control: the spellings that are one token each; the same text may also be written character by character.
    """

    def __init__(self, control: Iterable[str]) -> None:
        self.ids = {text: FIRST_CONTROL_ID + n for n, text in enumerate(control)}
        self._texts = {number: text for text, number in self.ids.items()}
        self._by_length = sorted(self.ids, key=len, reverse=True)

    @classmethod
    def of_family(cls, name: str) -> "CharTokenizer":
        """Build the tokenizer of a family: a marker that real tokenizers write in pieces is in pieces here."""
        record = get_family(name)
        in_pieces = dict(record.parts)
        turns = filter(None, map(anchor, record.turn_openers))
        return cls(text for text in dict.fromkeys((*record.control, *turns)) if text not in in_pieces)

    def convert_tokens_to_ids(self, token: str) -> int | None:
        """Look a control token up; None for anything else."""
        return self.ids.get(token)

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        """Join the texts of the ids; control tokens are left out with `skip_special_tokens`."""
        if skip_special_tokens:
            token_ids = [n for n in token_ids if n not in self._texts]
        return "".join([self._texts.get(n) or chr(n) for n in token_ids])

    def tokens(self, text: str, quoted: Sequence[tuple[int, int]] = ()) -> Iterator[Token]:
        """Cut a text into tokens.

        Args:
            text: the output.
            quoted: spans in characters, end excluded, whose markers are spelled from ordinary tokens.
        """
        at = 0
        while at < len(text):
            control = None
            if not any(start <= at < end for start, end in quoted):
                control = next((t for t in self._by_length if text.startswith(t, at)), None)
            piece = control or text[at]
            yield Token(self.ids[control] if control else ord(piece), piece)
            at += len(piece)
