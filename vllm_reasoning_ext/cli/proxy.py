"""The command `proxy`: the reverse proxy for servers that leave the tags in the text."""

import importlib.util
from typing import Annotated, Final

import typer

from vllm_reasoning_ext.cli import paint
from vllm_reasoning_ext.errors import SetupError

EPILOG: Final = """\b
Examples:
  vllm-reasoning-ext proxy --upstream http://127.0.0.1:8000 --listen 127.0.0.1:8080
  THINK_EXTRACT_UNCLOSED=reasoning vllm-reasoning-ext proxy --upstream http://127.0.0.1:8000

\b
Settings are the THINK_EXTRACT_* variables. It has /healthz and /metrics of its own; everything
else goes to the upstream.
"""


def command(
    upstream: Annotated[str, typer.Option(metavar="URL", help="The server behind: http(s)://HOST[:PORT][/PREFIX].")],
    *,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where clients connect; port 0 takes a free one.")
    ] = "127.0.0.1:8080",
    as_json: Annotated[bool, typer.Option("--json", help="Print the address as JSON once it is bound.")] = False,
) -> None:
    """Serve as a reverse proxy that moves <think> tags out of the text into the reasoning fields."""
    missing = [name for name in ("starlette", "httpx", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise SetupError(
            f"the proxy needs {', '.join(missing)}",
            "this Python environment",
            "pip install 'vllm-reasoning-ext[proxy]'",
        )
    from vllm_reasoning_ext.serve.proxy.app import serve_proxy

    def ready(host: str, port: int) -> None:
        if as_json:
            paint.print_json({"listen": f"http://{host}:{port}", "upstream": upstream})
        else:
            paint.line(paint.console(), f"http://{host}:{port} -> {upstream}")

    serve_proxy(upstream, listen, ready=ready)
