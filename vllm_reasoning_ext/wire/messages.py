"""Anthropic messages: tags in text blocks become thinking blocks, as the policy says.

A thinking block made here has no signature: none can be made up. `redacted` puts the text, readable, into the data of
a `redacted_thinking` block. A message with thinking of its own is left alone.
"""

from typing import Any

from vllm_reasoning_ext.wire.jsontext import dumps, loads
from vllm_reasoning_ext.wire.sse import ServerEvent, compose
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

    __slots__ = ("index", "open", "out", "redacted", "split", "start", "start_event", "started")

    def __init__(self, start: dict[str, Any], event: ServerEvent, split: TextSplit) -> None:
        self.start, self.start_event = start, event
        self.index: int = start["index"]
        self.split = split
        self.open = ""  # "", "text" or "thinking": the block that is open towards the client
        self.out = self.index  # its index there
        self.started = False
        self.redacted: list[str] = []


class MessagesStream:
    """Translates the events of a streamed message (an `EventHandler`).

    A text block is announced with its first visible character, so that thinking gets the lower index; a block of
    another kind closes the one before it. Later blocks move up by the number of blocks that were made.
    """

    def __init__(self, settings: Translation) -> None:
        self._settings = settings
        self._passing = settings.messages_policy == "off"
        self._native = False
        self._block: _TextBlock | None = None
        self._indexes: dict[int, int] = {}
        self._next = 0
        self._newline = b"\n"

    def event(self, event: ServerEvent) -> list[bytes]:
        payload = loads(event.data) if event.data is not None else None
        if self._passing or not isinstance(payload, dict):
            return [event.raw]
        self._newline = event.newline
        kind, index = payload.get("type"), payload.get("index")
        if kind == "content_block_start" and isinstance(index, int):
            return self._start(event, payload)
        if kind == "content_block_delta" and self._block is not None and index == self._block.index:
            return self._delta(self._block, event, payload)
        if kind == "content_block_stop" and self._block is not None and index == self._block.index:
            return self._stop(self._block, event, payload)
        if kind in ("message_delta", "message_stop", "error"):
            return [*self.end(), event.raw]
        if isinstance(index, int):
            return [self._moved(event, payload, self._indexes.get(index, index))]
        return [event.raw]

    def end(self) -> list[bytes]:
        """Flush and close a text block that was never stopped."""
        block, self._block = self._block, None
        if block is None:
            return []
        out = self._runs(block, runs(block.split.finish().events), None, None)
        return out + self._close(block)

    def _start(self, event: ServerEvent, payload: dict[str, Any]) -> list[bytes]:
        out = self.end()
        block = payload.get("content_block")
        kind = block.get("type") if isinstance(block, dict) else None
        # Upstream's own thinking wins: the text after it is not looked at.
        self._native = self._native or kind in _NATIVE
        if kind != "text" or self._native or not isinstance(block, dict):
            index = self._indexes[payload["index"]] = self._take_index()
            return [*out, self._moved(event, payload, index)]
        self._block = _TextBlock(payload, event, self._settings.text("messages", "stream"))
        text = block.get("text")
        if isinstance(text, str) and text:
            out += self._runs(self._block, runs(self._block.split.feed(text).events), None, None)
        return out

    def _delta(self, block: _TextBlock, event: ServerEvent, payload: dict[str, Any]) -> list[bytes]:
        delta = payload.get("delta")
        text = delta.get("text") if isinstance(delta, dict) and delta.get("type") == "text_delta" else None
        if not isinstance(text, str):
            return [*self._open_text(block), self._moved(event, payload, block.out)]
        return self._runs(block, runs(block.split.feed(text).events), event, payload)

    def _stop(self, block: _TextBlock, event: ServerEvent, payload: dict[str, Any]) -> list[bytes]:
        self._block = None
        out = self._runs(block, runs(block.split.finish().events), None, None)
        if not block.started and not block.split.found:
            out += self._open_text(block)  # it was an empty block upstream already
        if block.open == "text":
            return [*out, self._moved(event, payload, block.out)]
        return out + self._close(block)

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
                if run.text == payload["delta"]["text"]:
                    out.append(self._moved(event, payload, block.out))
                    continue
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
            out += self._close(block)
            text = run.text
            block.open, block.started, block.out = "thinking", True, self._take_index()
            if self._settings.messages_policy == "unsigned":
                start = _thinking("", self._settings)
                out.append(self._new("content_block_start", block.out, content_block=start))
        if self._settings.messages_policy == "redacted":
            block.redacted.append(text)
        else:
            delta = {"type": "thinking_delta", "thinking": text}
            out.append(self._new("content_block_delta", block.out, delta=delta))
        return out

    def _open_text(self, block: _TextBlock) -> list[bytes]:
        if block.open == "text":
            return []
        out = self._close(block)
        block.open, block.started, block.out = "text", True, self._take_index()
        self._indexes[block.index] = block.out
        start = block.start
        if start["content_block"].get("text"):
            start = {**start, "index": block.out, "content_block": {**start["content_block"], "text": ""}}
            return [*out, block.start_event.rewritten(dumps(start))]
        return [*out, self._moved(block.start_event, start, block.out)]

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

    def _take_index(self) -> int:
        self._next += 1
        return self._next - 1

    def _moved(self, event: ServerEvent, payload: dict[str, Any], index: int) -> bytes:
        if payload.get("index") == index:
            return event.raw
        return event.rewritten(dumps({**payload, "index": index}))

    def _new(self, kind: str, index: int, **fields: Any) -> bytes:
        data = dumps({"type": kind, "index": index, **fields})
        return compose(data, kind.encode(), self._newline)
