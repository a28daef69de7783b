"""The grammar of the marker families: openers and closers of blocks, answers and tool calls (SPEC 5.1, 5.5).

Theory of operation. The output is a head (blanks, perhaps a block), blocks with only blanks between them, then the
answer. `State` names where the output is; it says all there is to know beside what is held:

    HEAD          only blanks so far               -> SWALLOWED, LABEL/FRESH, LEAD, ANSWER (AFTER: an empty block)
    SWALLOWED     the same, after a bare closer    -> LABEL/FRESH, LEAD, ANSWER
    LABEL         in a block; its label may come   -> FRESH, BLOCK, AFTER/ANSWER, HOLD
    FRESH         in a block without text yet      -> BLOCK, AFTER/ANSWER, LEAD, HOLD
    BLOCK         in a block                       -> AFTER/ANSWER, LEAD, HOLD, PROBE
    HOLD          a tool marker in a block         -> BLOCK, FRESH, AFTER/ANSWER, CALL, BETWEEN
    CALL          in a call that counts            -> BETWEEN, LATE, FRESH
    FURTHER       in a call after it               -> BETWEEN, LATE
    BETWEEN       after such a call, only blanks   -> FURTHER, LATE, LABEL/FRESH, ANSWER
    LATE          after the closer that came late  -> LABEL/FRESH, ANSWER
    AFTER         a block was closed, only blanks  -> LABEL/FRESH, LEAD, ANSWER
    LEAD          the answer was opened            -> ANSWER, LABEL/FRESH
    ANSWER        the answer has begun             -> LABEL/FRESH, PROBE, SKIP, TAIL
    PROBE         an opener that its label decides -> FRESH, BLOCK, ANSWER
    SKIP          in a call in the answer          -> ANSWER
    TAIL          the answer's closer, as it seems -> ANSWER

The last three are for families whose markers are control tokens, or that close their answer by a text. Kept back are: a
run of blanks (dropped if a marker or the end follows), a label's beginning, and what HOLD, PROBE and TAIL name.
"""

from collections.abc import Iterable
from enum import Enum, auto
from typing import Final

from vllm_reasoning_ext.core.events import CONTENT
from vllm_reasoning_ext.core.grammar.answer_tail import AnswerTail, Tail
from vllm_reasoning_ext.core.grammar.blanks import BlankRun
from vllm_reasoning_ext.core.grammar.call_hold import CallHold, Decision, Token
from vllm_reasoning_ext.core.grammar.calls_open import AnswerCall, OpenCall
from vllm_reasoning_ext.core.grammar.roles import roles_of
from vllm_reasoning_ext.core.grammar.sink import Sink
from vllm_reasoning_ext.core.limits import BLANK_HOLD_MAX
from vllm_reasoning_ext.core.record import Family
from vllm_reasoning_ext.core.state import StartState


class State(Enum):
    HEAD = auto()
    SWALLOWED = auto()
    LABEL = auto()
    FRESH = auto()
    BLOCK = auto()
    HOLD = auto()
    CALL = auto()
    FURTHER = auto()
    BETWEEN = auto()
    LATE = auto()
    AFTER = auto()
    LEAD = auto()
    ANSWER = auto()
    PROBE = auto()
    SKIP = auto()
    TAIL = auto()


_IN_BLOCK: Final = (State.LABEL, State.FRESH, State.BLOCK)
_BEFORE_ANSWER: Final = (State.HEAD, State.SWALLOWED, State.AFTER, State.LEAD)
_AFTER_CALL: Final = (State.BETWEEN, State.LATE)
_IN_CALL: Final = (State.CALL, State.FURTHER)


class MarkerGrammar:
    """Splits one output of a marker family into `sink`.

    Args:
        family: the record.
        start: where the output starts.
        sink: receives the events.
        tools: False where this request offers no tools: a tool marker in a block is reasoning text then.

    Attributes:
        state: where the output is.
        ended_by: how the last block ended: "closer", "tool", or "" when it has not.
        opener: the opener of the last block or answer, "" where none was seen.
    """

    __slots__ = (
        "_blank",
        "_call",
        "_closers",
        "_end_text",
        "_family",
        "_from",
        "_hold",
        "_label",
        "_leads_to",
        "_probe",
        "_roles",
        "_sink",
        "_skip",
        "_tail",
        "_tails",
        "_tools",
        "ended_by",
        "opener",
        "state",
    )

    def __init__(self, family: Family, start: StartState, sink: Sink, tools: bool = True) -> None:
        self._family = family
        self._roles = roles_of(family)
        self._sink = sink
        self._tools = self._roles.tools if tools else {}
        # Texts that may close the answer; control tokens always do, so nothing has to be held for them.
        self._tails = frozenset() if family.control_markers else self._roles.answer_closers
        self.ended_by = ""
        self.opener = start.opener
        self._closers = self._roles.closers_of.get(start.opener, self._roles.closers)  # of the block that is open
        self._leads_to = State.AFTER  # where the block's closer leads
        self._from = State.HEAD  # the state that what is held began in
        self._blank = BlankRun()
        self._label = ""  # text that may become the label
        self._end_text = ""  # an end-of-sequence text that is a marker if nothing follows
        self._probe: Token | None = None  # the opener whose label decides
        self._hold: CallHold | None = None
        self._call: OpenCall | None = None  # the call that is handed on, or was the last
        self._skip: AnswerCall | None = None
        self._tail: AnswerTail | None = None
        self.state = self._first_state(start)
        if self.state in _IN_BLOCK:
            sink.open_reasoning()

    def _first_state(self, start: StartState) -> State:
        if start.kind == "reasoning":
            if start.body_begun:
                return State.BLOCK
            return State.LABEL if self._family.label and not start.header else State.FRESH
        if start.answer_begun:
            return State.ANSWER
        return State.LEAD if start.opener in self._roles.answer_openers else State.HEAD

    @property
    def in_block(self) -> bool:
        """True inside a block (a prompt is read with it)."""
        return self.state in _IN_BLOCK

    @property
    def in_answer(self) -> bool:
        """True once the answer has begun."""
        return self.state in (State.ANSWER, State.PROBE, State.SKIP, State.TAIL)

    # The fast path: text with no character that a marker begins with.

    @property
    def recipient(self) -> None:
        """No header names the tool here."""

    @property
    def plain(self) -> str:
        """What plain text is now, where it needs no looking at: "reasoning", "content", or "" for neither."""
        if self._end_text:
            return ""
        state = self.state
        if state is State.BLOCK:
            return "reasoning" if not self._blank.over else ""
        if state is State.ANSWER:
            return "content" if not (self._tails and self._blank.over) else ""
        return "tool" if state in _IN_CALL and self._call is not None and self._call.plain else ""

    def run(self, text: str) -> str:
        """Take plain text where `plain` says so; return what of it goes out at once, the rest is kept back."""
        if self.state is not State.BLOCK and not (self._tails and self.state is State.ANSWER):
            return text
        blank = self._blank
        if not text[-1].isspace():
            if blank.held:
                text = blank.held + text
                blank.held = ""
            return text
        body = text.rstrip()
        if len(text) - len(body) + len(blank.held) > BLANK_HOLD_MAX:
            self.text(text)
            return ""
        if not body:
            blank.held += text
            return ""
        body, blank.held = blank.held + body, text[len(body) :]
        return body

    # What the lexer brings.

    @property
    def held(self) -> int:
        """How many characters are kept back."""
        size = len(self._blank.held) + len(self._label) + len(self._end_text)
        if self._hold is not None:
            size += self._hold.size
        if self._probe is not None:
            size += len(self._probe.text)
        return size if self._tail is None else size + self._tail.size

    def text(self, text: str) -> None:
        """Take a run of plain text."""
        if self._end_text:
            self._spill_end_text()
        state = self.state
        if state is State.ANSWER:
            self._answer_text(text)
        elif state in _IN_BLOCK:
            self._block_text(text)
        elif state in _BEFORE_ANSWER:
            self._head_text(text)
        elif state is State.HOLD:
            self._hold_text(text)
        elif state in _IN_CALL:
            self._call_text(text)
        elif state in _AFTER_CALL:
            self._trailing_text(text)
        elif state is State.PROBE:
            self._probe_text(text)
        elif state is State.TAIL:
            assert self._tail is not None
            self._decide_tail(self._tail.text(text))
        else:
            self._skip_text(text)

    def marker(self, marker: str, text: str, real: bool) -> None:
        """Take a marker (`reading.lexer.Grammar`)."""
        if self._end_text:
            self._spill_end_text()
        state = self.state
        if marker in self._roles.ends and not self._has_a_job(marker):
            self._end_of_sequence(text, real)
        elif state in _IN_BLOCK:
            self._block_marker(marker, text, real)
        elif state in _BEFORE_ANSWER:
            self._head_marker(marker, text, real)
        elif state is State.HOLD:
            self._hold_marker(marker, text, real)
        elif state in _IN_CALL:
            self._call_marker(marker, text)
        elif state in _AFTER_CALL:
            self._trailing_marker(marker, text, real)
        elif state is State.ANSWER:
            self._answer_marker(marker, text, real)
        elif state is State.PROBE:
            self._probe_marker(marker, text, real)
        elif state is State.TAIL:
            assert self._tail is not None
            self._decide_tail(self._tail.marker(marker, text, real))
        else:
            self._skip_marker(marker, text, real)

    def finish(self) -> None:
        """End the output: what is kept back is decided."""
        # Put aside, as what is settled now stood before it.
        end_text, self._end_text = self._end_text, ""
        self._settle()
        self._sink.marker(end_text)
        self._sink.close_reasoning()

    # Before the answer.

    def _head_text(self, text: str) -> None:
        visible = text if self._label else text.lstrip()
        if len(visible) < len(text):
            over = self._blank.add(text[: len(text) - len(visible)])
            if over:
                self._begin_answer(over + visible)
                return
        if not visible:
            return
        if self._family.label and self.state is State.HEAD:
            self._label += visible
            if self._family.label.startswith(self._label):
                return
            visible, self._label = self._label, ""
        self._begin_answer(visible)

    def _begin_answer(self, visible: str) -> None:
        """The answer begins: the lines before its first visible character are dropped."""
        dropped, kept = self._blank.split()
        self._sink.marker(dropped)
        self.state = State.ANSWER
        if kept or visible:
            self._answer_text(kept + visible)

    def _head_marker(self, marker: str, text: str, real: bool) -> None:
        roles = self._roles
        if self._label:
            if marker in roles.closers and self._whole_label():
                self._drop_blank()
                self._drop_label()
                self._empty_block(text)
                return
            label, self._label = self._label, ""
            self._begin_answer(label)
            self.marker(marker, text, real)
        elif marker in roles.closers_of and (self.state is not State.LEAD or self._family.control_markers):
            self._drop_blank()
            self._sink.marker(text)
            self._enter_block(marker, State.AFTER)
        elif marker in roles.closers and self.state in (State.HEAD, State.AFTER):
            self._drop_blank()
            if self.state is State.AFTER:
                self._sink.marker(text)
            else:
                self._empty_block(text)
        elif marker in roles.answer_openers and (self.state is not State.LEAD or self._family.control_markers):
            self._drop_blank()
            self._sink.marker(text)
            self.opener, self.state = marker, State.LEAD
        elif marker in roles.hidden:
            self._drop_blank()
            self._sink.marker(text)
        elif marker in self._tails:
            self._enter_tail(Token(marker, text, real))
        elif text:
            self._begin_answer("")
            self._answer_marker(marker, text, real)

    def _empty_block(self, closer: str) -> None:
        """Swallow a bare closer at the head; where the family has a label it stands for an empty block."""
        self._sink.marker(closer)
        if self._family.label:
            self.state = State.AFTER
            self.ended_by = "closer"
        else:
            self.state = State.SWALLOWED

    def _enter_block(self, opener: str, leads_to: State) -> None:
        self.state = State.LABEL if self._family.label else State.FRESH
        self.opener = opener
        self._closers = self._roles.closers_of[opener]
        self._leads_to = leads_to
        self.ended_by = ""
        self._sink.open_reasoning()

    # In a block.

    def _block_text(self, text: str) -> None:
        if self.state is State.LABEL:
            text = self._block_label(text)
            if not text:
                return
        visible = text.lstrip()
        if len(visible) < len(text):
            self._block_blanks(text[: len(text) - len(visible)])
        if not visible:
            return
        if self.state is State.FRESH:
            dropped, kept = self._blank.split()
            self._sink.marker(dropped)
            self.state = State.BLOCK
        else:
            kept = self._blank.take()
        body = visible.rstrip()
        self._sink.reasoning(kept + body)
        if len(body) < len(visible):
            self._block_blanks(visible[len(body) :])

    def _block_blanks(self, blank: str) -> None:
        over = self._blank.add(blank)
        if over:
            self.state = State.BLOCK
            self._sink.reasoning(over)

    def _block_label(self, text: str) -> str:
        """Take the label at the start of a block off; return the text that follows it."""
        label = self._family.label
        self._label += text
        if label.startswith(self._label) and len(self._label) < len(label):
            return ""
        text, self._label = self._label, ""
        self.state = State.FRESH
        if text.startswith(label):
            self._sink.marker(label)
            return text[len(label) :]
        return text

    def _block_marker(self, marker: str, text: str, real: bool) -> None:
        if marker in self._closers:
            self._settle_block()
            self._close_block(text)
        elif marker in self._roles.closers_of and self.state is not State.BLOCK and not self._label:
            self._drop_blank()
            self._sink.marker(text)
            self.state = State.LABEL if self._family.label else State.FRESH
        elif marker in self._tools:
            self._flush_label()
            self._from = State.BLOCK if self.state is State.BLOCK else State.FRESH
            self._hold = CallHold(self._tools[marker], text, self._closers, self._tools, self._roles.heads)
            self.state = State.HOLD
        elif marker in self._roles.hidden:
            self._hidden_in_block(marker, text, real)
        else:
            self._block_text(text)

    def _close_block(self, text: str) -> None:
        self._sink.marker(text)
        self._sink.close_reasoning()
        self.state = self._leads_to
        self.ended_by = "closer"

    def _hidden_in_block(self, marker: str, text: str, real: bool) -> None:
        """Take a control token that closes nothing here: an answer's opener ends the block, others are debris."""
        if marker in self._roles.answer_openers:
            self._leads_to = State.LEAD
            self._settle_block()
            self._close_block(text)
            self.opener = marker
            return
        self._flush_label()
        if marker in self._roles.closers_of and self._family.label:
            self._enter_probe(Token(marker, text, real))
            return
        self._debris(text)

    def _debris(self, text: str) -> None:
        """Put a control token without a job; the blanks before it stay where there is text already."""
        if self.state is State.BLOCK:
            self._sink.reasoning(self._blank.take())
        else:
            self._drop_blank()
        self._sink.marker(text)

    # A tool marker in a block.

    def _hold_text(self, text: str) -> None:
        assert self._hold is not None
        decision, rest = self._hold.take_text(text)
        if decision is not Decision.WAIT:
            self._decide(decision)
            if rest:
                self.text(rest)

    def _hold_marker(self, marker: str, text: str, real: bool) -> None:
        assert self._hold is not None
        decision, taken = self._hold.take_marker(marker, text, real)
        if decision is not Decision.WAIT:
            self._decide(decision)
            if not taken:
                self.marker(marker, text, real)

    def _decide(self, decision: Decision) -> None:
        hold, self._hold = self._hold, None
        assert hold is not None
        if decision is Decision.CALL:
            self._commit(hold)
            return
        self.state = self._from
        if decision is Decision.REJECT:
            self._block_text(hold.text)
            self._read_again(hold.tokens)
            return
        at = hold.closer_at
        self._block_text(hold.text)
        for token in hold.tokens[:at]:
            if token.marker in self._roles.hidden:
                self._hidden_in_block(*token)
            else:
                self._block_text(token.text)
        self._read_again(hold.tokens[at:])

    def _read_again(self, tokens: Iterable[Token]) -> None:
        for marker, text, real in tokens:
            if marker:
                self.marker(marker, text, real)
            else:
                self.text(text)

    def _commit(self, hold: CallHold) -> None:
        """It is a call: the block ends where the call begins, and the call is content."""
        self._drop_blank()
        self._sink.close_reasoning()
        self.ended_by = "tool"
        self._call = OpenCall(hold.tool, hold.tag)
        end = hold.end if hold.whole else len(hold.tokens)
        self._slice(hold.text, hold.tokens[:end], ends=hold.whole and bool(hold.tag.closers))
        if not hold.whole:
            self.state = State.CALL
            return
        self.state = State.BETWEEN
        if not hold.tool.ends_thought and not hold.closer_at:
            self._resume_block()
        self._read_again(hold.tokens[end:])

    def _slice(self, text: str, tokens: list[Token], *, ends: bool) -> None:
        """Put a call; the closers in it, which something forced into an argument, are no part of it."""
        parts = [text]
        assert self._call is not None
        for token in tokens:
            if token.marker in self._closers and token.marker not in self._call.closers:
                self._sink.tool("".join(parts))
                self._sink.marker(token.text)
                parts = []
            else:
                parts.append(token.text)
        self._sink.tool("".join(parts), ends=ends)

    def _resume_block(self) -> None:
        """The thought goes on after a call that does not end it."""
        self.ended_by = ""
        self.state = State.FRESH
        self._sink.open_reasoning()

    # Calls that count.

    def _call_text(self, text: str) -> None:
        assert self._call is not None
        used = self._call.text(text)
        self._sink.tool(text[:used] if used else text, ends=used > 0)
        if used:
            self._end_call()
            if len(text) > used:
                self.text(text[used:])

    def _call_marker(self, marker: str, text: str) -> None:
        assert self._call is not None
        endless = not self._call.tool.closers
        if marker in self._closers and marker not in self._call.closers and (self.state is State.CALL or endless):
            self._sink.marker(text)
            self._sink.cut_slice()
            self.state = State.LATE
        elif marker in self._roles.tools and endless:
            self._enter_further(marker, text)
        else:
            ends = self._call.marker(marker, text)
            self._sink.tool(text, ends=ends)
            if ends:
                self._end_call()

    def _end_call(self) -> None:
        assert self._call is not None
        self.state = State.BETWEEN
        if not self._call.tool.ends_thought:
            self._resume_block()

    def _enter_further(self, marker: str, text: str) -> None:
        self._sink.next_slice()
        self._sink.tool(text)
        self._call = OpenCall(self._roles.tools[marker])
        self.state = State.FURTHER

    def _trailing_text(self, text: str) -> None:
        """Take text after a call that counts, or after its late closer: content, nothing trimmed."""
        self._sink.cut_slice()
        if not text.isspace():
            self.state = State.ANSWER
            self._answer_text(text)
        else:
            self._sink.put(CONTENT, text)

    def _trailing_marker(self, marker: str, text: str, real: bool) -> None:
        if marker in self._closers:
            self._sink.cut_slice()
            self._sink.marker(text)
            self.state = State.LATE
        elif marker in self._tools and self.state is State.BETWEEN:
            self._enter_further(marker, text)
        elif marker in self._roles.answer_openers:
            self._sink.cut_slice()
            self._sink.marker(text)
            self.opener = marker
        else:
            self._sink.cut_slice()
            self.state = State.ANSWER
            self._answer_marker(marker, text, real)

    # The answer.

    def _answer_text(self, text: str) -> None:
        if not self._tails:
            self._sink.put(CONTENT, text)
            return
        body = text.rstrip()
        if body:
            self._sink.put(CONTENT, self._blank.take() + body)
        if len(body) < len(text):
            self._sink.put(CONTENT, self._blank.add(text[len(body) :]))

    def _answer_marker(self, marker: str, text: str, real: bool) -> None:
        if marker in self._roles.hidden:
            self._hidden_in_answer(marker, text, real)
        elif marker in self._tails:
            self._enter_tail(Token(marker, text, real))
        else:
            self._answer_text(text)
            if self._family.control_markers and marker in self._roles.tools:
                self._skip = AnswerCall(self._roles.tools[marker], real)
                self.state = State.SKIP

    def _hidden_in_answer(self, marker: str, text: str, real: bool) -> None:
        """Take a control token in the answer: an opener begins a block, any other is debris."""
        if marker not in self._roles.closers_of:
            self._sink.marker(text)
        elif real or not self._family.label:
            self._sink.marker(text)
            self._enter_block(marker, State.ANSWER)
        else:
            self._enter_probe(Token(marker, text, real))

    # An opener in the text that counts only with its label, or whose label is still to come.

    def _enter_probe(self, opener: Token) -> None:
        self._from = self.state
        self._probe = opener
        self.state = State.PROBE

    def _probe_text(self, text: str) -> None:
        label = self._family.label
        self._label += text
        if label.startswith(self._label) and len(self._label) < len(label):
            return
        text, self._label = self._label, ""
        if text.startswith(label):
            self._opener_counts(label)
            if len(text) > len(label):
                self.text(text[len(label) :])
        else:
            self._opener_is_none()
            self.text(text)

    def _probe_marker(self, marker: str, text: str, real: bool) -> None:
        label, self._label = self._label, ""
        if marker in self._roles.closers and label and label.strip() == self._family.label.strip():
            self._opener_counts(label)
        else:
            self._opener_is_none()
            if label:
                self.text(label)
        self.marker(marker, text, real)

    def _end_probe(self) -> Token:
        opener, self._probe = self._probe, None
        assert opener is not None
        self.state = self._from
        return opener

    def _opener_counts(self, label: str) -> None:
        """The opener has its label: it begins a block in the answer, and is debris in a block."""
        opener = self._end_probe()
        self._debris(opener.text)
        self._sink.marker(label)
        if self.state is State.ANSWER:
            self._enter_block(opener.marker, State.ANSWER)
            self.state = State.FRESH

    def _opener_is_none(self) -> None:
        """No label came: a control token is debris all the same, a spelling is text."""
        opener = self._end_probe()
        if opener.real:
            self._debris(opener.text)
        elif self.state is State.ANSWER:
            self._answer_text(opener.text)
        else:
            self._block_text(opener.text)

    # Calls and closers in the answer.

    def _skip_text(self, text: str) -> None:
        assert self._skip is not None
        used = self._skip.text(text)
        self._sink.put(CONTENT, text[:used])
        if self._skip.over:
            self.state = State.ANSWER
            if len(text) > used:
                self._answer_text(text[used:])

    def _skip_marker(self, marker: str, text: str, real: bool) -> None:
        assert self._skip is not None
        inside = self._skip.marker(marker, text, self._roles.tools.keys() | self._roles.closers)
        if self._skip.over:
            self.state = State.ANSWER
        if inside:
            self._sink.put(CONTENT, text)
        else:
            self._answer_marker(marker, text, real)

    def _enter_tail(self, closer: Token) -> None:
        self._from = self.state
        self._tail = AnswerTail(closer, self._tools)
        self.state = State.TAIL

    def _decide_tail(self, decision: Tail) -> None:
        """Take what `AnswerTail` has decided: a closer is dropped with the blanks before it, else it is text."""
        tail = self._tail
        if decision is Tail.WAIT or tail is None:
            return
        self._tail = None
        if decision is Tail.CLOSES:
            self._drop_blank()
            self._sink.marker(tail.closer.text)
            self.state = State.ANSWER
        elif self._from is State.ANSWER:
            self.state = State.ANSWER
            self._answer_text(tail.closer.text)
        else:
            self._begin_answer(tail.closer.text)
        self._read_again(tail.rest)

    # Blanks, labels, the end.

    def _drop_blank(self) -> None:
        self._sink.marker(self._blank.take())

    def _drop_label(self) -> None:
        label, self._label = self._label, ""
        self._sink.marker(label)

    def _whole_label(self) -> bool:
        """Tell whether the label is there but for its blanks."""
        return self._label.strip() == self._family.label.strip()

    def _flush_label(self) -> None:
        """What looked like a label at the start of a block is text."""
        label, self._label = self._label, ""
        if self.state is State.LABEL:
            self.state = State.FRESH
        if label:
            self._block_text(label)

    def _settle_block(self) -> None:
        """The block, or the output, ends here: a label that stands alone is one, the last blanks are dropped."""
        if self._label and self._whole_label():
            self._drop_label()
        self._flush_label()
        self._drop_blank()

    def _has_a_job(self, marker: str) -> bool:
        """Tell whether an end-of-sequence text is something else where it stands (SPEC 5.5, equal markers)."""
        state = self.state
        if marker in self._roles.hidden:
            return True
        if state in _IN_BLOCK or state is State.HOLD:
            return marker in self._closers
        if state in (State.LEAD, State.ANSWER):
            return marker in self._roles.answer_closers
        return state in _IN_CALL and self._call is not None and marker in self._call.closers

    def _end_of_sequence(self, text: str, real: bool) -> None:
        if self._hold is not None and self._hold.whole:
            self._decide(Decision.CALL)
        if real:
            # A control token never reaches the reader (law 4), wherever it stands: it ends what is open.
            self._settle()
            self._sink.marker(text)
        else:
            self._end_text = text

    def _spill_end_text(self) -> None:
        """Something follows the end-of-sequence text: it was text."""
        text, self._end_text = self._end_text, ""
        self.text(text)

    def _settle(self) -> None:
        """Decide everything that is kept back, as at the end of the output."""
        while self._hold is not None:
            self._decide(self._hold.at_end())
        if self.state is State.PROBE:
            label, self._label = self._label, ""
            self._opener_counts(label)
        if self.state is State.TAIL:
            self._decide_tail(Tail.CLOSES)
        if self.state in _IN_BLOCK:
            self._settle_block()
        elif self.state in _BEFORE_ANSWER:
            label, self._label = self._label, ""
            if label:
                self._begin_answer(label)
            self._drop_blank()
        elif self._tails:
            self._sink.put(CONTENT, self._blank.take())
