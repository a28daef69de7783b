"""OpenAI Responses streams: reasoning items with their whole life, in the numbering the client expects.

A message item is announced with its first visible character, so that reasoning before it gets the lower output index;
items announced later move up. Until then its announcement waits in a queue, in the order of the stream, which goes out
whole before anything of another item does: untagged streams come out byte for byte. Every event keeps its fields;
`sequence_number` and `output_index` are moved by what was put in, and an event in which neither changes is copied.
"""

from collections.abc import Iterable
from typing import Any, Final

from vllm_reasoning_ext.wire.jsontext import dumps, loads
from vllm_reasoning_ext.wire.numbering import Numbers, Places
from vllm_reasoning_ext.wire.responses import (
    is_item,
    reasoning_id,
    reasoning_item,
    text_parts,
    translate_response,
)
from vllm_reasoning_ext.wire.sse import ServerEvent, compose, is_last_word
from vllm_reasoning_ext.wire.translation import Run, TextSplit, Translation, runs

_ENDS: Final = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


class _Thought:
    """A reasoning item that is open towards the client."""

    __slots__ = ("id", "index", "text")

    def __init__(self, item_id: str, index: int) -> None:
        self.id, self.index = item_id, index
        self.text: list[str] = []


class _Message:
    """An upstream message item."""

    __slots__ = ("held", "id", "out", "queued", "splits", "template", "thought", "thoughts", "upstream")

    def __init__(self, item_id: object, upstream: int) -> None:
        self.id, self.upstream = item_id, upstream
        self.out: int | None = None  # its output index towards the client, once it is announced
        self.queued = True  # what announces it waits in the stream's queue; else, until it is announced, in `held`
        self.held: list[_Waiting] = []
        self.splits: dict[int, TextSplit | None] = {}  # by content index; None when its text is over
        self.template: dict[str, Any] = {}
        self.thought: _Thought | None = None
        self.thoughts = 0


class _Waiting:
    """An event that waits: of a message's announcement, or a keep-alive (without a message)."""

    __slots__ = ("event", "message", "payload")

    def __init__(self, message: _Message | None, event: ServerEvent, payload: dict[str, Any]) -> None:
        self.message, self.event, self.payload = message, event, payload


class ResponsesStream:
    """Translates the events of a streamed response (an `EventHandler`)."""

    def __init__(self, settings: Translation) -> None:
        self._settings = settings
        self._full = settings.responses_events == "full"
        self._newline = b"\n"
        self._numbers = Numbers()
        self._begin()

    def _begin(self) -> None:
        """Begin a response."""
        self._native = False
        self._messages: dict[int, _Message] = {}
        self._queue: list[_Waiting] = []
        self._aside = False  # a keep-alive is in the queue
        self._reading = False  # text has come for an announcement in the queue: it may wait long
        self._thinking = 0  # messages that are not announced yet, though reasoning before them is
        self._places = Places()
        self._inserted: dict[int, dict[str, Any]] = {}

    def event(self, event: ServerEvent) -> list[bytes]:
        payload = loads(event.data) if event.data is not None else None
        if not isinstance(payload, dict):
            return [*self.end(), event.raw] if is_last_word(event, payload) else self._keep_alive(event, {})
        self._newline = event.newline
        kind = payload.get("type")
        if kind in _ENDS or is_last_word(event, payload):
            return [*self.end(), self._last(event, payload)]
        if kind == "response.created":
            return self._created(event, payload)
        index = payload.get("output_index")
        if type(index) is not int:
            return self._keep_alive(event, payload)
        if kind == "response.output_item.added":
            return self._added(event, payload, index)
        message = self._messages.get(index)
        if message is None and kind == "response.output_text.delta" and not self._places.announced(index):
            message = self._messages[index] = _Message(payload.get("item_id"), index)
        if message is None:
            return [*self._release(), self._send(event, payload, index=self._places.of(index))]
        return self._of_message(message, event, payload)

    def end(self) -> list[bytes]:
        out: list[bytes] = []
        for message in self._messages.values():
            out += self._flush(message) + self._close(message)
            if not message.queued and message.out is None:
                out += self._announce(message)
        self._messages.clear()
        return [*out, *self._release()]

    def _created(self, event: ServerEvent, payload: dict[str, Any]) -> list[bytes]:
        out = self.end()
        self._begin()
        if self._numbers.begins_anew(payload.get("sequence_number")):
            self._numbers = Numbers()
        return [*out, self._send(event, payload)]

    # -- what waits

    def _wait(self, message: _Message | None, event: ServerEvent, payload: dict[str, Any]) -> None:
        queue = message.held if message is not None and not message.queued else self._queue
        queue.append(_Waiting(message, event, payload))
        number = payload.get("sequence_number")
        if type(number) is int:
            self._numbers.held(number)

    def _keep_alive(self, event: ServerEvent, payload: dict[str, Any]) -> list[bytes]:
        """Send what belongs to no item; one may wait behind an announcement for which no text has come."""
        if self._queue and not self._aside and not self._reading:
            self._aside = True
            self._wait(None, event, payload)
            return []
        out = self._asides()
        if self._queue or self._thinking:
            self._numbers.overtaken()
        return [*out, self._send(event, payload)]

    def _asides(self) -> list[bytes]:
        """Take the keep-alive out of the queue: the announcements go on waiting."""
        if not self._aside:
            return []
        self._aside = False
        self._numbers.overtaken()
        out = [self._send(entry.event, entry.payload, waited=True) for entry in self._queue if entry.message is None]
        self._queue = [entry for entry in self._queue if entry.message is not None]
        return out

    def _release(self) -> list[bytes]:
        """Send the queue: messages are announced, in the order of the stream."""
        queue, self._queue, self._aside, self._reading = self._queue, [], False, False
        out: list[bytes] = []
        for entry in queue:
            message = entry.message
            if message is None:
                out.append(self._send(entry.event, entry.payload, waited=True))
            elif message.queued:
                if message.out is None:
                    message.out = self._places.announce(message.upstream, self._thinking)
                out.append(self._send(entry.event, entry.payload, index=message.out, waited=True))
            else:  # reasoning has come before it in the meantime
                message.held.append(entry)
        return out

    def _announce(self, message: _Message) -> list[bytes]:
        """Send what announces a message, if that waited, with the index it gets now."""
        out = self._release()
        if message.out is None:
            if not message.queued:
                self._thinking -= 1
            message.out = self._places.announce(message.upstream, self._thinking)
        message.queued = True
        out += [self._send(entry.event, entry.payload, index=message.out, waited=True) for entry in message.held]
        message.held.clear()
        return out

    # -- items

    def _added(self, event: ServerEvent, payload: dict[str, Any], index: int) -> list[bytes]:
        item = payload.get("item")
        before = self._messages.pop(index, None)
        out = [] if before is None else [*self._flush(before), *self._close(before), *self._announce(before)]
        if not isinstance(item, dict) or not is_item(item, "message") or self._native:
            self._native = self._native or is_item(item, "reasoning")
            out += self._release()
            return [*out, self._send(event, payload, index=self._places.announce(index, self._thinking))]
        message = self._messages[index] = _Message(item.get("id"), index)
        self._wait(message, event, payload)
        return out if self._full else out + self._announce(message)

    # -- one message

    def _of_message(self, message: _Message, event: ServerEvent, payload: dict[str, Any]) -> list[bytes]:
        kind = payload.get("type")
        if kind == "response.content_part.added" and message.out is None and not message.splits:
            self._wait(message, event, payload)
            return []
        if kind == "response.output_text.delta" and isinstance(payload.get("delta"), str):
            return self._delta(message, event, payload)
        out: list[bytes] = []
        changed = payload
        if kind == "response.output_text.done" and isinstance(payload.get("text"), str):
            out = self._done(message, payload)
            changed = {**payload, "text": self._settings.cleaned(payload["text"])}
        elif kind == "response.content_part.done":
            out = self._flush(message, _content_index(payload))
            changed = {**payload, "part": self._cleaned_parts({"content": [payload.get("part")]})["content"][0]}
        elif kind == "response.output_item.done":
            out = self._flush(message) + self._close(message)
            del self._messages[message.upstream]
            if isinstance(payload.get("item"), dict):
                changed = {**payload, "item": self._cleaned_parts(payload["item"])}
        out += self._announce(message)
        return [*out, self._send(event, payload, changed, message.out)]

    def _done(self, message: _Message, payload: dict[str, Any]) -> list[bytes]:
        content_index = _content_index(payload)
        if content_index in message.splits:
            return self._flush(message, content_index)
        # No delta came: the text is taken as one, for its reasoning.
        split = self._settings.text("responses", "stream")
        message.splits[content_index] = None
        message.template = {**payload, "type": "response.output_text.delta"}
        message.template.pop("text", None)
        pieces = runs(split.feed(payload["text"]).events + split.finish().events)
        if not any(run.reasoning for run in pieces):
            return []
        return self._runs(message, pieces) + self._settle(message)

    def _delta(self, message: _Message, event: ServerEvent, payload: dict[str, Any]) -> list[bytes]:
        message.template = payload
        content_index = _content_index(payload)
        if content_index not in message.splits:
            message.splits[content_index] = self._settings.text("responses", "stream")
        split = message.splits[content_index]
        if not payload["delta"] and message.out is None:
            self._wait(message, event, payload)  # no character that could be shown
            return []
        if split is None or not payload["delta"]:
            return [*self._announce(message), self._send(event, payload, index=message.out)]
        delta = split.feed(payload["delta"])
        if delta.content == payload["delta"] and not delta.reasoning:
            out = self._settle(message) + self._announce(message)
            return [*out, self._send(event, payload, index=message.out)]
        pieces = runs(delta.events)
        if not self._full:
            # The short form sends what a chunk holds of either kind as one delta, reasoning first.
            both = (Run(True, delta.reasoning), Run(False, delta.content))
            pieces = [run for run in both if run.text]
        self._reading = True
        out = self._asides()
        if type(payload.get("sequence_number")) is int:
            self._numbers.left_out(payload["sequence_number"])
        return out + self._runs(message, pieces)

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

    def _flush(self, message: _Message, content_index: int | None = None) -> list[bytes]:
        """Send what is held of one part's text, or of all."""
        out: list[bytes] = []
        indexes: Iterable[int] = list(message.splits) if content_index is None else (content_index,)
        for index in indexes:
            split = message.splits.get(index)
            message.splits[index] = None
            if split is None:
                continue
            message.template = {**message.template, "content_index": index}
            if "logprobs" in message.template:
                message.template["logprobs"] = []
            out += self._runs(message, runs(split.finish().events))
        return out + self._settle(message)

    def _settle(self, message: _Message) -> list[bytes]:
        """Close the open reasoning item before the message goes on; the seed's form keeps it open."""
        return self._close(message) if self._full else []

    # -- one reasoning item

    def _apart(self, message: _Message) -> list[bytes]:
        """Let a message wait apart from the queue, as reasoning has come before it; the others are announced."""
        if message.out is not None or not message.queued:
            return []
        message.queued = False
        self._thinking += 1
        return self._release()

    def _reasoning(self, message: _Message, run: Run) -> list[bytes]:
        out: list[bytes] = []
        text = run.joiner + run.text
        thought = message.thought
        if thought is None:
            text = run.text
            item_id = reasoning_id(message.id, message.thoughts)
            place = self._places.put_in(message.upstream if message.out is None else None)
            thought = message.thought = _Thought(item_id, place)
            message.thoughts += 1
            others = self._apart(message)
            item = reasoning_item(item_id, None)
            out.append(self._of_thought("response.output_item.added", thought, item=item))
            if self._full:
                part = {"type": "reasoning_text", "text": ""}
                out.append(self._of_part("response.content_part.added", thought, part=part))
            out += others
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
        streamed = self._places.upstream
        if not streamed:
            # Nothing was streamed but the end.
            changed = {**payload, "response": {**response}}
            done = translate_response(changed["response"], self._settings)
            return self._send(event, payload, changed if done else payload)
        items = [(index, 0, item) for index, item in self._inserted.items()]
        native = False
        for place, item in enumerate(output):
            native = native or is_item(item, "reasoning")
            shown = self._cleaned_parts(item) if is_item(item, "message") and not native else item
            upstream = streamed[place] if place < len(streamed) else streamed[-1] + 1 + place - len(streamed)
            items.append((self._places.of(upstream), 1, shown))
        items.sort(key=lambda entry: entry[:2])
        merged = [item for _, _, item in items]
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
        *,
        waited: bool = False,
    ) -> bytes:
        """Write an event of upstream's with the numbers it has here; its very bytes if nothing changed."""
        out = dict(payload if changed is None else changed)
        if type(payload.get("sequence_number")) is int:
            out["sequence_number"] = self._numbers.passed(payload["sequence_number"], waited=waited)
        if index is not None and "output_index" in out:
            out["output_index"] = index
        return event.raw if out == payload else event.rewritten(dumps(out))

    def _new(self, payload: dict[str, Any]) -> bytes:
        fields = {key: value for key, value in payload.items() if key != "sequence_number"}
        number = self._numbers.put_in()
        if number is not None:
            fields["sequence_number"] = number
        return compose(dumps(fields), fields["type"].encode(), self._newline)


def _content_index(payload: dict[str, Any]) -> int:
    index = payload.get("content_index")
    return index if type(index) is int else 0
