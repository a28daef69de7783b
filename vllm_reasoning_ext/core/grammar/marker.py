"""The grammar of the marker families: one opener, one closer, a tool call that may break a block (SPEC 5.1).

Theory of operation. The output is a head (blanks, perhaps a block), blocks with only blanks between them, then
the answer, in which no marker counts any more. `State` names where the output is. Three things are kept back:
a run of blanks (it is dropped if a marker or the end follows), a label that may still be one (gemma4), and the
text from a tool marker inside a block on, until it is a call, a quotation or a draft. What could be no call is fed
once more from right after its marker.
"""

from enum import Enum, auto

from vllm_reasoning_ext.core.events import CONTENT, REASONING, Kind
from vllm_reasoning_ext.core.families import Family
from vllm_reasoning_ext.core.grammar.calls import Verdict, match_call
from vllm_reasoning_ext.core.grammar.sink import Sink
from vllm_reasoning_ext.core.limits import BLANK_HOLD_MAX, TOOL_HOLD_MAX
from vllm_reasoning_ext.core.state import StartState


class State(Enum):
    HEAD = auto()  # only blanks so far, no block of the model's own yet
    BLOCK = auto()  # inside a reasoning block
    AFTER = auto()  # a block was closed, only blanks since
    ANSWER = auto()  # the answer has begun
    CHECK = auto()  # held from a tool marker on: it may be the beginning of a call
    OPEN = auto()  # held: it is the beginning of a call
    DONE = auto()  # held: a whole call, and only blanks since
    CALL = auto()  # inside a call that counts
    BETWEEN = auto()  # after a call that counts, only blanks since
    LATE = auto()  # after the closer that came late, only blanks since


_HELD = (State.CHECK, State.OPEN, State.DONE)

_Token = tuple[str, str, bool]  # marker ("" for text), text, real


class MarkerGrammar:
    """Splits one output of a marker family into `sink`.

    Args:
        family: the record.
        start: where the output starts.
        sink: receives the events.
        tools: False where this request offers no tools: a tool marker in a block is reasoning text then.
    """

    __slots__ = (
        "_after",
        "_bare_closer",
        "_blank",
        "_call_closers",
        "_call_first",
        "_call_marker",
        "_end_text",
        "_family",
        "_fresh",
        "_held",
        "_label",
        "_label_open",
        "_long_blank",
        "_repeated_opener",
        "_sink",
        "_tools",
        "ended_by",
        "state",
    )

    def __init__(self, family: Family, start: StartState, sink: Sink, tools: bool = True) -> None:
        self._family = family
        self._sink = sink
        self._tools = tools and bool(family.tool_marker)
        forced = start.kind == "reasoning"
        self.state = State.BLOCK if forced else State.ANSWER if start.answer_begun else State.HEAD
        self.ended_by = ""  # "closer" or "tool": how the last block ended
        self._blank = ""  # the run of blanks that may still be dropped
        self._long_blank = False  # the current run was too long to drop: it is text
        self._fresh = forced and not start.body_begun  # the block has no text yet
        self._repeated_opener = forced  # one opener at the head of a forced block is swallowed
        self._bare_closer = not forced  # one closer at the head is swallowed
        self._label = ""  # text that may become the label
        self._label_open = bool(family.label) and not (start.body_begun or start.header)
        self._end_text = ""  # an end-of-sequence text that is a marker if nothing follows
        self._held: list[_Token] = []  # what has come after the tool marker
        self._after = ""  # the same as text
        self._call_marker = ""
        self._call_closers: tuple[str, ...] = ()
        self._call_first = True
        if forced:
            sink.open_reasoning()

    @property
    def plain(self) -> str:
        """What plain text is now, where it needs no looking at: "reasoning", "content", or "" for neither."""
        if self._end_text:
            return ""
        if self.state is State.ANSWER:
            return "content"
        steady = self.state is State.BLOCK and not (self._fresh or self._long_blank or self._label_open)
        return "reasoning" if steady else ""

    def run(self, text: str) -> str:
        """Take plain text where `plain` says so; return what of it goes out at once, the rest is kept back."""
        if self.state is State.ANSWER:
            return text
        if not text[-1].isspace():
            if self._blank:
                text = self._blank + text
                self._blank = ""
            return text
        body = text.rstrip()
        if len(text) - len(body) + len(self._blank) > BLANK_HOLD_MAX:
            self.text(text)
            return ""
        if not body:
            self._blank += text
            return ""
        blank, self._blank = self._blank, text[len(body) :]
        return blank + body

    # What the lexer brings

    @property
    def held(self) -> int:
        """How many characters are kept back."""
        size = len(self._blank) + len(self._label) + len(self._end_text)
        if self.state in _HELD:
            size += len(self._call_marker) + sum([len(text) for _, text, _ in self._held])
        return size

    def text(self, text: str) -> None:
        if self._end_text:
            self._spill_end_text()
        if self.state is State.ANSWER:
            self._sink.put(CONTENT, text)
        elif self.state is State.BLOCK:
            self._block_text(text)
        elif self.state in (State.HEAD, State.AFTER):
            self._head_text(text)
        elif self.state in _HELD:
            self._held_text(text)
        elif self.state is State.CALL:
            self._call_text(text)
        else:
            self._trailing_text(text)

    def marker(self, marker: str, text: str, real: bool) -> None:
        if self._end_text:
            self._spill_end_text()
        if marker in self._family.end_of_sequence:
            self._end_of_sequence(text, real)
        elif self.state is State.BLOCK:
            self._block_marker(marker, text, real)
        elif self.state in (State.HEAD, State.AFTER):
            self._head_marker(marker, text)
        elif self.state in _HELD:
            self._held_marker(marker, text, real)
        elif self.state is State.CALL:
            self._call_marker_text(marker, text)
        elif self.state is State.ANSWER:
            self._sink.put(CONTENT, text)
        else:
            self._trailing_marker(marker, text)

    def finish(self) -> None:
        self._settle()
        self._sink.marker(self._end_text)
        self._end_text = ""
        self._sink.close_reasoning()

    # Head: before the answer

    def _head_text(self, text: str) -> None:
        visible = text if self._label else text.lstrip()
        blank = text[: len(text) - len(visible)]
        if blank and self._blanks(blank, CONTENT):
            self.state = State.ANSWER
        if visible and self._label_open and self._bare_closer and self.state is State.HEAD:
            self._label += visible
            if self._family.label.startswith(self._label):
                return
            visible, self._label = self._label, ""
        if visible:
            self._release_blank(CONTENT, fresh=True)
            self.state = State.ANSWER
            self._sink.put(CONTENT, visible)

    def _head_marker(self, marker: str, text: str) -> None:
        family = self._family
        if marker == family.closer and self._label and family.label.strip() == self._label.strip():
            self._drop_blank()
            self._sink.marker(self._label)
            self._label = ""
            self._empty_block(text)
            return
        self._flush_label()
        if self.state is State.ANSWER:
            self._sink.put(CONTENT, text)
        elif marker == family.opener:
            self._drop_blank()
            self._sink.marker(text)
            self._enter_block()
        elif marker == family.closer and self.state is State.AFTER:
            self._drop_blank()
            self._sink.marker(text)
        elif marker == family.closer and self._bare_closer:
            self._drop_blank()
            self._empty_block(text)
        elif text:
            self._head_text(text)

    def _empty_block(self, closer: str) -> None:
        """Swallow a bare closer at the head; where the family has a label it stands for an empty block."""
        self._sink.marker(closer)
        self._bare_closer = False
        if self._family.label:
            self.state = State.AFTER
            self.ended_by = "closer"

    def _enter_block(self) -> None:
        self.state = State.BLOCK
        self.ended_by = ""
        self._fresh = True
        self._long_blank = False
        self._label_open = bool(self._family.label)
        self._bare_closer = self._repeated_opener = False
        self._sink.open_reasoning()

    # Block

    def _block_text(self, text: str) -> None:
        if self._label_open:
            text = self._block_label(text)
            if not text:
                return
        visible = text.lstrip()
        blank = text[: len(text) - len(visible)]
        if blank:
            self._blanks(blank, REASONING)
        if not visible:
            return
        self._release_blank(REASONING, fresh=self._fresh)
        self._fresh = self._repeated_opener = False
        body = visible.rstrip()
        self._sink.reasoning(body)
        if len(body) < len(visible):
            self._blanks(visible[len(body) :], REASONING)

    def _block_label(self, text: str) -> str:
        """Take the label at the start of a block off; return the text that follows it."""
        label = self._family.label
        self._label += text
        if self._label.startswith(label):
            self._sink.marker(label)
            text, self._label = self._label[len(label) :], ""
            self._label_open = False
            return text
        if label.startswith(self._label):
            return ""
        text, self._label = self._label, ""
        self._label_open = False
        return text

    def _block_marker(self, marker: str, text: str, real: bool) -> None:
        family = self._family
        if marker == family.closer:
            self._settle_block()
            self._sink.marker(text)
            self._sink.close_reasoning()
            self.state = State.AFTER
            self.ended_by = "closer"
        elif marker == family.opener and self._repeated_opener and not self._label:
            self._drop_blank()
            self._sink.marker(text)
            self._repeated_opener = False
            self._label_open = bool(family.label)
        elif marker == family.tool_marker and self._tools:
            self._flush_label()
            self._call_marker = text
            self._held, self._after, self._call_closers = [], "", ()
            self.state = State.CHECK
        else:
            self._block_text(text)

    # A tool marker inside a block: held until it is decided

    def _held_text(self, text: str) -> None:
        room = TOOL_HOLD_MAX - len(self._after)
        if self.state is State.DONE:
            visible = text.lstrip()
            if visible and len(text) - len(visible) < room:
                self._draft()
                self._block_text(text)
                return
        self._hold(("", text, False), room)
        if self.state is State.CHECK:
            self._check()
        if self.state in _HELD and len(self._after) >= TOOL_HOLD_MAX:
            self._commit()

    def _held_marker(self, marker: str, text: str, real: bool) -> None:
        family = self._family
        if self.state is State.DONE:
            if marker in (family.tool_marker, family.closer):
                self._commit()
                self.marker(marker, text, real)
            else:
                self._draft()
                self._block_marker(marker, text, real)
            return
        if marker == family.closer:
            self._draft()
            self._block_marker(marker, text, real)
            return
        self._hold((marker, text, real), TOOL_HOLD_MAX - len(self._after))
        if self.state is State.CHECK:
            self._check()
        if self.state is State.OPEN and marker in self._call_closers:
            self.state = State.DONE
        if self.state in _HELD and len(self._after) >= TOOL_HOLD_MAX:
            if self.state is State.CHECK and marker in family.tool_closers:
                self.state = State.DONE  # the tag crosses the bound, which makes it a call: the tag ends it
            self._commit()

    def _hold(self, token: _Token, room: int) -> None:
        self._held.append(token)
        # Only the part that can decide is copied: the token itself may be a whole answer.
        self._after += token[1][: max(room, 0)]

    def _check(self) -> None:
        match = match_call(self._family, self._after)
        if match.verdict is Verdict.NO:
            self._reject()
        elif match.verdict is Verdict.YES:
            self._call_closers = match.closers
            self.state = State.OPEN

    def _draft(self) -> None:
        """It was quoted, or a draft: all that is held is reasoning, and nothing in it counts any more."""
        held = self._call_marker + "".join([text for _, text, _ in self._held])
        self._held = []
        self.state = State.BLOCK
        self._block_text(held)

    def _reject(self) -> None:
        """It could be no call: the marker is reasoning, and what followed it is fed once more."""
        tokens, self._held = self._held, []
        self.state = State.BLOCK
        self._block_text(self._call_marker)
        for marker, text, real in tokens:
            if marker:
                self.marker(marker, text, real)
            else:
                self.text(text)

    def _commit(self) -> None:
        """It is a call: the block ends where the call begins, and the call is content."""
        complete = self.state is State.DONE
        self._drop_blank()
        self._sink.close_reasoning()
        self.ended_by = "tool"
        self._call_first = True
        tokens, self._held = self._held, []
        cut = len(tokens)
        if complete:
            while not tokens[cut - 1][0]:
                cut -= 1
        self._sink.tool(self._call_marker + "".join([text for _, text, _ in tokens[:cut]]))
        self.state = State.BETWEEN if complete else State.CALL
        for _, text, _ in tokens[cut:]:
            self._trailing_text(text)

    # Calls that count

    def _call_text(self, text: str) -> None:
        self._sink.tool(text)
        if not self._call_first and not self._call_closers:
            self._after = (self._after + text[:TOOL_HOLD_MAX])[:TOOL_HOLD_MAX]
            match = match_call(self._family, self._after)
            self._call_closers = match.closers if match.verdict is not Verdict.NO else self._family.tool_closers

    def _call_marker_text(self, marker: str, text: str) -> None:
        if marker == self._family.closer and self._call_first:
            self._sink.marker(text)
            self.state = State.LATE
            return
        self._sink.tool(text)
        if marker in (self._call_closers or self._family.tool_closers):
            self.state = State.BETWEEN

    def _trailing_text(self, text: str) -> None:
        """Text after a call that counts, or after its late closer: content, nothing trimmed."""
        self._sink.put(CONTENT, text)
        if not text.isspace():
            self.state = State.ANSWER

    def _trailing_marker(self, marker: str, text: str) -> None:
        if marker == self._family.closer:
            self._sink.marker(text)
            self.state = State.LATE
        elif marker == self._family.tool_marker and self.state is State.BETWEEN:
            self._sink.tool(text)
            self._call_first = False
            self._call_closers, self._after = (), ""
            self.state = State.CALL
        else:
            self._sink.put(CONTENT, text)
            self.state = State.ANSWER

    # Blanks, labels, the end

    def _blanks(self, blank: str, kind: Kind) -> bool:
        """Keep a run of blanks back; return True when it has grown too long and went out as text."""
        if self._long_blank:
            self._emit(kind, blank)
            return True
        self._blank += blank
        if len(self._blank) <= BLANK_HOLD_MAX:
            return False
        blank, self._blank = self._blank, ""
        self._long_blank = True
        self._fresh = self._repeated_opener = False
        self._emit(kind, blank)
        return True

    def _release_blank(self, kind: Kind, fresh: bool) -> None:
        """A visible character follows: the run stays, but for the lines before it at a beginning."""
        self._long_blank = False
        blank, self._blank = self._blank, ""
        if not blank:
            return
        keep = blank.rfind("\n") + 1 if fresh else 0
        self._sink.marker(blank[:keep])
        self._emit(kind, blank[keep:])

    def _emit(self, kind: Kind, text: str) -> None:
        if kind is REASONING:
            self._sink.reasoning(text)
        else:
            self._sink.put(CONTENT, text)

    def _drop_blank(self) -> None:
        self._sink.marker(self._blank)
        self._blank = ""
        self._long_blank = False

    def _flush_label(self) -> None:
        """What looked like a label is text."""
        label, self._label = self._label, ""
        if not label:
            return
        self._label_open = False
        if self.state is State.BLOCK:
            self._block_text(label)
        else:
            self._head_text(label)

    def _settle_block(self) -> None:
        """The block, or the output, ends here: a label that stands alone is one, the last blanks are dropped."""
        if self._label and self._label.strip() == self._family.label.strip():
            self._sink.marker(self._label)
            self._label = ""
        self._flush_label()
        self._drop_blank()

    def _end_of_sequence(self, text: str, real: bool) -> None:
        if self.state is State.DONE:
            self._commit()
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
        if self.state in _HELD:
            self._commit()
        elif self.state is State.BLOCK:
            self._settle_block()
        elif self.state in (State.HEAD, State.AFTER):
            self._flush_label()
            self._drop_blank()
