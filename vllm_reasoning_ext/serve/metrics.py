"""Prometheus counters of the translation and of the proxy; silent where prometheus-client is not installed."""

from typing import Any, Final

from vllm_reasoning_ext.wire.surfaces import SURFACES
from vllm_reasoning_ext.wire.translation import Outcome

try:
    import prometheus_client as prometheus
except ImportError:  # the middleware runs in any server; counting is then left out
    prometheus = None

MODES: Final = ("body", "stream")
ENDS: Final = ("plain", "closed", "unterminated")
ERRORS: Final = ("refused", "unreachable", "timeout", "broken", "client_gone")


class Metrics:
    """The counters of one process.

    Args:
        registry: a prometheus registry; None makes one of its own.
    """

    def __init__(self, registry: Any = None) -> None:
        self.registry: Any = None
        if prometheus is None:
            return
        self.registry = registry if registry is not None else prometheus.CollectorRegistry()
        own = {"registry": self.registry}
        self._splits = prometheus.Counter(
            "reasoning_ext_translations", "Texts translated, by how they ended", ["surface", "mode", "end"], **own
        )
        self._chars = prometheus.Counter(
            "reasoning_ext_chars", "Characters given as each", ["surface", "channel"], **own
        )
        self._requests = prometheus.Counter(
            "reasoning_ext_proxy_requests", "Requests answered, by status class", ["status"], **own
        )
        self._errors = prometheus.Counter(
            "reasoning_ext_proxy_errors", "Requests that went wrong, by cause", ["cause"], **own
        )
        self._open = prometheus.Gauge("reasoning_ext_proxy_in_progress", "Requests being answered", **own)
        # Every label set exists from the start: a rate over a counter that appears late misses its first event.
        for surface in SURFACES:
            for channel in ("reasoning", "answer"):
                self._chars.labels(surface, channel)
            for mode in MODES:
                for end in ENDS:
                    self._splits.labels(surface, mode, end)
        for cause in ERRORS:
            self._errors.labels(cause)
        for status in ("2xx", "3xx", "4xx", "5xx"):
            self._requests.labels(status)

    def split(self, outcome: Outcome) -> None:
        """Count one text."""
        if self.registry is None:
            return
        self._splits.labels(outcome.surface, outcome.mode, outcome.end).inc()
        self._chars.labels(outcome.surface, "reasoning").inc(outcome.reasoning_chars)
        self._chars.labels(outcome.surface, "answer").inc(outcome.answer_chars)

    def begun(self) -> None:
        """Count a request in."""
        if self.registry is not None:
            self._open.inc()

    def ended(self, status: int) -> None:
        """Count a request out; status 0 when the client left before there was one."""
        if self.registry is not None:
            self._open.dec()
            if status:
                self._requests.labels(f"{status // 100}xx").inc()

    def error(self, cause: str) -> None:
        """Count what went wrong: one of `ERRORS`."""
        if self.registry is not None:
            self._errors.labels(cause).inc()

    def page(self) -> tuple[bytes, str]:
        """Render the metrics page.

        Returns:
            the page and its content type.
        """
        if self.registry is None:
            return b"# prometheus-client is not installed: pip install 'vllm-reasoning-ext[proxy]'\n", "text/plain"
        return prometheus.generate_latest(self.registry), prometheus.CONTENT_TYPE_LATEST


_shared: Metrics | None = None


def shared() -> Metrics:
    """Give the counters in the process's default registry, which a server such as vLLM already publishes."""
    global _shared  # a registry takes each name once
    if _shared is None:
        _shared = Metrics(prometheus.REGISTRY if prometheus is not None else None)
    return _shared
