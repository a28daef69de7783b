"""The grammar of muse_glimmer's ATEM channels: headers that name a recipient, bodies for it (SPEC 5.3).

Theory of operation. Between channels everything is loose text until a header begins. A `<|start|>` is held with
what follows it until its `<|message|>` makes it a header, or something else makes it none. In a body the model
may switch channels without a header, by `to=name` right before `<|message|>`: so a tail that may be `to=name` is
held. With token ids a control token that opens or closes nothing is debris; by text alone it is text.
"""

import re
from enum import Enum, auto

from vllm_reasoning_ext.core.events import CONTENT, REASONING, TOOL, Kind
from vllm_reasoning_ext.core.grammar.blanks import BlankRun
from vllm_reasoning_ext.core.grammar.sink import Sink
from vllm_reasoning_ext.core.limits import ATEM_HEADER_SPAN, ATEM_NAME_MAX
from vllm_reasoning_ext.core.record import Family
from vllm_reasoning_ext.core.state import StartState

START, MESSAGE = "<|start|>", "<|message|>"
END_OF_MESSAGE = "<|eom|>"

_NAME = r"[^\s<]"
SWITCH_TAIL = re.compile(rf"(?:to={_NAME}{{0,{ATEM_NAME_MAX}}}|to|t)\Z")
"""A tail that may become a headerless switch; searched from `SWITCH_REACH` characters before the end on."""
SWITCH_REACH = len("to=") + ATEM_NAME_MAX
SWITCH = re.compile(rf"to=({_NAME}{{1,{ATEM_NAME_MAX}}})\Z")
_RECIPIENT = re.compile(rf"to=({_NAME}+)")
_ROLES = ("assistant", "user", "system", "developer", "tool")
_ROLE_BEGUN = "|".join(sorted({role[:n] for role in _ROLES for n in range(1, len(role) + 1)}, key=lambda p: -len(p)))
_HEADER_BEGUN = re.compile(rf"\s*(?:{_ROLE_BEGUN})?(?:\s*(?:to={_NAME}*\s*|to|t))?\s*\Z")


class State(Enum):
    SEEK = auto()  # between channels
    HEADER = auto()  # after a `<|start|>` (the model's, or the prompt's) that may open a header
    BODY = auto()  # inside a channel


def recipient_of(header: str) -> str | None:
    """Read the recipient out of a header's text; None where it names nobody."""
    found = _RECIPIENT.search(header)
    return found.group(1) if found else None


def kind_of(recipient: str | None) -> Kind:
    """Say what a body is from its recipient (SPEC 5.3, reserved words in any case)."""
    word = (recipient or "").lower()
    if word == "self":
        return REASONING
    return CONTENT if word in ("", "user", "commentary", "assistant", "all", "final") else TOOL


class AtemChannels:
    """How an ATEM header is read outside of an output (`grammar.contract.Channels`)."""

    inner: tuple[str, ...] = ()
    answers = frozenset({CONTENT, TOOL})

    def body(self, header: str) -> tuple[Kind, str | None]:
        recipient = recipient_of(header)
        kind = kind_of(recipient)
        return kind, recipient if kind is TOOL else None

    def switch(self, text: str) -> Kind | None:
        found = SWITCH.search(text)
        return kind_of(found.group(1)) if found else None


class AtemGrammar:
    """Splits one output of muse_glimmer into `sink`.

    Args:
        family: the record.
        start: where the output starts; its header text counts for the recipient.
        sink: receives the events.
        tools: accepted for the common interface; a tool channel is one whether or not tools were offered.
    """

    __slots__ = (
        "_header",
        "_in_body",
        "_kept",
        "_kind",
        "_opener",
        "_opener_real",
        "_prompt_header",
        "_run",
        "_sink",
        "_tail",
        "_touched",
        "ended_by",
        "recipient",
        "state",
    )

    def __init__(self, family: Family, start: StartState, sink: Sink, tools: bool = True) -> None:
        self._sink = sink
        self.ended_by = ""
        self.state = State.SEEK
        self._kind = CONTENT
        self.recipient: str | None = None
        self._tail = ""  # end of the text that may become a headerless switch
        self._run = BlankRun()  # since the last structural token
        self._header = ""  # text of the header that is being read
        self._opener = ""  # its `<|start|>`, "" where the prompt wrote it
        self._opener_real = False
        self._in_body = False  # the header being read may interrupt a body
        self._kept = ""  # header text that stands in the prompt
        self._prompt_header = start.kind == "header"
        self._touched = False  # a control token has been seen
        if self._prompt_header:
            self.state = State.HEADER
            self._kept = start.header
        elif start.kind in ("reasoning", "content"):
            self._enter(REASONING if start.kind == "reasoning" else kind_of(start.recipient), start.recipient)

    @property
    def plain(self) -> str:
        """What plain text is now (`contract.FamilyGrammar.plain`)."""
        if self.state is State.BODY:
            return self._kind
        return "loose" if self.state is State.SEEK and self._run.over else ""

    def run(self, text: str) -> str:
        """Take plain text where `plain` says so; return what of it goes out at once, the rest is kept back."""
        if self._tail:
            text = self._tail + text
            self._tail = ""
        if "to=" in text:
            found = SWITCH_TAIL.search(text, max(0, len(text) - SWITCH_REACH))
            if found is not None:
                self._tail = found.group()
                return text[: found.start()]
        # Without a `to=`, only these two tails are left; a quarter of English tokens end in one of them.
        elif text[-1] == "t":
            self._tail = "t"
            return text[:-1]
        elif text.endswith("to"):
            self._tail = "to"
            return text[:-2]
        return text

    @property
    def held(self) -> int:
        """How many characters are kept back."""
        return len(self._tail) + len(self._run.held) + len(self._opener) + len(self._header)

    def text(self, text: str) -> None:
        if self.state is State.HEADER:
            self._header += text
            if len(self._header) > ATEM_HEADER_SPAN:
                self._no_header()
            return
        if self._tail:
            text = self._tail + text
            self._tail = ""
        found = SWITCH_TAIL.search(text, max(0, len(text) - SWITCH_REACH))
        if found is not None:
            self._tail = found.group()
            text = text[: found.start()]
        self._put(text)

    def marker(self, marker: str, text: str, real: bool) -> None:
        self._touched = True
        if self.state is State.HEADER:
            if marker == MESSAGE:
                self._open(text)
                return
            self._no_header()
        if marker == MESSAGE:
            self._message(text, real)
        elif marker == START:
            self._flush_tail()
            self._opener, self._opener_real, self._header = text, real, ""
            self._in_body = self.state is State.BODY
            self.state = State.HEADER
        else:
            self._terminator(text)

    def finish(self) -> None:
        if self.state is State.HEADER:
            if (self._prompt_header and not self._touched) or not _HEADER_BEGUN.match(self._header):
                self._no_header()
            else:
                self._cut_header()
        self._flush_tail()
        if self.state is State.BODY:
            ended = self.ended_by
            self._close("", cut=True)
            self.ended_by = "" if self._kind is REASONING else ended
        elif self._touched:
            self._sink.marker(self._run.take())
        else:
            self._sink.loose(self._run.take())

    # Headers

    def _open(self, message: str) -> None:
        """The header is one: end what it interrupts and begin its body."""
        header, opener, synthetic = self._header, self._opener, self._prompt_header
        recipient = recipient_of(self._kept + header)
        kind = kind_of(recipient)
        if self._in_body:
            self._close("")
        self._end_run()
        self._header = self._opener = ""
        self._prompt_header = self._in_body = False
        written = opener + header + message
        if kind is TOOL:
            if synthetic:
                prompted = START + (self._kept if "to=" in self._kept else "")
                self._sink.tool(prompted, recipient, synthetic=True)
            self._sink.tool(written, recipient)
        else:
            self._sink.marker(written)
        self._kept = ""
        self._enter(kind, recipient)

    def _no_header(self) -> None:
        """The `<|start|>` opened no header: debris when an id vouches for it, else text where it stands."""
        header, opener = self._header, self._opener
        self._header = self._opener = self._kept = ""
        self.state = State.BODY if self._in_body else State.SEEK
        self._in_body = self._prompt_header = False
        if self._opener_real:
            self._debris(opener)
        elif opener:
            self._put(opener)
        if header:
            self.text(header)

    def _cut_header(self) -> None:
        """The end of the stream cut a header off: it is a marker."""
        written = self._opener + self._header
        if self._in_body:
            self._close("")
        self._end_run()
        self._sink.marker(written)
        self._header = self._opener = ""
        self.state = State.SEEK

    def _message(self, text: str, real: bool) -> None:
        """A `<|message|>` outside a header: a headerless switch, or a control token without a role."""
        found = SWITCH.match(self._tail)
        if found is None:
            self._flush_tail()
            if real:
                self._debris(text)
            else:
                self._put(text)
            return
        written, self._tail = self._tail + text, ""
        if self.state is State.BODY:
            self._close("")
        self._end_run()
        recipient = found.group(1)
        kind = kind_of(recipient)
        if kind is TOOL:
            self._sink.tool(written, recipient)
        else:
            self._sink.marker(written)
        self._enter(kind, recipient)

    # Bodies and the text between them

    def _enter(self, kind: Kind, recipient: str | None) -> None:
        self._kind, self.recipient = kind, recipient
        self.state = State.BODY
        if kind is REASONING:
            self._sink.open_reasoning()
        elif kind is CONTENT:
            self._sink.open_answer()

    def _terminator(self, text: str) -> None:
        self._flush_tail()
        if self.state is State.BODY:
            self._close(text)
        else:
            self._end_run()
            self._sink.marker(text)

    def _close(self, terminator: str, *, cut: bool = False) -> None:
        """End the body; a tool slice is handed on with a terminator, added where the text has none.

        Args:
            terminator: its text, "" where the body ends without one.
            cut: the output ends here, not the body.
        """
        self.state = State.SEEK
        if self._kind is TOOL:
            self._sink.tool(terminator or END_OF_MESSAGE, self.recipient, ends=not cut, synthetic=not terminator)
            return
        self._sink.marker(terminator)
        if self._kind is REASONING:
            self._sink.close_reasoning()
            self.ended_by = "closer"

    def _put(self, text: str) -> None:
        if not text:
            return
        if self.state is State.BODY:
            if self._kind is REASONING:
                self._sink.reasoning(text)
            elif self._kind is CONTENT:
                self._sink.answer(text)
            else:
                self._sink.tool(text, self.recipient)
        else:
            self._sink.loose(self._run.add(text) if text.isspace() else self._run.open(text))

    def _flush_tail(self) -> None:
        tail, self._tail = self._tail, ""
        self._put(tail)

    def _end_run(self) -> None:
        """A structural token follows: a run that was blank throughout is dropped."""
        self._sink.marker(self._run.take())

    def _debris(self, text: str) -> None:
        """A control token without a role: shown nowhere, but a tool slice is handed on verbatim."""
        if self.state is State.BODY and self._kind is TOOL:
            self._sink.tool(text, self.recipient)
            return
        if self.state is not State.BODY:
            self._end_run()
        self._sink.marker(text)
