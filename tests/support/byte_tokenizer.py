"""The small exact tokenizer of a family: every byte is a token, every control spelling keeps its true id.

No model's vocabulary is needed: 256 byte symbols without merges, plus the control tokens at the ids of the
real tokenizers (format documentation, "Special tokens and ids"). Every marker boundary, split UTF-8 character
and multi-token header is exercised this way, and it saves to a few kB that `AutoTokenizer` loads again.
"""

import json
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from vllm_reasoning_ext.core.families import get_family
from vllm_reasoning_ext.core.start import anchor

TEMPLATES: Final = Path(__file__).resolve().parents[2] / "templates"


class Vocabulary(NamedTuple):
    """The control tokens of one real tokenizer: spelling -> id.

    `special` ones vanish from the text under `skip_special_tokens=True`, `plain` ones stay.
    """

    special: dict[str, int]
    plain: dict[str, int]
    eos: str
    bos: str | None = None

    @property
    def ids(self) -> dict[str, int]:
        """All spellings with their true ids."""
        return self.special | self.plain


_GEMMA: Final = {
    "<eos>": 1, "<bos>": 2, "<|tool>": 46, "<tool|>": 47, "<|tool_call>": 48, "<tool_call|>": 49,
    "<|tool_response>": 50, "<tool_response|>": 51, '<|"|>': 52, "<|think|>": 98, "<|channel>": 100,
    "<channel|>": 101, "<|turn>": 105, "<turn|>": 106,
}  # fmt: skip
_HARMONY: Final = {
    "<|startoftext|>": 199998, "<|endoftext|>": 199999, "<|return|>": 200002, "<|constrain|>": 200003,
    "<|channel|>": 200005, "<|start|>": 200006, "<|end|>": 200007, "<|message|>": 200008, "<|call|>": 200012,
}  # fmt: skip
_MUSE: Final = {
    "<|begin_of_text|>": 200000, "<|end_of_text|>": 200001, "<|eom|>": 200007, "<|eot|>": 200008,
    "<|finetune_right_pad|>": 200018, "<|start|>": 200022, "<|message|>": 200023,
}  # fmt: skip
_DEEPSEEK_ENDS: Final = {"<｜begin▁of▁sentence｜>": 0, "<｜end▁of▁sentence｜>": 1}
_DEEPSEEK_ROLES: Final = {
    "<｜User｜>": 128803, "<｜Assistant｜>": 128804, "<｜tool▁outputs▁end｜>": 128811, "<｜tool▁output▁end｜>": 128813,
}  # fmt: skip
_MINIMAX_TURNS: Final = {"]~b]": 200019, "[e~[": 200020, "]~!b[": 200034}

VOCABULARIES: Final[dict[str, Vocabulary]] = {
    "deepseekv32": Vocabulary(
        {**_DEEPSEEK_ENDS, "｜DSML｜": 128793},
        {"<think>": 128798, "</think>": 128799, **_DEEPSEEK_ROLES},
        eos="<｜end▁of▁sentence｜>",
        bos="<｜begin▁of▁sentence｜>",
    ),
    "deepseekv32/v4": Vocabulary(
        _DEEPSEEK_ENDS,
        {"<think>": 128821, "</think>": 128822, "｜DSML｜": 128825, **_DEEPSEEK_ROLES,
         "<｜latest_reminder｜>": 128828},
        eos="<｜end▁of▁sentence｜>",
        bos="<｜begin▁of▁sentence｜>",
    ),
    "qwen3": Vocabulary(
        {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645},
        {"<tool_call>": 151657, "</tool_call>": 151658, "<tool_response>": 151665, "</tool_response>": 151666,
         "<think>": 151667, "</think>": 151668},
        eos="<|im_end|>",
    ),
    "qwen3/3.5": Vocabulary(
        {"<|endoftext|>": 248044, "<|im_start|>": 248045, "<|im_end|>": 248046},
        {"<tool_call>": 248058, "</tool_call>": 248059, "<think>": 248068, "</think>": 248069},
        eos="<|im_end|>",
    ),
    "glm": Vocabulary(
        {"<|endoftext|>": 151329, "<|system|>": 151335, "<|user|>": 151336, "<|assistant|>": 151337,
         "<|observation|>": 151338},
        {"<think>": 151350, "</think>": 151351, "<tool_call>": 151352, "</tool_call>": 151353,
         "<arg_key>": 151356, "</arg_key>": 151357, "<arg_value>": 151358, "</arg_value>": 151359,
         "/nothink": 151360},
        eos="<|endoftext|>",
    ),
    "glm/5": Vocabulary(
        {"<|endoftext|>": 154820, "<|user|>": 154827, "<|assistant|>": 154828, "<|observation|>": 154829},
        {"<think>": 154841, "</think>": 154842, "<tool_call>": 154843, "</tool_call>": 154844,
         "<arg_key>": 154847, "<arg_value>": 154849},
        eos="<|endoftext|>",
    ),
    "minimax": Vocabulary(
        _MINIMAX_TURNS,
        {"<think>": 200050, "</think>": 200051, "<minimax:tool_call>": 200052,
         "</minimax:tool_call>": 200053},
        eos="[e~[",
    ),
    "minimax_m3": Vocabulary(
        _MINIMAX_TURNS,
        {"<think>": 200050, "</think>": 200051, "<tool_call>": 200052, "</tool_call>": 200053,
         "]<]minimax[>[": 200058, "<mm:think>": 200059, "</mm:think>": 200060},
        eos="[e~[",
    ),
    "gemma4": Vocabulary(_GEMMA, {}, eos="<turn|>", bos="<bos>"),
    "gpt_oss": Vocabulary(_HARMONY, {}, eos="<|return|>", bos="<|startoftext|>"),
    "muse_glimmer": Vocabulary(_MUSE, {}, eos="<|eot|>", bos="<|begin_of_text|>"),
}  # fmt: skip
"""Name -> its control tokens. A name is a template's, with "/" and a version for a newer vocabulary."""

_V3_CALLS: Final = ("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>")
INNER: Final[dict[str, tuple[str, ...]]] = {
    "deepseek_r1": _V3_CALLS,
    "deepseek_v3": _V3_CALLS,
    "holo2": _V3_CALLS,
    "hunyuan": (
        "<tool_call>", "</tool_call>", "<tool_sep>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
    ),
}  # fmt: skip
"""Tokens within calls that the engines' tool parsers look for, where the family's record has no use for them."""

FAMILIES: Final = tuple(name for name in VOCABULARIES if "/" not in name)
"""The families whose real tokenizers and templates are at hand."""


def vocabulary_of(name: str) -> Vocabulary:
    """Give a vocabulary of `VOCABULARIES`; for any other family the control tokens of its record, at ids of our own."""
    if name in VOCABULARIES:
        return VOCABULARIES[name]
    record = get_family(name)
    in_pieces = dict(record.parts)
    ends = record.end_of_sequence or ("<|endoftext|>",)
    turns = filter(None, map(anchor, record.turn_openers))
    every = (*record.control, *turns, *ends, *INNER.get(name, ()))
    texts = [text for text in dict.fromkeys(every) if text not in in_pieces]
    ids = {text: 300_000 + at for at, text in enumerate(texts) if not text.isspace()}
    special = {text: number for text, number in ids.items() if record.control_markers or text in ends}
    return Vocabulary(special, {text: number for text, number in ids.items() if text not in special}, eos=ends[0])


def template_text(family: str) -> str:
    """Return the text of `templates/<family>.jinja`; a vocabulary name such as `qwen3/3.5` will do."""
    return (TEMPLATES / f"{family.partition('/')[0]}.jinja").read_text(encoding="utf-8")


def _plain_template(family: str) -> str:
    """Make a template that says no more than the record: the messages' texts, then the beginning of the turn."""
    opener = "".join(get_family(family).turn_openers[:1])
    turn = f"{{% if add_generation_prompt %}}{{{{ {json.dumps(opener)} }}}}{{% endif %}}"
    return "{% for message in messages %}{{ message.content }}\n{% endfor %}" + turn


@cache
def byte_tokenizer(vocabulary: str, *, compact: bool = False) -> PreTrainedTokenizerFast:
    """Build the byte-level tokenizer of a family (one shared object: do not change it).

    Args:
        vocabulary: a family's name, or another key of `VOCABULARIES`.
        compact: consecutive ids from 0, bytes first, in place of the true ones, for a tiny model.

    Returns:
        A transformers tokenizer with the family's own chat template and the true ids of its control tokens;
        ordinary text is one token a byte.
    """
    known = vocabulary_of(vocabulary)
    symbols = sorted(pre_tokenizers.ByteLevel.alphabet())
    if compact:
        ids = {text: number for number, text in enumerate([*symbols, *known.ids])}
    else:
        free = (number for number in range(512) if number not in set(known.ids.values()))
        ids = dict(zip(symbols, free, strict=False)) | known.ids

    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in known.special])
    tokenizer.add_tokens([AddedToken(text, normalized=False, special=False) for text in known.plain])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=known.eos,
        pad_token=known.eos,
        bos_token=known.bos,
        chat_template=template_text(vocabulary) if vocabulary in VOCABULARIES else _plain_template(vocabulary),
        clean_up_tokenization_spaces=False,
    )
