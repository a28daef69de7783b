"""vLLM's ReasoningParser contract on top of the core, complete without the composed-parser hook.

Theory of operation. vLLM drives a reasoning parser either through the class that it composes from a reasoning
and a tool parser (then `vllm_compose` takes over and asks only `begin` and `split` of this class), or through the
ReasoningParser methods below. The methods cannot express everything: a tool parser sees no output before the
parser has confirmed that reasoning ended, and afterwards this parser is never called again. So at the first
piece that a tool parser may have to read, everything not yet handed on goes out in one delta, raw.

The ids methods are called by the engine core for structured output and must be pure functions of their arguments.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, ClassVar

from vllm_reasoning_ext.core.count import ReasoningTokenCounter
from vllm_reasoning_ext.core.events import CONTENT, MARKER, REASONING, TOOL, Delta, Event
from vllm_reasoning_ext.core.families import FAMILIES, Family
from vllm_reasoning_ext.core.gate import reasoning_ended
from vllm_reasoning_ext.core.start import start_state
from vllm_reasoning_ext.core.suffix import fitted
from vllm_reasoning_ext.engines.guard import GuardedSplitter, never_raises
from vllm_reasoning_ext.engines.logs import vllm_log
from vllm_reasoning_ext.engines.names import class_name
from vllm_reasoning_ext.engines.vllm import compose as vllm_compose
from vllm_reasoning_ext.engines.vllm import metrics as vllm_metrics
from vllm_reasoning_ext.engines.vllm.handover import IdWindow
from vllm_reasoning_ext.engines.vllm.lookup import ReasoningParser, warn_moved
from vllm_reasoning_ext.engines.vllm.message import answers_at_once, finish_reason, message, offers_tools
from vllm_reasoning_ext.engines.vocabulary import vocabulary


class Composable(type(ReasoningParser)):  # type: ignore[misc]
    """Tells when vLLM composes a Parser class from one of these parsers.

    `class _Parser(DelegatingParser): reasoning_parser_cls = Given` makes Python call `__set_name__` on the type of
    `Given`, with the class that is being made. Nothing of vLLM is patched: each composition is a fresh class.
    """

    composed: ClassVar[bool] = False
    """vLLM has composed a class in this process, so the hook below works."""

    def __set_name__(cls, owner: type, name: str) -> None:
        if name == "reasoning_parser_cls":
            Composable.composed = True
            vllm_compose.compose(owner)
            vllm_metrics.prepare(cls.family.name)


class ReasoningExtParser(ReasoningParser, metaclass=Composable):  # type: ignore[misc]
    """One family's parser as vLLM wants it; subclasses only set `family`."""

    family: ClassVar[Family]
    engine_based_streaming = True

    of_template: Callable[[str], "ReasoningExtParser"] | None = None
    """Of a parser that `auto` chose: makes the one for a request's own chat template."""
    tool_parsers: tuple[str, ...] = ()
    """Of a parser that `auto` chose: the tool-call parsers that read the family's calls, as far as known."""

    def __init__(self, tokenizer: Any, *args: Any, **kwargs: Any) -> None:
        self.family = fitted(self.family, tokenizer)  # type: ignore[misc]  # a class's family, as this tokenizer spells it
        known = vocabulary(self.family, tokenizer)  # first: its error is the clear one
        super().__init__(tokenizer, *args, **kwargs)
        self.vocabulary = known
        if known.missing:
            _warn_missing(self.family.name, known.missing)
        self._channels = self.family.channels
        self._framed = self.family.framed_calls
        template = kwargs.get("chat_template_kwargs") or {}
        self.floor = "promote" if template.get("force_nonempty_content") is True else "off"
        self.prompt: Sequence[int] | None = None
        self._splitter: GuardedSplitter | None = None
        self._counter: ReasoningTokenCounter | None = None
        self.lag = 0  # characters that vLLM keeps back for stop strings: their ids come before they do
        self._counted = 0  # how many ids; the list may be the caller's own, and grow
        self._tools = True
        self._reset()

    def _reset(self) -> None:
        self._moved = False
        self._header = ""  # the last markers before a body: they frame what is handed on raw
        self._window = IdWindow(self.vocabulary)
        self._ids: list[int] = []

    # What vllm_compose asks.

    def set_prompt_token_ids(self, prompt_token_ids: Sequence[int]) -> None:
        """Remember the rendered prompt of this request; it decides the start state."""
        self.prompt = prompt_token_ids
        self._splitter = None

    def begin(self, tools: bool | None = None, *, header: bool = False, answer: bool = False) -> GuardedSplitter:
        """Start one output (a choice of the request) from the prompt.

        Args:
            tools: False when the request offers no tool; None when that is not known.
            header: an unknown prompt ends inside a channel header.
            answer: the output is the answer, even where the prompt has opened a block.
        """
        self._reset()
        self._counter, self._counted = None, 0
        self._tools = tools is not False
        self._splitter = GuardedSplitter(
            vllm_log,
            self.family,
            prompt_token_ids=self.prompt,
            force_reasoning=False if answer else True if header and self.prompt is None else None,
            tokenizer=self.model_tokenizer,
            tools=tools,
            floor=self.floor,
        )
        return self._splitter

    def ended(self, last: int | None, request: Any) -> bool:
        """Tell whether a last token ends an output by itself."""
        texts = self.family.end_of_sequence
        stops = {self.vocabulary.ids.get(text) for text in texts} | {
            getattr(self.model_tokenizer, "eos_token_id", None)
        }
        return last is not None and (last in stops or last in (getattr(request, "stop_token_ids", None) or ()))

    def finish_reason(self, request: Any, output: int, last: int | None) -> str | None:
        """Tell whether an output of so many tokens, the last of them given, was cut ("length"); None if not."""
        return finish_reason(request, output, self.prompt, self._model_config, self.ended(last, request))

    # vLLM's contract: the request.

    def adjust_request(self, request: Any) -> Any:
        """Keep control tokens in the text where the family's markers are special tokens."""
        if self.vocabulary.hidden:
            request.skip_special_tokens = False
            if hasattr(request, "spaces_between_special_tokens"):
                request.spaces_between_special_tokens = False
        return request

    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        """Take the prompt from vLLM's streaming path."""
        self.set_prompt_token_ids(prompt_token_ids)

    # vLLM's contract: text.

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """Split one complete output."""
        _check_composed()
        splitter = self.begin(offers_tools(request), answer=answers_at_once(request))
        fed, last = splitter.feed(model_output), splitter.finish()
        reasoning, content = fed.reasoning + last.reasoning, fed.content + last.content
        events = (*fed.events, *last.events)
        if self._framed and offers_tools(request) and any(e.kind is TOOL for e in events):
            # The tool parser gets the output as it was, thoughts cut out.
            content = "".join(e.text for e in events if e.kind is not REASONING)
        return reasoning or None, content or None

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> Any:
        """Split one delta; only the delta arguments are read, the others differ between vLLM's modes."""
        splitter = self._splitter
        if splitter is None:
            _check_composed()
            splitter = self.begin()
        delta = splitter.feed(delta_text, delta_token_ids)
        if self._channels:
            if delta.plain:
                self._header = ""
            elif self._framed and any(event.kind is TOOL for event in delta.events):
                return self._hand_over(splitter, delta)
            else:
                self._remember_header(delta.events)
            return message(delta.reasoning, delta.content)
        self._window.track(delta_text, delta_token_ids, delta)
        if delta.content:
            return self._hand_over(splitter, delta)
        return message(delta.reasoning, "")

    def has_engine_confirmed_reasoning_end(self) -> bool:
        """Tell whether the rest of the output belongs to the tool parser."""
        return self._moved

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        """Give the ids of the text that the last delta handed over."""
        return self._ids if self._moved else list(input_ids)

    def finish_streaming(self) -> Any:
        """Release the held tail; nothing after the hand-over, which had everything."""
        if self._moved or self._splitter is None:
            return None
        delta = self._splitter.finish()
        self._splitter = None
        return message(delta.reasoning, delta.content)

    def _hand_over(self, splitter: GuardedSplitter, delta: Delta) -> Any:
        self._moved = True
        events = delta.events
        first = next(i for i, e in enumerate(events) if e.kind is CONTENT or e.kind is TOOL)
        self._ids = [] if self._channels else self._window.take(delta)
        # The output goes on elsewhere: what finish() would add to end it does not belong here.
        events = (*events, *(e for e in splitter.finish().events if not e.synthetic))
        reasoning = "".join(e.text for e in events[:first] if e.kind is REASONING)
        if not self._channels:
            return message(reasoning, "".join(e.text for e in events if e.kind is CONTENT or e.kind is TOOL))
        self._remember_header(events[:first])
        raw = "".join(e.text for e in events[first:] if not e.synthetic or e.kind is TOOL)
        return message(reasoning, raw if events[first].kind is TOOL else self._header + raw)

    def _remember_header(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.kind is MARKER:
                self._header += event.text
            else:
                self._header = ""

    # vLLM's contract: ids.

    @never_raises(False)
    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Tell whether the answer begins right after a prompt of these ids."""
        if self._splitter is None and self.prompt is None:
            # Up to 0.31 vLLM's non-streaming path shows the prompt to this method only.
            self.prompt = input_ids
        start = start_state(None, self.family, prompt_token_ids=input_ids, tokenizer=self.model_tokenizer)
        return start.ended

    @never_raises(False)
    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        """Tell whether reasoning ended anywhere within the last `delta_ids` of `input_ids`."""
        ids = self.vocabulary.ids
        return reasoning_ended(self.family, input_ids, list(delta_ids), ids, self.vocabulary.decode)

    @never_raises(0)
    def count_reasoning_tokens(self, token_ids: Sequence[int]) -> int:
        """Count the reasoning tokens of an output; a longer output of the same choice costs only its new ids."""
        done = self._counted
        if self._counter is None or len(token_ids) < done:
            start = (self._splitter or self.begin()).start
            self._counter = ReasoningTokenCounter(
                self.family, self.vocabulary.ids, start, self.vocabulary.decode, self._tools
            )
            done = 0
        self._counted = len(token_ids)
        count = self._counter.feed(token_ids[done:])
        held = self.lag + (self._splitter.held if self._splitter is not None else 0)
        # While streaming, the count of a chunk covers what was shown: what is held may turn out to be no reasoning.
        return count - self._counter.undecided(held) if held else count

    # vLLM's contract: thinking budgets.

    @property
    def reasoning_start_str(self) -> str | None:
        """What a thinking budget counts from."""
        return self.family.reasoning_start_str or None

    @property
    def reasoning_end_str(self) -> str | None:
        """What a thinking budget forces at its end."""
        return self.family.reasoning_end_str or None


def _check_composed() -> None:
    """Say once where vLLM drives parsers through their plain contract and has never composed a class with one."""
    if not Composable.composed:
        warn_moved("this vLLM does not compose its parsers in the way that is known", vllm_compose.PLAIN_CONTRACT)


@cache
def _warn_missing(family: str, missing: tuple[str, ...]) -> None:
    vllm_log.warning(
        "%s: the tokenizer has no single token for %s, so the text alone tells where a block begins and ends. "
        "If the model is of another family, choose its --reasoning-parser; "
        "`python -m vllm_reasoning_ext doctor --model DIR` names it. (Said once.)",
        family,
        ", ".join(missing),
    )


def parser_class(family: Family) -> type[ReasoningExtParser]:
    """Make a family's parser class, under the name that `register` binds."""
    return Composable(class_name(family.name), (ReasoningExtParser,), {"family": family, "__module__": __name__})


def __getattr__(name: str) -> Any:
    """Find `<Family>Parser`, also of a family that was registered after this module was imported."""
    for family in FAMILIES.values():
        if name == class_name(family.name):
            found = globals()[name] = parser_class(family)
            return found
    raise AttributeError(f"{__name__} has no {name}")
