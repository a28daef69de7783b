"""Our `gpt_oss` on a model of vLLM's type gpt_oss, where vLLM insists on its own HarmonyParser.

Theory of operation. For that model type vLLM composes nothing: it sets the chosen parsers on its HarmonyParser,
which wants a GptOssReasoningParser and then reads the ids with openai_harmony, stopping at the first malformed
message. vLLM looks our class up by name before it fetches HarmonyParser, so importing this module, which happens
only when `gpt_oss` of ours is chosen, puts a subclass in its place. The subclass turns our splitter's events into
what the serving layer wants: chat replies, and for the Responses API the segments and messages of HarmonyContext.
For any other reasoning parser it is vLLM's HarmonyParser unchanged.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext.core.count import ReasoningTokenCounter
from vllm_reasoning_ext.core.events import CONTENT, MARKER, REASONING, TOOL, Event
from vllm_reasoning_ext.core.families import get_family
from vllm_reasoning_ext.core.grammar.harmony import CHANNEL, CLOSERS, MESSAGE, START
from vllm_reasoning_ext.core.reading.decode import Decode
from vllm_reasoning_ext.engines.guard import GuardedSplitter
from vllm_reasoning_ext.engines.logs import vllm_log
from vllm_reasoning_ext.engines.vllm import compose as vllm_compose
from vllm_reasoning_ext.engines.vllm import metrics as vllm_metrics
from vllm_reasoning_ext.engines.vllm.lookup import DeltaMessage, find
from vllm_reasoning_ext.engines.vllm.message import offers_tools, shows_reasoning
from vllm_reasoning_ext.engines.vllm.parser import ReasoningExtParser

COVERED: Final = "reasoning_ext_constraint_covers_channels"
"""Mark in the parser's kwargs: vLLM's structural tag spells the channels out, so it applies from the first token."""

_MAX_CHARACTER_IDS: Final = 8
"""Ids kept back because their bytes may be the beginning of a character."""

try:
    _Base: Any = find("GptOssReasoningParser", "vllm.reasoning.gptoss_reasoning_parser")
except ImportError:
    _Base = object


class GptOssParser(ReasoningExtParser, _Base):  # type: ignore[misc]
    """Our gpt_oss, as a kind of the reasoning parser that HarmonyParser accepts."""

    family = get_family("gpt_oss")

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(tokenizer, *args, **kwargs)
        self._covered = bool((kwargs.get("chat_template_kwargs") or {}).get(COVERED))

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        return self._covered or super().is_reasoning_end(input_ids)


class Piece(NamedTuple):
    """A piece of the reply: `what` is a kind, or "call" (a call begins; `text` is empty) or "message" (a new body)."""

    what: str
    text: str
    recipient: str | None = None


class Pieces:
    """Turns events into pieces: a tool slice becomes a call and its arguments.

    It observes the splitter whose events it reads, to know a marker from the same characters in an argument.
    """

    def __init__(self, splitter: GuardedSplitter) -> None:
        splitter.observe(self)
        self._markers: set[int] = set()  # where they begin, in characters of the output
        self._at = 0
        self._last: tuple[str, str | None] | None = None
        self._closer = ""
        self._ended = False  # a closing marker was the last text of a slice: its end, unless the slice goes on

    def spelling(self, marker: str, position: int, real: bool | None) -> None:
        """Hear from the splitter how a spelling was read."""
        if real is not None:
            self._markers.add(position)

    def text_alone(self, why: str) -> None:
        """Hear that the ids no longer count."""

    def read(self, events: Iterable[Event]) -> Iterator[Piece]:
        """Read the next events."""
        for kind, text, synthetic, recipient, *_ in events:
            marked = self._at in self._markers
            self._at += 0 if synthetic else len(text)
            if kind is TOOL:
                yield from self._tool(text, recipient, marked)
            elif kind is not MARKER:
                self._ended = False
                if synthetic or self._last != (kind, None):
                    self._last = (kind, None)
                    yield Piece("message", "")
                yield Piece(kind, text if not synthetic else "", None)

    def _tool(self, text: str, recipient: str | None, marked: bool) -> Iterator[Piece]:
        begins = marked and text.startswith((START, CHANNEL)) and (self._ended or text.endswith(MESSAGE))
        if begins or self._last != (TOOL, recipient):
            self._last, self._ended = (TOOL, recipient), False
            yield Piece("message", "")
            yield Piece("call", "", recipient)
            if begins or text.startswith((START, CHANNEL)) or text.endswith(MESSAGE):
                return  # the slice's own header
        if self._ended:  # it was quoted: the arguments go on
            self._ended = False
            yield Piece(TOOL, self._closer, recipient)
        if marked and text in CLOSERS:
            self._ended, self._closer = True, text
        else:
            yield Piece(TOOL, text, recipient)


class TextOfIds:
    """Decodes ids as they come; an incomplete character waits."""

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._ids: list[int] = []

    def push(self, ids: Sequence[int]) -> str:
        self._ids += ids
        text = self._decode(self._ids)
        if text.endswith("\ufffd") and len(self._ids) < _MAX_CHARACTER_IDS + len(ids):
            return ""
        self._ids = []
        return text


def install() -> None:
    """Put our subclass in the place of vLLM's HarmonyParser; without the methods we know, leave it alone."""
    try:
        import vllm.parser.harmony as harmony

        base = harmony.HarmonyParser
        known = all(hasattr(base, name) for name in ("process_chunk", "flush", "parse", "parse_delta"))
        if known and not hasattr(base, "_reasoning_ext"):
            harmony.HarmonyParser = _subclass(harmony)
    except Exception as error:  # an unknown vLLM must still serve
        vllm_log.warning("gpt_oss models keep vLLM's own harmony parser: %r", error)


def _subclass(harmony: Any) -> type:
    base: Any = harmony.HarmonyParser

    class HarmonyParser(base):  # type: ignore[misc]
        """vLLM's HarmonyParser over our splitter."""

        _reasoning_ext = True

        def __init__(self, tokenizer: Any, tools: Any = None, *args: Any, **kwargs: Any) -> None:
            template = kwargs.get("chat_template_kwargs")
            super().__init__(tokenizer, tools, *args, **kwargs)
            self._ours = isinstance(self._reasoning_parser, GptOssParser)
            if self._ours and isinstance(template, dict):
                template[COVERED] = True  # the Responses API hands this very dict on to the engine core
            self._turn: _Turn | None = None
            if self._ours:
                vllm_metrics.prepare(GptOssParser.family.name)
            self._calls = 0

        def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
            if self._ours:
                self._reasoning_parser.set_prompt_token_ids(prompt_token_ids)
                self._turn = None
            else:
                super().set_prompt_token_ids(prompt_token_ids)

        def is_reasoning_end(self, input_ids: list[int]) -> bool:
            if not self._ours:
                return bool(super().is_reasoning_end(input_ids))
            self._reasoning_parser.is_reasoning_end(input_ids)  # up to 0.31 the only sight of the prompt
            return True

        def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
            if self._ours:
                return int(self._reasoning_parser.count_reasoning_tokens(token_ids))
            return int(super().count_reasoning_tokens(token_ids))

        # The Responses API.

        def process_chunk(self, token_ids: Sequence[int]) -> Any:
            if not self._ours:
                return super().process_chunk(token_ids)
            turn = self._turn = self._turn or _Turn(self._reasoning_parser)
            segments, counted = turn.chunk(token_ids)
            return harmony.ChunkResult([harmony.Segment(*s) for s in segments], counted)

        def flush(self) -> list[Any]:
            if not self._ours:
                return list(super().flush())
            turn, self._turn = self._turn or _Turn(self._reasoning_parser), None
            return [harmony.Segment(*s) for s in turn.end()]

        # Chat.

        def parse(
            self,
            model_output: str,
            request: Any,
            enable_auto_tools: bool = False,
            model_output_token_ids: Sequence[int] = (),
        ) -> tuple[str | None, str | None, Any]:
            if not self._ours:
                return super().parse(  # type: ignore[no-any-return]
                    model_output, request, enable_auto_tools, model_output_token_ids=model_output_token_ids
                )
            ours = self._reasoning_parser
            splitter = ours.begin(offers_tools(request), header=True)
            pieces = Pieces(splitter)
            ids = list(model_output_token_ids) or None
            reason = ours.finish_reason(request, len(model_output_token_ids), ids[-1] if ids else None)
            events = (*splitter.feed(model_output, ids).events, *splitter.finish(reason).events)
            reasoning = "".join(e.text for e in events if e.kind is REASONING)
            answered = any(e.kind is CONTENT or e.kind is TOOL for e in events)
            vllm_compose.count(ours, splitter, request, reason, bool(reasoning), answered)
            tools = self._tool_parser is not None and offers_tools(request)
            shown = (CONTENT,) if tools else (CONTENT, TOOL)
            content = "".join(e.text for e in events if e.kind in shown)
            calls: list[Any] = []
            if tools:
                for piece in pieces.read(events):
                    if piece.what == "call":
                        calls.append(harmony.FunctionCall(name=_name(piece.recipient), arguments=""))
                    elif piece.what is TOOL:
                        calls[-1].arguments += piece.text
            for call in calls:
                call.arguments = _compact(call.arguments)
            return reasoning or None, content or None, calls or None

        def parse_delta(
            self,
            delta_text: str,
            delta_token_ids: list[int],
            request: Any,
            prompt_token_ids: list[int] | None = None,
            *,
            finished: bool,
        ) -> Any:
            if not self._ours:
                return super().parse_delta(delta_text, delta_token_ids, request, prompt_token_ids, finished=finished)
            if self._turn is None:
                if prompt_token_ids is not None:
                    self._reasoning_parser.set_prompt_token_ids(prompt_token_ids)
                self._turn, self._calls = _Turn(self._reasoning_parser, offers_tools(request)), 0
            turn = self._turn
            events = turn.feed(delta_text, delta_token_ids)
            if finished:
                events = (*events, *turn.finish(request))
                self._turn = None
            tools = self._tool_parser is not None and offers_tools(request)
            return self._message(turn, events, shows_reasoning(request), tools)

        def _message(self, turn: "_Turn", events: Iterable[Event], shows: bool, tools: bool) -> Any:
            events = tuple(events)
            found = DeltaMessage()
            for kind, text, *_ in events:
                if kind is REASONING and shows:
                    found.reasoning = (found.reasoning or "") + text
                elif kind is CONTENT or (kind is TOOL and not tools):
                    found.content = (found.content or "") + text
            for piece in turn.pieces.read(events) if tools else ():
                if piece.what == "call":
                    function = harmony.DeltaFunctionCall(name=_name(piece.recipient), arguments="")
                    call = harmony.DeltaToolCall(
                        id=harmony.make_tool_call_id(), type="function", function=function, index=self._calls
                    )
                    found.tool_calls = [*found.tool_calls, call]
                    self._calls += 1
                elif piece.what is TOOL and found.tool_calls:
                    found.tool_calls[-1].function.arguments += piece.text
                elif piece.what is TOOL:
                    function = harmony.DeltaFunctionCall(arguments=piece.text)
                    found.tool_calls = [harmony.DeltaToolCall(index=self._calls - 1, function=function)]
            return found if found.reasoning or found.content or found.tool_calls else None

    HarmonyParser.__qualname__ = HarmonyParser.__name__
    return HarmonyParser


_Segment = tuple[str | None, str | None, str, Any]


class _Turn:
    """One output being read: for chat by text and ids, for the Responses API by ids alone."""

    def __init__(self, ours: GptOssParser, tools: bool | None = None) -> None:
        self._ours = ours
        self._splitter = ours.begin(tools, header=True)
        self._text = TextOfIds(ours.vocabulary.decode)
        self._counter = ReasoningTokenCounter(
            ours.family, ours.vocabulary.ids, self._splitter.start, ours.vocabulary.decode
        )
        self._output = 0
        self._last: int | None = None
        self._kinds: set[str] = set()
        self.pieces = Pieces(self._splitter)
        self._channel: tuple[str | None, str | None] = (None, None)
        self._body = ""

    def feed(self, text: str, ids: Sequence[int]) -> tuple[Event, ...]:
        if ids:
            self._output += len(ids)
            self._last = ids[-1]
        return self._seen(self._splitter.feed(text, ids).events)

    def finish(self, request: Any = None) -> tuple[Event, ...]:
        reason = self._ours.finish_reason(request, self._output, self._last)
        events = self._seen(self._splitter.finish(reason).events)
        thought, answered = REASONING in self._kinds, CONTENT in self._kinds or TOOL in self._kinds
        vllm_compose.count(self._ours, self._splitter, request, reason, thought, answered)
        return events

    def _seen(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        self._kinds.update(event.kind for event in events)
        return events

    def chunk(self, ids: Sequence[int]) -> tuple[list[_Segment], int]:
        """Read ids; give the segments, and how many of the ids were reasoning."""
        before = self._counter.total
        events = self.feed(self._text.push(ids), ids)
        return list(self._segments(events)), self._counter.feed(ids) - before

    def end(self) -> list[_Segment]:
        """Release what is held, and complete the last message."""
        return [*self._segments(self.finish()), *self._complete()]

    def _segments(self, events: Iterable[Event]) -> Iterator[_Segment]:
        for what, text, recipient in self.pieces.read(events):
            if what == "message":
                yield from self._complete()
            elif what == "call":
                self._channel = ("commentary", recipient)
            elif text:
                if what is not TOOL:
                    self._channel = ("analysis" if what is REASONING else "final", None)
                self._body += text
                yield (*self._channel, text, None)

    def _complete(self) -> Iterator[_Segment]:
        """Close the body that is open, if any, as a whole message."""
        channel, recipient = self._channel
        if channel is not None:
            role, whole = find("Role", "openai_harmony").ASSISTANT, find("Message", "openai_harmony")
            message = whole.from_role_and_content(role, self._body).with_channel(channel)
            if recipient is not None:
                message = message.with_recipient(recipient)
            yield channel, recipient, "", message
        self._channel, self._body = (None, None), ""


def _name(recipient: str | None) -> str:
    return (recipient or "").removeprefix("functions.")


def _compact(arguments: str) -> str:
    """Write JSON arguments as vLLM does; anything else stays as it is."""
    try:
        return json.dumps(json.loads(arguments))
    except ValueError:
        return arguments


install()
