"""A port that another process takes between its choice and its use is no fault of the demo or of a test."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from vllm_reasoning_ext.demo.ports import TRIES, reserve, was_taken
from vllm_reasoning_ext.demo.vllm_server import VllmServer
from vllm_reasoning_ext.errors import SetupError

SERVER: Final = """\
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

port = int(sys.argv[sys.argv.index("--port") + 1])
seen = Path(sys.argv[1])
seen.write_text((seen.read_text() if seen.exists() else "") + f"{port} ")
if len(seen.read_text().split()) <= int(sys.argv[2]):
    sys.exit("OSError: [Errno 98] Address already in use")


class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()


HTTPServer(("127.0.0.1", port), Health).serve_forever()
"""


def server(folder: Path, failures: int) -> VllmServer:
    script = folder / "server.py"
    script.write_text(SERVER)
    flags = (str(folder / "ports"), str(failures))
    return VllmServer(flags, folder / "log", script=script, start_seconds=60)


def test_a_taken_port_is_tried_again_on_another(tmp_path: Path) -> None:
    with server(tmp_path, 2) as running:
        ports = (tmp_path / "ports").read_text().split()
        assert len(set(ports)) == len(ports) == 3
        assert running.url == f"http://127.0.0.1:{ports[-1]}"


def test_it_is_not_tried_for_ever(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="ended with status 1"), server(tmp_path, 99):
        pass
    assert len(set((tmp_path / "ports").read_text().split())) == TRIES


def test_a_server_that_ends_for_another_reason_is_started_once(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text("import pathlib, sys\npathlib.Path(sys.argv[1]).open('a').write('x')\nsys.exit('no model')\n")
    with pytest.raises(SetupError), VllmServer((str(tmp_path / "ports"),), tmp_path / "log", script=script):
        pass
    assert (tmp_path / "ports").read_text() == "x"


def test_a_reserved_port_is_no_other_process_s_before_anything_listens_there() -> None:
    held = reserve(19400, 19449)
    try:
        code = "from vllm_reasoning_ext.demo.ports import reserve; print(reserve(19400, 19449).number)"
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert int(other) != held.number
    finally:
        held.release()


def test_a_port_that_somebody_listens_on_is_passed_over() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        number = listening.getsockname()[1]
        with pytest.raises(SetupError, match="no free port"):
            reserve(number, number)


@pytest.mark.parametrize("line", ["[Errno 98] Address already in use", "listen EADDRINUSE: 9300"])
def test_the_log_tells_a_taken_port(line: str) -> None:
    assert was_taken(f"INFO start\n{line}\n")
    assert not was_taken("INFO start\nKeyError: 'x'\n")
