"""The loggers of the adapters: children of each engine's own, because only those reach the server's log."""

import logging
from typing import Final

vllm_log: Final = logging.getLogger("vllm.plugins.reasoning_ext")
sglang_log: Final = logging.getLogger("sglang.reasoning_ext")
