"""Drive SGLang's own ReasoningParser through our hooks, the way its serving code does."""

from types import SimpleNamespace
from typing import Any, Final

from sglang.srt.parser.reasoning_parser import ReasoningParser

from tests.engines.replay import output_ids, pieces, prompt_ids, tokenizer_of
from vllm_reasoning_ext.demo.outputs import TOOLS, Output
from vllm_reasoning_ext.engines.sglang import hooks as sglang_hooks
from vllm_reasoning_ext.engines.sglang import output as sglang_output

TOOL_PARSERS: Final = {
    "muse_glimmer": "muse",
    "gpt_oss": "gpt-oss",
    "qwen3": "qwen25",
    "minimax": "minimax-m2",
    "minimax_m3": "minimax-m3",
    "gemma4": "gemma4",
    "deepseekv32": "deepseekv32",
}
"""SGLang's own tool parser of a family."""


class Serving(SimpleNamespace):
    """What the hooks ask of SGLang's serving object."""

    def __init__(self, family: str, tool_parser: str | None = None) -> None:
        super().__init__(
            reasoning_parser=family,
            tool_call_parser=tool_parser,
            tokenizer_manager=SimpleNamespace(tokenizer=tokenizer_of(family)),
        )


def parser_for(output: Output, **options: Any) -> ReasoningParser:
    """Build the parser of a request, through the hooks that bind its prompt."""
    active = options.get("tool_call_parser_active")
    serving = Serving(output.family, TOOL_PARSERS[output.family] if active else None)
    request = options.pop("request", None) or SimpleNamespace(chat_template_kwargs=None)
    request.tools, request.tool_choice = TOOLS if output.cities else None, "auto"
    generate = SimpleNamespace(text=None, input_ids=prompt_ids(output), require_reasoning=None)
    sglang_hooks.after_convert((generate, request), serving)
    tokenizer = serving.tokenizer_manager.tokenizer
    parser = ReasoningParser(output.family, request=request, tokenizer=tokenizer, **options)
    sglang_hooks.after_parser_init(None, parser, request=request)
    assert parser.detector._facts is not None
    return parser


def set_output(ids: list[int], reason: str | None = None) -> None:
    """Show the detector what the hooks would: the ids so far."""
    seen = sglang_output.current() or sglang_output.Output()
    seen.take({"output_ids": ids, "meta_info": {"finish_reason": {"type": reason} if reason else None}})
    sglang_output.set_current(seen)


def whole(parser: ReasoningParser, output: Output) -> tuple[str, str]:
    text = "".join(text for text, _ in pieces(output, 1))
    set_output(output_ids(output), "length" if output.cut else "stop")
    reasoning, content = parser.parse_non_stream(text)
    return reasoning or "", content or ""


def streamed(parser: ReasoningParser, output: Output, width: int) -> list[tuple[str, str]]:
    got = []
    for text, ids in pieces(output, width):
        set_output(ids)
        got.append(parser.parse_stream_chunk(text))
    set_output(output_ids(output), "length" if output.cut else "stop")
    got.append(parser.parse_stream_end())
    return [(reasoning or "", content or "") for reasoning, content in got]


def joined(got: list[tuple[str, str]]) -> tuple[str, str]:
    return "".join(reasoning for reasoning, _ in got), "".join(content for _, content in got)
