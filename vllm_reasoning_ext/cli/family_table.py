"""Which models each family serves and what its record rests on; the page `docs/families.md` is made from it.

`vllm-reasoning-ext families --markdown > docs/families.md` writes the page anew; a test compares them.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from vllm_reasoning_ext.core.families import FAMILIES, LEFT_OUT
from vllm_reasoning_ext.core.record import Family
from vllm_reasoning_ext.core.start import start_state
from vllm_reasoning_ext.derive.tool_parsers import tool_parsers_by_model

OPENED: Final = "opens the thought"
CLOSED: Final = "closes it when thinking is off"
LEFT: Final = "leaves it to the model"
_OPENED_OR_CLOSED: Final = f"{OPENED}, or {CLOSED}"
_LEFT_OR_CLOSED: Final = f"{LEFT}, or {CLOSED}"
_LEFT_OR_OPENED: Final = f"{LEFT}, or {OPENED}"
_UNKNOWN: Final = "unknown: no template was seen"
_NOT_SAID: Final = "not established"


class Serves(NamedTuple):
    """What is known of a family's models.

    Attributes:
        models: their names.
        prompt: what their prompts end in.
        unverified: where the record was read, for a family none of whose templates could be rendered; "" where one was.
    """

    models: str
    prompt: str
    unverified: str = ""


_VLLM: Final = "vLLM `reasoning/{}_reasoning_parser.py`"
_SGLANG: Final = "SGLang `parser/reasoning_parser.py`, `{}`"

SERVES: Final = {
    "deepseekv32": Serves("DeepSeek V3.2, V4, V4.1", _OPENED_OR_CLOSED),
    "qwen3": Serves(
        "Qwen3 to Qwen3.8, QwQ, GLM, R1 distills: any plain <think> model", f"{_OPENED_OR_CLOSED}, or {LEFT}"
    ),
    "minimax": Serves("MiniMax M2, M2.5, M2.7", OPENED),
    "minimax_m3": Serves("MiniMax M3", f"{_OPENED_OR_CLOSED}, or {LEFT}"),
    "gemma4": Serves("Gemma 4", _LEFT_OR_CLOSED),
    "gpt_oss": Serves("gpt-oss (harmony)", "begins a message's header"),
    "muse_glimmer": Serves("Muse Glimmer (ATEM)", "begins a message's header"),
    "deepseek_r1": Serves("DeepSeek R1, its distills, Skywork-OR1, QwenLong", _LEFT_OR_OPENED),
    "deepseek_v3": Serves("DeepSeek V3.1, V3.2-Exp", _OPENED_OR_CLOSED),
    "holo2": Serves("Holo2", _OPENED_OR_CLOSED, _VLLM.format("deepseek_v3")),
    "ling3": Serves("Ling 3.0", _OPENED_OR_CLOSED),
    "poolside_v1": Serves("Laguna S, XS", _OPENED_OR_CLOSED),
    "kimi_k2": Serves("Kimi K2 Thinking, K2.5, K2.6", f"{_OPENED_OR_CLOSED}, or {LEFT}"),
    "nemotron_nano_v2": Serves("Nemotron Nano v2", _OPENED_OR_CLOSED),
    "step3": Serves("Step 3", _UNKNOWN, _VLLM.format("step3")),
    "seed_oss": Serves("Seed-OSS", _LEFT_OR_CLOSED),
    "minicpm5": Serves("MiniCPM5", f"{_OPENED_OR_CLOSED}, or {LEFT}"),
    "interns1": Serves("Intern-S1", _UNKNOWN, _SGLANG.format("interns1")),
    "dots": Serves("dots", _UNKNOWN, _SGLANG.format("dots")),
    "olmo3": Serves("OLMo 3 Think", _UNKNOWN, _VLLM.format("olmo3")),
    "ernie45": Serves("ERNIE 4.5 Thinking", _UNKNOWN, _VLLM.format("ernie45")),
    "hunyuan_a13b": Serves("Hunyuan A13B", _UNKNOWN, _VLLM.format("hunyuan_a13b")),
    "hunyuan": Serves("Hunyuan 3, Hunyuan 4 (read only)", _OPENED_OR_CLOSED),
    "k2_horizon": Serves("K2 Horizon", OPENED, _VLLM.format("k2_horizon")),
    "plamo3": Serves("PLaMo 3", _UNKNOWN, _VLLM.format("plamo3_engine")),
    "gigachat35": Serves("GigaChat 3.5", _UNKNOWN, _SGLANG.format("gigachat35")),
    "iquest_q1": Serves("IQuest Q1", _UNKNOWN, _SGLANG.format("iquest_q1")),
    "kimi": Serves("Kimi K1.5, Kimi-VL Thinking", _UNKNOWN, _SGLANG.format("kimi")),
    "reka": Serves("Reka Edge", _LEFT_OR_OPENED),
    "spark25": Serves("Spark 2.5", _OPENED_OR_CLOSED),
    "lfm2": Serves("LFM2.5 Thinking", LEFT),
    "rwkv": Serves("RWKV 7", _NOT_SAID),
    "kat_v1": Serves("KAT-V1", "opens the judge's block"),
    "mistral": Serves("Magistral, Ministral Reasoning, Small 4, Medium 3.5", LEFT),
    "cohere": Serves("Command R7B, Command A, Command A Plus", f"{_OPENED_OR_CLOSED}, or {LEFT}"),
    "kimi_k3": Serves("Kimi K3", "opens the thought, or the answer when thinking is off"),
    "inkling": Serves("Inkling", "begins a message", _VLLM.format("inkling")),
    "apertus": Serves("Apertus 2509", LEFT),
    "granite": Serves("Granite 3.2", LEFT, _VLLM.format("granite")),
    "granite33": Serves("Granite 3.3", LEFT),
    "apriel": Serves("Apriel 1.5, 1.6", _LEFT_OR_OPENED),
    "solar": Serves("Solar Open", "begins a message"),
}
"""Family -> its models; a family registered at run time is not here."""

READ: Final = {
    "nanbeige": _SGLANG.format("nanbeige"),
    "mimo": _VLLM.format("mimo_engine"),
    "minicpmv": _VLLM.format("minicpmv"),
    "granite_thinking_parser": _VLLM.format("granite_thinking_engine"),
    "step5": "vLLM 0.33 `step5`",
    "beam": _SGLANG.format("beam"),
    "hy_v4": _VLLM.format("hy_v4"),
}
"""Engines' names whose models' templates were not seen, though others of the family were -> where they were read."""

_HEAD: Final = """\
<!-- Made by `vllm-reasoning-ext families --markdown > docs/families.md`; a test compares them. Do not edit. -->

# Families

One flag is right for every row: `--reasoning-parser auto`. To name a family yourself, use its name with `_ext`
(`--reasoning-parser kimi_k2_ext`): in the engines that name is always this package's parser. The plain names of the
first seven rows replace an engine's parser of the same name; any other plain name stays the engine's where the engine
has it. Library, middleware, proxy and commands know all names, the engines' own included.

- **Markers**: opener and closer of the thought, the answer's markers, the tool marker. In a channel family they frame
  messages.
- **Prompt**: what the chat template ends the prompt in. The start state is read from it: *opened* starts in reasoning,
  *closed* in content, *left to the model* undecided. **No prompt** is the start where no prompt is known, as in the
  library.
- **Tool parsers**: what to give as `--tool-call-parser`, the best first; where models of a family write calls in
  several forms, what tells them stands before it. "none": the engine has no parser for these calls, so they stay in the
  content.
- **Record from**: *template* means that a real chat template of the family was rendered and fits its record;
  *unverified* that no template was at hand and the record was read in the engine's parser that is named there. If such
  a model is split wrongly, please report its template.
"""

_STEPS: Final = """\
## My model is not in the table

1. Serve it with `--reasoning-parser auto`. The record is read from the model's own chat template; one INFO line says
   what was chosen, why, and which `--tool-call-parser` fits. If it says that the template shows no reasoning, go on.
2. See what the template shows, and what it does not: `vllm-reasoning-ext derive MODEL_DIR` (or the template's file).
   Each field of the record stands there with the rendering that proves it, and the template is judged with it.
3. Keep the record under a name of your own: `vllm-reasoning-ext derive MODEL_DIR --name NAME --json > record.json`. If
   a field is wrong, correct it there, and judge the template again:
   `vllm-reasoning-ext conform --family NAME --template MODEL_DIR --family-file record.json`. Every command that takes a
   family takes `--family-file`.
4. Serve with it: `VLLM_REASONING_EXT_FAMILY_FILE=record.json vllm serve MODEL_DIR --reasoning-parser NAME`.
5. In Python, `register_family(Family(...))` adds the same record at run time;
   `vllm-reasoning-ext derive MODEL_DIR --python` prints it so.
"""


def markdown() -> str:
    """Write the page."""
    head = "| Name | Models | Markers | Prompt | No prompt | vLLM tool parser | SGLang tool parser | Record from |"
    lines = [_HEAD, head, "|" + " --- |" * 8, *map(_row, _built_in()), "", *_names(), _STEPS]
    return "\n".join(lines)


def _built_in() -> Iterator[Family]:
    return (FAMILIES[name] for name in SERVES)


def _row(record: Family) -> str:
    serves = SERVES[record.name]
    told = tool_parsers_by_model(record)
    cells = (
        ", ".join(map(_code, (record.name, *record.aliases))),
        serves.models.replace("<", "\\<"),
        _markers(record),
        serves.prompt,
        start_state(None, record).kind,
        _parsers((what, parsers.vllm) for what, parsers in told),
        _parsers((what, parsers.sglang) for what, parsers in told),
        f"*unverified*: {serves.unverified}" if serves.unverified else "template",
    )
    return f"| {' | '.join(cells)} |"


def _parsers(told: Iterable[tuple[str, tuple[str, ...]]]) -> str:
    cells = [(what, ", ".join(map(_code, names)) or "none") for what, names in told]
    return "; ".join(f"{what}: {names}" if what else names for what, names in cells)


def _markers(record: Family) -> str:
    if record.channels:
        return " ".join(map(_code, record.required))
    thoughts = [" … ".join(map(_code, pair)) for pair in record.pairs]
    answers = [" … ".join(_code(text) for text in pair if text) for pair in record.answer]
    calls = [_code(tool.marker) for tool in record.tools]
    parts = [", ".join(thoughts)]
    parts += [f"answer {', '.join(answers)}"] if answers else []
    parts += [f"calls {', '.join(calls)}"] if calls else []
    return "; ".join(parts)


def _code(text: str) -> str:
    # A pipe ends a cell even in code, unless it is escaped.
    return "`" + text.replace("|", "\\|") + "`"


def _names() -> Iterator[str]:
    yield "## Names of the engines' own parsers"
    yield ""
    yield "Library and commands take these too; in an engine they stay the engine's own parsers."
    yield ""
    yield "| Engine's name | Family here | Record from |"
    yield "| --- | --- | --- |"
    for record in _built_in():
        for name in record.engine_names:
            read = READ.get(name) or SERVES[record.name].unverified
            yield f"| {_code(name)} | {_code(record.name)} | {f'*unverified*: {read}' if read else 'template'} |"
    yield ""
    yield "No family answers to these:"
    yield ""
    yield "| Engine's name | Why |"
    yield "| --- | --- |"
    for name, why in LEFT_OUT.items():
        yield f"| {_code(name)} | {why.replace('<', chr(92) + '<')} |"
    yield ""
