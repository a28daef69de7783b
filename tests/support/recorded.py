"""The recorded endings of the real templates, beside what our templates render for the same requests.

The recording, `../shared/cases/prompt_tails.jsonl`, lies beside the repository where the project is developed
and is absent elsewhere.
"""

import ast
import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.conversations import after_last_opener, render

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "cases" / "prompt_tails.jsonl"

REVISIONS = {
    "Qwen3 (2504 hybrid)": "2504", "Qwen3-Thinking-2507": "2507-thinking",
    "Qwen3-Instruct-2507": "2507-instruct",
    "Qwen3.5": "3.5", "Qwen3.6": "3.6", "Qwen3.8": "3.8", "Qwen3.8-max": "3.8-max",
    "GLM-4.5": "4.5", "GLM-4.6": "4.6", "GLM-4.7": "4.7", "GLM-5": "5", "GLM-5.1": "5.1", "GLM-5.2": "5.2",
    "GLM-5.3": "5.3", "MiniMax-M2": "m2", "MiniMax-M2.5": "m2", "MiniMax-M2.7": "m2", "MiniMax-M3": None,
    "Gemma4-31B": "31b", "Gemma4-E2B": "e2b", "gpt-oss": None, "Muse-Glimmer-30B": None,
    "V3.2": "v3.2", "V4": "v4", "V4.1": "v4.1", "M2.x community no-think template": "no-think",
    "Gemma4-31B early template": "early", "V3.2-Exp/V3.1 jinja (vLLM example, xinference)": "v3.1",
    "Muse-Glimmer-30B llama.cpp continuation": None,
}  # fmt: skip
"""The recorded real revisions and the value of our templates' `revision` that stands for each."""

MODES: dict[str, tuple[dict[str, Any], str | None]] = {
    "default": ({}, None),
    "recipe default": ({}, None),
    "recipe thinking=enabled": ({"thinking": True}, None),
    "recipe thinking=disabled": ({"thinking": False}, None),
    "thinking=any": ({}, None),
    "empty think": ({}, "user_last"),
    "reasoning prefill": ({}, "open:thought"),
    "forced analysis": ({}, "cfm-reasoning:empty"),
}
PREFIXES = {
    "prefix:content": "cfm:content",
    "prefix:reasoning+content": "cfm:reasoning+content",
    "prefix:reasoning_only": "open:thought",
}


def _recorded_mode(mode: str) -> tuple[dict[str, Any], str]:
    """Read a recorded mode (`enable_thinking=False;user_last`) as template variables and a conversation."""
    switches, _, conversation = mode.partition(";")
    kwargs, instead = MODES.get(switches, ({}, None))
    if switches not in MODES:
        pairs = (pair.split("=") for pair in switches.removeprefix("recipe ").split(","))
        kwargs = {k: ast.literal_eval(v) if v in ("True", "False") else v for k, v in pairs}
    return kwargs, instead or PREFIXES.get(conversation, conversation)


class Recorded(NamedTuple):
    """One recorded ending of a real template and what our template renders for the same request."""

    id: str
    mode: str
    family: str
    tail: str
    state: str
    rendered: str

    @property
    def ending(self) -> str:
        """The real template's text after the last turn opener."""
        return after_last_opener(self.tail, self.family)


def recorded() -> list[Recorded]:
    """Render every recorded row; a row of an unknown revision or conversation raises KeyError."""
    found = []
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        kwargs, conversation = _recorded_mode(row["mode"])
        if revision := REVISIONS[row["revision"]]:
            kwargs = {"revision": revision, **kwargs}
        rendered = render(row["family"], conversation, kwargs)
        if row["prompt_tail"].endswith(">Partial"):
            # DeepSeek's own renderer was given a shorter answer to continue.
            rendered = rendered.removesuffix(" ans")
        found.append(Recorded(row["id"], row["mode"], row["family"], row["prompt_tail"], row["state"], rendered))
    return found
