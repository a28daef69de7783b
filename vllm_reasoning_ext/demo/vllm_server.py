"""Start a real vLLM API server as a child process, wait until it serves, and end it: demo and live tests."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from vllm_reasoning_ext.demo.ports import TRIES, Port, reserve, was_taken
from vllm_reasoning_ext.errors import SetupError

ENTRY: Final = (
    "try:\n    from vllm.entrypoints.launchers.api_server.entry import main\n"
    "except ImportError:\n    import runpy\n"
    "    main = lambda: runpy.run_module('vllm.entrypoints.openai.api_server', run_name='__main__')\n"
    "if __name__ == '__main__':\n    main()\n"
)
"""What `python -m vllm.entrypoints...` runs; the `vllm` command is missing beside vLLM's CPU build."""

ENVIRONMENT: Final = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "PYTHONUNBUFFERED": "1",
}
TINY: Final = ("--enforce-eager", "--dtype", "float32", "--max-model-len", "2048", "--max-num-seqs", "16")
"""Flags for the tiny model."""


PORTS: Final = (9300, 9399)


class VllmServer:
    """One vLLM API server; a context manager that ends it.

    Args:
        flags: the command line after `vllm serve`, `--model` included, `--port` not.
        log: file for the server's output.
        script: a python file to run in place of vLLM's own entry point.
        env: further environment variables.
        python: the interpreter to run it with.
        note: called with the seconds waited, now and then.
        start_seconds: how long it may take until it serves.
        reply_seconds: how long a reply, or the next piece of it, may take.
    """

    def __init__(
        self,
        flags: Sequence[str],
        log: Path,
        *,
        script: Path | None = None,
        env: Mapping[str, str] = {},
        python: str = sys.executable,
        note: Callable[[int], None] = lambda seconds: None,
        start_seconds: float = 600,
        reply_seconds: float = 120,
    ) -> None:
        self.log = log
        self._port: Port | None = None
        self._note = note
        self._start_seconds, self._reply_seconds = start_seconds, reply_seconds
        self._env = {**os.environ, **ENVIRONMENT, **env}
        main = log.with_suffix(".entry.py")
        if script is None:
            # A file, because vLLM starts its engine processes by importing the main module again.
            main.write_text(ENTRY, encoding="utf-8")
        start = [python, str(script or main)]
        self._command = [*start, *flags, "--host", "127.0.0.1", "--port"]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The server's address; there from its start."""
        assert self._port is not None
        return f"http://127.0.0.1:{self._port.number}"

    def __enter__(self) -> Self:
        tried: set[int] = set()
        while True:
            self._port = reserve(*PORTS, without=tried)
            try:
                self._start(self._port.number)
                self._wait()
            except BaseException as error:
                number = self._port.number
                self.stop()
                tried.add(number)
                if isinstance(error, SetupError) and len(tried) < TRIES and was_taken(self._text()):
                    continue
                raise
            return self

    def _start(self, port: int) -> None:
        with self.log.open("wb") as out:
            self._process = subprocess.Popen(
                [*self._command, str(port)], stdout=out, stderr=subprocess.STDOUT, env=self._env, start_new_session=True
            )

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _wait(self) -> None:
        process = self._process
        assert process is not None
        for second in range(int(self._start_seconds)):
            if process.poll() is not None:
                raise SetupError(f"vLLM ended with status {process.returncode}", str(self.log), self.tail())
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=2):
                    return
            except OSError:
                time.sleep(1)
            if second % 10 == 9:
                self._note(second + 1)
        raise SetupError(f"vLLM does not serve after {self._start_seconds:.0f} s", str(self.log), self.tail())

    def tail(self, lines: int = 30) -> str:
        """Give the last lines of the server's log."""
        return "\n".join(self._text().splitlines()[-lines:])

    def _text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Send a JSON request and read the JSON reply; an HTTP error raises with its text."""
        with self._open(path, body) as reply:
            return json.load(reply)

    def stream(self, path: str, body: Mapping[str, Any]) -> list[Any]:
        """Send a request with `stream: true`; read the events (without `[DONE]`)."""
        events = []
        with self._open(path, {**body, "stream": True}) as reply:
            for line in reply:
                data = line.decode().strip().removeprefix("data:").strip()
                if line.startswith(b"data:") and data != "[DONE]":
                    events.append(json.loads(data))
        return events

    def _open(self, path: str, body: Mapping[str, Any]) -> Any:
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            return urllib.request.urlopen(request, timeout=self._reply_seconds)
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: HTTP {error.code}: {error.read().decode(errors='replace')}") from error

    def stop(self) -> None:
        """End the server and every process it started (they share its process group), nothing else."""
        try:
            self._end()
        finally:
            port, self._port = self._port, None
            if port is not None:
                port.release()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for sign in (signal.SIGINT, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
                if sign == signal.SIGINT and self._gone(process.pid):
                    return

    @staticmethod
    def _gone(group: int) -> bool:
        for _ in range(50):
            try:
                os.killpg(group, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.1)
        return False
