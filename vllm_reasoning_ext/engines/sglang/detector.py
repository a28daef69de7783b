"""SGLang's reasoning detector over the core: one thin class, one subclass a family, no grammar.

SGLang builds a detector per request and choice, and further ones at start-up, in the scheduler and for
`/separate_reasoning`, which never see a request: so the constructor is cheap and the splitter is made at the
first text. `hooks` hands over what SGLang itself does not: the rendered prompt and the output's ids.
"""

import inspect
from functools import cache
from typing import Any, ClassVar, Final, NamedTuple

from sglang.srt.parser.reasoning_parser import BaseReasoningFormatDetector, StreamingParseResult

from vllm_reasoning_ext.core.events import Delta, Event
from vllm_reasoning_ext.core.families import AUTO, Family, get_family
from vllm_reasoning_ext.core.record import NO_REASONING
from vllm_reasoning_ext.core.state import StartState
from vllm_reasoning_ext.core.suffix import fitted
from vllm_reasoning_ext.engines.guard import GuardedSplitter
from vllm_reasoning_ext.engines.logs import sglang_log as log
from vllm_reasoning_ext.engines.sglang import handoff as sglang_handoff
from vllm_reasoning_ext.engines.sglang import output as sglang_output
from vllm_reasoning_ext.engines.sglang.auto import family_for
from vllm_reasoning_ext.engines.sglang.handoff import Handoff
from vllm_reasoning_ext.engines.vocabulary import vocabulary

REASONING_DEFAULTS: Final = {
    "deepseekv32": "explicit_thinking",
    "minimax": "always",
    "minimax_m3": "explicit_thinking",
    "gemma4": "explicit_enable_thinking",
    "gpt_oss": "always",
    "muse_glimmer": "always",
}
"""The request switch that SGLang asks for where the template names none; every other `<think>` model has
`enable_thinking`, on unless it is false. It only decides what the prompt leaves open."""

ANSWER_HEADERS: Final = {"atem": " to=user<|message|>", "harmony": "<|channel|>final<|message|>"}
"""What a structured answer waits for in a channel grammar: the header of the answer, not the end of the
thought, for the schema would otherwise have to swallow that header."""


class PromptFacts(NamedTuple):
    """What one request decides before its output begins.

    Attributes:
        start: the start state that its rendered prompt shows (SPEC section 4).
        tools: whether it offers tools.
    """

    start: StartState
    tools: bool


class SglangDetector(BaseReasoningFormatDetector):  # type: ignore[misc]
    """Split one output for SGLang; made for a family by `detector_class`.

    Args (SGLang looks at their names and passes only those it finds here):
        stream_reasoning: False holds a block's reasoning until the block closes.
        force_reasoning: SGLang's guess from the template; only used when no prompt was bound.
        tokenizer: a channel family's control tokens are checked in it.
        tool_call_parser_active: the content goes on to a tool parser.
        force_nonempty_content: an answer that would be empty is the reasoning (SPEC section 6).

    Raises:
        SetupError: the tokenizer lacks a control token of a channel family.
    """

    family: ClassVar[Family]

    def __init__(
        self,
        stream_reasoning: bool = True,
        force_reasoning: bool | None = None,
        tokenizer: Any = None,
        tool_call_parser_active: bool = False,
        continue_final_message: bool = False,
        previous_content: Any = "",
        force_nonempty_content: bool = False,
        **_: Any,
    ) -> None:
        # A class's family, as this tokenizer spells it.
        family = self.family = fitted(self.family, tokenizer)  # type: ignore[misc]
        super().__init__(
            family.opener or family.reasoning_start_str,
            family.closer or family.reasoning_end_str,
            force_reasoning=bool(force_reasoning),
            stream_reasoning=stream_reasoning,
            # SGLang must not append a literal <think> to a legacy prompt.
            thinks_internally=True,
            reasoning_default=REASONING_DEFAULTS.get(family.name, "enable_thinking"),
        )
        self.think_start_self_label = family.label
        if tokenizer is not None:
            vocabulary(family, tokenizer)
        self._force = force_reasoning
        self._tokenizer = tokenizer
        self._floor = "promote" if force_nonempty_content else "off"
        self._tool_parser_active = tool_call_parser_active
        self._facts: PromptFacts | None = None
        self._reset()

    def _reset(self) -> None:
        self._splitter: GuardedSplitter | None = None
        self._handoff = Handoff(self.family)
        self._ids_taken = 0

    def bind(self, facts: PromptFacts) -> None:
        """Take the request's prompt (called by the hooks right after the constructor)."""
        self._facts = facts

    # SGLang's three methods.

    def detect_and_parse(self, text: str) -> StreamingParseResult:
        """Split a whole output: what the stream gives, in one piece."""
        self._reset()
        return self._step(text, ends=True)

    def parse_streaming_increment(self, new_text: str) -> StreamingParseResult:
        """Split the next piece of an output; the piece may be empty."""
        return self._step(new_text, ends=False)

    def finish(self) -> StreamingParseResult:
        """Release what was held (SGLang calls it after the last piece, unless the request was aborted)."""
        return self._step("", ends=True)

    def _step(self, text: str, *, ends: bool) -> StreamingParseResult:
        splitter = self._splitter or self._open()
        deltas = [splitter.feed(text, self._take_ids())]
        if ends:
            deltas.append(splitter.finish(sglang_output.finish_reason()))
        reasoning = "".join(delta.reasoning for delta in deltas)
        content = self._content(deltas)
        if reasoning or content:
            self._in_reasoning = not content
        return StreamingParseResult(normal_text=content, reasoning_text=reasoning)

    def _open(self) -> GuardedSplitter:
        facts = self._facts
        self._splitter = GuardedSplitter(
            log,
            self.family,
            # Without the prompt, SGLang's guess from the template's switches is the best there is.
            start=facts and facts.start,
            force_reasoning=None if facts else self._force,
            tools=facts.tools if facts else None,
            tokenizer=self._tokenizer,
            stream_reasoning=self.stream_reasoning,
            floor=self._floor,
        )
        return self._splitter

    def _take_ids(self) -> list[int] | None:
        output = sglang_output.current()
        if output is None:
            return None
        new = output.ids[self._ids_taken :]
        self._ids_taken += len(new)
        return new

    def _content(self, deltas: list[Delta]) -> str:
        # Only a tool parser that follows in this task reads the events; another detector's are not for it.
        sglang_handoff.set_current(self._handoff if self._tool_parser_active else None)
        if not self._tool_parser_active and all(delta.plain for delta in deltas):
            return "".join(delta.content for delta in deltas)
        events: list[Event] = [event for delta in deltas for event in delta.events]
        return self._handoff.give(events) if self._tool_parser_active else sglang_handoff.shown(events)

    # What the scheduler asks for: where a grammar may begin, and which tokens are reasoning.

    def get_think_end_token_ids(self, tokenizer: Any) -> list[int]:
        """Give the ids after which a structured answer is held to its grammar."""
        end = ANSWER_HEADERS.get(self.family.grammar, self.think_end_token)
        return list(tokenizer.encode(end, add_special_tokens=False))

    def get_self_opened_think_start_token_ids(self, tokenizer: Any) -> list[int] | None:
        """Give the ids of the opener that a model may write itself; None for a channel grammar."""
        if self.family.channels:
            return None
        return list(tokenizer.encode(self.think_start_token, add_special_tokens=False))


class AutoDetector(SglangDetector):
    """What SGLang finds under `auto_ext`: makes the detector of the family that the tokenizer shows."""

    family = NO_REASONING
    __signature__ = inspect.signature(SglangDetector)  # SGLang passes only what it finds here

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return detector_of(family_for(kwargs.get("tokenizer")))(*args, **kwargs)


def detector_class(family: str) -> type[SglangDetector]:
    """Give the detector class that a parser name is bound to, from the name of its family, or `auto`."""
    return AutoDetector if family in AUTO else detector_of(get_family(family))


@cache
def detector_of(record: Family) -> type[SglangDetector]:
    """Make the detector class of a record; one record has one class."""
    name = "".join(part.capitalize() for part in record.name.split("_")) + "Detector"
    return type(name, (SglangDetector,), {"family": record, "__doc__": f"{record.name} for SGLang."})


def family_of(parser_name: str | None, tokenizer: Any = None) -> Family | None:
    """Tell which family answers to a `--reasoning-parser` name in this SGLang; None: a parser of SGLang's own.

    Args:
        parser_name: the name.
        tokenizer: what `auto_ext` chooses by; without one it is what this process chose last.
    """
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    found = ReasoningParser.DetectorMap.get((parser_name or "").lower())
    if found is AutoDetector:
        return family_for(tokenizer)
    return fitted(found.family, tokenizer) if isinstance(found, type) and issubclass(found, SglangDetector) else None


def needs_special_tokens(family: Family, tokenizer: Any) -> bool:
    """Tell whether `skip_special_tokens` would strip a marker of the family from the text.

    Without a tokenizer the answer is True: a marker that was stripped cannot be had back.
    """
    return tokenizer is None or vocabulary(family, tokenizer).hidden
