"""The app of an HTTP worker under `--tokenizer-worker-num N`: SGLang's own, with the plugins loaded first.

SGLang starts these workers by importing the app named in SGLANG_HTTP_SERVER_APP_PATH and never loads plugins
in them, so that a parser of a plugin is unknown there; this package's `register` sets that variable to this module.
"""

from sglang.srt.plugins import load_plugins

load_plugins()

from sglang.srt.entrypoints.http_server import app  # noqa: E402

__all__ = ["app"]
