"""OpenAI Responses streams: reasoning items with their whole life, in the numbering the client expects.

A message item is announced with its first visible character, so that reasoning before it gets the lower output index;
items announced later move up. Every event keeps its fields; `sequence_number` and `output_index` are counted anew,
and an event in which neither changes is copied byte for byte.
"""

from typing import Any, Final

from vllm_reasoning_ext.wire.jsontext import dumps, loads
from vllm_reasoning_ext.wire.responses import (
    is_item,
    reasoning_id,
    reasoning_item,
    text_parts,
    translate_response,
)
from vllm_reasoning_ext.wire.sse import ServerEvent, compose
from vllm_reasoning_ext.wire.translation import Run, TextSplit, Translation, runs

_ENDS: Final = ("response.completed", "response.incomplete", "response.failed", "error")


class _Thought:
    """A reasoning item that is open towards the client."""

    __slots__ = ("id", "index", "text")

    def __init__(self, item_id: str, index: int) -> None:
        self.id, self.index = item_id, index
        self.text: list[str] = []


class _Message:
    """An upstream message item."""

    __slots__ = ("held", "id", "out", "splits", "template", "thought", "thoughts", "upstream")

    def __init__(self, item_id: object, upstream: int) -> None:
        self.id, self.upstream = item_id, upstream
        self.out: int | None = None  # its output index towards the client, once it is announced
        self.held: list[tuple[ServerEvent, dict[str, Any]]] = []
        self.splits: dict[int, TextSplit] = {}
        self.template: dict[str, Any] = {}
        self.thought: _Thought | None = None
        self.thoughts = 0


class _Numbers:
    """The sequence numbers towards the client: upstream's, moved by what was put in and left out."""

    __slots__ = ("last", "shift")

    def __init__(self) -> None:
        self.last: int | None = None
        self.shift = 0

    def passed(self, payload: dict[str, Any]) -> int | None:
        number = payload.get("sequence_number")
        if not isinstance(number, int):
            return None
        self.last = number + self.shift
        return self.last

    def left_out(self, payload: dict[str, Any]) -> None:
        if isinstance(payload.get("sequence_number"), int):
            self.shift -= 1
            if self.last is None:
                self.last = payload["sequence_number"] - 1

    def put_in(self) -> int | None:
        if self.last is None:
            return None
        self.shift += 1
        self.last += 1
        return self.last


class ResponsesStream:
    """Translates the events of a streamed response (an `EventHandler`)."""

    def __init__(self, settings: Translation) -> None:
        self._settings = settings
        self._full = settings.responses_events == "full"
        self._native = False
        self._messages: dict[int, _Message] = {}
        self._indexes: dict[int, int] = {}
        self._next = 0
        self._made = 0  # reasoning items
        self._inserted: dict[int, dict[str, Any]] = {}
        self._numbers = _Numbers()
        self._newline = b"\n"

    def event(self, event: ServerEvent) -> list[bytes]:
        payload = loads(event.data) if event.data is not None else None
        if not isinstance(payload, dict):
            done = event.data is not None and event.data.strip() == b"[DONE]"
            return [*self.end(), event.raw] if done else [event.raw]
        self._newline = event.newline
        kind = payload.get("type")
        if kind in _ENDS:
            return [*self.end(), self._last(event, payload)]
        index = payload.get("output_index")
        if not isinstance(index, int):
            return [self._send(event, payload)]
        if kind == "response.output_item.added":
            return self._added(event, payload, index)
        message = self._messages.get(index)
        if message is None and kind == "response.output_text.delta" and index not in self._indexes:
            message = self._messages[index] = _Message(payload.get("item_id"), index)
        if message is None:
            return [self._send(event, payload, index=self._indexes.get(index, index))]
        return self._of_message(message, event, payload)

    def end(self) -> list[bytes]:
        out: list[bytes] = []
        for message in self._messages.values():
            out += self._flush(message) + self._close(message)
            if message.held:
                out += self._announce(message)
        return out

    # -- items

    def _added(self, event: ServerEvent, payload: dict[str, Any], index: int) -> list[bytes]:
        item = payload.get("item")
        out = self.end()
        if not isinstance(item, dict) or not is_item(item, "message") or self._native:
            self._native = self._native or is_item(item, "reasoning")
            return [*out, self._send(event, payload, index=self._take_index(index))]
        message = self._messages[index] = _Message(item.get("id"), index)
        message.held.append((event, payload))
        self._numbers.left_out(payload)
        return out if self._full else out + self._announce(message)

    def _take_index(self, upstream: int | None = None) -> int:
        index = self._next
        if upstream is not None:
            # Upstream may have announced nothing before; its own numbering is then the least there is.
            index = self._indexes[upstream] = max(index, upstream + self._made)
        self._next = index + 1
        return index

    def _announce(self, message: _Message) -> list[bytes]:
        """Send what announces a message, if that was held, with the index it gets now."""
        if message.out is None:
            message.out = self._take_index(message.upstream)
        out = [self._replay(event, payload, message.out) for event, payload in message.held]
        message.held.clear()
        return out

    def _replay(self, event: ServerEvent, payload: dict[str, Any], index: int) -> bytes:
        number = self._numbers.put_in() if isinstance(payload.get("sequence_number"), int) else None
        return self._write(event, payload, number, index)

    # -- one message

    def _of_message(self, message: _Message, event: ServerEvent, payload: dict[str, Any]) -> list[bytes]:
        kind = payload.get("type")
        if kind == "response.content_part.added" and message.out is None and not message.splits:
            message.held.append((event, payload))
            self._numbers.left_out(payload)
            return []
        if kind == "response.output_text.delta" and isinstance(payload.get("delta"), str):
            return self._delta(message, event, payload)
        out: list[bytes] = []
        changed = payload
        if kind == "response.output_text.done" and isinstance(payload.get("text"), str):
            out = self._done(message, payload)
            changed = {**payload, "text": self._settings.cleaned(payload["text"])}
        elif kind == "response.content_part.done":
            out = self._flush(message)
            changed = {**payload, "part": self._cleaned_parts({"content": [payload.get("part")]})["content"][0]}
        elif kind == "response.output_item.done":
            out = self._flush(message) + self._close(message)
            if isinstance(payload.get("item"), dict):
                changed = {**payload, "item": self._cleaned_parts(payload["item"])}
        out += self._announce(message)
        if kind == "response.output_item.done":
            self._messages.pop(message.upstream, None)
        return [*out, self._send(event, payload, changed, message.out)]

    def _done(self, message: _Message, payload: dict[str, Any]) -> list[bytes]:
        content_index = _content_index(payload)
        if content_index in message.splits:
            return self._flush(message)
        # No delta came: the text is taken as one, for its reasoning.
        split = self._split(message, content_index)
        message.template = {**payload, "type": "response.output_text.delta"}
        message.template.pop("text", None)
        pieces = runs(split.feed(payload["text"]).events + split.finish().events)
        if not any(run.reasoning for run in pieces):
            return []
        return self._runs(message, pieces) + self._settle(message)

    def _split(self, message: _Message, content_index: int) -> TextSplit:
        if content_index not in message.splits:
            message.splits[content_index] = self._settings.text("responses", "stream")
        return message.splits[content_index]

    def _delta(self, message: _Message, event: ServerEvent, payload: dict[str, Any]) -> list[bytes]:
        message.template = payload
        split = self._split(message, _content_index(payload))
        if split.closed:
            return [self._send(event, payload, index=message.out)]
        if not payload["delta"] and message.out is None:
            self._numbers.left_out(payload)
            return []
        delta = split.feed(payload["delta"])
        if delta.content == payload["delta"] and not delta.reasoning:
            out = self._settle(message) + self._announce(message)
            return [*out, self._send(event, payload, index=message.out)]
        pieces = runs(delta.events)
        if not self._full:
            # The short form sends what a chunk holds of either kind as one delta, reasoning first.
            both = (Run(True, delta.reasoning), Run(False, delta.content))
            pieces = [run for run in both if run.text]
        self._numbers.left_out(payload)
        return self._runs(message, pieces)

    def _runs(self, message: _Message, pieces: list[Run]) -> list[bytes]:
        out: list[bytes] = []
        for run in pieces:
            if run.reasoning:
                out += self._reasoning(message, run)
                continue
            out += self._settle(message) + self._announce(message)
            fields = {**message.template, "delta": run.text, "output_index": message.out}
            out.append(self._new(fields))
            if "logprobs" in message.template:
                # They belong to the whole delta: they go with its first piece.
                message.template = {**message.template, "logprobs": []}
        return out

    def _flush(self, message: _Message) -> list[bytes]:
        out: list[bytes] = []
        for content_index, split in message.splits.items():
            message.template = {**message.template, "content_index": content_index}
            if "logprobs" in message.template:
                message.template["logprobs"] = []
            out += self._runs(message, runs(split.finish().events))
        return out + self._settle(message)

    def _settle(self, message: _Message) -> list[bytes]:
        """Close the open reasoning item before the message goes on; the seed's form keeps it open."""
        return self._close(message) if self._full else []

    # -- one reasoning item

    def _reasoning(self, message: _Message, run: Run) -> list[bytes]:
        out: list[bytes] = []
        text = run.joiner + run.text
        thought = message.thought
        if thought is None:
            text = run.text
            item_id = reasoning_id(message.id, message.thoughts)
            thought = message.thought = _Thought(item_id, self._take_index())
            message.thoughts += 1
            self._made += 1
            item = reasoning_item(item_id, None)
            out.append(self._of_thought("response.output_item.added", thought, item=item))
            if self._full:
                part = {"type": "reasoning_text", "text": ""}
                out.append(self._of_part("response.content_part.added", thought, part=part))
        thought.text.append(text)
        out.append(self._of_part("response.reasoning_text.delta", thought, delta=text))
        return out

    def _close(self, message: _Message) -> list[bytes]:
        thought, message.thought = message.thought, None
        if thought is None:
            return []
        text = "".join(thought.text)
        item = self._inserted[thought.index] = reasoning_item(thought.id, text)
        out: list[bytes] = []
        if self._full:
            part = {"type": "reasoning_text", "text": text}
            out.append(self._of_part("response.reasoning_text.done", thought, text=text))
            out.append(self._of_part("response.content_part.done", thought, part=part))
        return [*out, self._of_thought("response.output_item.done", thought, item=item)]

    def _of_thought(self, kind: str, thought: _Thought, **fields: Any) -> bytes:
        return self._new({"type": kind, "output_index": thought.index, **fields})

    def _of_part(self, kind: str, thought: _Thought, **fields: Any) -> bytes:
        place = {"item_id": thought.id, "output_index": thought.index, "content_index": 0}
        return self._new({"type": kind, **place, **fields})

    # -- the end, and writing

    def _last(self, event: ServerEvent, payload: dict[str, Any]) -> bytes:
        response = payload.get("response")
        output = response.get("output") if isinstance(response, dict) else None
        if not isinstance(response, dict) or not isinstance(output, list) or not output:
            return self._send(event, payload)
        if not self._indexes:
            # Nothing was streamed but the end.
            changed = {**payload, "response": {**response}}
            done = translate_response(changed["response"], self._settings)
            return self._send(event, payload, changed if done else payload)
        items: dict[int, Any] = dict(self._inserted)
        native = False
        for place, item in enumerate(output):
            native = native or is_item(item, "reasoning")
            index = self._indexes.get(place, place + len(self._inserted))
            items[index] = self._cleaned_parts(item) if is_item(item, "message") and not native else item
        merged = [items[index] for index in sorted(items)]
        return self._send(event, payload, {**payload, "response": {**response, "output": merged}})

    def _cleaned_parts(self, item: dict[str, Any]) -> dict[str, Any]:
        texts = {id(part) for part in text_parts(item)}
        content = item.get("content")
        if not texts or not isinstance(content, list):
            return item
        parts = [
            {**part, "text": self._settings.cleaned(part["text"])} if id(part) in texts else part for part in content
        ]
        return {**item, "content": parts}

    def _send(
        self,
        event: ServerEvent,
        payload: dict[str, Any],
        changed: dict[str, Any] | None = None,
        index: int | None = None,
    ) -> bytes:
        number = self._numbers.passed(payload)
        if changed is None or changed == payload:
            return self._write(event, payload, number, index)
        return event.rewritten(dumps(self._numbered(changed, number, index)))

    def _write(self, event: ServerEvent, payload: dict[str, Any], number: int | None, index: int | None) -> bytes:
        numbered = self._numbered(payload, number, index)
        return event.raw if numbered == payload else event.rewritten(dumps(numbered))

    def _numbered(self, payload: dict[str, Any], number: int | None, index: int | None) -> dict[str, Any]:
        out = dict(payload)
        if number is not None:
            out["sequence_number"] = number
        if index is not None and "output_index" in out:
            out["output_index"] = index
        return out

    def _new(self, payload: dict[str, Any]) -> bytes:
        fields = {key: value for key, value in payload.items() if key != "sequence_number"}
        number = self._numbers.put_in()
        if number is not None:
            fields["sequence_number"] = number
        return compose(dumps(fields), fields["type"].encode(), self._newline)


def _content_index(payload: dict[str, Any]) -> int:
    index = payload.get("content_index")
    return index if isinstance(index, int) else 0
