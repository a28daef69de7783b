"""The output being parsed right now in this task: its token ids and its finish reason.

SGLang gives a detector text only. A context variable carries the rest: it is set where SGLang's token stream
is read, in the very task that then calls the detector, so that parallel requests never see each other's.
"""

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any


class Output:
    """One choice of one request.

    Attributes:
        ids: every output token id up to now; a copy that only grows (SGLang's own list changes under the reader).
        reason: the finish reason once there is one.
    """

    __slots__ = ("ids", "reason")

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.reason: str | None = None

    def take(self, out: Mapping[str, Any], *, increments: bool = False) -> int:
        """Take over one item of SGLang's token stream.

        Args:
            out: the item; its `output_ids` are all ids up to now, or with `increments` the new ones.

        Returns:
            how many ids were new.
        """
        meta = out.get("meta_info") or {}
        reason = meta.get("finish_reason")
        if reason:
            self.reason = reason.get("type") if isinstance(reason, Mapping) else str(reason)
        known = len(self.ids)
        ids: Iterable[int] = out.get("output_ids") or ()
        if increments:
            new = list(ids)
            total = meta.get("completion_tokens")
            if self.reason == "abort" and isinstance(total, int):
                # The item of an abort repeats the last token; only what brings us up to the total is new.
                new = new[: max(total - known, 0)]
            self.ids += new
        else:
            self.ids += list(ids)[known:] if not isinstance(ids, list) else ids[known:]
        return len(self.ids) - known


_current: ContextVar[Output | None] = ContextVar("vllm_reasoning_ext_sglang_output", default=None)


def current() -> Output | None:
    """Give the output of this task; None when no hook has seen it (text rules then decide)."""
    return _current.get()


def set_current(output: Output | None) -> None:
    """Make this the output that the detectors of this task parse."""
    _current.set(output)


def finish_reason() -> str | None:
    """Give the finish reason of this task's output, as far as it is known."""
    output = _current.get()
    return None if output is None else output.reason
