"""Test-only SGLang plugin: run on a CPU without kernels, and write a scripted output on every endpoint.

A request with the header `x-script: 1,2,3` gets exactly those tokens, whatever the model thinks; with
`x-free: 1` the model samples for itself after them (under the request's grammar, if it has one).
"""

import json
from typing import Any


class Scripted:
    """A custom logit processor: leaves only the script's next token possible."""

    def __call__(self, logits: Any, params: list[dict[str, Any]] | None = None) -> Any:
        for row, param in enumerate(params or []):
            script = (param or {}).get("script")
            if not script:
                continue
            at = len(param["__req__"].output_ids)
            if at >= len(script) and param.get("free"):
                continue
            token = script[min(at, len(script) - 1)]
            logits[row, :] = float("-inf")
            logits[row, token] = 0.0
        return logits


def force_script(_manager: Any, generate: Any, request: Any = None, *_: Any, **__: Any) -> None:
    """Turn the request's headers into sampling parameters (BEFORE `generate_request`)."""
    script = request.headers.get("x-script") if request is not None else None
    if script is None:
        return
    import dill

    params = {
        "script": [int(part) for part in script.split(",") if part],
        "free": "x-free" in request.headers,
    }
    generate.custom_logit_processor = json.dumps({"callable": dill.dumps(Scripted).hex()})
    generate.sampling_params = {**(generate.sampling_params or {}), "custom_params": params, "temperature": 0}


def register() -> None:
    """Entry point of `sglang.srt.plugins`."""
    import sglang.srt.layers.rotary_embedding.base as rotary
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    # With this set, the CPU path is taken without asking for vLLM's compiled operators.
    rotary._is_cpu = True
    HookRegistry.register(
        "sglang.srt.managers.tokenizer_manager.TokenizerManager.generate_request",
        force_script,
        HookType.BEFORE,
    )
