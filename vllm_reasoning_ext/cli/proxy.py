"""The command `proxy`: the reverse proxy for servers that leave the tags in the text."""

import importlib.util
from typing import Annotated, Final

import typer

from vllm_reasoning_ext.cli import paint
from vllm_reasoning_ext.errors import SetupError

EPILOG: Final = """\b
Examples:
  vllm-reasoning-ext proxy --upstream http://127.0.0.1:8000 --listen 127.0.0.1:8080
  vllm-reasoning-ext proxy --upstream http://127.0.0.1:8000 --unclosed reasoning

\b
On by default: chat completions and Responses. Anthropic messages: --messages-policy unsigned.
A thought arrives in one piece when its block closes; --unclosed reasoning streams it as it is written.
Each option is a THINK_EXTRACT_* variable too; the option wins. /healthz and /metrics are the proxy's
own; everything else goes to the upstream.
"""


def _setting(metavar: str, text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(metavar=metavar, help=text)
    return option


def _bytes(text: str) -> typer.models.OptionInfo:
    return _setting("BYTES", text)


def _seconds(text: str) -> typer.models.OptionInfo:
    return _setting("SECONDS", text)


def _switch(text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(help=text, show_default=False)
    return option


def command(
    ctx: typer.Context,
    upstream: Annotated[str, typer.Option(metavar="URL", help="The server behind: http(s)://HOST[:PORT][/PREFIX].")],
    *,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where clients connect; port 0 takes a free one.")
    ] = "127.0.0.1:8080",
    as_json: Annotated[bool, typer.Option("--json", help="Print the address as JSON once it is bound.")] = False,
    enabled: Annotated[bool | None, _switch("Translate at all (on).")] = None,
    chat_enabled: Annotated[bool | None, _switch("Translate chat completions (on).")] = None,
    responses_enabled: Annotated[bool | None, _switch("Translate OpenAI Responses (on).")] = None,
    messages_policy: Annotated[
        str | None, _setting("POLICY", "Anthropic messages: off (default), drop, unsigned or redacted.")
    ] = None,
    unclosed: Annotated[
        str | None,
        _setting("WORD", "content (default): a block waits for its closer; reasoning: it streams as it is written."),
    ] = None,
    implicit_open: Annotated[bool | None, _switch("The chat template has opened the block already (off).")] = None,
    where: Annotated[
        str | None, _setting("WORD", "Where a tag counts: prose (default, not in code), anywhere or head.")
    ] = None,
    family: Annotated[
        str | None, _setting("NAME", "inline (default: tags), or the grammar of one model family.")
    ] = None,
    tag_pairs: Annotated[
        str | None, _setting("PAIRS", "Tags, as 'open...close,open...close'; nine pairs by default.")
    ] = None,
    max_buffer_bytes: Annotated[
        str | None, _setting("BYTES", "A waiting block over this is passed on as text (65536).")
    ] = None,
    reasoning_field: Annotated[
        str | None, _setting("FIELD", "Of a chat message: reasoning_content (default), reasoning or both.")
    ] = None,
    responses_events: Annotated[
        str | None, _setting("WORD", "full (default), or seed: added, deltas and done only, one item per message.")
    ] = None,
    signature: Annotated[
        str | None, _setting("WORD", "Of an unsigned thinking block: omit (default) or empty.")
    ] = None,
    header_bytes: Annotated[str | None, _bytes("A request's line and headers (65536).")] = None,
    body_bytes: Annotated[str | None, _bytes("A request's body (67108864).")] = None,
    header_seconds: Annotated[str | None, _seconds("Time a client has to send its headers (30).")] = None,
    body_seconds: Annotated[str | None, _seconds("Longest silence of a client that sends a body (60).")] = None,
    client_seconds: Annotated[str | None, _seconds("Longest time a client may leave a reply unread (300).")] = None,
    connect_seconds: Annotated[str | None, _seconds("Time to connect to the upstream (10).")] = None,
    read_seconds: Annotated[str | None, _seconds("Longest silence of the upstream (600).")] = None,
    write_seconds: Annotated[str | None, _seconds("Longest time of one write to the upstream (60).")] = None,
    shutdown_seconds: Annotated[str | None, _seconds("Time that streams have to finish after SIGTERM (30).")] = None,
    connections: Annotated[str | None, _setting("NUMBER", "Requests at a time; one more gets a 503 (1000).")] = None,
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
    from vllm_reasoning_ext.serve.proxy.limits import Limits
    from vllm_reasoning_ext.serve.settings import Settings

    def ready(host: str, port: int) -> None:
        if as_json:
            paint.print_json({"listen": f"http://{host}:{port}", "upstream": upstream})
        else:
            paint.line(paint.console(), f"http://{host}:{port} -> {upstream}")

    options = _given(ctx)
    settings, limits = Settings.from_env(options=options), Limits.from_env(options=options)
    serve_proxy(upstream, listen, settings, limits, ready=ready)


def _given(ctx: typer.Context) -> dict[str, str]:
    """Give the texts of the options that were given, by the options' names."""
    texts = {"--" + name.replace("_", "-"): value for name, value in ctx.params.items() if value is not None}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in texts.items()}
