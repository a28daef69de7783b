"""OpenAI chat completions: tags in `content` become the reasoning field, in bodies and in streams."""

from collections.abc import Callable
from typing import Any, Final

from vllm_reasoning_ext.core.events import Delta
from vllm_reasoning_ext.wire.jsontext import dumps, loads
from vllm_reasoning_ext.wire.sse import ServerEvent, compose
from vllm_reasoning_ext.wire.translation import TextSplit, Translation

_FIELDS: Final = ("reasoning", "reasoning_content")
_ENVELOPE: Final = ("id", "object", "created", "model", "system_fingerprint", "service_tier")
_CHOICE_OWN: Final = ("index", "delta")


def translate_chat(body: dict[str, Any], settings: Translation) -> bool:
    """Translate a chat completion in place.

    A message that has reasoning of its own is left alone.

    Returns:
        True when anything was changed.
    """
    changed = False
    choices = body.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict) or _has_reasoning(message):
            continue
        reason = choice.get("finish_reason")

        def once(text: str, reason: str | None = reason) -> Delta:
            return settings.once(text, "chat", reason)

        done = _rewrite(message, once, settings)
        changed = changed or done
    return changed


def _has_reasoning(holder: dict[str, Any]) -> bool:
    return any(holder.get(field) for field in _FIELDS)


def _rewrite(holder: dict[str, Any], split: Callable[[str], Delta], settings: Translation) -> bool:
    """Split the text of a message or delta: its content, or each text part of it."""
    content = holder.get("content")
    if isinstance(content, str):
        if not content:
            return False
        delta = split(content)
        if delta.content == content and not delta.reasoning:
            return False
        holder["content"] = delta.content
        _set_reasoning(holder, delta.reasoning, settings)
        return True
    thoughts: list[str] = []
    changed = False
    for part in content if isinstance(content, list) else ():
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        if not isinstance(text, str) or not text:
            continue
        delta = split(text)
        if delta.reasoning:
            thoughts.append(delta.reasoning)
        if delta.content != text:
            part["text"] = delta.content
            changed = True
    _set_reasoning(holder, settings.joiner.join(thoughts), settings)
    return changed or bool(thoughts)


def _set_reasoning(holder: dict[str, Any], text: str, settings: Translation) -> None:
    if text:
        for field in _FIELDS:
            if settings.reasoning_field in (field, "both"):
                holder[field] = text


class _Choice:
    """One choice of a stream: its split, and whether it is passed on as it is."""

    __slots__ = ("passing", "split")

    def __init__(self, split: TextSplit) -> None:
        self.split = split
        self.passing = False  # finished, or upstream sends reasoning itself


class ChatStream:
    """Translates the chunks of a streamed chat completion (an `EventHandler`).

    One chunk comes out for one that goes in, all its choices rewritten; a chunk whose text is held goes out without
    the text if it carries anything else, otherwise not at all. Held text goes out before the finish reason.
    """

    def __init__(self, settings: Translation) -> None:
        self._settings = settings
        self._choices: dict[int, _Choice] = {}
        self._last: dict[str, Any] = {}
        self._newline = b"\n"

    def event(self, event: ServerEvent) -> list[bytes]:
        data = event.data
        if data is None:
            return [event.raw]
        if data.strip() == b"[DONE]":
            return [*self.end(), event.raw]
        chunk = loads(data)
        choices = chunk.get("choices") if isinstance(chunk, dict) else None
        if not isinstance(choices, list) or not choices:
            return [event.raw]
        self._newline = event.newline
        self._last = chunk
        before: list[dict[str, Any]] = []
        changed = carries = False
        for choice in choices:
            touched = isinstance(choice, dict) and self._choice(choice, before)
            changed = changed or touched
            carries = carries or not touched or _carries(choice)
        out = [self._flush(before)] if before else []
        if not changed:
            out.append(event.raw)
        elif carries or any(chunk[key] for key in chunk if key not in _ENVELOPE and key != "choices"):
            out.append(event.rewritten(dumps(chunk)))
        return out

    def end(self) -> list[bytes]:
        before: list[dict[str, Any]] = []
        for index, state in sorted(self._choices.items()):
            if not state.passing:
                state.passing = True
                self._hold_back(before, index, state.split.finish())
        return [self._flush(before)] if before else []

    def _choice(self, choice: dict[str, Any], before: list[dict[str, Any]]) -> bool:
        """Rewrite one choice's delta; what must go out ahead of the chunk is put into `before`."""
        index, delta, reason = choice.get("index", 0), choice.get("delta"), choice.get("finish_reason")
        if not isinstance(index, int) or not isinstance(delta, dict):
            return False
        state = self._choices.get(index)
        if state is None:
            state = self._choices[index] = _Choice(self._settings.text("chat", "stream"))
        if state.passing:
            return False
        if _has_reasoning(delta):
            state.passing = True
            self._hold_back(before, index, state.split.finish())
            return False
        had_text = bool(delta.get("content"))
        changed = _rewrite(delta, state.split.feed, self._settings)
        if reason is not None:
            state.passing = True
            rest = state.split.finish(reason)
            if not had_text:
                self._hold_back(before, index, rest)
            elif rest.content or rest.reasoning:
                changed = True
                self._append(delta, rest)
        if changed:
            _drop_empty(delta)
        return changed

    def _append(self, delta: dict[str, Any], rest: Delta) -> None:
        if isinstance(delta["content"], list):
            delta["content"].append({"type": "text", "text": rest.content})
        else:
            delta["content"] += rest.content
        before = next((delta[field] for field in _FIELDS if delta.get(field)), "")
        _set_reasoning(delta, before + rest.reasoning, self._settings)

    def _hold_back(self, before: list[dict[str, Any]], index: int, rest: Delta) -> None:
        if rest.content or rest.reasoning:
            delta: dict[str, Any] = {"content": rest.content} if rest.content else {}
            _set_reasoning(delta, rest.reasoning, self._settings)
            before.append({"index": index, "delta": delta, "finish_reason": None})

    def _flush(self, choices: list[dict[str, Any]]) -> bytes:
        envelope: dict[str, Any] = {key: self._last[key] for key in _ENVELOPE if key in self._last}
        return compose(dumps(envelope | {"choices": choices}), newline=self._newline)


def _drop_empty(delta: dict[str, Any]) -> None:
    content = delta.get("content")
    if isinstance(content, list):
        kept = [part for part in content if not (isinstance(part, dict) and part.get("text") == "")]
        delta["content"] = content = kept
    if not content:
        delta.pop("content", None)


def _carries(choice: dict[str, Any]) -> bool:
    """Tell whether a choice still says anything: text, role, tool calls, a finish reason, log probabilities."""
    own = any(value for key, value in choice.items() if key not in _CHOICE_OWN)
    return own or any(choice["delta"].values())
