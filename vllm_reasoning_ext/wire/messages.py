"""Anthropic messages: tags in text blocks become thinking blocks, as the policy says.

A thinking block made here has no signature: none can be made up. `redacted` puts the text, readable, into the data of
a `redacted_thinking` block. A message with thinking of its own is left alone.
"""

from typing import Any, NamedTuple

from vllm_reasoning_ext.wire.jsontext import dumps, loads
from vllm_reasoning_ext.wire.numbering import Places
from vllm_reasoning_ext.wire.sse import ServerEvent, compose, is_last_word
from vllm_reasoning_ext.wire.translation import Run, TextSplit, Translation, runs

_NATIVE = ("thinking", "redacted_thinking")


def translate_message(body: dict[str, Any], settings: Translation) -> bool:
    """Translate a message in place.

    Returns:
        True when anything was changed.
    """
    blocks = body.get("content")
    if settings.messages_policy == "off" or not isinstance(blocks, list):
        return False
    if any(isinstance(block, dict) and block.get("type") in _NATIVE for block in blocks):
        return False
    out: list[Any] = []
    changed = False
    for block in blocks:
        text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
        if not isinstance(text, str) or not text:
            out.append(block)
            continue
        delta = settings.once(text, "messages", body.get("stop_reason"))
        if delta.content == text and not delta.reasoning:
            out.append(block)
            continue
        changed = True
        if delta.reasoning and settings.messages_policy != "drop":
            out.append(_thinking(delta.reasoning, settings))
        if delta.content:
            out.append({**block, "text": delta.content})
    if changed:
        body["content"] = out
    return changed


def _thinking(text: str, settings: Translation) -> dict[str, Any]:
    if settings.messages_policy == "redacted":
        return {"type": "redacted_thinking", "data": text}
    block = {"type": "thinking", "thinking": text}
    return {**block, "signature": ""} if settings.signature == "empty" else block


class _TextBlock:
    """An upstream text block, of which none, one or several blocks are made."""

    __slots__ = ("announced", "changed", "index", "open", "out", "queued", "redacted", "split", "start", "start_event")

    def __init__(self, start: dict[str, Any], event: ServerEvent, split: TextSplit) -> None:
        self.start, self.start_event = start, event
        self.index: int = start["index"]
        self.split = split
        self.open = ""  # "", "text" or "thinking": the block that is open towards the client
        self.out = self.index  # its index there
        self.queued = True  # its start waits in the stream's queue
        self.announced = False
        self.changed = False  # something of it went out otherwise than it came
        self.redacted: list[str] = []


class _Waiting(NamedTuple):
    """An event that waits: a block's start or an empty delta of it, or a keep-alive (without a block)."""

    block: _TextBlock | None
    event: ServerEvent
    payload: dict[str, Any]


class MessagesStream:
    """Translates the events of a streamed message (an `EventHandler`).

    A text block is announced with its first visible character, so that thinking gets the lower index; a block of
    another kind closes the one before it. Until then its start waits in a queue, in the order of the stream, which
    goes out whole before anything of another block does: untagged streams come out byte for byte. One keep-alive may
    wait there too, as long as no text has come; the next ones, and all when text is being held, go ahead.
    """

    def __init__(self, settings: Translation) -> None:
        self._settings = settings
        self._passing = settings.messages_policy == "off"
        self._newline = b"\n"
        self._begin()

    def _begin(self) -> None:
        """Begin a message."""
        self._native = False
        self._blocks: dict[int, _TextBlock] = {}
        self._queue: list[_Waiting] = []
        self._aside = False  # a keep-alive is in the queue
        self._reading = False  # text has come for a start in the queue: it may wait long
        self._thinking = 0  # blocks whose text is not announced yet, though thinking before it is
        self._places = Places()

    def event(self, event: ServerEvent) -> list[bytes]:
        if self._passing:
            return [event.raw]
        payload = loads(event.data) if event.data is not None else None
        kind = payload.get("type") if isinstance(payload, dict) else None
        if kind in ("message_start", "message_delta", "message_stop") or is_last_word(event, payload):
            out = self.end()
            if kind == "message_start":
                self._begin()
            return [*out, event.raw]
        index = payload.get("index") if isinstance(payload, dict) else None
        if not isinstance(payload, dict) or type(index) is not int:
            return self._keep_alive(event)
        self._newline = event.newline
        if kind == "content_block_start":
            return self._start(event, payload, index)
        block = self._blocks.get(index)
        if block is None:
            return [*self._release(), self._moved(event, payload, self._places.of(index))]
        if kind == "content_block_delta":
            return self._delta(block, event, payload)
        if kind == "content_block_stop":
            return self._stop(block, event, payload)
        return [*self._open_text(block), self._moved(event, payload, block.out)]

    def end(self) -> list[bytes]:
        """Flush and close the text blocks that were never stopped."""
        out: list[bytes] = []
        for block in list(self._blocks.values()):
            out += self._finish(block)
            if block.changed:
                out += self._close(block)
        return [*out, *self._release()]

    # -- what waits

    def _keep_alive(self, event: ServerEvent) -> list[bytes]:
        if self._queue and not self._aside and not self._reading:
            self._queue.append(_Waiting(None, event, {}))
            self._aside = True
            return []
        return [*self._asides(), event.raw]

    def _asides(self) -> list[bytes]:
        """Take the keep-alive out of the queue: the starts go on waiting."""
        if not self._aside:
            return []
        self._aside = False
        out = [entry.event.raw for entry in self._queue if entry.block is None]
        self._queue = [entry for entry in self._queue if entry.block is not None]
        return out

    def _release(self) -> list[bytes]:
        """Send the queue: blocks are announced, in the order of the stream."""
        queue, self._queue, self._aside, self._reading = self._queue, [], False, False
        out: list[bytes] = []
        for block, event, payload in queue:
            if block is None:
                out.append(event.raw)
            elif block.queued and event is block.start_event:
                out.append(self._announce(block))
            elif block.announced:
                out.append(self._moved(event, payload, block.out))
        return out

    def _announce(self, block: _TextBlock) -> bytes:
        if not block.queued:
            self._thinking -= 1
        block.queued, block.announced, block.open = False, True, "text"
        block.out = self._places.announce(block.index, self._thinking)
        return self._text_start(block)

    # -- one block

    def _start(self, event: ServerEvent, payload: dict[str, Any], index: int) -> list[bytes]:
        before = self._blocks.get(index)
        out = [*self._finish(before), *self._close(before)] if before is not None else []
        block = payload.get("content_block")
        kind = block.get("type") if isinstance(block, dict) else None
        # Upstream's own thinking wins: the text after it is not looked at.
        self._native = self._native or kind in _NATIVE
        if kind != "text" or self._native or not isinstance(block, dict):
            out += self._release()
            return [*out, self._moved(event, payload, self._places.announce(index, self._thinking))]
        made = self._blocks[index] = _TextBlock(payload, event, self._settings.text("messages", "stream"))
        self._queue.append(_Waiting(made, event, payload))
        text = block.get("text")
        if isinstance(text, str) and text:
            made.changed = True
            out += self._runs(made, runs(made.split.feed(text).events), None, None)
        return out

    def _delta(self, block: _TextBlock, event: ServerEvent, payload: dict[str, Any]) -> list[bytes]:
        delta = payload.get("delta")
        text = delta.get("text") if isinstance(delta, dict) and delta.get("type") == "text_delta" else None
        if text == "" and block.queued:
            self._queue.append(_Waiting(block, event, payload))  # no character that could be shown
            return []
        if not isinstance(text, str) or not text:
            return [*self._open_text(block), self._moved(event, payload, block.out)]
        pieces = runs(block.split.feed(text).events)
        if len(pieces) == 1 and not pieces[0].reasoning and pieces[0].text == text:
            return [*self._open_text(block), self._moved(event, payload, block.out)]
        block.changed = self._reading = True
        return [*self._asides(), *self._runs(block, pieces, event, payload)]

    def _stop(self, block: _TextBlock, event: ServerEvent, payload: dict[str, Any]) -> list[bytes]:
        out = self._finish(block)
        if block.open == "text":
            return [*out, self._moved(event, payload, block.out)]
        return out + self._close(block)

    def _finish(self, block: _TextBlock) -> list[bytes]:
        """End a block's text: what is held goes out, and a block of which nothing is left is left out."""
        del self._blocks[block.index]
        pieces = runs(block.split.finish().events)
        block.changed = block.changed or bool(pieces)
        out = [*(self._asides() if pieces else ()), *self._runs(block, pieces, None, None)]
        if block.announced:
            return out
        if block.queued and not block.split.found:
            return out + self._open_text(block)  # it was an empty block upstream already
        if not block.queued:
            self._thinking -= 1
        block.queued = False
        self._places.leave_out()
        return out + self._asides()

    def _runs(
        self, block: _TextBlock, pieces: list[Run], event: ServerEvent | None, payload: dict[str, Any] | None
    ) -> list[bytes]:
        out: list[bytes] = []
        for run in pieces:
            if run.reasoning:
                out += self._reasoning(block, run)
                continue
            out += self._open_text(block)
            if event is not None and payload is not None:
                changed = {**payload, "index": block.out, "delta": {**payload["delta"], "text": run.text}}
                out.append(event.rewritten(dumps(changed)))
            else:
                delta = {"type": "text_delta", "text": run.text}
                out.append(self._new("content_block_delta", block.out, delta=delta))
        return out

    def _reasoning(self, block: _TextBlock, run: Run) -> list[bytes]:
        if self._settings.messages_policy == "drop":
            return []
        out: list[bytes] = []
        text = run.joiner + run.text
        if block.open != "thinking":
            text = run.text
            out += self._open_thinking(block)
        if self._settings.messages_policy == "redacted":
            block.redacted.append(text)
        else:
            delta = {"type": "thinking_delta", "thinking": text}
            out.append(self._new("content_block_delta", block.out, delta=delta))
        return out

    def _open_thinking(self, block: _TextBlock) -> list[bytes]:
        out = self._close(block)
        block.out = self._places.put_in(None if block.announced else block.index)
        block.open = "thinking"
        if block.queued:
            block.queued = False
            self._thinking += 1
        if self._settings.messages_policy == "unsigned":
            start = _thinking("", self._settings)
            out.append(self._new("content_block_start", block.out, content_block=start))
        return out + self._release()

    def _open_text(self, block: _TextBlock) -> list[bytes]:
        if block.queued:
            return self._release()
        if block.open == "text":
            return self._release()
        out = [*self._close(block), *self._release()]
        if not block.announced:
            return [*out, self._announce(block)]
        block.open, block.out = "text", self._places.put_in(None)
        return [*out, self._text_start(block)]

    def _text_start(self, block: _TextBlock) -> bytes:
        start = block.start
        if start["content_block"].get("text"):
            start = {**start, "index": block.out, "content_block": {**start["content_block"], "text": ""}}
            return block.start_event.rewritten(dumps(start))
        return self._moved(block.start_event, start, block.out)

    def _close(self, block: _TextBlock) -> list[bytes]:
        if not block.open:
            return []
        out: list[bytes] = []
        if block.redacted:
            start = _thinking("".join(block.redacted), self._settings)
            out.append(self._new("content_block_start", block.out, content_block=start))
            block.redacted = []
        block.open = ""
        out.append(self._new("content_block_stop", block.out))
        return out

    def _moved(self, event: ServerEvent, payload: dict[str, Any], index: int) -> bytes:
        if payload.get("index") == index:
            return event.raw
        return event.rewritten(dumps({**payload, "index": index}))

    def _new(self, kind: str, index: int, **fields: Any) -> bytes:
        data = dumps({"type": kind, "index": index, **fields})
        return compose(data, kind.encode(), self._newline)
