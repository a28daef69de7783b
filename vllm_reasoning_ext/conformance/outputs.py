"""What a model of each family writes from each start state, and the split that must come of it (SPEC section 5).

A script is the model's output; between ‹ and › the characters are spelled with ordinary tokens (conformance/script.py).
What must come out is put together from the same thought, answer and call as the script, never read from a split.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from vllm_reasoning_ext.conformance.modes import CITY, FUNCTION
from vllm_reasoning_ext.conformance.script import QUOTED
from vllm_reasoning_ext.core.families import Family
from vllm_reasoning_ext.core.state import StartState

THOUGHT: Final = "Six times seven?\nForty-two – naïve 六 😀."
ANSWER: Final = "It is 42.\n\n- `a < b` & <b>bold</b>, 42 °\n"


class Output(NamedTuple):
    """One output from one start state.

    Attributes:
        name: what it shows; the column of the report.
        script: what the model writes.
        reasoning, content: what must come out, calls included in the content.
        ids: it quotes markers, so that only token ids can tell; it is tried with ids alone.
        recipients: of the tool slices.
        finish: the engine's finish reason.
    """

    name: str
    script: str
    reasoning: str = ""
    content: str = ""
    ids: bool = False
    recipients: tuple[str, ...] = ()
    finish: str = "stop"

    @property
    def text(self) -> str:
        """The characters the model writes."""
        return QUOTED.sub(r"\1", self.script)


NAMES: Final = (
    "thought, answer",
    "answer",
    "cut in the thought",
    "thought, call",
    "call",
    "call in the thought",
    "answer names markers",
    "quoted markers",
    "blanks",
    "closer alone",
    "opener repeated",
    "headerless switch",
    "preamble",
)
"""The outputs in the order of the report; a family has those its grammar knows."""


def outputs_of(family: Family, start: StartState, end: str) -> list[Output]:
    """List the outputs that a model of the family may write from a start state.

    Args:
        family: the family.
        start: where the prompt leaves off.
        end: the text that ends a turn ("" where it has none).

    Returns:
        the outputs, ordered as `NAMES`; none for a start that no output fits (inside a tool's header, ...).
    """
    make: dict[str, Callable[[Family, StartState, str], Iterator[Output]]] = {
        "marker": _marker,
        "harmony": _harmony,
        "atem": _atem,
    }
    found = {output.name: output for output in make[family.grammar](family, start, end)}
    return [found[name] for name in NAMES if name in found]


_DSML: Final = "｜DSML｜"
_M3: Final = "]<]minimax[>["
_ARGUMENTS: Final = f'{{"city": "{CITY}"}}'
_LISTED: Final = f'[{{"name": "{FUNCTION}", "arguments": {_ARGUMENTS}}}]'
_JSON: Final = f'<tool_call>\n{{"name": "{FUNCTION}", "arguments": {_ARGUMENTS}}}\n</tool_call>'
_ARG_KEYS: Final = f"<tool_call>{FUNCTION}\n<arg_key>city</arg_key>\n<arg_value>{CITY}</arg_value>\n</tool_call>"
_INVOKE: Final = f'<invoke name="{FUNCTION}">\n<parameter name="city">{CITY}</parameter>\n</invoke>'
_FUNCTION: Final = f"<function={FUNCTION}>\n<parameter=city>\n{CITY}\n</parameter>\n</function>"


def _v3_call(body: str) -> str:
    return f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{body}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"


def _hunyuan_call(suffix: str) -> str:
    return (
        f"<tool_calls{suffix}>\n<tool_call{suffix}>{FUNCTION}<tool_sep{suffix}>\n<arg_key{suffix}>city</arg_key{suffix}>\n"
        f"<arg_value{suffix}>{CITY}</arg_value{suffix}>\n</tool_call{suffix}>\n</tool_calls{suffix}>"
    )


CALLS: Final = {
    "deepseekv32": (
        f'<{_DSML}function_calls>\n<{_DSML}invoke name="{FUNCTION}">\n'
        f'<{_DSML}parameter name="city" string="true">{CITY}</{_DSML}parameter>\n'
        f"</{_DSML}invoke>\n</{_DSML}function_calls>"
    ),
    "qwen3": _JSON,
    "minimax": f"<minimax:tool_call>\n{_INVOKE}\n</minimax:tool_call>",
    "minimax_m3": (
        f'{_M3}<tool_call>\n{_M3}<invoke name="{FUNCTION}">{_M3}<city>{CITY}{_M3}</city>{_M3}</invoke>\n'
        f"{_M3}</tool_call>"
    ),
    "gemma4": f'<|tool_call>call:{FUNCTION}{{city:<|"|>{CITY}<|"|>}}<tool_call|>',
    "deepseek_r1": _v3_call(f"function<｜tool▁sep｜>{FUNCTION}\n```json\n{_ARGUMENTS}\n```"),
    "deepseek_v3": _v3_call(f"{FUNCTION}<｜tool▁sep｜>{_ARGUMENTS}"),
    "holo2": _v3_call(f"{FUNCTION}<｜tool▁sep｜>{_ARGUMENTS}"),
    "ling3": _ARG_KEYS,
    "poolside_v1": _ARG_KEYS,
    "spark25": _ARG_KEYS.replace("\n", ""),
    "kimi_k2": (
        f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{FUNCTION}:0<|tool_call_argument_begin|>"
        f"{_ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "nemotron_nano_v2": f"<TOOLCALL>{_LISTED}</TOOLCALL>",
    "step3": (
        f'<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{FUNCTION}">'
        f'<steptml:parameter name="city">{CITY}</steptml:parameter></steptml:invoke><｜tool_call_end｜>\n'
        "<｜tool_calls_end｜>"
    ),
    "seed_oss": f"<seed:tool_call>\n{_FUNCTION}\n</seed:tool_call>",
    "minicpm5": f'<function name="{FUNCTION}"><param name="city">{CITY}</param></function>',
    "interns1": f'<|action_start|> <|plugin|>\n{{"name": "{FUNCTION}", "parameters": {_ARGUMENTS}}}<|action_end|>',
    "dots": f"<dots_function_call>\n{_INVOKE}\n</dots_function_call>",
    "olmo3": f'<function_calls>\n{FUNCTION}(city="{CITY}")\n</function_calls>',
    "ernie45": _JSON,
    "reka": _JSON,
    "kat_v1": _JSON,
    "hunyuan_a13b": f"<tool_calls>{_LISTED}</tool_calls>",
    "apriel": f"<tool_calls>{_LISTED}</tool_calls>",
    "hunyuan": _hunyuan_call(""),
    "k2_horizon": (
        f"<ifm|tool_calls>\n<ifm|tool_call>{FUNCTION}\n<ifm|arg_key>city</ifm|arg_key>\n<ifm|arg_value>{CITY}"
        "</ifm|arg_value>\n</ifm|tool_call>\n</ifm|tool_calls>"
    ),
    "plamo3": (
        f"<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>{FUNCTION}"
        "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>"
        f"{_ARGUMENTS}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>"
        "<|plamo:end_tool_requests:plamo|>"
    ),
    "gigachat35": (
        f'<｜GCML｜tool_calls>\n<｜GCML｜invoke name="{FUNCTION}">\n<｜GCML｜parameter name="city" string="true">{CITY}'
        "</｜GCML｜parameter>\n</｜GCML｜invoke>\n</｜GCML｜tool_calls>"
    ),
    "iquest_q1": _ARG_KEYS.replace("tool_call>", "iquest_tool_call>"),
    "lfm2": f'<|tool_call_start|>[{FUNCTION}(city="{CITY}")]<|tool_call_end|>',
    "mistral": f"[TOOL_CALLS]{FUNCTION}[ARGS]{_ARGUMENTS}",
    "cohere": (
        f'<|START_ACTION|>[\n    {{"tool_call_id": "0", "tool_name": "{FUNCTION}", "parameters": {_ARGUMENTS}}}\n]'
        "<|END_ACTION|>"
    ),
    "kimi_k3": (
        f'<|open|>tools<|sep|><|open|>call tool="{FUNCTION}" index="1"<|sep|><|open|>argument key="city" type="string"'
        f"<|sep|>{CITY}<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"
    ),
    "inkling": f'<|content_invoke_tool_json|>{{"name": "{FUNCTION}", "args": {_ARGUMENTS}}}<|end_message|>',
    "apertus": f'<|tools_prefix|>[{{"{FUNCTION}": {_ARGUMENTS}}}]<|tools_suffix|>',
    "granite": f"<|tool_call|>{_LISTED}",
    "granite33": f"<|tool_call|>{_LISTED}",
    "solar": (
        f"<|tool_calls|><|tool_call:begin|>c1<|tool_call:name|>{FUNCTION}<|tool_call:args|>{_ARGUMENTS}<|tool_call:end|>"
        "<|calls|>"
    ),
}
"""One call in the syntax of each marker family that writes any."""


def _marker(family: Family, start: StartState, end: str) -> Iterator[Output]:
    opener, closer = family.opener, family.closer
    call = CALLS.get(family.name, "")
    # Control tokens are never shown, so a model that names them spells them from ordinary ones; only ids tell.
    only_ids = family.control_markers
    named = f"Write {opener} first, {closer} last."
    names = f"Write ‹{opener}› first, ‹{closer}› last." if only_ids else named
    answer = Output("answer", ANSWER + end, "", ANSWER)
    if start.kind == "content":
        yield answer
        yield Output("answer names markers", names + end, "", named, ids=only_ids)
        if call and not start.answer_begun:
            yield Output("call", call + end, "", call)
        if start.answer_begun:
            yield Output("blanks", f"\n\n  {ANSWER}{end}", "", f"\n\n  {ANSWER}")
        else:
            yield Output("blanks", f"\n\n  {ANSWER}{end}", "", f"  {ANSWER}")
            yield Output("closer alone", f"{closer}\n\n{ANSWER}{end}", "", ANSWER)
        return
    inside = start.kind == "reasoning"
    # Where the prompt ends in the bare opener, the model still writes the label.
    label = "" if start.body_begun or (start.header and family.label) else family.label
    begin = label if inside else opener + (family.label or "\n")
    yield Output("thought, answer", f"{begin}{THOUGHT}\n{closer}\n\n{ANSWER}{end}", THOUGHT, ANSWER)
    yield Output("cut in the thought", begin + THOUGHT, THOUGHT, "", finish="length")
    answered = f"{begin}{THOUGHT}\n{closer}\n\n{names}{end}"
    yield Output("answer names markers", answered, THOUGHT, named, ids=only_ids)
    quoted = f"It ends at ‹{closer}›, they say."
    plain = QUOTED.sub(r"\1", quoted)
    said = quoted if only_ids else plain
    yield Output("quoted markers", f"{begin}{quoted}\n{closer}\n\n{said}{end}", plain, plain, ids=True)
    if not start.body_begun:
        lines = "\n  indented\nline\n\n"
        yield Output("blanks", f"{begin}{lines}{closer}\n\n    code{end}", "  indented\nline", "    code")
    if call:
        yield Output("thought, call", f"{begin}{THOUGHT}\n{closer}\n\n{call}{end}", THOUGHT, call)
        yield Output("call in the thought", f"{begin}{THOUGHT}\n{call}{end}", THOUGHT, call)
    if not inside:
        yield answer
        if call:
            yield Output("call", call + end, "", call)
        yield Output("closer alone", f"{closer}\n\n{ANSWER}{end}", "", ANSWER)
    elif not start.body_begun:
        again = f"{opener}{family.label or chr(10)}"
        yield Output("opener repeated", f"{again}{THOUGHT}\n{closer}\n\n{ANSWER}{end}", THOUGHT, ANSWER)


def _harmony(family: Family, start: StartState, end: str) -> Iterator[Output]:
    turn = "<|start|>assistant"
    final = f"<|channel|>final<|message|>{ANSWER}<|return|>"
    tool = f'to=functions.{FUNCTION} <|constrain|>json<|message|>{{"city": "{CITY}"}}<|call|>'
    to = (f"functions.{FUNCTION}",)
    if start.kind == "content":
        if start.recipient is None:
            yield Output("answer", f"{ANSWER}<|return|>", "", ANSWER)
        return
    first = {"header": "", "undecided": turn}.get(start.kind, "")
    if start.kind == "reasoning":
        thought = THOUGHT
    elif start.kind == "header" and start.header.strip() != "assistant":
        return  # inside a header with a channel or a recipient already: what may follow depends on it
    else:
        thought = f"{first}<|channel|>analysis<|message|>{THOUGHT}"
        commentary = f"<|channel|>commentary {tool}"
        yield Output("answer", first + final, "", ANSWER)
        yield Output("call", first + commentary, "", commentary, recipients=to)
        yield Output(
            "preamble",
            f"{first}<|channel|>commentary<|message|>I look it up.<|end|>{turn}{final}",
            "",
            f"I look it up.\n{ANSWER}",
        )
    yield Output("thought, answer", f"{thought}<|end|>{turn}{final}", THOUGHT, ANSWER)
    yield Output("cut in the thought", thought, THOUGHT, "", finish="length")
    by_channel = f"<|channel|>commentary {tool}"
    yield Output("thought, call", f"{thought}<|end|>{turn}{by_channel}", THOUGHT, by_channel, recipients=to)
    by_role = f'{turn} to={to[0]}<|channel|>analysis <|constrain|>json<|message|>{{"city": "{CITY}"}}<|call|>'
    yield Output("call in the thought", f"{thought}<|end|>{by_role}", THOUGHT, by_role, recipients=to)
    plain = " They wrote <|end|> and <|channel|>final<|message|>."
    quoted = " They wrote ‹<|end|>› and ‹<|channel|>›final‹<|message|>›."
    yield Output("quoted markers", f"{thought}{quoted}<|end|>{turn}{final}", THOUGHT + plain, ANSWER, ids=True)


def _atem(family: Family, start: StartState, end: str) -> Iterator[Output]:
    turn = "<|start|>assistant"
    reply = f"{turn} to=user<|message|>{ANSWER}<|eot|>"
    payload = (
        f'<atem:function_calls>\n<atem:invoke name="{FUNCTION}">\n'
        f'<atem:parameter name="city">{CITY}</atem:parameter>\n</atem:invoke>\n</atem:function_calls>'
    )
    tool = f" to={FUNCTION}<|message|>{payload}<|eot|>"
    if start.kind == "content":
        if start.recipient is None:
            yield Output("answer", f"{ANSWER}<|eot|>", "", ANSWER)
        return
    first = {"header": "", "undecided": turn}.get(start.kind, "")
    if start.kind == "reasoning":
        thought = THOUGHT
    elif start.kind == "header" and start.header.strip() != "assistant":
        return  # the recipient is already written, in whole or in part: what may follow depends on it
    else:
        thought = f"{first} to=self<|message|>{THOUGHT}"
        yield Output("answer", f"{first} to=user<|message|>{ANSWER}<|eot|>", "", ANSWER)
        # A header that the prompt began has its `<|start|>` there: the tool parser needs one all the same.
        sliced = f"<|start|>{tool}" if not first else first + tool
        yield Output("call", first + tool, "", sliced, recipients=(FUNCTION,))
        yield Output("preamble", f"{first}<|message|>{ANSWER}<|eot|>", "", ANSWER)
    yield Output("thought, answer", f"{thought}<|eom|>{reply}", THOUGHT, ANSWER)
    yield Output("cut in the thought", thought, THOUGHT, "", finish="length")
    yield Output("thought, call", f"{thought}<|eom|>{turn}{tool}", THOUGHT, turn + tool, recipients=(FUNCTION,))
    yield Output("headerless switch", f"{thought}to=user<|message|>{ANSWER}<|eot|>", THOUGHT, ANSWER)
    plain = " They wrote <|eom|> and <|start|>."
    quoted = " They wrote ‹<|eom|>› and ‹<|start|>›."
    yield Output("quoted markers", f"{thought}{quoted}<|eom|>{reply}", THOUGHT + plain, ANSWER, ids=True)
