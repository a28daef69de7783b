"""Drive vLLM's own composed parsers with scripted outputs, the way its serving layer does."""

import inspect
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from tokenizers.decoders import DecodeStream
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.parser_manager import ParserManager
from vllm.tool_parsers import ToolParserManager

from tests.support.byte_tokenizer import byte_tokenizer
from vllm_reasoning_ext.conformance.script import CUT, script_ids
from vllm_reasoning_ext.demo.outputs import Output

WIDTHS = (1, 2, 3, 7, 1000)
"""Tokens a delta: one a step, speculative decoding, stream_interval, the whole output."""


class Reply(NamedTuple):
    """What a client got: texts joined, calls as (name, arguments)."""

    reasoning: str
    content: str
    calls: tuple[tuple[str, Any], ...] = ()


def expected(output: Output) -> Reply:
    """Give the reply an output must lead to when a tool parser is configured."""
    return Reply(output.reasoning, output.content, tuple(("weather", {"city": city}) for city in output.cities))


class Case:
    """An output with everything vLLM hands to a parser: tokenizer, prompt ids, output ids, request."""

    def __init__(self, output: Output, vocabulary: str | None = None, **fields: Any) -> None:
        self.output = output
        self.vocabulary = vocabulary or output.family
        self.tokenizer = byte_tokenizer(self.vocabulary)
        body = output.request() | fields
        self.request = ChatCompletionRequest(model="tiny", **body)
        kwargs = body.get("chat_template_kwargs", {})
        prompt = self.tokenizer.apply_chat_template(
            body["messages"],
            tools=body.get("tools"),
            tokenize=False,
            add_generation_prompt=body.get("add_generation_prompt", True),
            continue_final_message=body.get("continue_final_message", False),
            **kwargs,
        )
        self.template_kwargs = kwargs
        self.prompt = self.encode(prompt)
        self.ids = script_ids(output.script.partition(CUT)[0], self.encode)

    def encode(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False)

    def parser(self, name: str, tool: str | None = None) -> Any:
        """Compose and construct a parser, as the serving layer does for one choice."""
        cls = compose(name, tool, self.tokenizer)
        return cls(self.tokenizer, self.request.tools, chat_template_kwargs=self.template_kwargs)

    def deltas(self, width: int) -> Iterator[tuple[str, list[int]]]:
        """Detokenize incrementally, `width` tokens a delta; the text of the token that stops the output is dropped."""
        stream = DecodeStream(skip_special_tokens=False)
        shown = len(self.ids) if self.output.cut else len(self.ids) - 1
        for at in range(0, len(self.ids), width):
            pieces = [
                stream.step(self.tokenizer.backend_tokenizer, number) or "" for number in self.ids[at : at + width]
            ]
            yield "".join(pieces[: max(shown - at, 0)]), self.ids[at : at + width]

    def streamed(self, name: str, tool: str | None = None, width: int = 1, *, trail: bool = True) -> Reply:
        """Parse delta by delta; `trail` sends the end as an empty delta of its own, as vLLM may."""
        parser = self.parser(name, tool)
        deltas = list(self.deltas(width))
        if trail:
            deltas.append(("", []))
        messages = [
            parser.parse_delta(text, ids, self.request, self.prompt, finished=at == len(deltas) - 1)
            for at, (text, ids) in enumerate(deltas)
        ]
        return _joined([message for message in messages if message is not None])

    def full(self, name: str, tool: str | None = None) -> Reply:
        """Parse the whole output at once."""
        parser = self.parser(name, tool)
        if parser.is_reasoning_end(self.prompt) is None:
            raise AssertionError("is_reasoning_end answers with a bool")
        if hasattr(parser, "set_prompt_token_ids"):
            parser.set_prompt_token_ids(self.prompt)
        text = "".join(text for text, _ in self.deltas(1000))
        reasoning, content, calls = parser.parse(
            text, self.request, enable_auto_tools=tool is not None, model_output_token_ids=self.ids
        )
        found = tuple((call.name, _arguments(call.arguments)) for call in calls or ())
        return Reply(reasoning or "", content or "", found)


def needs_tool_parser(name: str | None) -> None:
    """Skip where this vLLM has no such tool parser, or only compiled (a tree of Python files then lacks it)."""
    if name is None:
        return
    try:
        found = ToolParserManager.get_tool_parser(name)
    except KeyError:
        pytest.skip(f"this vLLM has no tool parser {name}")
    if any("rust_tool_parser" in base.__module__ for base in found.__mro__):
        pytest.importorskip("vllm._rust_tool_parser", reason="this vLLM's tool parser is compiled, the tree is not")


def compose(name: str, tool: str | None, tokenizer: Any) -> Any:
    """Compose a Parser class; older vLLM has no `tokenizer` argument."""
    needs_tool_parser(tool)
    options: dict[str, Any] = {
        "reasoning_parser_name": name,
        "tool_parser_name": tool,
        "enable_auto_tools": tool is not None,
    }
    if "tokenizer" in inspect.signature(ParserManager.get_parser).parameters:
        options["tokenizer"] = tokenizer
    return ParserManager.get_parser(**options)


def _joined(messages: list[Any]) -> Reply:
    calls: dict[int, list[str]] = {}
    for message in messages:
        for call in message.tool_calls:
            name, arguments = calls.setdefault(call.index, ["", ""])
            function = call.function
            calls[call.index] = [name + (function.name or ""), arguments + (function.arguments or "")]
    return Reply(
        "".join(message.reasoning or "" for message in messages),
        "".join(message.content or "" for message in messages),
        tuple((name, _arguments(arguments)) for name, arguments in calls.values()),
    )


def _arguments(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
