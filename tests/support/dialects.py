"""How each family calls tools, by the vLLM tool parser that reads it, and the outputs that come of it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext.demo.outputs import FUNCTION, Output, atem_call, json_call

Calls = Callable[[tuple[str, ...]], str]


class Dialect(NamedTuple):
    """A marker family with one call syntax.

    Attributes:
        tool: vLLM's name for the tool parser.
        family: our parser's name.
        vocabulary: key of the byte tokenizer.
        opener: what the model writes to open a block; "" where the prompt opened it.
        closer: what it writes to close it, blanks included.
        calls: writes the calls for these cities.
        end: the end-of-sequence token.
        on, off: chat_template_kwargs that ask for a block, and for none.
    """

    tool: str
    family: str
    vocabulary: str
    opener: str
    closer: str
    calls: Calls
    end: str
    on: Mapping[str, Any] = {}
    off: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        return f"{self.family}+{self.tool}"

    def outputs(self) -> Iterator[Output]:
        """Give the outputs of this dialect."""
        thought, one, two = "Look it up.", ("Oslo",), ("Oslo", "Rome")
        begun = self.opener + thought

        def output(
            name: str, script: str, reasoning: str, content: str, cities: tuple[str, ...] = (), **rest: Any
        ) -> Output:
            raw = content + self.calls(cities) if cities else None
            return Output(name, self.family, script + self.end, reasoning, content, cities, raw, **rest)

        on, off = {"kwargs": self.on}, {"kwargs": self.off}
        yield output("thought then answer", f"{begun}{self.closer}It is 42.", thought, "It is 42.", **on)
        yield output("answer only", "It is 42.", "", "It is 42.", **off)
        yield output("thought, then a call", f"{begun}{self.closer}{self.calls(one)}", thought, "", one, **on)
        yield output("two calls", f"{begun}{self.closer}{self.calls(two)}", thought, "", two, **on)
        yield output("a call, no thought", self.calls(one), "", "", one, **off)
        yield output("a call in an open block", f"{begun}{self.calls(one)}", thought, "", one, **on)
        yield output("two calls in an open block", f"{begun}{self.calls(two)}", thought, "", two, **on)
        yield output(
            "text, then a call", f"{begun}{self.closer}Looking.{self.calls(one)}", thought, "Looking.", one, **on
        )
        yield output("cut mid-thought", f"{begun[:-4]}✂{begun[-4:]}{self.closer}42.", thought[:-4], "", **on)


def _each(write: Callable[[str], str]) -> Calls:
    return lambda cities: "\n".join(write(city) for city in cities)


def _inside(first: str, write: Callable[[str], str], last: str) -> Calls:
    return lambda cities: f"{first}\n" + "\n".join(write(city) for city in cities) + f"\n{last}"


def _dsml(outer: str) -> Calls:
    bar = "｜DSML｜"

    def invoke(city: str) -> str:
        return (
            f'<{bar}invoke name="{FUNCTION}">\n'
            f'<{bar}parameter name="city" string="true">{city}</{bar}parameter>\n</{bar}invoke>'
        )

    return _inside(f"<{bar}{outer}>", invoke, f"</{bar}{outer}>")


def _qwen_xml(city: str) -> str:
    return f"<tool_call>\n<function={FUNCTION}>\n<parameter=city>\n{city}\n</parameter>\n</function>\n</tool_call>"


def _glm(city: str) -> str:
    return f"<tool_call>{FUNCTION}<arg_key>city</arg_key><arg_value>{city}</arg_value></tool_call>"


def _minimax(city: str) -> str:
    return f'<invoke name="{FUNCTION}">\n<parameter name="city">{city}</parameter>\n</invoke>'


def _m3(city: str) -> str:
    sep = "]<]minimax[>["
    return f'{sep}<invoke name="{FUNCTION}">{sep}<city>{city}{sep}</city>{sep}</invoke>'


def _gemma(city: str) -> str:
    return f'<|tool_call>call:{FUNCTION}{{city:<|"|>{city}<|"|>}}<tool_call|>'


_V4: Final = {"on": {"revision": "v4"}, "off": {"revision": "v4", "thinking": False}}
_GLM: Final = {"on": {"revision": "4.7"}, "off": {"revision": "4.7", "enable_thinking": False}}
_QWEN: Final = {"off": {"enable_thinking": False}}

DIALECTS: Final = (
    Dialect(
        "deepseek_v32", "deepseekv32", "deepseekv32", "", "</think>", _dsml("function_calls"),
        "<｜end▁of▁sentence｜>", {"thinking": True}, {"thinking": False},
    ),
    Dialect(
        "deepseek_v4", "deepseekv32", "deepseekv32/v4", "", "</think>", _dsml("tool_calls"),
        "<｜end▁of▁sentence｜>", **_V4,
    ),
    Dialect("qwen3_xml", "qwen3", "qwen3", "<think>\n", "\n</think>\n\n", _each(_qwen_xml), "<|im_end|>", **_QWEN),
    Dialect("hermes", "qwen3", "qwen3", "<think>\n", "\n</think>\n\n", _each(json_call), "<|im_end|>", **_QWEN),
    Dialect("glm47", "glm", "glm", "", "</think>", lambda cities: "".join(map(_glm, cities)), "<|endoftext|>", **_GLM),
    Dialect(
        "minimax_m2", "minimax", "minimax", "", "\n</think>\n\n",
        _inside("<minimax:tool_call>", _minimax, "</minimax:tool_call>"), "[e~[",
        {}, {"revision": "no-think"},
    ),
    Dialect(
        "minimax_m3", "minimax_m3", "minimax_m3", "<mm:think>", "</mm:think>",
        _inside("]<]minimax[>[<tool_call>", _m3, "]<]minimax[>[</tool_call>"), "[e~[",
        {}, {"thinking_mode": "disabled"},
    ),
    Dialect(
        "gemma4", "gemma4", "gemma4", "<|channel>thought\n", "<channel|>",
        lambda cities: "".join(map(_gemma, cities)), "<turn|>",
        {"enable_thinking": True}, {"enable_thinking": False},
    ),
)  # fmt: skip


def _slice(city: str, end: str = "<|eom|>") -> str:
    return f"<|start|>assistant to={FUNCTION}<|message|>{atem_call(city)}{end}"


_USER: Final = "<|start|>assistant to=user<|message|>"
_SELF: Final = "<|start|>assistant to=self<|message|>"

ATEM_OUTPUTS: Final = (
    Output(
        "a call first", "muse_glimmer", f" to={FUNCTION}<|message|>{atem_call('Oslo')}<|eot|>", "", "", ("Oslo",),
    ),
    Output(
        "two calls", "muse_glimmer", f" to=self<|message|>Both.<|eom|>{_slice('Oslo')}{_slice('Rome', '<|eot|>')}",
        "Both.", "", ("Oslo", "Rome"),
    ),
    Output(
        "a call from a thought never closed", "muse_glimmer",
        f" to=self<|message|>Look it up.to={FUNCTION}<|message|>{atem_call('Oslo')}<|eot|>",
        "Look it up.", "", ("Oslo",),
    ),
    Output(
        "thoughts, texts and calls interleaved", "muse_glimmer",
        f" to=self<|message|>a<|eom|>{_USER}b<|eom|>{_SELF}c<|eom|>{_slice('Oslo')}"
        f"{_SELF}d<|eom|>{_slice('Rome')}{_USER}e<|eot|>",
        "a\nc\nd", "be", ("Oslo", "Rome"),
    ),
)  # fmt: skip
"""Outputs of muse_glimmer beyond those of the demo."""

_HEAD: Final = f"<|start|> to={FUNCTION}<|message|>"
_QUOTING: Final = atem_call("<|eom|>")

UNREADABLE: Final = (
    Output(
        "quoted markers in the argument", "muse_glimmer", f" to={FUNCTION}<|message|>{atem_call('‹<|eom|>›')}<|eot|>",
        raw=f"{_HEAD}{_QUOTING}<|eom|>", cities=(),
    ),
    Output(
        "no call in it", "muse_glimmer", f" to={FUNCTION}<|message|>junk<|eom|>{_USER}Sorry.<|eot|>",
        raw=f"{_HEAD}junk<|eom|>Sorry.",
    ),
    Output(
        "cut in the call", "muse_glimmer", f" to={FUNCTION}<|message|><atem:function_calls>\n<atem:inv✂oke",
        raw=f"{_HEAD}<atem:function_calls>\n<atem:inv<|eom|>",
    ),
    Output(
        "junk, text, then a call", "muse_glimmer",
        f" to={FUNCTION}<|message|>junk<|eom|>{_USER}So:<|eom|>{_slice('Oslo', '<|eot|>')}",
        raw=f"{_HEAD}junk<|eom|>So:", cities=("Oslo",),
    ),
)  # fmt: skip
"""Tool slices that vLLM's text-only tool parser finds no call in (`raw`: what the client gets as content)."""
