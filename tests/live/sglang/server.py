"""One real SGLang server on the CPU, started for a test run and stopped by its own process group."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.support.patience import LOCAL_SECONDS, START_SECONDS
from vllm_reasoning_ext.demo.ports import reserve

SHIM: Final = Path(__file__).parent / "shim"
PORTS: Final = range(9400, 9500)


class Server:
    """A running server.

    Attributes:
        url: its root.
        log: the file it logs to.
        model: the model directory, which is also the served model's name.
    """

    def __init__(self, url: str, log: Path, model: Path, process: subprocess.Popen[bytes]) -> None:
        self.url, self.log, self.model, self._process = url, log, model, process

    def wait(self) -> None:
        """Wait until it answers.

        Raises:
            RuntimeError: it ended or is not up in time; the message ends with its log.
        """
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"the server ended with {self._process.returncode}:\n{self.tail()}")
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/v1/models", timeout=LOCAL_SECONDS):
                return
            time.sleep(1)
        raise RuntimeError(f"the server was not up after {START_SECONDS:.0f} s:\n{self.tail()}")

    def returncode(self, seconds: float) -> int:
        """Wait for the server to end by itself."""
        return self._process.wait(seconds)

    def tail(self) -> str:
        """Give the end of the log."""
        return self.log.read_text(errors="replace")[-6000:]

    def stop(self) -> None:
        """End the server and what it started (its own process group, nothing else)."""
        # At once and the whole group: asked politely, SGLang first spends seconds on crash diagnostics.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(LOCAL_SECONDS)


def install_shim(folder: Path) -> None:
    """Write the metadata that makes the shim's entry point visible to a process with `folder` on its path."""
    info = folder / "sglang_cpu_shim-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sglang-cpu-shim\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[sglang.srt.plugins]\ncpu_shim = sglang_cpu_shim:register\n")


@contextlib.contextmanager
def running(
    folder: Path, model: Path, *args: str, env: Mapping[str, str] | None = None, wait: bool = True
) -> Iterator[Server]:
    """Run `python -m sglang.launch_server` on the CPU with further arguments.

    Args:
        folder: an empty folder for the log and the shim's metadata.
        model: the model directory.
        args: further server arguments.
        env: further environment variables.
        wait: until the server answers.
    """
    port = reserve(PORTS[0], PORTS[-1])
    install_shim(folder / "path")
    path = os.pathsep.join([str(folder / "path"), str(SHIM), os.environ.get("PYTHONPATH", "")])
    command = [
        sys.executable, "-m", "sglang.launch_server", "--model-path", str(model), "--device", "cpu",
        "--attention-backend", "torch_native", "--sampling-backend", "pytorch", "--grammar-backend", "xgrammar",
        "--constrained-json-disable-any-whitespace", "--disable-overlap-schedule", "--disable-radix-cache",
        "--skip-server-warmup", "--max-total-tokens", "32768", "--max-running-requests", "8",
        "--context-length", "4096", "--dtype", "float32", "--enable-custom-logit-processor",
        "--host", "127.0.0.1", "--port", str(port.number), *args,
    ]  # fmt: skip
    log = folder / "server.log"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", **(env or {})},
        )
    server = Server(f"http://127.0.0.1:{port.number}", log, model, process)
    try:
        if wait:
            server.wait()
        yield server
    finally:
        server.stop()
        port.release()
