"""One streamed turn of an OpenAI-style endpoint: answer and reasoning kept apart.

Reasoning arrives as a field of its own (`reasoning`, `reasoning_content`), as a typed part of a content list, or
as an inline tag in the text. `extract_openai_delta` sorts the first two, `StreamTextAccumulator` the third.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypedDict, get_args

from vllm_reasoning_ext.core.events import Delta
from vllm_reasoning_ext.core.floor import FloorPolicy
from vllm_reasoning_ext.core.grammar.inline import Inline

_REASONING_FIELDS: Final = ("reasoning", "reasoning_content")
_PART_TEXTS: Final = ("text", "thinking", "reasoning", "content")


class StreamTextFragments(NamedTuple):
    """What one chunk carries, in order.

    Attributes:
        content: pieces of answer text, inline tags still in them.
        reasoning: pieces that came in a reasoning field or part.
    """

    content: list[str]
    reasoning: list[str]


class TextDelta(TypedDict, total=False):
    """What a live view gets: one of the two fields."""

    content: str
    reasoning: str


class Turn(NamedTuple):
    """A finished turn.

    Attributes:
        content: the answer.
        reasoning: the reasoning.
    """

    content: str
    reasoning: str


TextEmit = Callable[[TextDelta], object]


def extract_openai_delta(chunk: object, *, allow_reasoning: bool = True) -> StreamTextFragments:
    """Sort the text of one chat-completion chunk into answer and reasoning.

    Args:
        chunk: the decoded chunk (a mapping, or an SDK object with `model_dump`). Read are its first choice's
            `delta.content` (a string or typed parts), `delta.reasoning` and `delta.reasoning_content` (strings
            or lists), and the chunk's own `reasoning_summary`. Anything of another shape is passed over.
        allow_reasoning: False puts everything into the answer.

    Returns:
        the pieces. Both reasoning fields with the same text (servers that offer both names) count once.
    """
    root = _mapping(chunk)
    delta = _mapping(_first(chunk).get("delta"))
    content: list[str] = []
    reasoning: list[str] = [] if allow_reasoning else content
    body = delta.get("content")
    for part in body if isinstance(body, (list, tuple)) else [body]:
        kind = "" if isinstance(part, str) else str(_mapping(part).get("type") or "").lower()
        _append(reasoning if "reason" in kind or "think" in kind else content, _text(part))
    fields = [text for text in (_text(delta.get(name)) for name in _REASONING_FIELDS) if text]
    reasoning.extend(fields[:1] if len(set(fields)) == 1 else fields)
    _append(reasoning, _text(root.get("reasoning_summary")))
    return StreamTextFragments(content, [] if reasoning is content else reasoning)


class StreamTextAccumulator:
    """Accumulate one streamed turn, inline reasoning split off as it comes.

    Structured reasoning and inline reasoning add up. What has been emitted is never taken back.

    Args:
        floor: "promote": a turn without a tool call whose answer is blank gets its trimmed reasoning as the
            answer too, unless it was cut for length ("never an empty reply"); "off": it stays empty.
        tags, where, unclosed, joiner, max_buffer_bytes: as for `Splitter("inline", ...)`.

    Raises:
        ValueError: an unknown `floor`, `where` or `unclosed`, or a malformed tag pair.
    """

    __slots__ = ("_content", "_cut", "_floor", "_inline", "_reasoning", "_tool_calls")

    def __init__(
        self,
        *,
        floor: FloorPolicy = "promote",
        tags: str | Iterable[Sequence[str]] | None = None,
        where: str = "prose",
        unclosed: str = "reasoning",
        joiner: str = "\n",
        max_buffer_bytes: int = 65536,
    ) -> None:
        if floor not in get_args(FloorPolicy):
            raise ValueError(f"floor={floor!r} is unknown: use one of {', '.join(get_args(FloorPolicy))}")
        self._inline = Inline(tags, where, unclosed, joiner, max_buffer_bytes)
        self._floor = floor
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._tool_calls = False
        self._cut = False

    def push(self, fragments: StreamTextFragments | Mapping[str, Iterable[str]], emit: TextEmit | None = None) -> None:
        """Take the pieces of one chunk.

        Args:
            fragments: what `extract_openai_delta` gives, or a mapping with `content` and/or `reasoning`.
            emit: called with each piece as soon as it is sorted; a piece's answer before its reasoning.

        Raises:
            RuntimeError: the turn has been finished.
        """
        if isinstance(fragments, StreamTextFragments):
            content, reasoning = fragments.content, fragments.reasoning
        else:
            content, reasoning = list(fragments.get("content", ())), list(fragments.get("reasoning", ()))
        for piece in content:
            self._take(self._inline.feed(piece), emit)
        for piece in reasoning:
            self._put(piece, emit, self._reasoning, "reasoning")

    def push_chunk(self, chunk: object, emit: TextEmit | None = None) -> None:
        """Take one decoded chat-completion chunk, and note its tool calls and finish reason for the floor."""
        first = _first(chunk)
        delta = _mapping(first.get("delta"))
        self._tool_calls = self._tool_calls or bool(delta.get("tool_calls") or delta.get("function_call"))
        self._cut = self._cut or first.get("finish_reason") == "length"
        self.push(extract_openai_delta(chunk), emit)

    def finish(
        self, emit: TextEmit | None = None, *, tool_calls: bool = False, finish_reason: str | None = None
    ) -> Turn:
        """Release what is held and report the turn.

        Args:
            emit: called with what is released; not with what the floor adds, which is no new text.
            tool_calls: True when the turn has called a tool: an empty answer is right then.
            finish_reason: the endpoint's; after "length" an empty answer stays empty.

        Raises:
            RuntimeError: the turn has been finished already.
        """
        self._take(self._inline.finish(), emit)
        content, reasoning = "".join(self._content), "".join(self._reasoning)
        complete = not (tool_calls or self._tool_calls or self._cut or finish_reason == "length")
        if self._floor == "promote" and complete and not content.strip():
            content = reasoning.strip() or content
        return Turn(content, reasoning)

    def _take(self, delta: Delta, emit: TextEmit | None) -> None:
        self._put(delta.content, emit, self._content, "content")
        self._put(delta.reasoning, emit, self._reasoning, "reasoning")

    def _put(self, text: str, emit: TextEmit | None, total: list[str], name: str) -> None:
        if not text:
            return
        total.append(text)
        if emit is not None:
            emit({"content": text} if name == "content" else {"reasoning": text})


def _mapping(value: object) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    dumped = dump() if callable(dump) else None
    return dumped if isinstance(dumped, Mapping) else {}


def _first(chunk: object) -> Mapping[str, Any]:
    choices = _mapping(chunk).get("choices")
    return _mapping(choices[0]) if isinstance(choices, (list, tuple)) and choices else {}


def _text(value: object, depth: int = 4) -> str:
    """Read the text of a field or part: a string, a part with one, or a list of either (`depth` levels)."""
    if isinstance(value, str) or not value or not depth:
        return value if isinstance(value, str) else ""
    if isinstance(value, (list, tuple)):
        return "".join(_text(item, depth - 1) for item in value)
    part = _mapping(value)
    return next((text for text in (_text(part.get(name), depth - 1) for name in _PART_TEXTS) if text), "")


def _append(pieces: list[str], text: str) -> None:
    if text:
        pieces.append(text)
