"""Builders of upstream streams and readers of what the client gets, for the three surfaces."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from vllm_reasoning_ext.wire.sse import SSEParser
from vllm_reasoning_ext.wire.surfaces import stream_translator
from vllm_reasoning_ext.wire.translation import Translation

SURFACES = ("chat", "messages", "responses")


def sse(events: Iterable[Any], named: bool = False, newline: str = "\n") -> bytes:
    """Write events: dictionaries as JSON, strings as they are ("[DONE]"), bytes verbatim."""
    out: list[bytes] = []
    for event in events:
        if isinstance(event, bytes):
            out.append(event)
            continue
        name = f"event: {event['type']}{newline}" if named else ""
        data = event if isinstance(event, str) else json.dumps(event)
        out.append(f"{name}data: {data}{newline}{newline}".encode())
    return b"".join(out)


def decoded(data: bytes) -> list[Any]:
    parser = SSEParser()
    datas = [event.data for event in parser.feed(data) + parser.finish()]
    return [json.loads(data) if data != b"[DONE]" else "[DONE]" for data in datas if data is not None]


def translate(surface: str, data: bytes | Iterable[bytes], settings: Translation | None = None) -> bytes:
    """Run a stream through, in one piece or in the given ones."""
    stream = stream_translator(surface, settings or Translation(messages_policy="unsigned"))
    pieces = [data] if isinstance(data, bytes) else data
    return b"".join([*map(stream.feed, pieces), stream.finish()])


# Chat


def chunk(content: Any = None, reason: str | None = None, index: int = 0, **extra: Any) -> dict[str, Any]:
    delta = {} if content is None else {"content": content}
    choice = {"index": index, "delta": delta | extra.pop("delta", {}), "logprobs": None, "finish_reason": reason}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": [choice], **extra}


def chat(pieces: Sequence[str], reason: str = "stop") -> list[Any]:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    return [
        chunk("", delta={"role": "assistant"}),
        *map(chunk, pieces),
        chunk(reason=reason),
        {"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": [], "usage": usage},
        "[DONE]",
    ]


# Anthropic messages


def messages(pieces: Sequence[str], more: Sequence[dict[str, Any]] = ()) -> list[Any]:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": p}} for p in pieces),
        {"type": "content_block_stop", "index": 0},
        *more,
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 5},
        },
        {"type": "message_stop"},
    ]


TOOL_USE: list[dict[str, Any]] = [
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
    },
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
    {"type": "content_block_stop", "index": 1},
]


# Responses


def response(status: str, output: list[Any]) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 7.0,
        "model": "m",
        "status": status,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def message_item(text: str | None, item_id: str = "msg_1") -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    status = "in_progress" if text is None else "completed"
    content = [] if text is None else [part]
    return {"id": item_id, "type": "message", "role": "assistant", "status": status, "content": content}


CALL: dict[str, Any] = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": "f",
    "arguments": "{}",
    "status": "completed",
}


def responses(pieces: Sequence[str], call: bool = False) -> list[dict[str, Any]]:
    text = "".join(pieces)
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": response("in_progress", [])},
        {"type": "response.in_progress", "response": response("in_progress", [])},
        {"type": "response.output_item.added", "output_index": 0, "item": message_item(None)},
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **place, "delta": p, "logprobs": []} for p in pieces),
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": message_item(text)},
    ]
    output = [message_item(text)]
    if call:
        events += [
            {"type": "response.output_item.added", "output_index": 1, "item": {**CALL, "status": "in_progress"}},
            {"type": "response.output_item.done", "output_index": 1, "item": CALL},
        ]
        output.append(CALL)
    events.append({"type": "response.completed", "response": response("completed", output)})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def upstream(surface: str, pieces: Sequence[str]) -> list[Any]:
    return {"chat": chat, "messages": messages, "responses": responses}[surface](pieces)


class Piece(NamedTuple):
    """What a client is shown, in order; `block` tells one block or item from the next."""

    kind: str
    text: str
    block: int


def pieces_of(surface: str, data: bytes) -> list[Piece]:
    """Read the text a client is shown, in the order of the stream."""
    read = {"chat": _of_chat, "messages": _of_messages, "responses": _of_responses}[surface]
    return [piece for event in decoded(data) if isinstance(event, dict) for piece in read(event)]


def _of_chat(event: dict[str, Any]) -> Iterator[Piece]:
    for choice in event["choices"]:
        delta = choice.get("delta", {})
        for kind, field in (("reasoning", "reasoning_content"), ("content", "content")):
            if delta.get(field):
                yield Piece(kind, delta[field], choice["index"])


def _of_messages(event: dict[str, Any]) -> Iterator[Piece]:
    if event.get("type") == "content_block_delta":
        for kind, field in (("reasoning", "thinking"), ("content", "text")):
            if field in event["delta"]:
                yield Piece(kind, event["delta"][field], event["index"])
    elif event.get("type") == "content_block_start" and event["content_block"]["type"] == "redacted_thinking":
        yield Piece("reasoning", event["content_block"]["data"], event["index"])


def _of_responses(event: dict[str, Any]) -> Iterator[Piece]:
    if event.get("type", "").endswith("_text.delta"):
        kind = "reasoning" if "reasoning" in event["type"] else "content"
        yield Piece(kind, event["delta"], event["output_index"])


def totals(surface: str, data: bytes) -> tuple[str, str]:
    pieces = pieces_of(surface, data)
    return (
        "".join(piece.text for piece in pieces if piece.kind == "reasoning"),
        "".join(piece.text for piece in pieces if piece.kind == "content"),
    )
