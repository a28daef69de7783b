"""Which surface a path is, and its body and stream translators."""

from collections.abc import Callable
from typing import Any, Final

from vllm_reasoning_ext.wire.chat import ChatStream, translate_chat
from vllm_reasoning_ext.wire.jsontext import dumps, loads
from vllm_reasoning_ext.wire.messages import MessagesStream, translate_message
from vllm_reasoning_ext.wire.responses import translate_response
from vllm_reasoning_ext.wire.responses_stream import ResponsesStream
from vllm_reasoning_ext.wire.sse import SSETranslator, compose
from vllm_reasoning_ext.wire.translation import Translation

SURFACES: Final = ("chat", "messages", "responses")

_BODIES: Final[dict[str, Callable[[dict[str, Any], Translation], bool]]] = {
    "chat": translate_chat,
    "messages": translate_message,
    "responses": translate_response,
}


def surface_of(method: str, path: str) -> str | None:
    """Tell which surface answers a request, None for any other endpoint.

    Args:
        method: the HTTP method.
        path: the path without the query; a prefix before it (`/v1`, a mount point) does not matter.
    """
    path = path.rstrip("/")
    if method == "POST":
        for ending, surface in (("/chat/completions", "chat"), ("/messages", "messages"), ("/responses", "responses")):
            if path.endswith(ending):
                return surface
    if method == "GET" and path.rpartition("/")[0].endswith("/responses"):
        return "responses"  # a stored response, fetched again
    return None


def translate_body(surface: str, data: bytes, settings: Translation) -> bytes:
    """Translate a JSON response body; the very same bytes when there is nothing to change in it."""
    body = loads(data)
    if isinstance(body, dict) and _BODIES[surface](body, settings):
        return dumps(body)
    return data


def stream_translator(surface: str, settings: Translation) -> SSETranslator:
    """Make the translator of one streamed response."""
    if surface == "chat":
        return SSETranslator(ChatStream(settings))
    if surface == "messages":
        return SSETranslator(MessagesStream(settings))
    return SSETranslator(ResponsesStream(settings))


def error_event(surface: str, message: str) -> bytes:
    """Write the event that tells a client in its surface's own form why a stream is broken off."""
    if surface == "messages":
        return compose(dumps({"type": "error", "error": {"type": "api_error", "message": message}}), b"error")
    if surface == "responses":
        return compose(dumps({"type": "error", "code": "server_error", "message": message, "param": None}), b"error")
    return compose(dumps({"error": {"message": message, "type": "server_error", "code": 502}}))
