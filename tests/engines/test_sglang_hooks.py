"""The hooks on SGLang's serving code: what they hand on, and that a fault of ours never reaches a request."""

import asyncio
import contextvars
import logging
import multiprocessing
import subprocess
import sys
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("sglang")

from sglang.srt.plugins.hook_registry import HookRegistry

from tests.engines.replay import tokenizer_of
from tests.engines.sglang_drive import Serving
from tests.support.patience import START_SECONDS
from vllm_reasoning_ext.demo.tiny_model import encode
from vllm_reasoning_ext.engines.register import register_sglang
from vllm_reasoning_ext.engines.sglang import hooks as sglang_hooks
from vllm_reasoning_ext.engines.sglang import output as sglang_output
from vllm_reasoning_ext.engines.sglang import register as sglang_register

pytestmark = pytest.mark.sglang

register_sglang()

PROMPTS = {
    "open": "<|im_start|>assistant\n<think>\n",
    "closed": "<|im_start|>assistant\n<think>\n\n</think>\n\n",
    "undecided": "<|im_start|>user\nwhat does <think> mean?<|im_end|>\n<|im_start|>assistant\n",
}


def request(**fields: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"tools": None, "tool_choice": "auto", "skip_special_tokens": True, **fields})


def bound(family: str, prompt: str, *, as_text: bool, guess: bool, **fields: Any) -> tuple[Any, Any]:
    """Convert a chat request as SGLang does; return the facts on it, and what the scheduler is told."""
    asked = request(**fields)
    ids = None if as_text else encode(tokenizer_of(family), prompt)
    generate = SimpleNamespace(text=prompt if as_text else None, input_ids=ids, require_reasoning=guess)
    sglang_hooks.after_convert((generate, asked), Serving(family, "qwen25"))
    return getattr(asked, sglang_hooks.FACTS), generate.require_reasoning


# The prompt


@pytest.mark.parametrize("as_text", [True, False])
@pytest.mark.parametrize("guess", [True, False])
@pytest.mark.parametrize(("prompt", "kind"), [("open", "reasoning"), ("closed", "content"), ("undecided", "undecided")])
def test_the_prompt_overrules_sglangs_guess(prompt: str, kind: str, guess: bool, as_text: bool) -> None:
    facts, required = bound("qwen3", PROMPTS[prompt], as_text=as_text, guess=guess)
    assert facts.start.kind == kind
    assert required == {"reasoning": True, "content": False, "undecided": guess}[kind]


def test_a_header_is_left_before_a_structured_answer() -> None:
    facts, required = bound("muse_glimmer", "<|start|>assistant", as_text=False, guess=False)
    assert (facts.start.kind, required) == ("header", True)


@pytest.mark.parametrize(
    ("fields", "offered"),
    [({}, False), ({"tools": [1]}, True), ({"tools": [1], "tool_choice": "none"}, False)],
)
def test_tools_are_those_of_the_request(fields: dict[str, Any], offered: bool) -> None:
    facts, _ = bound("qwen3", PROMPTS["open"], as_text=True, guess=False, **fields)
    assert (facts.tools, facts.tool_parser) == (offered, "qwen25")


def test_a_responses_request_is_read_too() -> None:
    asked = request()
    processed = SimpleNamespace(require_reasoning=False)

    async def make(serving: Any, request: Any, previous: Any) -> Any:
        return [], [PROMPTS["open"]], [PROMPTS["open"]], processed

    made = asyncio.run(sglang_hooks.around_make_request(make, Serving("qwen3"), asked, None))
    assert made[3] is processed
    assert getattr(asked, sglang_hooks.FACTS).start.kind == "reasoning"
    assert processed.require_reasoning is True


@pytest.mark.parametrize(
    ("family", "kept"),
    [("muse_glimmer", False), ("gpt_oss", False), ("gemma4", False), ("qwen3", True), ("kimi_k2", True)],
)
def test_special_tokens_are_kept_where_markers_are_special(family: str, kept: bool) -> None:
    asked = request()
    serving = Serving("qwen3")
    if family != "kimi_k2":
        serving.tokenizer_manager.tokenizer = tokenizer_of(family)
    serving.reasoning_parser = family
    sglang_hooks.after_skip_special_tokens(None, serving, asked)
    assert asked.skip_special_tokens is kept


@pytest.mark.parametrize(
    ("family", "native", "expected"),
    [
        ("muse_glimmer", False, True),
        ("gpt_oss", False, True),
        ("qwen3", False, None),
        ("muse_glimmer", True, None),
    ],
)
def test_earlier_thoughts_go_to_a_channel_template_as_such(family: str, native: bool, expected: Any) -> None:
    assert sglang_hooks.after_native_history(native, Serving(family)) is expected


def test_earlier_thoughts_are_wrapped_for_a_template_that_does_not_read_them() -> None:
    serving = Serving("muse_glimmer")
    serving.tokenizer_manager.tokenizer = SimpleNamespace(chat_template="{{ messages[0].content }}")
    assert sglang_hooks.after_native_history(False, serving) is None


def test_a_foreign_parser_is_left_alone() -> None:
    asked = request()
    generate = SimpleNamespace(text="x", input_ids=None, require_reasoning="as it was")
    sglang_hooks.after_convert((generate, asked), _foreign())
    assert not hasattr(asked, sglang_hooks.FACTS)
    assert generate.require_reasoning == "as it was"


def _foreign() -> Serving:
    serving = Serving("qwen3")
    serving.reasoning_parser = "deepseek-r1"
    return serving


def test_a_fault_in_a_hook_stays_in_it(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert sglang_hooks.after_convert("not what SGLang returns", Serving("qwen3")) is None
    assert "the hook after_convert failed" in caplog.text


# The token stream


def item(ids: list[int], reason: str | None = None, **fields: Any) -> dict[str, Any]:
    meta = {"finish_reason": {"type": reason} if reason else None, **fields.pop("meta", {})}
    return {"text": "", "output_ids": ids, "meta_info": meta, **fields}


def ours(**fields: Any) -> SimpleNamespace:
    """Build the engine's request of a chat that one of our parsers splits."""
    generate = SimpleNamespace(text=PROMPTS["open"], input_ids=None, require_reasoning=False, **fields)
    sglang_hooks.after_convert((generate, request()), Serving("qwen3"))
    return generate


async def watched(
    items: list[Any], *, increments: bool = False, stream: bool = True, generate: Any = None
) -> list[Any]:
    """Send items through the hook; return what a detector would see after each."""

    async def produce(manager: Any, obj: Any, raw: Any) -> AsyncIterator[Any]:
        for one in items:
            await asyncio.sleep(0)
            yield one

    manager = SimpleNamespace(incremental_streaming_output=increments)
    seen = []
    asked = generate or ours(stream=stream)
    async for _ in sglang_hooks.around_generate(produce, manager, asked, None):
        output = sglang_output.current()
        seen.append(None if output is None else (list(output.ids), output.reason))
    return seen


def test_ids_are_copied_from_a_list_that_goes_on_growing() -> None:
    live = [1]

    async def run() -> list[Any]:
        async def generate(*_: Any) -> AsyncIterator[Any]:
            yield item(live)
            live.extend([2, 3])
            yield item(live, "stop")

        seen = []
        async for _ in sglang_hooks.around_generate(generate, SimpleNamespace(), ours()):
            output = sglang_output.current()
            assert output is not None
            assert output.ids is not live
            seen.append((list(output.ids), output.reason))
        return seen

    assert asyncio.run(run()) == [([1], None), ([1, 2, 3], "stop")]


def test_incremental_output_and_the_item_of_an_abort() -> None:
    items = [item([1, 2]), item([3]), item([3], "abort", meta={"completion_tokens": 3})]
    seen = asyncio.run(watched(items, increments=True))
    assert seen == [([1, 2], None), ([1, 2, 3], None), ([1, 2, 3], "abort")]


def test_whole_replies_are_never_increments() -> None:
    assert asyncio.run(watched([item([1, 2], "stop")], increments=True, stream=False)) == [([1, 2], "stop")]


def test_choices_of_one_stream_are_kept_apart() -> None:
    items = [item([1], index=0), item([9], index=1), item([1, 2], "stop", index=0), item([9, 8], "length", index=1)]
    assert asyncio.run(watched(items)) == [([1], None), ([9], None), ([1, 2], "stop"), ([9, 8], "length")]


def test_a_list_of_whole_choices_is_shown_one_by_one() -> None:
    choices = [item([1], "stop"), item([2], "stop")]

    async def run() -> list[Any]:
        seen = await watched([choices], stream=False)
        for one in choices:
            sglang_hooks.after_decode("text", Serving("qwen3"), one)
            output = sglang_output.current()
            assert output is not None
            seen.append(output.ids)
        return seen

    assert asyncio.run(run()) == [None, [1], [2]]


def test_parallel_streams_do_not_mix() -> None:
    async def run() -> list[list[Any]]:
        streams = [[item(list(range(base, base + n + 1))) for n in range(20)] for base in range(0, 800, 100)]
        return await asyncio.gather(*(watched(items) for items in streams))

    for base, seen in zip(range(0, 800, 100), asyncio.run(run()), strict=True):
        assert [ids for ids, _ in seen] == [list(range(base, base + n + 1)) for n in range(20)]


def test_a_foreign_stream_is_passed_through_untouched() -> None:
    async def generate(*_: Any) -> AsyncIterator[Any]:
        yield item([1])

    stream = generate()
    fresh = contextvars.Context()  # nothing of ours was converted in it
    arguments = (lambda *_: stream, SimpleNamespace(), SimpleNamespace())
    assert fresh.run(sglang_hooks.around_generate, *arguments) is stream


def test_an_item_of_another_shape_does_not_end_the_stream(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> list[Any]:
        return await watched([{"output_ids": [1], "meta_info": None}, item([1, 2], "stop")])

    with caplog.at_level(logging.ERROR):
        assert len(asyncio.run(run())) == 2
    assert "the hook _show failed" in caplog.text


def test_sglangs_generator_is_closed_with_ours() -> None:
    closed = []

    async def generate(*_: Any) -> AsyncIterator[Any]:
        try:
            while True:
                yield item([1])
        finally:
            closed.append(True)

    async def run() -> None:
        stream = sglang_hooks.around_generate(generate, SimpleNamespace(), ours())
        await anext(stream)
        await stream.aclose()
        assert closed == [True]

    asyncio.run(run())


def test_reasoning_tokens_are_those_of_the_split_even_from_a_thread() -> None:
    tokenizer = tokenizer_of("qwen3")
    thought, answer = encode(tokenizer, "abc"), encode(tokenizer, "</think>defgh")

    async def run() -> list[int]:
        generate = SimpleNamespace(
            text=None, input_ids=encode(tokenizer, PROMPTS["open"]), require_reasoning=False, stream=True
        )
        await asyncio.to_thread(sglang_hooks.after_convert, (generate, request()), Serving("qwen3"))
        items = [item(thought[:1]), item(thought), item(thought + answer, "stop")]
        await watched(items, generate=generate)
        return [one["meta_info"]["reasoning_tokens"] for one in items]

    assert asyncio.run(run()) == [1, 3, 3]


# Installation


def test_every_hook_finds_its_target() -> None:
    HookRegistry.reset()
    assert sglang_hooks.install() == []
    assert set(HookRegistry._hooks) == {target for target, _, _ in sglang_hooks.HOOKS}
    HookRegistry.reset()


def test_a_missing_target_is_named_and_the_rest_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = "sglang.srt.gone.Serving.method"
    moved = "sglang.srt.parser.reasoning_parser.ReasoningParser.moved"
    hooks = ((gone, print, "AFTER"), (moved, print, "AFTER"), sglang_hooks.HOOKS[0])
    monkeypatch.setattr(sglang_hooks, "HOOKS", hooks)
    HookRegistry.reset()
    assert sglang_hooks.install() == [gone, moved]
    assert list(HookRegistry._hooks) == [sglang_hooks.HOOKS[2][0]]
    HookRegistry.reset()


def _in_a_child(queue: Any) -> None:
    queue.put(sglang_register.serves_requests())


def test_a_server_in_a_child_process_gets_the_hooks() -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=_in_a_child, args=(queue,))
    child.start()
    assert queue.get(timeout=START_SECONDS) is True
    child.join()


def test_the_scheduler_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    from sglang.srt.managers.detokenizer_manager import run_detokenizer_process

    monkeypatch.setattr(multiprocessing, "parent_process", lambda: object())
    started = SimpleNamespace(_target=run_detokenizer_process)
    monkeypatch.setattr(multiprocessing, "current_process", lambda: started)
    assert sglang_register.serves_requests() is False


def test_loading_the_plugin_twice_hooks_once() -> None:
    code = (
        "from sglang.srt.plugins import load_plugins\n"
        "from sglang.srt.plugins.hook_registry import HookRegistry\n"
        "from vllm_reasoning_ext.engines.register import register_sglang\n"
        "load_plugins(); register_sglang(); load_plugins()\n"
        "print(sorted({len(hooks) for hooks in HookRegistry._hooks.values()}), len(HookRegistry._patched))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=START_SECONDS, check=True
    )
    # Our hooks, and the one that says the line once SGLang's log is there.
    assert ran.stdout.splitlines()[-1] == f"[1] {len(sglang_hooks.HOOKS) + 1}", ran.stderr[-2000:]
