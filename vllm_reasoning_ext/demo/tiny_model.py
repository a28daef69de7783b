"""A model directory of a few hundred kilobytes whose output is dictated: for the demo and the live tests.

The model is a random one-layer Llama; the tokenizer has one token a byte and the family's control tokens, so that
every marker is one real token and can also be spelled with ordinary ones. Needs transformers and torch, which
every vLLM host has.
"""

import json
from pathlib import Path
from typing import Any, Final, NamedTuple


class Tokens(NamedTuple):
    """The added tokens of a family's tokenizers.

    Attributes:
        special: removed from the text by `skip_special_tokens`.
        plain: added, yet kept in the text.
        stops: those that end a generation; the first is the tokenizer's end-of-sequence token.
    """

    special: tuple[str, ...]
    plain: tuple[str, ...]
    stops: tuple[str, ...]


_THINK: Final = ("<think>", "</think>")
_CALL: Final = ("<tool_call>", "</tool_call>")
_RESPONSE: Final = ("<tool_response>", "</tool_response>")
_MINIMAX: Final = ("]~b]", "]~!b[", "[e~[")

TOKENS: Final[dict[str, Tokens]] = {
    "deepseekv32": Tokens(
        ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "｜DSML｜"),
        (*_THINK, "<｜User｜>", "<｜Assistant｜>"),
        ("<｜end▁of▁sentence｜>",),
    ),
    "qwen3": Tokens(
        ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
        (*_THINK, *_CALL, *_RESPONSE),
        ("<|im_end|>", "<|endoftext|>"),
    ),
    "glm": Tokens(
        ("[gMASK]", "<sop>", "<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"),
        (*_THINK, *_CALL, *_RESPONSE, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "/nothink"),
        ("<|endoftext|>", "<|user|>", "<|observation|>"),
    ),
    "minimax": Tokens(_MINIMAX, (*_THINK, "<minimax:tool_call>", "</minimax:tool_call>"), ("[e~[",)),
    "minimax_m3": Tokens(_MINIMAX, ("<mm:think>", "</mm:think>", "]<]minimax[>[", *_CALL, *_THINK), ("[e~[",)),
    "gemma4": Tokens(
        (
            *("<eos>", "<bos>", "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>", "<|tool_response>"),
            *("<tool_response|>", '<|"|>', "<|think|>", "<|channel>", "<channel|>", "<|turn>", "<turn|>"),
        ),
        (),
        ("<eos>", "<turn|>", "<|tool_response>"),
    ),
    "gpt_oss": Tokens(
        (
            *("<|startoftext|>", "<|endoftext|>", "<|return|>", "<|constrain|>", "<|channel|>"),
            *("<|start|>", "<|end|>", "<|message|>", "<|call|>"),
        ),
        (),
        ("<|return|>", "<|call|>", "<|endoftext|>"),
    ),
    "muse_glimmer": Tokens(
        ("<|begin_of_text|>", "<|end_of_text|>", "<|eom|>", "<|eot|>", "<|start|>", "<|message|>"),
        (),
        ("<|eot|>", "<|end_of_text|>"),
    ),
}


def build_tokenizer(tokens: Tokens) -> Any:
    """Make a byte-level tokenizer: ids 0 to 255 are bytes, the control tokens follow."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {symbol: at for at, symbol in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    for text in (*tokens.special, *tokens.plain):
        vocabulary[text] = len(vocabulary)
    raw = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens([AddedToken(text, normalized=False) for text in tokens.special])
    raw.add_tokens([AddedToken(text, normalized=False) for text in tokens.plain])
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        eos_token=tokens.stops[0],
        clean_up_tokenization_spaces=False,
        model_max_length=4096,
    )


def build_model(directory: Path, family: str) -> Any:
    """Write tokenizer, weights and configuration of a family's tiny model.

    Args:
        directory: where to; made if absent. A directory that holds a model already is left as it is.
        family: a key of `TOKENS`.

    Returns:
        the tokenizer.
    """
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    if (directory / "model.safetensors").exists():
        return AutoTokenizer.from_pretrained(directory)
    tokens = TOKENS[family]
    tokenizer = build_tokenizer(tokens)
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(directory)
    stops = tokenizer.convert_tokens_to_ids(list(tokens.stops))
    config = LlamaConfig(
        vocab_size=-(-len(tokenizer) // 64) * 64,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=4096,
        bos_token_id=None,
        eos_token_id=stops,
    )
    LlamaForCausalLM(config).save_pretrained(directory)
    generation = {"eos_token_id": stops}
    (directory / "generation_config.json").write_text(json.dumps(generation), encoding="utf-8")
    return tokenizer


def encode(tokenizer: Any, text: str) -> list[int]:
    """Encode text as a model would have written it: control tokens recognised, none added."""
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False)
    return ids
