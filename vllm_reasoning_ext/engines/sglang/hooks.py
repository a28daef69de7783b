"""Hooks into SGLang's serving code: prompt, token ids and special tokens reach the detectors, events the tool parsers.

Each hook does one thing, only for this package's parser names, and never raises: without a hook (another SGLang, a
moved method) the detectors fall back to the text and to SGLang's own guess of the start state.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from contextvars import ContextVar
from functools import partial
from pkgutil import resolve_name
from typing import Any, Final

from vllm_reasoning_ext.core.count import ReasoningTokenCounter
from vllm_reasoning_ext.core.families import Family
from vllm_reasoning_ext.core.start import start_state
from vllm_reasoning_ext.engines.logs import sglang_log as log
from vllm_reasoning_ext.engines.sglang import handoff as sglang_handoff
from vllm_reasoning_ext.engines.sglang import output as sglang_output
from vllm_reasoning_ext.engines.sglang.auto import take_auto
from vllm_reasoning_ext.engines.sglang.calls import Found, PassBy, Reader, WholeReply, reader_for, steps
from vllm_reasoning_ext.engines.sglang.detector import (
    PromptFacts,
    SglangDetector,
    family_of,
    needs_special_tokens,
)
from vllm_reasoning_ext.engines.sglang.forced import is_forced, with_thought
from vllm_reasoning_ext.engines.sglang.output import Output
from vllm_reasoning_ext.engines.vocabulary import vocabulary
from vllm_reasoning_ext.errors import SetupError

FACTS: Final = "_vllm_reasoning_ext"
"""The private attribute that carries an API request's PromptFacts, and an engine request's Counting."""

FORCED: Final = "_vllm_reasoning_ext_forced"
"""The private attribute of a request, and of its processed messages, whose grammar binds from the first token."""

_OPENAI: Final = "sglang.srt.entrypoints.openai."
_CHAT: Final = _OPENAI + "serving_chat.OpenAIServingChat."
_TOOLS: Final = "sglang.srt.function_call.function_call_parser.FunctionCallParser."

Counting = Callable[[], ReasoningTokenCounter]
"""Makes the counter of one choice; there is one for each request that this package splits."""

_counting: ContextVar[Counting | None] = ContextVar("vllm_reasoning_ext_sglang_counting", default=None)


def quietly(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Keep a hook's fault out of the request: it is logged, and SGLang goes on as without the hook."""

    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return hook(*args, **kwargs)
        except Exception:
            log.exception("vllm-reasoning-ext: the hook %s failed", hook.__name__)
            return None

    return guarded


# `auto`.


def around_resolve(original: Callable[..., Any], server_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Answer `--reasoning-parser auto` before SGLang does (AROUND `resolve_auto_parsers`).

    Raises:
        SetupError: no answer is to be had; then the server must not start.
    """
    try:
        take_auto(server_args)
    except SetupError:
        raise
    except Exception:
        log.exception("vllm-reasoning-ext: --reasoning-parser auto is left to SGLang")
    return original(server_args, *args, **kwargs)


def _family(serving: Any) -> Family | None:
    """Tell which family splits the replies of a serving object; None: a parser of SGLang's own, or none."""
    return family_of(serving.reasoning_parser, serving.tokenizer_manager.tokenizer)


# The prompt.


@quietly
def after_process_messages(result: Any, serving: Any, request: Any, *_: Any, **__: Any) -> None:
    """Let a forced call of gpt-oss be one (AFTER `_process_messages`)."""
    family = _family(serving)
    if family is None or family.name != "gpt_oss" or not is_forced(request.tool_choice):
        return
    constraint = with_thought(result.tool_call_constraint)
    if constraint is not None:
        result.tool_call_constraint = constraint
        # Responses processes a chat request of its own making, and only this result comes of it.
        for marked in (result, request):
            setattr(marked, FORCED, True)


@quietly
def after_convert(result: Any, serving: Any, *_: Any, **__: Any) -> None:
    """Read a chat or Anthropic request's prompt (AFTER `_convert_to_internal_request`)."""
    family = _family(serving)
    if family is None:
        return
    generate, request = result
    prompt = generate.text if isinstance(generate.text, str) else generate.input_ids
    needed = _bind(serving, family, request, prompt, generate.require_reasoning)
    generate.require_reasoning = needed and not getattr(request, FORCED, False)
    # Chat converts in a thread, whose context variables are lost; the request for the engine is passed on.
    setattr(generate, FACTS, _counting.get())


async def around_make_request(
    original: Callable[..., Any], serving: Any, request: Any, *args: Any, **kwargs: Any
) -> Any:
    """Read a Responses request's prompt (AROUND the coroutine `_make_request`)."""
    made = await original(serving, request, *args, **kwargs)
    _read_response_request(made, serving, request)
    return made


@quietly
def _read_response_request(made: Any, serving: Any, request: Any) -> None:
    family = _family(serving)
    if family is None:
        return
    _, _, (prompt, *_rest), processed = made
    needed = _bind(serving, family, request, prompt, processed.require_reasoning)
    processed.require_reasoning = needed and not getattr(processed, FORCED, False)


def _bind(serving: Any, family: Family, request: Any, prompt: Any, guess: bool) -> bool:
    """Attach the prompt's facts to a request.

    Returns:
        whether the output has to leave a thought (or a header) before a structured answer may begin.
    """
    tokenizer = serving.tokenizer_manager.tokenizer
    start = start_state(
        prompt if isinstance(prompt, str) else None,
        family,
        prompt_token_ids=None if isinstance(prompt, str) else prompt,
        tokenizer=tokenizer,
    )
    tools = bool(request.tools) and request.tool_choice != "none"
    setattr(request, FACTS, PromptFacts(start, tools))
    known = vocabulary(family, tokenizer)
    _counting.set(partial(ReasoningTokenCounter, family, known.ids, start, known.decode, tools))
    # Undecided means that the model chooses; then the request's own switch is the best guess there is.
    return {"reasoning": True, "header": True, "content": False}.get(start.kind, bool(guess))


@quietly
def after_parser_init(_result: Any, parser: Any, *args: Any, **kwargs: Any) -> None:
    """Hand the prompt's facts to a new detector (AFTER `ReasoningParser.__init__`)."""
    detector = parser.detector
    request = kwargs.get("request", args[3] if len(args) > 3 else None)
    facts = getattr(request, FACTS, None)
    if isinstance(detector, SglangDetector) and facts is not None:
        detector.bind(facts)


@quietly
def after_skip_special_tokens(_result: Any, serving: Any, request: Any, *_: Any, **__: Any) -> None:
    """Keep the markers in the text (AFTER `_patch_reasoning_skip_special_tokens`, which goes by name)."""
    family = _family(serving)
    if family is not None and needs_special_tokens(family, serving.tokenizer_manager.tokenizer):
        request.skip_special_tokens = False


@quietly
def after_native_history(result: Any, serving: Any, *_: Any, **__: Any) -> bool | None:
    """Give earlier thoughts to a channel template as such (AFTER `supports_native_reasoning_history`).

    Anthropic clients send their thoughts back. SGLang would wrap them in the family's markers and put them into the
    answer's text; inside a channel of its own that is no thought but markup.
    """
    family = _family(serving)
    if result or family is None or not family.channels:
        return None
    template = serving.tokenizer_manager.tokenizer.chat_template
    return "reasoning_content" in str(template) or None


# The output's token ids.


async def _watched(stream: AsyncGenerator[Any, None], counting: Counting, increments: bool) -> AsyncIterator[Any]:
    # Set anew in the task that reads the stream and then parses, see `after_convert`.
    _counting.set(counting)
    outputs: dict[int, tuple[Output, ReasoningTokenCounter]] = {}
    # Closed together with this generator: SGLang releases a request whose client has gone when its generator is closed.
    async with aclosing(stream):
        async for out in stream:
            sglang_output.set_current(None)
            _show(out, outputs, counting, increments)
            yield out


@quietly
def _show(
    out: Any, outputs: dict[int, tuple[Output, ReasoningTokenCounter]], counting: Counting, increments: bool
) -> None:
    """Take over one item of the stream, count its reasoning tokens, and show it to the detector."""
    for index, item in _items(out):
        if index not in outputs:
            outputs[index] = Output(), counting()
        output, counter = outputs[index]
        new = output.take(item, increments=increments)
        if item is out:
            sglang_output.set_current(output)
        # The scheduler counts by a switch and one marker; the split knows better.
        item["meta_info"]["reasoning_tokens"] = counter.feed(output.ids[len(output.ids) - new :])


def _items(out: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """List the choices in one item of the token stream: streams give one, a whole `n > 1` reply a list."""
    if isinstance(out, dict):
        yield out.get("index") or 0, out
    elif isinstance(out, list):
        yield from ((index, item) for index, item in enumerate(out) if isinstance(item, dict))


def around_generate(original: Callable[..., Any], manager: Any, obj: Any, *args: Any, **kwargs: Any) -> Any:
    """Watch the token stream of a request that this package splits (AROUND `TokenizerManager.generate_request`)."""
    stream = original(manager, obj, *args, **kwargs)
    counting = getattr(obj, FACTS, None) or _counting.get()
    if counting is None:
        return stream
    increments = getattr(manager, "incremental_streaming_output", False) and getattr(obj, "stream", False)
    return _watched(stream, counting, bool(increments))


@quietly
def after_decode(_result: Any, serving: Any, item: Any, *_: Any, **__: Any) -> None:
    """Show a whole reply's choice to the detector that is made for it next (AFTER `_decode_response`)."""
    if _family(serving) is None:
        return
    output = Output()
    output.take(item)
    sglang_output.set_current(output)


# The tool parser that follows.

READER: Final = "_vllm_reasoning_ext_reader"
"""The private attribute that carries a tool parser's reader; None where SGLang's own reading stands."""


def _reader(parser: Any) -> Reader | None:
    """Give the reader of a `FunctionCallParser`, chosen at its first text: the detector before it has just run."""
    if not hasattr(parser, READER):
        handoff = sglang_handoff.current()
        setattr(parser, READER, handoff and reader_for(parser, handoff))
    found: Reader | None = getattr(parser, READER)
    return found


def _read(parser: Any, text: str, *, ends: bool) -> Found | None:
    """Read the next text of a parser; None: SGLang's own reading stands."""
    reader = _reader(parser)
    if reader is None:
        return None
    try:
        return reader.read(text, ends=ends)
    except Exception:
        log.exception("vllm-reasoning-ext: reading tool calls failed; the text is shown as it is")
        setattr(parser, READER, PassBy())
        return Found(text)


def _whole(parser: Any, text: str) -> Found | None:
    found = _read(parser, text, ends=True)
    if found is None or isinstance(_reader(parser), WholeReply):
        return found
    reply = WholeReply(found)
    setattr(parser, READER, reply)
    return reply.read(text, ends=True)


def around_has_call(original: Callable[..., Any], parser: Any, text: str) -> Any:
    """Tell whether a whole reply holds a call (AROUND `FunctionCallParser.has_tool_call`).

    SGLang shows the text as it is when the answer is no, and only then.
    """
    found = _whole(parser, text)
    return original(parser, text) if found is None else bool(found.calls)


def around_whole(original: Callable[..., Any], parser: Any, text: str, *args: Any, **kwargs: Any) -> Any:
    """Take the calls out of a whole reply (AROUND `FunctionCallParser.parse_non_stream`)."""
    found = _whole(parser, text)
    if found is None:
        return original(parser, text, *args, **kwargs)
    return found.text, list(found.calls)


def around_chunk(original: Callable[..., Any], parser: Any, text: str, *args: Any, **kwargs: Any) -> Any:
    """Take the calls out of the next delta (AROUND `FunctionCallParser.parse_stream_chunk`)."""
    found = _read(parser, text, ends=False)
    if found is not None:
        return found.text, list(found.calls)
    if sglang_handoff.current() is None:
        return original(parser, text, *args, **kwargs)
    # A call that was held back comes whole, also to a parser of other calls.
    got = list(steps(partial(original, parser), text))
    return "".join(answer or "" for answer, _ in got), [call for _, calls in got for call in calls]


def around_end(original: Callable[..., Any], parser: Any, *args: Any, **kwargs: Any) -> Any:
    """Release what a tool parser still holds (AROUND `FunctionCallParser.parse_stream_end`)."""
    found = _read(parser, "", ends=True)
    if found is None:
        return original(parser, *args, **kwargs)
    return found.text, list(found.calls)


HOOKS: Final[tuple[tuple[str, Callable[..., Any], str], ...]] = (
    ("sglang.srt.parser.template_detection.resolve_auto_parsers", around_resolve, "AROUND"),
    (_CHAT + "_process_messages", after_process_messages, "AFTER"),
    ("sglang.srt.parser.reasoning_parser.ReasoningParser.__init__", after_parser_init, "AFTER"),
    (_CHAT + "_convert_to_internal_request", after_convert, "AFTER"),
    (_CHAT + "_patch_reasoning_skip_special_tokens", after_skip_special_tokens, "AFTER"),
    (_CHAT + "_decode_response", after_decode, "AFTER"),
    (_CHAT + "supports_native_reasoning_history", after_native_history, "AFTER"),
    (_OPENAI + "serving_responses.OpenAIServingResponses._make_request", around_make_request, "AROUND"),
    ("sglang.srt.managers.tokenizer_manager.TokenizerManager.generate_request", around_generate, "AROUND"),
    (_TOOLS + "has_tool_call", around_has_call, "AROUND"),
    (_TOOLS + "parse_non_stream", around_whole, "AROUND"),
    (_TOOLS + "parse_stream_chunk", around_chunk, "AROUND"),
    (_TOOLS + "parse_stream_end", around_end, "AROUND"),
)


def install() -> list[str]:
    """Register the hooks whose targets this SGLang has; SGLang applies them after all plugins ran.

    Returns:
        the targets that were not found.
    """
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    missing = []
    for target, hook, kind in HOOKS:
        try:
            owner, _, method = target.rpartition(".")
            found = hasattr(resolve_name(owner), method)
        except Exception:  # a module that is gone, or one that cannot be imported here
            found = False
        if found:
            HookRegistry.register(target, hook, HookType[kind])
        else:
            missing.append(target)
    return missing
