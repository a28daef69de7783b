"""`gpt_oss` on a model of vLLM's type gpt_oss, where vLLM insists on its own HarmonyParser.

Theory of operation. For that model type vLLM composes nothing: it sets the chosen parsers on its HarmonyParser,
which wants a GptOssReasoningParser and then reads the ids with openai_harmony, stopping at the first malformed
message. vLLM looks the parser up by name before it fetches HarmonyParser, so importing this module, which happens
only when `gpt_oss` or `auto` is chosen, puts a subclass in its place. The subclass turns the splitter's events into
what the serving layer wants: chat replies, and for the Responses API the segments and messages of HarmonyContext.
For any other reasoning parser it is vLLM's HarmonyParser unchanged.
"""

import importlib
import json
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext.core.count import ReasoningTokenCounter
from vllm_reasoning_ext.core.events import CONTENT, MARKER, REASONING, TOOL, Event
from vllm_reasoning_ext.core.families import get_family
from vllm_reasoning_ext.core.reading.decode import TextOfIds
from vllm_reasoning_ext.core.state import StartState
from vllm_reasoning_ext.engines.logs import vllm_log
from vllm_reasoning_ext.engines.vllm import compose as vllm_compose
from vllm_reasoning_ext.engines.vllm import metrics as vllm_metrics
from vllm_reasoning_ext.engines.vllm.lookup import DeltaMessage, find
from vllm_reasoning_ext.engines.vllm.message import offers_tools, shows_reasoning
from vllm_reasoning_ext.engines.vllm.parser import ReasoningExtParser

COVERED: Final = "reasoning_ext_constraint_covers_channels"
"""Mark in the parser's kwargs: vLLM's structural tag spells the channels out, so it applies from the first token."""

_FUNCTIONS: Final = "functions."
"""What the recipient of a function call begins with; other recipients are built-in tools, whose input is free."""

try:
    _Base: Any = find("GptOssReasoningParser", "vllm.reasoning.gptoss_reasoning_parser")
except ImportError:
    _Base = object


class GptOssParser(ReasoningExtParser, _Base):  # type: ignore[misc]
    """The parser of gpt_oss, as a kind of the reasoning parser that HarmonyParser accepts."""

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


class _Slice(Enum):
    """Where the reader of a tool slice is."""

    NONE = auto()
    UNDECIDED = auto()  # nothing but the header and blanks so far
    CALL = auto()
    TEXT = auto()  # its arguments cannot be a JSON object


class Pieces:
    """Turns events into pieces: a tool slice becomes a call and its arguments.

    The arguments of a function are a JSON object, so the first visible character tells whether a slice is a call of
    one; a slice that is none is shown as the model wrote it. Where a slice begins and ends the events say.

    Args:
        start: where the output starts; a prompt may have begun a call.
    """

    def __init__(self, start: StartState) -> None:
        self._in_body = start.recipient is not None and start.body_begun
        self._state = _Slice.NONE
        self._slice = ""  # the text of an undecided slice
        self._header = 0  # characters of it that are its header
        self._recipient: str | None = None
        self._body: str | None = None  # the kind of the message that is open

    def read(self, events: Iterable[Event]) -> Iterator[Piece]:
        """Read the next events."""
        for event in events:
            if event.kind is TOOL:
                yield from self._tool(event)
            elif event.kind is not MARKER:
                yield from self.end()
                yield from self._message(event.kind, anew=event.synthetic)
                yield Piece(event.kind, "" if event.synthetic else event.text)

    def end(self) -> Iterator[Piece]:
        """End the slice that is open, if any; one without arguments is a call."""
        if self._state is _Slice.UNDECIDED:
            yield from self._decide(_Slice.CALL)
        self._state = _Slice.NONE

    def _message(self, kind: str, *, anew: bool = False) -> Iterator[Piece]:
        if anew or self._body != kind:
            self._body = kind
            yield Piece("message", "")

    def _tool(self, event: Event) -> Iterator[Piece]:
        if event.begins:
            yield from self.end()
            self._state, self._recipient = _Slice.UNDECIDED, event.recipient
            self._slice, self._header = event.text, len(event.text)
            if self._in_body:
                self._header, self._in_body = 0, False
                yield from self._decide(_Slice.CALL)
        elif event.ends:
            if self._state is _Slice.TEXT:
                yield Piece(CONTENT, event.text)
            yield from self.end()
        elif self._state is _Slice.UNDECIDED:
            self._slice += event.text
            arguments = event.text.lstrip()
            if arguments:
                known = not (event.recipient or "").startswith(_FUNCTIONS)
                yield from self._decide(_Slice.CALL if known or arguments[0] == "{" else _Slice.TEXT)
        else:
            yield Piece(CONTENT if self._state is _Slice.TEXT else TOOL, event.text, event.recipient)

    def _decide(self, state: _Slice) -> Iterator[Piece]:
        """Give what was kept of an undecided slice, as what it turned out to be."""
        self._state = state
        text, self._slice = self._slice, ""
        if state is _Slice.TEXT:
            yield from self._message(CONTENT)
            yield Piece(CONTENT, text)
        else:
            yield from self._message(TOOL, anew=True)
            yield Piece("call", "", self._recipient)
            if len(text) > self._header:
                yield Piece(TOOL, text[self._header :], self._recipient)


MARK: Final = "_reasoning_ext"

_METHODS: Final = ("process_chunk", "flush", "parse", "parse_delta")
"""Methods of vLLM's HarmonyParser that are overridden here; without them it is left alone."""

try:
    harmony: Any = importlib.import_module("vllm.parser.harmony")
    _Harmony: Any = harmony.HarmonyParser
except Exception as error:  # an unknown vLLM must still serve
    vllm_log.warning("gpt_oss models keep vLLM's own harmony parser: %r", error)
    harmony, _Harmony = None, object


class HarmonyParser(_Harmony):  # type: ignore[misc]
    """vLLM's HarmonyParser over this package's splitter, where its reasoning parser is a `GptOssParser`."""

    _reasoning_ext = True  # `MARK`

    def __init__(self, tokenizer: Any, tools: Any = None, *args: Any, **kwargs: Any) -> None:
        template = kwargs.get("chat_template_kwargs")
        super().__init__(tokenizer, tools, *args, **kwargs)
        self._splits = isinstance(self._reasoning_parser, GptOssParser)
        if self._splits and isinstance(template, dict):
            template[COVERED] = True  # the Responses API hands this very dict on to the engine core
        self._turn: _Turn | None = None
        if self._splits:
            vllm_metrics.prepare(GptOssParser.family.name)
        self._calls = 0

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        if self._splits:
            self._reasoning_parser.set_prompt_token_ids(prompt_token_ids)
            self._turn = None
        else:
            super().set_prompt_token_ids(prompt_token_ids)

    def is_reasoning_end(self, input_ids: list[int]) -> bool:
        if not self._splits:
            return bool(super().is_reasoning_end(input_ids))
        self._reasoning_parser.is_reasoning_end(input_ids)  # up to 0.31 the only sight of the prompt
        return True

    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        if self._splits:
            return int(self._reasoning_parser.count_reasoning_tokens(token_ids))
        return int(super().count_reasoning_tokens(token_ids))

    # The Responses API.

    def process_chunk(self, token_ids: Sequence[int]) -> Any:
        if not self._splits:
            return super().process_chunk(token_ids)
        turn = self._turn = self._turn or _Turn(self._reasoning_parser)
        segments, counted = turn.chunk(token_ids)
        return harmony.ChunkResult([harmony.Segment(*s) for s in segments], counted)

    def flush(self) -> list[Any]:
        if not self._splits:
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
        if not self._splits:
            return super().parse(  # type: ignore[no-any-return]
                model_output, request, enable_auto_tools, model_output_token_ids=model_output_token_ids
            )
        parser = self._reasoning_parser
        splitter = parser.begin(offers_tools(request), header=True)
        pieces = Pieces(splitter.start)
        ids = list(model_output_token_ids) or None
        reason = parser.finish_reason(request, len(model_output_token_ids), ids[-1] if ids else None)
        events = (*splitter.feed(model_output, ids).events, *splitter.finish(reason).events)
        reasoning = "".join(e.text for e in events if e.kind is REASONING)
        answered = any(e.kind is CONTENT or e.kind is TOOL for e in events)
        vllm_compose.count(parser, splitter, request, reason, bool(reasoning), answered)
        tools = self._tool_parser is not None and offers_tools(request)
        content, calls = _calls(harmony, pieces, events) if tools else (_content(events), [])
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
        if not self._splits:
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
        return self._message(turn, events, request, finished)

    def _message(self, turn: "_Turn", events: tuple[Event, ...], request: Any, finished: bool) -> Any:
        found = DeltaMessage()
        reasoning = "".join(event.text for event in events if event.kind is REASONING)
        if reasoning and shows_reasoning(request):
            found.reasoning = reasoning
        if self._tool_parser is not None and offers_tools(request):
            content = self._stream_calls(turn, events, found, finished)
        else:
            content = _content(events)
        if content:
            found.content = content
        return found if found.reasoning or found.content or found.tool_calls else None

    def _stream_calls(self, turn: "_Turn", events: tuple[Event, ...], found: Any, finished: bool) -> str:
        """Put the calls of these events into the message; give the content beside them, joiners included."""
        content = ""
        for event in (*events, None) if finished else events:
            if event is not None and event.synthetic and event.kind is CONTENT:
                content += event.text
            for piece in turn.pieces.read([event]) if event is not None else turn.pieces.end():
                if piece.what == "call":
                    self._begin_call(found, piece)
                elif piece.what is TOOL:
                    self._continue_call(found, piece.text)
                elif piece.what is CONTENT:
                    content += piece.text
        return content

    def _begin_call(self, found: Any, piece: Piece) -> None:
        function = harmony.DeltaFunctionCall(name=_name(piece.recipient), arguments="")
        call = harmony.DeltaToolCall(
            id=harmony.make_tool_call_id(), type="function", function=function, index=self._calls
        )
        found.tool_calls = [*found.tool_calls, call]
        self._calls += 1

    def _continue_call(self, found: Any, text: str) -> None:
        if found.tool_calls:
            found.tool_calls[-1].function.arguments += text
        elif text:
            function = harmony.DeltaFunctionCall(arguments=text)
            found.tool_calls = [harmony.DeltaToolCall(index=self._calls - 1, function=function)]


def install() -> None:
    """Put `HarmonyParser` in the place of vLLM's; without the methods that are known, leave it alone."""
    if harmony is not None and all(hasattr(_Harmony, name) for name in _METHODS) and not hasattr(_Harmony, MARK):
        harmony.HarmonyParser = HarmonyParser


_Segment = tuple[str | None, str | None, str, Any]


class _Turn:
    """One output being read: for chat by text and ids, for the Responses API by ids alone."""

    def __init__(self, parser: GptOssParser, tools: bool | None = None) -> None:
        self._parser = parser
        self._splitter = parser.begin(tools, header=True)
        self._text = TextOfIds(parser.vocabulary.decode)
        self._counter = ReasoningTokenCounter(
            parser.family, parser.vocabulary.ids, self._splitter.start, parser.vocabulary.decode
        )
        self._output = 0
        self._last: int | None = None
        self._kinds: set[str] = set()
        self.pieces = Pieces(self._splitter.start)
        self._channel: tuple[str | None, str | None] = (None, None)
        self._body = ""

    def feed(self, text: str, ids: Sequence[int]) -> tuple[Event, ...]:
        if ids:
            self._output += len(ids)
            self._last = ids[-1]
        return self._seen(self._splitter.feed(text, ids).events)

    def finish(self, request: Any = None) -> tuple[Event, ...]:
        reason = self._parser.finish_reason(request, self._output, self._last)
        events = self._seen(self._splitter.finish(reason).events)
        thought, answered = REASONING in self._kinds, CONTENT in self._kinds or TOOL in self._kinds
        vllm_compose.count(self._parser, self._splitter, request, reason, thought, answered)
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
        # The decoder may still hold the bytes of a character that was never finished.
        rest = self._seen(self._splitter.feed(self._text.end()).events) if self._text.waits else ()
        return [*self._segments((*rest, *self.finish())), *self._segments_of(self.pieces.end()), *self._complete()]

    def _segments(self, events: Iterable[Event]) -> Iterator[_Segment]:
        return self._segments_of(self.pieces.read(events))

    def _segments_of(self, pieces: Iterable[Piece]) -> Iterator[_Segment]:
        for what, text, recipient in pieces:
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


def _content(events: Iterable[Event]) -> str:
    return "".join(event.text for event in events if event.kind is CONTENT or event.kind is TOOL)


def _calls(harmony: Any, pieces: Pieces, events: Iterable[Event]) -> tuple[str, list[Any]]:
    """Read a whole output's calls; give the content beside them, joiners included."""
    content, calls = "", []
    for event in (*events, None):
        if event is not None and event.synthetic and event.kind is CONTENT:
            content += event.text
        for piece in pieces.read([event]) if event is not None else pieces.end():
            if piece.what == "call":
                calls.append(harmony.FunctionCall(name=_name(piece.recipient), arguments=""))
            elif piece.what is TOOL:
                calls[-1].arguments += piece.text
            elif piece.what is CONTENT:
                content += piece.text
    return content, calls


def _name(recipient: str | None) -> str:
    return (recipient or "").removeprefix(_FUNCTIONS)


def _compact(arguments: str) -> str:
    """Write JSON arguments as vLLM does; anything else stays as it is."""
    try:
        return json.dumps(json.loads(arguments))
    except ValueError:
        return arguments


install()
