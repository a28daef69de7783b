"""OpenAI Responses bodies, and what bodies and streams share: tags in `output_text` parts become reasoning items."""

from hashlib import blake2b
from typing import Any

from vllm_reasoning_ext.wire.translation import Translation


def translate_response(body: dict[str, Any], settings: Translation) -> bool:
    """Translate a response object in place: one reasoning item before each message that had tags.

    A message after a reasoning item of upstream's own is left alone.

    Returns:
        True when anything was changed.
    """
    output = body.get("output")
    if not isinstance(output, list):
        return False
    out: list[Any] = []
    changed = native = False
    for item in output:
        native = native or is_item(item, "reasoning")
        if is_item(item, "message") and not native:
            thoughts, done = _split_parts(item, settings)
            changed = changed or done
            if thoughts:
                text = settings.joiner.join(thoughts)
                out.append(reasoning_item(reasoning_id(item.get("id"), 0), text))
        out.append(item)
    if changed:
        body["output"] = out
    return changed


def _split_parts(item: dict[str, Any], settings: Translation) -> tuple[list[str], bool]:
    thoughts: list[str] = []
    changed = False
    for part in text_parts(item):
        delta = settings.once(part["text"], "responses")
        changed = changed or delta.content != part["text"] or bool(delta.reasoning)
        part["text"] = delta.content
        if delta.reasoning:
            thoughts.append(delta.reasoning)
    return thoughts, changed


def is_item(item: object, kind: str) -> bool:
    """Tell whether an output item is of a kind."""
    return isinstance(item, dict) and item.get("type") == kind


def text_parts(item: dict[str, Any]) -> list[dict[str, Any]]:
    """Give the parts of a message item that have text."""
    content = item.get("content")
    parts = content if isinstance(content, list) else []
    return [part for part in parts if is_item(part, "output_text") and isinstance(part.get("text"), str)]


def reasoning_id(message_id: object, number: int) -> str:
    """Make the id of a message's reasoning item.

    It is derived, not drawn: a stored response that is fetched twice has the same ids both times.
    """
    return "rs_" + blake2b(f"{message_id}:{number}".encode(errors="replace"), digest_size=8).hexdigest()


def reasoning_item(item_id: str, text: str | None) -> dict[str, Any]:
    """Make a reasoning item: in progress when `text` is None, else completed."""
    content = [] if text is None else [{"type": "reasoning_text", "text": text}]
    status = "in_progress" if text is None else "completed"
    return {"id": item_id, "type": "reasoning", "status": status, "summary": [], "content": content}
