"""A model directory of vLLM's type gpt_oss, without weights: the scripted engine core never loads any."""

from pathlib import Path
from typing import Any

from openai_harmony import HarmonyEncodingName, load_harmony_encoding
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import GptOssConfig, PreTrainedTokenizerFast

from tests.support.byte_tokenizer import VOCABULARIES

BYTES = 256
"""The first ids of the real vocabulary are the single bytes."""


def build_gpt_oss(directory: Path, family: str = "gpt_oss") -> Any:
    """Write configuration and tokenizer: the real ids, because vLLM renders the prompt with openai_harmony."""
    encoding = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)
    symbols = sorted(pre_tokenizers.ByteLevel.alphabet())
    byte_of = dict(zip(sorted_bytes(), symbols, strict=True))
    control = VOCABULARIES["gpt_oss"].ids
    vocabulary = {symbol: at for at, symbol in enumerate(symbols)} | control
    for number in range(BYTES, min(control.values())):
        text = encoding.decode([number])
        if "\ufffd" not in text:
            vocabulary.setdefault("".join(byte_of[byte] for byte in text.encode()), number)
    raw = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens([AddedToken(text, normalized=False) for text in control])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|return|>", clean_up_tokenization_spaces=False
    )
    tokenizer.save_pretrained(directory)
    stops = [control[text] for text in ("<|return|>", "<|call|>", "<|endoftext|>")]
    config = GptOssConfig(
        architectures=["GptOssForCausalLM"],
        vocab_size=201_088,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=32,
        num_local_experts=2,
        num_experts_per_tok=1,
        max_position_embeddings=4096,
        eos_token_id=stops,
    )
    config.save_pretrained(directory)
    return tokenizer


def sorted_bytes() -> list[int]:
    """List the bytes in the order of their symbols: the printable ones stand for themselves, the others follow."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return [*printable, *(byte for byte in range(BYTES) if byte not in printable)]
