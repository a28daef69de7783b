"""Tool calls out of content, with SGLang's own parser classes: answer text passes by, each call is asked of a class.

SGLang's tool parsers read a whole content at once or a stream piece by piece, and what they do with the answer
around a call differs between the two: text beside a call is trimmed or lost, a call cut short vanishes, a frame
that they do not take is shown. Here they get one call at a time, through the same method whole and streaming.
What a class makes no call of is shown as the model wrote it.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

from vllm_reasoning_ext.core.events import CONTENT, Event
from vllm_reasoning_ext.core.grammar.calls import Verdict, match_call
from vllm_reasoning_ext.core.limits import TOOL_HOLD_MAX
from vllm_reasoning_ext.core.record import BLANKS, ONE_SPACE, QUOTED_NAME, WORD, Family, Part, Shape, Tool
from vllm_reasoning_ext.engines.logs import sglang_log as log
from vllm_reasoning_ext.engines.sglang.framing import FRAMES, Frame, Slice
from vllm_reasoning_ext.engines.sglang.handoff import Handoff, shown

MOST_STEPS: Final = 256
"""Calls of a parser class for one piece of text; more means that it repeats itself."""


class Found(NamedTuple):
    """What a piece of content is: answer text, and SGLang's `ToolCallItem`s."""

    text: str = ""
    calls: Sequence[Any] = ()


class Reader(Protocol):
    """Read the content of one choice."""

    def read(self, text: str, *, ends: bool) -> Found:
        """Read the next piece; `ends` releases what waits for its end."""


class Calls:
    """The calls of one reply: their numbers, and the functions that the request offers.

    Args:
        parser: SGLang's `FunctionCallParser`, for its class and the request's tools.
    """

    def __init__(self, parser: Any) -> None:
        from sglang.srt.environ import envs

        self._made = type(parser.detector)
        self._tools = parser.tools
        self._names = {tool.function.name for tool in parser.tools}
        self._any_name = bool(envs.SGLANG_FORWARD_UNKNOWN_TOOLS.get())
        self._count = 0

    def parser(self) -> Any:
        """Make a fresh parser of SGLang's class."""
        return self._made()

    @property
    def tools(self) -> Any:
        return self._tools

    def ask(self, text: str) -> list[Any]:
        """Let a fresh parser read a whole call; none of a function that the request does not offer."""
        parser = self.parser()
        try:
            found = parser.detect_and_parse(text, self._tools).calls if parser.has_tool_call(text) else []
        except Exception as error:
            log.debug("SGLang's tool parser failed on a call: %s", type(error).__name__)
            return []
        return [call for call in found if self.offered(call.name)]

    def offered(self, name: str) -> bool:
        return self._any_name or name in self._names

    def item(self, found: Any, name: str | None, arguments: str) -> Any:
        """Write an item; one with a name begins a call and gets the next number."""
        self._count += name is not None
        return type(found)(tool_index=self._count - 1, name=name, parameters=arguments)


# Channel families: the core says where a call begins and ends, and the whole call is asked of the class.


class ChannelReader:
    """Read the events that the core found; a call is held until it ends, as SGLang's own parsers do."""

    def __init__(self, calls: Calls, handoff: Handoff, frame: Frame) -> None:
        self._calls = calls
        self._handoff = handoff
        self._frame = frame
        self._slice: list[Event] = []

    def read(self, text: str, *, ends: bool) -> Found:
        answer: list[str] = []
        items: list[Any] = []
        for event in self._handoff.take(text):
            if self._slice and (event.begins or event.kind is CONTENT):
                self._close(answer, items)
            if event.kind is CONTENT:
                answer.append(event.text)
                continue
            self._slice.append(event)
            if event.ends:
                self._close(answer, items)
        if ends and self._slice:
            self._close(answer, items)
        return Found("".join(answer), items)

    def _close(self, answer: list[str], items: list[Any]) -> None:
        events, self._slice = self._slice, []
        found = Slice(shown(events), events[0].recipient or "", events[-1].ends)
        framed = self._frame.write(found)
        parsed = [] if framed is None else self._calls.ask(framed)
        items += [self._calls.item(call, call.name, self._frame.read(call.parameters)) for call in parsed]
        if not parsed:
            answer.append(found.text)


# Marker families: the call stands between tags, and its arguments go out while they are written.


def steps(parse: Callable[[str], tuple[str, Sequence[Any]]], text: str) -> Iterator[tuple[str, Sequence[Any]]]:
    """Let a parser of SGLang's finish with a piece of text.

    Most classes take one step a delta, a name or its arguments, for they count on one token at a time: they are
    asked again, without text, until they are done.
    """
    for _ in range(MOST_STEPS):
        answer, calls = parse(text)
        yield answer, calls
        if not (answer or calls):
            return
        text = ""


class OpenCall:
    """One call of a marker family, on its way through a parser of SGLang's."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._parser: Any = calls.parser()
        self._name: Any = None
        self._last: Any = None
        self._refused = False
        self._text = ""
        self.taken = False

    def feed(self, text: str) -> list[Any]:
        """Read the next piece of the call."""
        if not self.taken:
            self._text += text
        return [item for found in self._found(text) for item in self._passed(found)]

    def finish(self, *, ended: bool) -> tuple[str, list[Any]]:
        """Close the call.

        Args:
            ended: its closing tag came.

        Returns:
            the text, if the parser made no call of it, and the last items.
        """
        items: list[Any] = []
        if ended and not self.taken:
            # Not every class streams what it reads whole: a call without arguments, say.
            items = [item for found in self._calls.ask(self._text) for item in self._passed(found)]
        items += self._unsent()
        return ("" if self.taken else self._text), items

    def _unsent(self) -> list[Any]:
        """Send what the parser has read of the last call's arguments and not yet sent, as SGLang's chat does.

        Some classes lag behind by a step; without it a cut call would depend on how the text was cut before.
        """
        read, sent = self._parser.prev_tool_call_arr, self._parser.streamed_args_for_tool
        if self._last is None or not 0 < len(read) <= len(sent):
            return []
        arguments = read[-1].get("arguments", {})
        known = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        before = sent[len(read) - 1]
        rest = known.removeprefix(before) if known.startswith(before) else ""
        return self._passed(type(self._last)(tool_index=0, name=None, parameters=rest))

    def _found(self, text: str) -> list[Any]:
        found: list[Any] = []
        try:
            for _, calls in steps(self._parse, text):
                found += calls
        except Exception as error:
            log.debug("SGLang's tool parser failed in a call: %s", type(error).__name__)
        return found

    def _parse(self, text: str) -> tuple[str, Sequence[Any]]:
        result = self._parser.parse_streaming_increment(text, self._calls.tools)
        return result.normal_text, result.calls

    def _passed(self, found: Any) -> list[Any]:
        """Pass an item on; a name waits for its first arguments, for until then the call may come to nothing."""
        self._last = found
        if found.name:
            self._refused = not self._calls.offered(found.name)
            self._name = None if self._refused else found
        if self._refused or not found.parameters:
            return []
        name, self._name = self._name, None
        self.taken = True
        self._text = ""
        return [self._calls.item(found, name.name if name is not None else None, found.parameters)]


class MarkerReader:
    """Cut content at the family's tool markers: answer text passes by, calls go to the parser."""

    def __init__(self, calls: Calls, family: Family) -> None:
        self._calls = calls
        self._tools = family.tools
        self._waiting = ""
        self._tool: Tool | None = None
        self._call: OpenCall | None = None
        self._end = CallEnd(())
        # Blanks before the first visible character of the answer, or of the answer after a call.
        self._blank = ""
        self._begun = False
        self._called = False

    def read(self, text: str, *, ends: bool) -> Found:
        self._waiting += text
        answer: list[str] = []
        items: list[Any] = []
        while self._step(answer, items, ends):
            pass
        if ends:
            self._finish(answer, items)
        return Found("".join(answer), items)

    def _step(self, answer: list[str], items: list[Any], ends: bool) -> bool:
        """Take what can be taken of the waiting text; True: there is more."""
        if self._call is not None:
            return self._step_call(self._call, answer, items)
        if self._tool is None:
            return self._step_answer(answer)
        return self._step_opening(self._tool, answer, ends)

    def _step_answer(self, answer: list[str]) -> bool:
        at, tool = _first_marker(self._waiting, self._tools)
        if tool is None:
            at -= _held(self._waiting, [tool.marker for tool in self._tools])
        self._show(self._waiting[:at], answer)
        self._waiting, self._tool = self._waiting[at:], tool
        return tool is not None

    def _step_opening(self, tool: Tool, answer: list[str], ends: bool) -> bool:
        after = self._waiting[len(tool.marker) :]
        match = match_call(tool, after)
        if match.verdict is Verdict.MAYBE and len(after) < TOOL_HOLD_MAX and not ends:
            return False
        if match.verdict is Verdict.YES:
            self._call = OpenCall(self._calls)
            self._end = CallEnd(match.closers, tuple(tool.marker for tool in self._tools), after)
            self._feed(self._call, len(tool.marker))
            return True
        self._tool = None
        self._show(tool.marker, answer)
        self._waiting = after
        return True

    def _feed(self, call: OpenCall, length: int) -> list[Any]:
        text, self._waiting = self._waiting[:length], self._waiting[length:]
        return call.feed(text) if text else []

    def _step_call(self, call: OpenCall, answer: list[str], items: list[Any]) -> bool:
        length, ended = self._end.find(self._waiting)
        self._take(self._feed(call, length), items)
        if ended:
            self._close(call, answer, items, ended=True)
        return ended

    def _close(self, call: OpenCall, answer: list[str], items: list[Any], *, ended: bool) -> None:
        self._call = self._tool = None
        text, last = call.finish(ended=ended)
        self._take(last, items)
        self._show(text, answer)

    def _take(self, found: list[Any], items: list[Any]) -> None:
        if found:
            # Blanks alone between calls, or before the first, separate them and are no answer.
            self._blank, self._begun, self._called = "", False, True
            items += found

    def _show(self, text: str, answer: list[str]) -> None:
        if not self._begun:
            text = self._blank + text
            self._begun = bool(text) and not text.isspace()
            self._blank = "" if self._begun else text
        if self._begun:
            answer.append(text)

    def _finish(self, answer: list[str], items: list[Any]) -> None:
        if self._call is not None:
            self._take(self._feed(self._call, len(self._waiting)), items)
            self._close(self._call, answer, items, ended=False)
        self._show(self._waiting, answer)
        if not self._called:
            answer.append(self._blank)
        self._waiting = self._blank = ""


class CallEnd:
    """Find where a call ends: at its closing tag, or where it has none, before the next tool marker.

    In a call that is written in JSON, a tag inside a string is an argument's text. A raw newline cannot stand in
    a JSON string: it ends one that was never closed.
    """

    def __init__(self, closers: tuple[str, ...], markers: tuple[str, ...] = (), body: str = "") -> None:
        self._closers = closers
        self._stops = closers or markers
        self._json = body.lstrip().startswith("{")
        self._in_string = False
        strings = [r"\\.", '["\n]'] if self._json else []
        self._pattern = re.compile("|".join([*strings, *map(re.escape, self._stops)]), re.DOTALL)

    def find(self, text: str) -> tuple[int, bool]:
        """Look through the next text of the call.

        Returns:
            how many characters belong to the call for sure, and whether it ends after them. What remains of the
            text has to be given again, with more.
        """
        safe = len(text) - _held(text, [*self._stops, "\\."])
        for token in self._pattern.finditer(text):
            if token.start() >= safe:
                break
            if self._ends(token[0]):
                return (token.end() if self._closers else token.start()), True
            safe = max(safe, token.end())
        return safe, False

    def _ends(self, token: str) -> bool:
        if token in self._stops:
            return not self._in_string
        if token == '"':
            self._in_string = not self._in_string
        elif token == "\n":
            self._in_string = False
        return False


def _first_marker(text: str, tools: Sequence[Tool]) -> tuple[int, Tool | None]:
    """Find the first tool marker; without one, the end of the text."""
    places = [(at, tool) for tool in tools if (at := text.find(tool.marker)) >= 0]
    return min(places, key=lambda place: place[0]) if places else (len(text), None)


def _held(text: str, spellings: Sequence[str]) -> int:
    """Count the characters at the end of a text that may become one of the spellings."""
    longest = max(map(len, spellings), default=1) - 1
    tails = (text[-length:] for length in range(min(longest, len(text)), 0, -1))
    return next((len(tail) for tail in tails if any(s.startswith(tail) and s != tail for s in spellings)), 0)


# Which reader a parser gets.


class PassBy:
    """Nothing is read: the request offers no tools, so nothing in its content can be a call."""

    def read(self, text: str, *, ends: bool) -> Found:
        del ends
        return Found(text)


class WholeReply:
    """A reply read in one piece, given again when SGLang asks first whether there is a call and then for it."""

    def __init__(self, found: Found) -> None:
        calls: list[Any] = []
        for item in found.calls:
            if item.name is None:
                calls[-1].parameters += item.parameters
            else:
                calls.append(item)
        self._found = Found(found.text, calls)

    def read(self, text: str, *, ends: bool) -> Found:
        del text, ends
        return self._found


def reader_for(parser: Any, handoff: Handoff) -> Reader | None:
    """Choose the reader for SGLang's `FunctionCallParser`; None: its class reads other calls than the family's.

    Args:
        parser: the tool parser of the request.
        handoff: from the detector of the same choice.
    """
    if not parser.tools:
        return PassBy()
    family = handoff.family
    if family.channels:
        frame = _frame(family, parser)
        return frame and ChannelReader(Calls(parser), handoff, frame)
    reads = any(_takes(parser.detector, tool, shape) for tool in family.tools for shape in tool.shapes)
    return MarkerReader(Calls(parser), family) if reads else None


def _frame(family: Family, parser: Any) -> Frame | None:
    names = [name for name, made in type(parser).ToolCallParserEnum.items() if made is type(parser.detector)]
    return next((FRAMES[family.grammar, name] for name in names if (family.grammar, name) in FRAMES), None)


_EXAMPLES: Final = {BLANKS: "\n", ONE_SPACE: "", WORD: "function_calls", QUOTED_NAME: '"f"'}


def _takes(detector: Any, tool: Tool, shape: Shape) -> bool:
    """Tell whether a class takes what begins in this way for a call: it is asked."""
    begun = (_EXAMPLES.get(part.what, "f") if isinstance(part, Part) else part for part in shape)
    try:
        return bool(detector.has_tool_call(tool.marker + "".join(begun)))
    except Exception:  # a class that needs more than text
        return False
