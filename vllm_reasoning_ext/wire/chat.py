"""OpenAI chat completions: tags in `content` become the reasoning field, in bodies and in streams.

A content is one text, whether it comes as a string or as typed parts: a tag may be cut between two parts, and a body
gives what the stream of the same text gives.
"""

from typing import Any, Final

from vllm_reasoning_ext.core.events import MARKER, REASONING, Delta, Event
from vllm_reasoning_ext.wire.jsontext import dumps, loads
from vllm_reasoning_ext.wire.sse import ServerEvent, compose, is_last_word
from vllm_reasoning_ext.wire.translation import TextSplit, Translation

_FIELDS: Final = ("reasoning", "reasoning_content")
_ENVELOPE: Final = ("id", "object", "created", "model", "system_fingerprint", "service_tier")
_CHOICE_OWN: Final = ("index", "delta")
_THOUGHT_TYPES: Final = ("thinking", "reasoning", "redacted_thinking")


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
        if isinstance(message, dict) and not _has_reasoning(message):
            done = _translate_message(message, _reason(choice), settings)
            changed = changed or done
    return changed


def _reason(choice: dict[str, Any]) -> str | None:
    """Read the finish reason; some servers write "" for none."""
    reason = choice.get("finish_reason")
    return reason if isinstance(reason, str) and reason else None


def _has_reasoning(holder: dict[str, Any]) -> bool:
    """Tell whether a message or delta has reasoning of its own: in a field, or as a typed part (Mistral)."""
    if any(holder.get(field) for field in _FIELDS):
        return True
    content = holder.get("content")
    parts = content if isinstance(content, list) else ()
    return any(isinstance(part, dict) and part.get("type") in _THOUGHT_TYPES for part in parts)


def _text_parts(content: object) -> list[dict[str, Any]]:
    """Give the text parts of a content that is a list of parts."""
    return [
        part
        for part in (content if isinstance(content, list) else ())
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    ]


def _translate_message(message: dict[str, Any], reason: str | None, settings: Translation) -> bool:
    content = message.get("content")
    parts = _text_parts(content)
    texts = [content] if isinstance(content, str) else [part["text"] for part in parts]
    text = "".join(texts)
    if not text:
        return False
    delta = settings.once(text, "chat", reason)
    if delta.content == text and not delta.reasoning:
        return False
    if isinstance(content, str):
        message["content"] = delta.content
    else:
        for part, answer in zip(parts, _by_part(delta.events, texts), strict=True):
            part["text"] = answer
    _set_reasoning(message, delta.reasoning, settings)
    return True


def _by_part(events: tuple[Event, ...], texts: list[str]) -> list[str]:
    """Give each part the answer's characters that it had.

    The events that the model wrote, joined, are the text (law 1): a cursor over it says where each stood.
    """
    answers: list[list[str]] = [[] for _ in texts]
    ends = [sum(map(len, texts[: number + 1])) for number in range(len(texts))]
    place = number = 0
    for event in events:
        shown = event.kind is not MARKER and event.kind is not REASONING
        if event.synthetic:
            if shown:
                answers[number].append(event.text)
            continue
        text = event.text
        while text:
            while place >= ends[number]:
                number += 1
            piece = text[: ends[number] - place]
            if shown:
                answers[number].append(piece)
            place += len(piece)
            text = text[len(piece) :]
    return ["".join(answer) for answer in answers]


def _set_reasoning(holder: dict[str, Any], text: str, settings: Translation) -> None:
    if text:
        for field in _FIELDS:
            if settings.reasoning_field in (field, "both"):
                holder[field] = text


class ChatStream:
    """Translates the chunks of a streamed chat completion (an `EventHandler`).

    One chunk comes out for one that goes in, all its choices rewritten; a chunk whose text is held goes out without
    the text if it carries anything else, otherwise not at all. Held text goes out before the finish reason.
    """

    def __init__(self, settings: Translation) -> None:
        self._settings = settings
        self._splits: dict[int, TextSplit] = {}  # the choices that are being read
        self._passing: set[int] = set()  # finished, or with reasoning of their own: passed on as they are
        self._last: dict[str, Any] = {}
        self._newline = b"\n"

    def event(self, event: ServerEvent) -> list[bytes]:
        data = event.data
        if data is None:
            return [event.raw]
        chunk = loads(data)
        if is_last_word(event, chunk):
            return [*self.end(), event.raw]
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
        for index in sorted(self._splits):
            self._hold_back(before, index, self._pass_on(index))
        return [self._flush(before)] if before else []

    def _pass_on(self, index: int, reason: str | None = None) -> Delta:
        """End a choice's split, and keep nothing of it but that it has ended."""
        self._passing.add(index)
        split = self._splits.pop(index, None)
        return Delta() if split is None else split.finish(reason)

    def _choice(self, choice: dict[str, Any], before: list[dict[str, Any]]) -> bool:
        """Rewrite one choice's delta; what must go out ahead of the chunk is put into `before`."""
        index, delta, reason = choice.get("index", 0), choice.get("delta"), _reason(choice)
        if type(index) is not int or not isinstance(delta, dict) or index in self._passing:
            return False
        if _has_reasoning(delta):
            self._hold_back(before, index, self._pass_on(index))
            return False
        split = self._splits.get(index)
        if split is None:
            split = self._splits[index] = self._settings.text("chat", "stream")
        changed, has_text = self._feed(delta, split)
        if reason is not None:
            rest = self._pass_on(index, reason)
            if not has_text:
                self._hold_back(before, index, rest)
            elif rest.content or rest.reasoning:
                changed = True
                self._append(delta, rest)
        if changed:
            _drop_empty(delta)
        return changed

    def _feed(self, delta: dict[str, Any], split: TextSplit) -> tuple[bool, bool]:
        """Split the text of a delta; tells whether that changed anything, and whether there was any."""
        content = delta.get("content")
        parts = [delta] if isinstance(content, str) else _text_parts(content)
        key = "content" if isinstance(content, str) else "text"
        reasoning: list[str] = []
        changed = has_text = False
        for part in parts:
            text = part[key]
            if not text:
                continue
            has_text = True
            given = split.feed(text)
            if given.content != text:
                part[key] = given.content
                changed = True
            reasoning.append(given.reasoning)
        thoughts = "".join(reasoning)
        _set_reasoning(delta, thoughts, self._settings)
        return changed or bool(thoughts), has_text

    def _append(self, delta: dict[str, Any], rest: Delta) -> None:
        content = delta["content"]
        if isinstance(content, str):
            delta["content"] = content + rest.content
        else:
            content.append({"type": "text", "text": rest.content})
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
