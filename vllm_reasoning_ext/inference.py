"""Which family does a model belong to? By its name, or by what stands in its directory."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from vllm_reasoning_ext.core.families import infer_by_name


class Inference(NamedTuple):
    """A family, or None, and why."""

    family: str | None
    reason: str


_TEMPLATE_MARKS = (
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

_MODEL_TYPES = {
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


def infer_family(model: str | Path) -> str | None:
    """Name the family of a model.

    Args:
        model: a model's name (`"Qwen/Qwen3-8B"`), or the path of a model directory.

    Returns:
        the family's name, None when it is unknown.
    """
    return infer_with_reason(model).family


def infer_with_reason(model: str | Path) -> Inference:
    """Name the family of a model and say why (SPEC section 5).

    A directory is judged by its config's model type, then by its chat template, then by the names it goes by.
    The vocabulary alone never decides: MiniMax-M3's still holds `<think>`.
    """
    path = Path(model)
    if not path.is_dir():
        return Inference(*infer_by_name(str(model)))
    config = _read_json(path / "config.json")
    model_type = str(config.get("model_type", ""))
    if model_type.lower() in _MODEL_TYPES:
        return Inference(_MODEL_TYPES[model_type.lower()], f"config.json: model_type is {model_type!r}")
    template, where = _chat_template(path)
    for family, marks in _TEMPLATE_MARKS:
        if template and all(mark in template for mark in marks):
            return Inference(family, f"{where}: the chat template writes {' and '.join(map(repr, marks))}")
    named = [model_type, str(config.get("_name_or_path", "")), *map(str, config.get("architectures") or [])]
    for name in [*named, path.resolve().name]:
        found, reason = infer_by_name(name)
        if found is not None:
            return Inference(found, reason)
    seen = where if template else "no chat template"
    return Inference(None, f"{path}: model_type {model_type!r}, {seen} and the directory's name tell no family")


def _chat_template(path: Path) -> tuple[str, str]:
    """Read a model directory's chat template and say where it stood."""
    for name in ("chat_template.jinja", "chat_template.json"):
        file = path / name
        if file.is_file():
            text = _read_text(file)
            return (text if name.endswith(".jinja") else str(_read_json(file).get("chat_template", text))), name
    template = _read_json(path / "tokenizer_config.json").get("chat_template", "")
    if isinstance(template, list):
        template = "\n".join(str(t.get("template", "")) for t in template if isinstance(t, dict))
    return str(template or ""), "tokenizer_config.json"


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(_read_text(path) or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
