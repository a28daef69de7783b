"""Which requests the proxy takes: within the bounds and not ambiguous, checked before anything is passed on."""

from typing import Final

from starlette.responses import JSONResponse

from vllm_reasoning_ext.serve.metrics import Metrics
from vllm_reasoning_ext.serve.middleware import App, Header, Receive, Scope, Send
from vllm_reasoning_ext.serve.proxy.limits import Limits

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Admission:
    """Refuse what cannot be passed on safely; everything else goes to the application inside."""

    def __init__(self, app: App, limits: Limits, metrics: Metrics) -> None:
        self._app = app
        self._limits = limits
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = refusal(scope, self._limits) if scope["type"] == "http" else None
        if problem is None:
            await self._app(scope, receive, send)
            return
        self._metrics.error("refused")
        await answer(problem, scope, receive, send)


def refusal(scope: Scope, limits: Limits) -> tuple[int, str] | None:
    """Tell why a request is refused.

    Returns:
        the status and the reason; None when the request is fine.
    """
    headers: list[Header] = scope["headers"]
    names = [name for name, _ in headers]
    lengths = {value.strip() for name, value in headers if name == b"content-length"}
    target = scope.get("raw_path") or scope["path"].encode()
    if scope["method"] not in _METHODS:
        return 405, f"method {scope['method'][:20]} is not passed on"
    if not target.startswith(b"/"):
        return 400, "the request target must be a path: this is a reverse proxy for one upstream"
    if b"content-length" in names and b"transfer-encoding" in names:
        return 400, "Content-Length and Transfer-Encoding together are ambiguous"
    if len(lengths) > 1 or not all(length.isdigit() for length in lengths):
        return 400, "the Content-Length is no single number"
    size = sum(len(name) + len(value) + 4 for name, value in headers) + len(target) + len(scope["query_string"])
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
    response = JSONResponse({"error": error}, status_code=status, headers={"connection": "close"})
    await response(scope, receive, send)
