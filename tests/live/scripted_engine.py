"""The real vLLM API server over an engine core that only plays scripts: ready in a tenth of the time.

HTTP, rendering, sampling parameters, detokenizer, stop strings, n, usage and parsers are vLLM's own; only the
client to the engine core is replaced. A request's `vllm_xargs` say what comes:
`script`: token ids, separated by commas; `|` separates the scripts of the choices of one request.
`step`: token ids in one engine step (speculative decoding emits several). `pause`: seconds between steps.
"""

import asyncio
from types import SimpleNamespace
from typing import Any

from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs, FinishReason, core_client


class ScriptedCore:
    """Stands in for vLLM's AsyncMPClient."""

    engine_ranks_managed = (0,)

    def __init__(self) -> None:
        self._outputs: asyncio.Queue[EngineCoreOutputs] = asyncio.Queue()
        self._aborted: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.resources = SimpleNamespace(engine_dead=False)

    async def get_supported_tasks_async(self) -> tuple[str, ...]:
        return ("generate",)

    async def get_output_async(self) -> EngineCoreOutputs:
        return await self._outputs.get()

    async def abort_requests_async(self, request_ids: list[str]) -> None:
        self._aborted.update(request_ids)

    async def add_request_async(self, request: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._play(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def shutdown(self, timeout: float | None = None) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        async def nothing(*_: Any, **__: Any) -> None:
            return None

        return nothing

    async def _play(self, request: Any) -> None:
        params = request.sampling_params
        options = params.extra_args or {}
        ids = _script(str(options["script"]), request.request_id)
        step, pause = int(options.get("step", 1)), float(options.get("pause", 0))
        sent = 0
        while request.request_id not in self._aborted:
            chunk, reason, stop = [], None, None
            for token in ids[sent : sent + step]:
                chunk.append(token)
                if token == params.eos_token_id and not params.ignore_eos:
                    reason = FinishReason.STOP
                elif token in (params.stop_token_ids or ()):
                    reason, stop = FinishReason.STOP, token
                elif sent + len(chunk) >= (params.max_tokens or len(ids)):
                    reason = FinishReason.LENGTH
                if reason is not None:
                    break
            sent += len(chunk)
            if reason is None and sent >= len(ids):
                reason = FinishReason.STOP
            output = EngineCoreOutput(request.request_id, chunk, finish_reason=reason, stop_reason=stop)
            await self._outputs.put(EngineCoreOutputs(outputs=[output]))
            if reason is not None:
                return
            await asyncio.sleep(pause)


def _script(scripts: str, request_id: str) -> list[int]:
    """Pick the script of a choice: vLLM names the choices of one request `0_ID`, `1_ID`, ..."""
    parts = scripts.split("|")
    index = request_id.partition("_")[0]
    part = parts[int(index) % len(parts)] if index.isdigit() else parts[0]
    return [int(number) for number in part.split(",")]


core_client.EngineCoreClient.make_async_mp_client = staticmethod(lambda *_, **__: ScriptedCore())

if __name__ == "__main__":
    from vllm.entrypoints.launchers.api_server.entry import main

    main()
