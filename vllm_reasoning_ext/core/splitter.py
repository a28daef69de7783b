"""The splitter: text and token ids in, reasoning and answer out; the one path that every surface uses."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from vllm_reasoning_ext.core.events import Delta
from vllm_reasoning_ext.core.families import resolve_family
from vllm_reasoning_ext.core.family_reader import FamilyReader
from vllm_reasoning_ext.core.floor import Floor, FloorPolicy
from vllm_reasoning_ext.core.grammar.choose import make_grammar
from vllm_reasoning_ext.core.grammar.contract import Observer, OutputReader
from vllm_reasoning_ext.core.grammar.inline import BUFFER_BYTES, Inline, Unclosed, Where
from vllm_reasoning_ext.core.grammar.roles import closing, only_real
from vllm_reasoning_ext.core.grammar.sink import Sink
from vllm_reasoning_ext.core.reading.ids import make_track
from vllm_reasoning_ext.core.reading.lexer import Lexer
from vllm_reasoning_ext.core.reading.markers import marker_set
from vllm_reasoning_ext.core.record import Family
from vllm_reasoning_ext.core.start import start_state
from vllm_reasoning_ext.core.state import StartState


class Splitter:
    """Splits one model output, delta by delta (SPEC section 3).

    Args:
        family: a family's name; "auto" for what `tokenizer` or `chat_template` show; "inline" for tags in the text of
            any model; or a record.
        prompt: the rendered prompt's text; decides the start state.
        prompt_token_ids: the same as token ids, read with `tokenizer`.
        force_reasoning: None: prompt evidence, then the family's default. True: starts inside. False: reasoning
            and header become undecided, content stays.
        tools: False where this request offers no tools.
        tokenizer: any transformers or tokenizers tokenizer; makes token ids decide what is a marker.
        marker_ids: marker text -> id, where there is no tokenizer (approximate).
        stream_reasoning: False: a block's reasoning comes in one piece when the block closes.
        turn_openers: further turn openers, for a template the family does not know; a string is one.
        floor: "promote": a reply that has only reasoning also gives it as content (SPEC section 6).
        joiner: text between two blocks.
        chat_template: what "auto" goes by; the tokenizer's own if none is given.
        tags, where, unclosed, max_buffer_bytes: family "inline" only (SPEC 5.4, 6).

    Attributes:
        family: the family's own name; "none" where "auto" found no reasoning: all is content.
        start: the StartState that was decided.
        floored: the floor gave the reasoning as content.

    Raises:
        ValueError: an unknown family or value, or an option of "inline" given to another family.
        SetupError: "auto": the template cannot be rendered, or nothing decides between several families.
    """

    __slots__ = ("_closed", "_floor", "_reader", "family", "floored", "start")

    def __init__(
        self,
        family: str | Family,
        prompt: str | None = None,
        *,
        prompt_token_ids: Sequence[int] | None = None,
        force_reasoning: bool | None = None,
        tools: bool | None = None,
        tokenizer: Any = None,
        marker_ids: Mapping[str, int] | None = None,
        stream_reasoning: bool = True,
        turn_openers: str | Sequence[str] | None = None,
        floor: FloorPolicy = "off",
        joiner: str = "\n",
        chat_template: str | None = None,
        tags: str | Sequence[tuple[str, str]] | None = None,
        where: Where = "prose",
        unclosed: Unclosed = "reasoning",
        max_buffer_bytes: int = BUFFER_BYTES,
        start: StartState | None = None,
    ) -> None:
        if floor not in get_args(FloorPolicy):
            raise ValueError(f"floor must be {' or '.join(map(repr, get_args(FloorPolicy)))}, not {floor!r}.")
        self._closed = False
        self._floor = Floor() if floor == "promote" else None
        self.floored = False
        sink = Sink(joiner, stream_reasoning)
        self._reader: OutputReader
        if family == "inline":
            _refuse(
                prompt=prompt,
                prompt_token_ids=prompt_token_ids,
                tools=tools,
                tokenizer=tokenizer,
                marker_ids=marker_ids,
                turn_openers=turn_openers,
                chat_template=chat_template,
            )
            self.family = "inline"
            self.start = StartState(
                "reasoning" if force_reasoning else "undecided",
                reason="force_reasoning=True" if force_reasoning else "inline tags are looked for in the output alone",
            )
            self._reader = Inline(tags, where, unclosed, joiner, max_buffer_bytes, force_reasoning, sink)
            return
        record = resolve_family(family, tokenizer, chat_template)
        if (tags, where, unclosed, max_buffer_bytes) != (None, "prose", "reasoning", BUFFER_BYTES):
            raise ValueError(
                f"tags, where, unclosed and max_buffer_bytes go with 'inline' only, not with {record.name!r}."
            )
        self.family = record.name
        self.start = start or start_state(
            prompt,
            record,
            prompt_token_ids=prompt_token_ids,
            tokenizer=tokenizer,
            turn_openers=turn_openers,
            force_reasoning=force_reasoning,
        )
        markers = marker_set(record.markers)
        grammar = make_grammar(record, self.start, sink, tools is not False)
        track = make_track(record, markers, tokenizer, marker_ids)
        lexer = Lexer(markers, grammar, track, only_real=only_real(record), closing=closing(record))
        self._reader = FamilyReader(lexer, grammar, sink, markers.firsts)

    @property
    def held(self) -> int:
        """How many characters a family's grammar keeps back now.

        Not among them: a block that `stream_reasoning=False` asked to hold, and inline tags' text (always 0).
        """
        return self._reader.held

    @property
    def max_held(self) -> int:
        """The most characters that were kept back after a feed."""
        return self._reader.max_held

    @property
    def unreleased(self) -> int:
        """How many characters were fed and have not come out yet; after a fault, as before the delta that failed."""
        return self._reader.unreleased

    @property
    def ended_by(self) -> str:
        """How the last reasoning ended: "closer", "tool", or "" when it has not."""
        return self._reader.ended_by

    def observe(self, observer: Observer) -> None:
        """Tell somebody how each marker spelling is read; inline tags have nothing to tell."""
        self._reader.observe(observer)

    def feed(self, text: str, token_ids: Iterable[int] | None = None) -> Delta:
        """Take one delta of the model's output.

        Args:
            text: the new characters; may be empty, may end anywhere.
            token_ids: the delta's token ids; the text may lag behind them, never lead. The list is copied. None
                means that there are none to be had: from then on the text decides.

        Returns:
            what could be decided; nothing in it is ever taken back.

        Raises:
            RuntimeError: the splitter was finished; make a new one for each output.
        """
        if self._closed:
            raise RuntimeError("feed() after finish(): a splitter serves one output; make a new Splitter.")
        delta = self._reader.feed(text, token_ids)
        if self._floor is not None:
            self._floor.note(delta.events)
        return delta

    def finish(self, reason: str | None = None) -> Delta:
        """End the output: everything kept back is released.

        Args:
            reason: the engine's finish reason ("stop", "length", "tool_calls", ...); the floor asks for it.

        Returns:
            what was kept back. The splitter is closed then.

        Raises:
            RuntimeError: it was finished before.
        """
        if self._closed:
            raise RuntimeError("finish() twice: a splitter serves one output; make a new Splitter.")
        self._closed = True
        delta = self._reader.finish()
        if self._floor is None:
            return delta
        self._floor.note(delta.events)
        promoted = self._floor.promote(reason)
        self.floored = promoted is not None
        return Delta((*delta.events, promoted)) if promoted is not None else delta


def _refuse(**options: object) -> None:
    """Refuse options that inline tags would not look at."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise ValueError(
            f"{', '.join(given)}: 'inline' reads tags in the output alone. Leave it out; force_reasoning=True says "
            "that the prompt opened a block."
        )


def split(
    text: str,
    family: str | Family,
    *,
    token_ids: Iterable[int] | None = None,
    finish_reason: str | None = None,
    **options: Any,
) -> Delta:
    """Split a whole output: `feed` once and `finish`.

    Args:
        text: the output.
        family: as for `Splitter`.
        token_ids: the output's token ids, if `tokenizer` or `marker_ids` is among the options.
        finish_reason: as for `Splitter.finish`.
        options: every other argument of `Splitter`.

    Returns:
        the reasoning, the content and all events.
    """
    splitter = Splitter(family, **options)
    first = splitter.feed(text, token_ids)
    last = splitter.finish(finish_reason)
    return Delta((*first.events, *last.events)) if last else first
