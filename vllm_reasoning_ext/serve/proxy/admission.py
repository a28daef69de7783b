"""Which requests the proxy takes: within the bounds and not ambiguous, checked before anything is passed on."""

from typing import Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from vllm_reasoning_ext.serve.metrics import Metrics
from vllm_reasoning_ext.serve.middleware import App, Receive, Scope, Send
from vllm_reasoning_ext.serve.proxy.limits import Limits

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


OWN_PAGES: Final = ("/healthz", "/metrics")
"""The proxy's own pages. They are always answered: overload is when somebody looks."""

TARGET: Final = "vllm_reasoning_ext.target"
"""ASGI extension with the request target as it came: `raw_path` and `query_string` do not tell `/x` from `/x?`."""


class Admission:
    """Refuse what cannot be passed on safely or is too much at a time; all else goes to the application inside."""

    def __init__(self, app: App, limits: Limits, metrics: Metrics) -> None:
        self._app = app
        self._limits = limits
        self._metrics = metrics
        self._taken = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        problem = refusal(scope, self._limits)
        own = scope["path"] in OWN_PAGES and scope["method"] in ("GET", "HEAD")
        if problem is None and not own and self._taken >= self._limits.connections:
            problem = 503, f"the proxy answers {self._limits.connections} requests at a time: try again later"
        if problem is not None:
            self._metrics.error("refused")
            await answer(problem, scope, receive, send)
        elif own:
            await self._app(scope, receive, send)
        else:
            await self._counted(scope, receive, send)

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._taken += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._taken -= 1


def target_of(scope: Scope) -> bytes:
    """Give the request target as it came, or as near to it as the server tells."""
    extension = (scope.get("extensions") or {}).get(TARGET)
    if extension is not None:
        return bytes(extension["target"])
    target: bytes = scope.get("raw_path") or scope["path"].encode()
    return target + b"?" + scope["query_string"] if scope["query_string"] else target


def refusal(scope: Scope, limits: Limits) -> tuple[int, str] | None:
    """Tell why a request is refused.

    Returns:
        the status and the reason; None when the request is fine.
    """
    headers = Headers(scope=scope)
    lengths = {length.strip() for length in headers.getlist("content-length")}
    target = target_of(scope)
    if scope["method"] not in _METHODS:
        return 405, f"method {scope['method'][:20]} is not passed on"
    if not target.startswith(b"/"):
        return 400, "the request target must be a path: this is a reverse proxy for one upstream"
    if lengths and "transfer-encoding" in headers:
        return 400, "Content-Length and Transfer-Encoding together are ambiguous"
    if len(lengths) > 1 or not all(length.isascii() and length.isdigit() for length in lengths):
        return 400, "the Content-Length is no single number"
    size = sum(len(name) + len(value) + 4 for name, value in headers.raw) + len(target)
    if size > limits.header_bytes:
        return 431, f"the request headers exceed {limits.header_bytes} bytes"
    if any(int(length) > limits.body_bytes for length in lengths):
        return 413, f"the request body exceeds {limits.body_bytes} bytes"
    return None


async def answer(problem: tuple[int, str], scope: Scope, receive: Receive, send: Send) -> None:
    """Send an error of the proxy's own, and close the connection.

    Closing it matters: after a refused request nobody can say where the next one begins.
    """
    status, text = problem
    error = {"message": text, "type": "proxy_error", "code": status}
    headers = {"connection": "close"} | ({"retry-after": "1"} if status == 503 else {})
    response = JSONResponse({"error": error}, status_code=status, headers=headers)
    await response(scope, receive, send)
