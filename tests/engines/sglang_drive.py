"""Drive SGLang's own ReasoningParser through our hooks, the way its serving code does."""

import json
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from sglang.srt.entrypoints.openai.protocol import Function, Tool
from sglang.srt.function_call.function_call_parser import FunctionCallParser
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


def name_of(family: str) -> str:
    """Give the parser name that is this package's for certain: the plain one may be SGLang's own."""
    return family if family in TOOL_PARSERS else f"{family}_ext"


class Serving(SimpleNamespace):
    """What the hooks ask of SGLang's serving object."""

    def __init__(self, family: str) -> None:
        super().__init__(
            reasoning_parser=name_of(family),
            tokenizer_manager=SimpleNamespace(tokenizer=tokenizer_of(family)),
        )


def parser_for(output: Output, **options: Any) -> ReasoningParser:
    """Build the parser of a request, through the hooks that bind its prompt; `name` where it is not the family's."""
    name = options.pop("name", name_of(output.family))
    serving = Serving(output.family)
    serving.reasoning_parser = name
    request = options.pop("request", None) or SimpleNamespace(chat_template_kwargs=None)
    offers = output.cities or options.get("tool_call_parser_active")
    request.tools, request.tool_choice = TOOLS if offers else None, "auto"
    generate = SimpleNamespace(text=None, input_ids=prompt_ids(output), require_reasoning=None)
    sglang_hooks.after_convert((generate, request), serving)
    tokenizer = serving.tokenizer_manager.tokenizer
    parser = ReasoningParser(name, request=request, tokenizer=tokenizer, **options)
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


# With SGLang's own tool parsers, as its chat, Responses and Anthropic code calls them.


class Reply(NamedTuple):
    """What a client gets: reasoning, answer, and each call's name and arguments as they were sent."""

    reasoning: str
    content: str
    calls: list[tuple[str, str]]

    @property
    def arguments(self) -> list[Any]:
        return [json.loads(arguments) for _, arguments in self.calls]


class ToolParser(FunctionCallParser):
    """SGLang's tool parser with the hooks that a server has."""

    def __init__(self, name: str, tools: list[dict[str, Any]] = TOOLS) -> None:
        super().__init__([Tool(type="function", function=Function(**tool["function"])) for tool in tools], name)

    def has_tool_call(self, text: str) -> Any:
        return sglang_hooks.around_has_call(FunctionCallParser.has_tool_call, self, text)

    def parse_non_stream(self, full_text: str, **options: Any) -> Any:
        return sglang_hooks.around_whole(FunctionCallParser.parse_non_stream, self, full_text, **options)

    def parse_stream_chunk(self, chunk_text: str) -> Any:
        return sglang_hooks.around_chunk(FunctionCallParser.parse_stream_chunk, self, chunk_text)

    def parse_stream_end(self) -> Any:
        return sglang_hooks.around_end(FunctionCallParser.parse_stream_end, self)


def whole_reply(output: Output, tool_parser: str) -> Reply:
    """Give the whole reply of a server."""
    sglang_output.set_current(None)
    reasoning, content = whole(parser_for(output, stream_reasoning=False, tool_call_parser_active=True), output)
    tools = ToolParser(tool_parser)
    calls: list[Any] = []
    if tools.has_tool_call(content):
        content, calls = tools.parse_non_stream(content)
    return Reply(reasoning, content, [(call.name, call.parameters) for call in calls])


def streamed_reply(output: Output, tool_parser: str, width: int) -> Reply:
    """Give the joined stream of a server that sends `width` tokens at a time."""
    sglang_output.set_current(None)
    parser = parser_for(output, tool_call_parser_active=True)
    tools = ToolParser(tool_parser)
    *deltas, (last, ids) = pieces(output, width)
    reasoning = content = ""
    items = []
    for text, known in deltas:
        set_output(known)
        thought, delta = parser.parse_stream_chunk(text)
        answer, calls = tools.parse_stream_chunk(delta or "")
        reasoning, content = reasoning + (thought or ""), content + (answer or "")
        items += calls
    set_output(ids, "length" if output.cut else "stop")
    halves = [parser.parse_stream_chunk(last), parser.parse_stream_end()]
    reasoning += "".join(thought or "" for thought, _ in halves)
    ended = [tools.parse_stream_chunk("".join(delta or "" for _, delta in halves)), tools.parse_stream_end()]
    content += "".join(answer or "" for answer, _ in ended)
    items += [item for _, calls in ended for item in calls]
    return Reply(reasoning, content, _joined_calls(items))


def _joined_calls(items: list[Any]) -> list[tuple[str, str]]:
    calls: dict[int, tuple[str, str]] = {}
    for item in items:
        name, arguments = calls.get(item.tool_index, ("", ""))
        assert not (name and item.name), "one index for two calls"
        calls[item.tool_index] = (name or item.name or "", arguments + (item.parameters or ""))
    assert list(calls) == list(range(len(calls))), "calls are numbered in their order"
    return list(calls.values())
