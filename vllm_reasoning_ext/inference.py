"""Which family does a model belong to? By its name, or by what stands in its directory."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext.core.families import AUTO, infer_by_name
from vllm_reasoning_ext.derive.choice import choose
from vllm_reasoning_ext.errors import SetupError


class Inference(NamedTuple):
    """What was found out about a model.

    Attributes:
        family: its family; None when there is none, or none is known.
        reason: why, in words.
        needs_none: the model writes no reasoning, so that it needs no reasoning parser.
        notes: what else should be known: a file that cannot be read, a model that does not think.
    """

    family: str | None
    reason: str
    needs_none: bool = False
    notes: tuple[str, ...] = ()


_TEMPLATE_MARKS: Final = (
    ("minimax_m3", ("<mm:think>",)),
    ("muse_glimmer", ("<|start|>", "<|eom|>")),
    ("gpt_oss", ("<|start|>", "<|channel|>")),
    ("gemma4", ("<|channel>",)),
    ("minimax", ("]~b]", "<think>")),
    ("deepseekv32", ("｜DSML｜",)),
    ("qwen3", ("<think>",)),
    ("qwen3", ("</think>",)),
)
"""What a chat template writes, most telling first; every text of a row must be there."""

_VOCABULARY: Final = (("｜DSML｜", "deepseekv32"),)
"""Tokens that only the models of one family have; most vocabularies hold `<think>`, whatever the model writes."""

_MODEL_TYPES: Final = {
    "gpt_oss": "gpt_oss",
    "muse_glimmer": "muse_glimmer",
    "deepseek_v32": "deepseekv32",
    "deepseek_v4": "deepseekv32",
    "qwen3": "qwen3",
    "qwen3_moe": "qwen3",
    "qwen3_next": "qwen3",
    "minimax_m2": "minimax",
    "minimax_m3": "minimax_m3",
    "gemma4": "gemma4",
}

_THINKS: Final = re.compile("think|thought|reason", re.IGNORECASE)
"""What a template of a model that reasons says somewhere: a marker, a field, a switch."""

_PLAIN_NAMES: Final = re.compile(
    r"qwen-?[12](\.5)?[-_.]|llama-?[23]|mixtral|mistral-(7b|nemo|large|small)|gemma-?[123][-_]|phi-?[123]|falcon"
    r"|deepseek-(llm|coder|v2)|codellama|starcoder|smollm2|vicuna|yi-"
)
_UNTHINKING: Final = re.compile(r"qwen-?3.*(instruct|coder)")
NO_THOUGHT: Final = "this model does not think: it needs no --reasoning-parser, and with this one nothing changes"


def infer_family(model: str | Path) -> str | None:
    """Name the family of a model.

    Args:
        model: a model's name (`"Qwen/Qwen3-8B"`), or the path of a model directory.

    Returns:
        the family's name, None when it is unknown or the model does not reason.
    """
    return infer_with_reason(model).family


def infer_with_reason(model: str | Path) -> Inference:
    """Name the family of a model and say why.

    A directory is judged by its chat template; where that shows no marker by its vocabulary, then by its config's
    model type, then by the names it goes by. A name never outranks the template: a directory called DeepSeek-V3.2
    may hold the template of V3.1, which writes its calls differently.
    """
    path = Path(model)
    if not path.is_dir():
        return _by_name(str(model))
    notes: list[str] = []
    template, where = _chat_template(path, notes)
    config = _read_json(path / "config.json", notes)
    rendered = _by_rendering(template, where, config, path.name)
    found = rendered or _by_template(template, where) or _by_vocabulary(path) or _by_config(path, config)
    if found is not None:
        silent = template and found.family is not None and not _THINKS.search(template)
        return found._replace(notes=(*notes, NO_THOUGHT) if silent and not _marked_family(template) else tuple(notes))
    seen = where if template else "no chat template"
    if template and not _THINKS.search(template):
        why = f"{where}: the chat template reads and writes no reasoning"
        return Inference(None, why, needs_none=True, notes=tuple(notes))
    model_type = str(config.get("model_type", ""))
    why = f"{path}: model_type {model_type!r}, {seen} and the directory's name tell no family"
    return Inference(None, why, notes=tuple(notes))


def model_type(directory: Path) -> str:
    """Read the model type from a model directory's config; "" where there is none."""
    return str(_read_json(directory / "config.json", []).get("model_type", ""))


def _by_name(name: str) -> Inference:
    family, reason = infer_by_name(name)
    if family is not None:
        return Inference(family, reason, notes=(NO_THOUGHT,) if _UNTHINKING.search(name.lower()) else ())
    plain = _PLAIN_NAMES.search(name.lower())
    if plain:
        return Inference(None, f"the name {name!r} is that of a model without reasoning", needs_none=True)
    return Inference(None, reason)


def _marked_family(template: str) -> str | None:
    return next((family for family, marks in _TEMPLATE_MARKS if all(mark in template for mark in marks)), None)


def _by_rendering(template: str, where: str, config: Mapping[str, Any], name: str) -> Inference | None:
    """Ask what `auto` would: the template is rendered; None where that shows nothing, or jinja2 is not there."""
    try:
        choice = choose(template, None, config, name) if template else None
    except SetupError:
        return None
    if choice is None or choice.family is None or choice.derivation is None or choice.derivation.family is None:
        return None
    known = choice.family.name if choice.derivation.builtin else AUTO[0]
    return Inference(known, f"{where}: {choice.reason}")


def _by_template(template: str, where: str) -> Inference | None:
    for family, marks in _TEMPLATE_MARKS:
        if template and all(mark in template for mark in marks):
            return Inference(family, f"{where}: the chat template writes {' and '.join(map(repr, marks))}")
    return None


def _by_vocabulary(path: Path) -> Inference | None:
    for name in ("tokenizer_config.json", "tokenizer.json"):
        text = _read_text(path / name)
        for token, family in _VOCABULARY:
            if token in text or json.dumps(token)[1:-1] in text:
                return Inference(family, f"{name}: the vocabulary holds {token!r}")
    return None


def _by_config(path: Path, config: dict[str, Any]) -> Inference | None:
    model_type = str(config.get("model_type", ""))
    if model_type.lower() in _MODEL_TYPES:
        return Inference(_MODEL_TYPES[model_type.lower()], f"config.json: model_type is {model_type!r}")
    architectures = config.get("architectures")
    named = [model_type, str(config.get("_name_or_path", ""))]
    named += map(str, architectures if isinstance(architectures, list) else [])
    for name in [*named, path.resolve().name]:
        found, reason = infer_by_name(name)
        if found is not None:
            return Inference(found, reason)
    return None


def _chat_template(path: Path, notes: list[str]) -> tuple[str, str]:
    """Read a model directory's chat template and say where it stood."""
    for name in ("chat_template.jinja", "chat_template.json"):
        file = path / name
        if file.is_file():
            text = _read_text(file)
            found = text if name.endswith(".jinja") else _read_json(file, notes).get("chat_template", text)
            return _joined(found), name
    return _joined(_read_json(path / "tokenizer_config.json", notes).get("chat_template")), "tokenizer_config.json"


def _joined(template: Any) -> str:
    """Join named templates: whatever one of them writes, the model may write."""
    if isinstance(template, list):
        return "\n".join(str(t.get("template", "")) for t in template if isinstance(t, dict))
    return template if isinstance(template, str) else ""


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _read_json(path: Path, notes: list[str]) -> dict[str, Any]:
    text = _read_text(path)
    if text.startswith("\ufeff"):
        notes.append(f"{path} begins with a UTF-8 byte order mark, which engines refuse: save it without one")
        text = text[1:]
    try:
        value = json.loads(text or "{}")
    except ValueError as error:
        notes.append(f"{path} is no JSON ({error}): it was not looked at")
        return {}
    if not isinstance(value, dict):
        notes.append(f"{path} holds no JSON object: it was not looked at")
        return {}
    return value
