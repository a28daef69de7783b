"""The Parser class that vLLM composes from a reasoning parser of this package and any tool parser: split once, route.

vLLM's own composition runs the reasoning parser until it reports an end and the tool parser after that, which
loses whatever does not come in this order (a call before or without a thought, a second thought, a call whose
block was never closed). Here every piece goes where it belongs: reasoning to the client, tool calls and what a
tool parser must search to the tool parser, the rest to the client. One path serves streaming and not.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any, Final

from vllm_reasoning_ext.core.events import CONTENT, MARKER, REASONING, TOOL, Delta, Event, Kind
from vllm_reasoning_ext.engines.guard import GuardedSplitter
from vllm_reasoning_ext.engines.logs import vllm_log
from vllm_reasoning_ext.engines.vllm import metrics as vllm_metrics
from vllm_reasoning_ext.engines.vllm.handover import IdWindow
from vllm_reasoning_ext.engines.vllm.lookup import DeltaMessage, delegating_parser, find_tool_parser, warn_moved
from vllm_reasoning_ext.engines.vllm.message import (
    answers_at_once,
    message,
    offers_tools,
    shows_reasoning,
    stop_lag,
)
from vllm_reasoning_ext.errors import SetupError

NEEDED: Final = ("_extract_tool_calls_streaming", "_extract_tool_calls", "_append_unstreamed_tool_args")
"""Methods of vLLM's DelegatingParser that this module calls; without them the plain contract serves."""


PLAIN_CONTRACT: Final = "a tool call that stands before, inside or without a thought may be lost"
"""What it costs when vLLM drives a parser through the methods of its ReasoningParser."""


def compose(owner: type) -> None:
    """Give a freshly composed Parser class parse, parse_delta and set_prompt_token_ids of this module.

    Left alone: a class that is no plain composition (it has a parse of its own), and a vLLM that composes in an
    unknown way. The ReasoningParser contract then serves.
    """
    try:
        base = delegating_parser()
    except ImportError:
        warn_moved("this vLLM composes its parsers elsewhere", PLAIN_CONTRACT)
        return
    missing = [name for name in NEEDED if not hasattr(base, name)]
    if missing:
        warn_moved(f"this vLLM's composed parser has no {', '.join(missing)}", PLAIN_CONTRACT)
        return
    if issubclass(owner, base) and all(getattr(owner, n) is getattr(base, n) for n in ("parse", "parse_delta")):
        owner.parse = _parse  # type: ignore[attr-defined]
        owner.parse_delta = _parse_delta  # type: ignore[attr-defined]
        owner.set_prompt_token_ids = _set_prompt_token_ids  # type: ignore[attr-defined]


def _set_prompt_token_ids(self: Any, prompt_token_ids: Sequence[int]) -> None:
    self._reasoning_parser.set_prompt_token_ids(prompt_token_ids)


def _parse(
    self: Any,
    model_output: str,
    request: Any,
    enable_auto_tools: bool = False,
    model_output_token_ids: Sequence[int] = (),
) -> tuple[str | None, str | None, Any]:
    _count_history(self, request)
    reasoning_parser = _reasoning_parser_for(self, request)
    splitter = reasoning_parser.begin(offers_tools(request), answer=answers_at_once(request))
    ids = list(model_output_token_ids) or None
    reason = reasoning_parser.finish_reason(request, len(model_output_token_ids), ids[-1] if ids else None)
    fed, last = splitter.feed(model_output, ids), splitter.finish(reason)
    reasoning = (fed.reasoning + last.reasoning) or None
    content = fed.content + last.content
    count(reasoning_parser, splitter, request, reason, bool(reasoning), bool(content.strip()))
    tools = self._tool_parser
    # What the model wrote is the answer where no call is allowed, and a thought given as the answer holds none.
    if tools is None or not offers_tools(request) or splitter.floored:
        return reasoning, content or None, []
    _leave_reasoning_alone(tools)
    if not _reads_slices_only(self, request):
        calls, rest = self._extract_tool_calls(
            content=content or None, request=request, enable_auto_tools=enable_auto_tools
        )
        # Where there is no call, all of it is answer: a call cut off, or text that the parser would not have.
        return reasoning, rest if calls else content or None, calls
    shown, calls = [], []
    for kind, text in _runs((*fed.events, *last.events)):
        found = None
        if kind is TOOL:
            found, _ = self._extract_tool_calls(content=text, request=request, enable_auto_tools=enable_auto_tools)
        if found:
            calls += found
        else:  # an answer, or a slice that holds no call: nothing may be lost, so it is shown as it is
            shown.append(text)
    return reasoning, "".join(shown) or None, calls


def _reasoning_parser_for(parser: Any, request: Any) -> Any:
    """Give the reasoning parser of a request; `auto` may choose another for a chat template of its own."""
    given = parser._reasoning_parser
    template = getattr(request, "chat_template", None)
    if given.of_template is not None and isinstance(template, str) and template:
        try:
            parser._reasoning_parser = given.of_template(template)
        except SetupError as error:
            vllm_log.warning("--reasoning-parser auto: a request's own chat template: %s", error)
        if given.prompt is not None:
            parser._reasoning_parser.set_prompt_token_ids(given.prompt)
    if parser._tool_parser is not None and given.tool_parsers:
        _check_calls(given.family.name, given.tool_parsers, parser._tool_parser.__class__)
    return parser._reasoning_parser


@cache
def _check_calls(family: str, fitting: tuple[str, ...], chosen: Any) -> None:
    """Say once where the server's tool-call parser is none of those that read the family's calls."""
    known = [find_tool_parser(name) for name in fitting]
    if chosen not in known and any(known):
        vllm_log.warning(
            "--reasoning-parser auto took family %s, whose calls --tool-call-parser %s reads; this server's is %s. "
            "(Said once.)",
            family,
            " or ".join(fitting),
            chosen.__name__,
        )


def _runs(events: Iterable[Event]) -> Iterator[tuple[Kind, str]]:
    """Join what stands together: answer text, and each tool slice by its edges."""
    slices = 0
    parts: list[tuple[Kind, int, str]] = []
    for event in events:
        if event.kind is not MARKER:
            slices += event.kind is TOOL and event.begins
            parts.append((event.kind, slices, event.text))
    for (kind, _), run in groupby(parts, key=lambda part: part[:2]):
        if kind is not REASONING:
            yield kind, "".join(text for *_, text in run)


def _parse_delta(
    self: Any,
    delta_text: str,
    delta_token_ids: list[int],
    request: Any,
    prompt_token_ids: list[int] | None = None,
    *,
    finished: bool,
) -> Any:
    stream = self.__dict__.get("_reasoning_ext_stream")
    if stream is None:
        _count_history(self, request)
        stream = self._reasoning_ext_stream = _Stream(self, request, prompt_token_ids)
    if finished:
        # The same object may parse the next turn of a Responses request.
        self._reasoning_ext_stream = None
        return stream.last(delta_text, delta_token_ids)
    return stream.next(delta_text, delta_token_ids)


def count(
    reasoning_parser: Any,
    splitter: GuardedSplitter,
    request: Any,
    reason: str | None,
    thought: bool,
    answered: bool,
) -> None:
    """Count a finished output for `/metrics`, and warn of what the operator should know."""
    family = reasoning_parser.family.name
    end = splitter.ended_by or ("unclosed" if thought else "none")
    starved = reason == "length" and thought and not answered
    start = splitter.start.kind
    surface = vllm_metrics.surface_of(request)
    split = vllm_metrics.Split(family, surface, start, end, splitter.floored, splitter.max_held, starved)
    vllm_metrics.record(split)
    if reasoning_parser.vocabulary.hidden and getattr(request, "skip_special_tokens", False) is True:
        vllm_metrics.warn_stripped(family)


def _count_history(parser: Any, request: Any) -> None:
    count = getattr(parser, "_initialize_history_tool_call_cnt", None)  # 0.25 on
    if count is not None:
        count(request)


def _leave_reasoning_alone(tool_parser: Any) -> None:
    """Make a tool parser that knows the family's reasoning markers too take those in an answer for text."""
    if hasattr(tool_parser, "skip_reasoning_parsing"):  # 0.32 on
        tool_parser.skip_reasoning_parsing = True


def _reads_slices_only(parser: Any, request: Any) -> bool:
    """Tell whether only tool slices go to the tool parser (channel grammars), or all content."""
    if not parser._reasoning_parser.family.channels:
        return False
    return not _dictates_json(parser, request)


def _dictates_json(parser: Any, request: Any) -> bool:
    """Tell whether vLLM constrains the answer itself to the JSON of a call, without any channel."""
    forced = request.tool_choice not in (None, "auto")
    return forced and getattr(parser._tool_parser, "supports_required_and_named", True)


class _Stream:
    """One choice of a streamed reply."""

    __slots__ = (
        "_announced",
        "_answered",
        "_before",
        "_last",
        "_only_slices",
        "_output",
        "_parser",
        "_parses_calls",
        "_reasoning",
        "_request",
        "_run",
        "_shows_reasoning",
        "_splitter",
        "_thought",
        "_tools",
        "_unshown",
        "_whole",
        "_window",
    )

    def __init__(self, parser: Any, request: Any, prompt_token_ids: list[int] | None) -> None:
        self._parser = parser
        self._request = request
        self._reasoning = _reasoning_parser_for(parser, request)
        self._tools = parser._tool_parser
        self._parses_calls = self._tools is not None and offers_tools(request)
        if self._parses_calls:
            _leave_reasoning_alone(self._tools)
        self._only_slices = self._parses_calls and _reads_slices_only(parser, request)
        self._shows_reasoning = shows_reasoning(request)
        self._output = 0
        self._last: int | None = None
        self._thought = self._answered = False
        self._announced = 0  # calls the tool parser has reported
        self._run: list[str] = []  # tool slices with nothing between, and the calls reported before them
        self._before = 0
        self._unshown = ""  # until it reports a call: what the tool parser has got and has not shown
        if prompt_token_ids is not None:
            self._reasoning.set_prompt_token_ids(prompt_token_ids)
        self._splitter = self._reasoning.begin(offers_tools(request), answer=answers_at_once(request))
        self._reasoning.lag = stop_lag(request)
        self._window = IdWindow(self._reasoning.vocabulary)
        # Only a parser that looks for calls with a machine of its own does without all of the text so far.
        self._whole = not getattr(self._tools, "engine_based_streaming", False) or _dictates_json(parser, request)
        if self._parses_calls and not self._only_slices and not self._whole:
            # Such a parser may mend what it takes for a lost opener, in its first delta only: let that one be empty.
            self._call("", [])

    def next(self, text: str, ids: Sequence[int]) -> Any:
        """Parse one delta that is not the last."""
        if ids:
            self._output += len(ids)
            self._last = ids[-1]
        delta = self._splitter.feed(text, ids)
        reasoning = delta.reasoning
        if reasoning:
            self._thought = True
        if self._parses_calls and not self._only_slices:
            self._window.track(text, ids, delta)
        if not delta.content:
            # Nearly every delta of a thought ends here.
            return DeltaMessage(reasoning=reasoning) if reasoning and self._shows_reasoning else None
        self._answered = self._answered or not delta.content.isspace()
        shown = reasoning if self._shows_reasoning else ""
        return self._route(delta, shown) if self._parses_calls else message(shown, delta.content)

    def last(self, text: str, ids: Sequence[int]) -> Any:
        """Parse the last delta and release what is held."""
        if ids:
            self._output += len(ids)
            self._last = ids[-1]
        fed = self._splitter.feed(text, ids)
        reasoning_parser = self._reasoning
        reasoning_parser.lag = 0
        reason = reasoning_parser.finish_reason(self._request, self._output, self._last)
        end = self._splitter.finish(reason).events
        promoted = end[-1].text if self._splitter.floored else ""  # a thought given as the answer holds no call
        end = end[:-1] if promoted else end
        delta = Delta((*fed.events, *end)) if end else fed
        thought = self._thought or bool(delta.reasoning)
        answered = self._answered or bool(delta.content.strip() or promoted)
        count(reasoning_parser, self._splitter, self._request, reason, thought, answered)
        reasoning = delta.reasoning if self._shows_reasoning else ""
        if not self._parses_calls:
            return message(reasoning, delta.content + promoted)
        if not self._only_slices:
            self._window.track(text, ids, delta)
        found = self._close(self._route(delta, reasoning))
        rest = self._unread() if self._only_slices else self._withheld()
        return _joined(found, message("", rest + promoted))

    def _route(self, delta: Delta, reasoning: str) -> Any:
        """Send what the tool parser reads to it, and merge its message with reasoning_parser."""
        found = message(reasoning, "")
        if not self._only_slices:
            if delta.content:
                if not self._announced:
                    self._unshown += delta.content
                found = _joined(found, self._noted(self._call(delta.content, self._window.take(delta))))
            return found
        slices = ""
        for event in delta.events:
            kind, text = event.kind, event.text
            if kind is TOOL:
                if event.begins and self._run:
                    # The slice before has ended: what it held is told before the next one begins.
                    if slices:
                        found, slices = _joined(found, self._call(slices, [])), ""
                    found = _joined(found, message("", self._unread()))
                if not self._run:
                    self._before = self._announced
                self._run.append(text)
                slices += text
            elif kind is not MARKER:
                if slices:
                    found, slices = _joined(found, self._call(slices, [])), ""
                found = _joined(found, message("", self._unread() + (text if kind is CONTENT else "")))
        return _joined(found, self._call(slices, [])) if slices else found

    def _unread(self) -> str:
        """End a run of tool slices; give it back if the tool parser found no call in it."""
        run, self._run = self._run, []
        return "".join(run) if run and self._announced == self._before else ""

    def _noted(self, found: Any) -> Any:
        """Restore, as long as there is no call, what the tool parser swallowed before the text that it shows."""
        if found is not None and found.content and not self._announced:
            end = _reach(self._unshown, found.content)
            if end > len(found.content):
                found.content = self._unshown[:end]
            # Text that it changed cannot be followed: what it swallows from then on is its own affair.
            self._unshown = self._unshown[end:] if end >= 0 else ""
        return found

    def _withheld(self) -> str:
        """Give back, at the end of an output without calls, what the tool parser took for one and never showed."""
        return self._unshown if not self._announced and not self._unshown.isspace() else ""

    def _call(self, text: str, ids: list[int]) -> Any:
        """Feed the tool parser."""
        state, parser = self._parser._stream_state, self._parser
        before, before_ids = (state.previous_text, state.previous_token_ids) if self._whole else ("", [])
        try:
            found, state.function_name_returned = parser._extract_tool_calls_streaming(
                previous_text=before,
                current_text=before + text,
                delta_text=text,
                previous_token_ids=before_ids,
                current_token_ids=before_ids + ids,
                delta_token_ids=ids,
                request=self._request,
                tool_call_idx=state.history_tool_call_cnt,
                tool_call_id_type=state.tool_call_id_type,
                function_name_returned=state.function_name_returned,
            )
        except Exception as error:
            vllm_log.warning("the tool parser failed (%s); its text goes on as content", type(error).__name__)
            found = message("", text)
        if self._whole:
            state.previous_text, state.previous_token_ids = before + text, before_ids + ids
        if found is None:
            return None
        # A tool parser that knows the grammar may report thoughts too; reasoning_parser are the ones that count.
        found.reasoning = None
        begun = sum(call.id is not None for call in found.tool_calls)
        self._announced += begun
        state.history_tool_call_cnt += begun
        return found

    def _close(self, found: Any) -> Any:
        """Let the tool parser release what it holds."""
        self._parser._append_unstreamed_tool_args(found)
        if not getattr(self._tools, "engine_based_streaming", False):
            return found
        rest = self._tools.finish_streaming()
        if rest is None:
            return found
        rest.reasoning = None
        self._announced += sum(call.id is not None for call in rest.tool_calls)
        return _joined(found, rest if self._only_slices else self._noted(rest))


def _reach(text: str, shown: str) -> int:
    """Find where a text ends whose characters are `shown`, in order, with gaps; -1 where it has others."""
    if text.startswith(shown):
        return len(shown)
    end = 0
    for character in shown:
        end = text.find(character, end) + 1
        if not end:
            return -1
    return end


def _joined(first: Any, second: Any) -> Any:
    """Join two messages; None where there is nothing to send."""
    if first is None or second is None:
        found = first or second
        return found if found and (found.reasoning or found.content or found.tool_calls) else None
    if second.content:
        first.content = (first.content or "") + second.content
    if second.tool_calls:
        first.tool_calls = [*first.tool_calls, *second.tool_calls]
    return first
