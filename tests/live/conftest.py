"""Real servers for the live tests: one start per configuration, shared by its tests, ended afterwards."""

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import REPLY_SECONDS, START_SECONDS
from vllm_reasoning_ext.conformance.script import cut_at, script_ids
from vllm_reasoning_ext.demo.outputs import Output
from vllm_reasoning_ext.demo.tiny_model import encode
from vllm_reasoning_ext.demo.vllm_server import TINY, VllmServer

ROOT = Path(__file__).parents[2]
SCRIPTED_ENGINE = Path(__file__).parent / "scripted_engine.py"
VLLM_CLI = Path(__file__).parent / "vllm_cli.py"


def vllm_python() -> str:
    """Find the interpreter that has vLLM, or skip."""
    if importlib.util.find_spec("vllm") is not None:
        return sys.executable
    given = os.environ.get("VLLM_EXT_VLLM_PYTHON")
    if not given:
        pytest.skip("needs vLLM: bash tests/envs/vllm.sh builds its environment and prints its python")
    return given


class Scripted:
    """A server whose output is dictated by the request."""

    def __init__(self, server: VllmServer, tokenizer: Any) -> None:
        self.server, self.tokenizer = server, tokenizer

    def ids(self, script: str) -> list[int]:
        return script_ids(script, self.encode)

    def encode(self, text: str) -> list[int]:
        return encode(self.tokenizer, text)

    def body(self, output: Output, step: int = 1, **fields: Any) -> dict[str, Any]:
        """Build the chat request of an output."""
        limit = cut_at(output.script, self.encode)
        script = ",".join(map(str, self.ids(output.script)))
        base = {"model": "tiny", "temperature": 0, "max_tokens": limit or 1000}
        return base | {"vllm_xargs": {"script": script, "step": step}} | output.request() | fields


def build(model: Path, family: str) -> Any:
    """Write the model directory of a family; give its tokenizer."""
    if family == "gpt_oss":
        from tests.live.gpt_oss_model import build_gpt_oss

        return build_gpt_oss(model)
    from vllm_reasoning_ext.demo.tiny_model import build_model

    return build_model(model, family)


Start = Callable[..., Scripted]


@pytest.fixture(scope="session")
def start_vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Give a function that starts (or finds running) the server of a configuration.

    One server runs at a time: starting another configuration ends the one before.
    """
    python = vllm_python()
    running: dict[tuple[Any, ...], Scripted] = {}

    def start(
        family: str, *flags: str, engine: bool = False, cli: bool = False, env: tuple[tuple[str, str], ...] = ()
    ) -> Scripted:
        key = (family, flags, engine, cli, env)
        if key not in running:
            for other in running.values():
                other.server.stop()
            running.clear()
            folder = tmp_path_factory.getbasetemp()
            model = folder / f"model-{family}"
            tokenizer = build(model, family)
            log = tmp_path_factory.mktemp("vllm") / "server.log"
            common = ["--model", str(model), "--served-model-name", "tiny", *TINY]
            common += ["--chat-template", str(ROOT / "templates" / f"{family}.jinja"), *flags]
            if engine:
                common += ["--logits-processors", "vllm_reasoning_ext.demo.logits:ScriptedLogits"]
            server = VllmServer(
                common,
                log,
                python=python,
                env=dict(env),
                script=VLLM_CLI if cli else None if engine else SCRIPTED_ENGINE,
                start_seconds=START_SECONDS,
                reply_seconds=REPLY_SECONDS,
            )
            running[key] = Scripted(server.__enter__(), tokenizer)
        return running[key]

    yield start
    for scripted in running.values():
        scripted.server.stop()
