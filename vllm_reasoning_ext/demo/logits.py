"""A vLLM logits processor that dictates the output: the token ids of `vllm_xargs.script`, one by one."""

from collections.abc import Callable
from typing import Any

from vllm.v1.sample.logits_processor import AdapterLogitsProcessor


class ScriptedLogits(AdapterLogitsProcessor):  # type: ignore[misc]
    """Leaves one token possible at each step; a request without a script is left alone.

    `--logits-processors vllm_reasoning_ext.demo.logits:ScriptedLogits`, and in the request
    `"vllm_xargs": {"script": "1,2,3"}`. After the script's end the model is free.
    """

    def is_argmax_invariant(self) -> bool:
        """Say that the processor changes which token is the likeliest."""
        return False

    def new_req_logits_processor(self, params: Any) -> Callable[[list[int], Any], Any] | None:
        """Make the processor of one request."""
        script = (params.extra_args or {}).get("script")
        if not script:
            return None
        ids = [int(part) for part in str(script).split(",")]

        def dictate(output_ids: list[int], logits: Any) -> Any:
            if len(output_ids) >= len(ids):
                return logits
            token = ids[len(output_ids)]
            wanted = logits[token].item()
            logits.fill_(float("-inf"))
            logits[token] = wanted
            return logits

        return dictate
