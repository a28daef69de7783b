"""Rendering a chat template that may be hostile: in a process of its own, bounded in time, memory and size."""

import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext.errors import SetupError

REMEDY: Final = "pip install 'vllm-reasoning-ext[conformance]'"
CPU_SECONDS: Final = 20
"""Processor time for all renderings of a template; real ones need a few hundredths of a second each derivation."""
WALL_SECONDS: Final = 120.0
"""The same on the clock, for hosts without such limits and for machines that are busy."""
MEMORY_BYTES: Final = 1 << 30
RENDERED_MAX: Final = 1 << 20
"""Characters of one rendering; a system prompt with tools has some ten thousand."""
TEMPLATE_MAX: Final = 1 << 20


class Seen(NamedTuple):
    """What a template's syntax tree shows.

    Attributes:
        texts: the literal text between its tags.
        constants: its string constants.
        fields: names that it reads from a message, a part or a call.
        compared: variable or field -> the values that it is compared with.
        variables: the variables that its caller may set.
        assigned: the variables that it sets itself, at least somewhere.
    """

    texts: tuple[str, ...]
    constants: tuple[str, ...]
    fields: tuple[str, ...]
    compared: Mapping[str, tuple[Any, ...]]
    variables: frozenset[str]
    assigned: frozenset[str]


class Rendered(NamedTuple):
    """One rendering: its text, or the error that the template raised."""

    text: str
    error: str = ""


class Sandbox:
    """Renders one template; a context manager.

    Args:
        template: its text.
        cpu_seconds, wall_seconds: what all renderings together may take.
        most: how many characters one rendering may have.

    Raises:
        SetupError: jinja2 is missing, or the template is no Jinja, or too large.
    """

    def __init__(
        self,
        template: str,
        *,
        cpu_seconds: int = CPU_SECONDS,
        wall_seconds: float = WALL_SECONDS,
        most: int = RENDERED_MAX,
    ) -> None:
        if importlib.util.find_spec("jinja2") is None:
            raise SetupError("reading a chat template needs jinja2", "this Python environment", REMEDY)
        if len(template) > TEMPLATE_MAX:
            raise SetupError(
                "the chat template is too large to be read",
                f"{len(template)} characters, at most {TEMPLATE_MAX}",
                "give the chat template itself, or name a family: --reasoning-parser NAME",
            )
        self._bounds = f"{cpu_seconds} s of processor time, {wall_seconds:g} s in all, {MEMORY_BYTES >> 20} MiB"
        self._known: dict[str, Rendered] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(Path(__file__).with_name("worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            errors="surrogatepass",
        )
        self._clock = threading.Timer(wall_seconds, self._process.kill)
        self._clock.daemon = True
        self._clock.start()
        job = {
            "path": sys.path,
            "template": template,
            "cpu_seconds": cpu_seconds,
            "memory_bytes": MEMORY_BYTES,
            "most": most,
        }
        try:
            self.seen = self._read(self._ask(job))
        except SetupError:
            self.close()
            raise

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        self._clock.cancel()
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    def render(self, context: Mapping[str, Any], *, mutable: bool = False) -> Rendered:
        """Render one conversation; the same one again costs nothing.

        Args:
            context: every variable the template sees (`messages`, `tools`, ...); JSON values.
            mutable: let the template change lists and mappings, which transformers refuses.

        Raises:
            SetupError: the template did not end within the bounds.
        """
        question = {"context": context, "mutable": mutable}
        key = json.dumps(question, sort_keys=True)
        if key not in self._known:
            answer = self._ask(question)
            if answer.get("fatal"):
                raise _unbounded(answer["error"], self._bounds)
            self._known[key] = Rendered(answer.get("text", ""), answer.get("error", ""))
        return self._known[key]

    def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except (OSError, ValueError):
            line = ""
        if not line.endswith("\n"):
            raise _unbounded("it did not end", self._bounds)
        found: dict[str, Any] = json.loads(line)
        return found

    def _read(self, answer: dict[str, Any]) -> Seen:
        if answer.get("fatal"):
            raise _unbounded(answer["error"], self._bounds)
        if "error" in answer:
            raise SetupError(
                f"the chat template is no valid Jinja: {answer['error']}",
                "the template's text",
                "correct that line, or name a family: --reasoning-parser NAME",
            )
        seen = answer["seen"]
        compared = {name: tuple(json.loads(value) for value in values) for name, values in seen["compared"].items()}
        return Seen(
            tuple(seen["texts"]),
            tuple(seen["constants"]),
            tuple(seen["fields"]),
            compared,
            frozenset(seen["variables"]),
            frozenset(seen["assigned"]),
        )


def _unbounded(what: str, bounds: str) -> SetupError:
    return SetupError(
        f"the chat template cannot be rendered: {what}",
        f"bounds: {bounds}",
        "correct the template, or name a family: --reasoning-parser NAME",
    )
