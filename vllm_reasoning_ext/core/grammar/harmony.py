"""The grammar of gpt_oss's harmony channels: messages with a role, a channel, perhaps a recipient (SPEC 5.2).

Theory of operation. A message is a header and a body. The header is read token by token and kept until its
`<|message|>` comes, or until it can be no header any more (a character that fits nowhere, another control token,
`HARMONY_HEADER_SPAN`, the end); what then does not belong to the header is the body. The recipient decides
before the channel: a message for a tool goes out verbatim. Text outside messages is content.
"""

import re
from enum import Enum, auto
from typing import NamedTuple

from vllm_reasoning_ext.core.events import CONTENT, REASONING, TOOL, Kind
from vllm_reasoning_ext.core.grammar.blanks import BlankRun
from vllm_reasoning_ext.core.grammar.sink import Sink
from vllm_reasoning_ext.core.limits import HARMONY_HEADER_SPAN
from vllm_reasoning_ext.core.record import Family
from vllm_reasoning_ext.core.state import StartState

START, CHANNEL, MESSAGE, CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
CLOSERS = ("<|end|>", "<|return|>", "<|call|>")

_ROLES = ("assistant", "user", "system", "developer", "tool")
_ROLE = "|".join(_ROLES)
_ROLE_BEGUN = "|".join(sorted({role[:n] for role in _ROLES for n in range(1, len(role))}, key=lambda p: -len(p)))
_TO = r"to=\S*\s*"
_ROLE_WHOLE = re.compile(rf"\s*(?:(?:{_ROLE})\s*)?(?:{_TO})?\Z")
_ROLE_OPEN = re.compile(rf"\s*(?:(?:{_ROLE_BEGUN})|(?:(?:{_ROLE})\s*)?(?:{_TO}|to|t)?)\Z")
_ROLE_HEAD = re.compile(rf"\s*(?:(?:{_ROLE})(?=\s|to=|\Z)\s*)?(?:to=\S+\s*)?")
# After a recipient the prompt's header may go on with any word.
_ROLE_GOES_ON = re.compile(rf"\s*(?:(?:{_ROLE})\s*)?to=\S+\s")
# A role without its `<|start|>`, between two messages; or the name of a channel without its `<|channel|>`.
_BARE_WHOLE = re.compile(rf"\s*(?:{_ROLE})\s*(?:{_TO})?\Z")
_NAMES = ("analysis", "commentary", "final", "thought", "thoughts", "reasoning")
_NAME = "|".join(sorted(_NAMES, key=len, reverse=True))
_BEGUN = "|".join(sorted({w[:n] for w in (*_ROLES, *_NAMES) for n in range(1, len(w))}, key=lambda p: -len(p)))
_BARE_NAME = re.compile(rf"\s*({_NAME})\s*(?:{_TO})?\Z", re.IGNORECASE)
_BARE_OPEN = re.compile(rf"\s*(?:(?:{_BEGUN})|(?:{_ROLE}|{_NAME})\s*(?:{_TO}|to|t)?)?\Z", re.IGNORECASE)
# A recipient is a word of its own; models also glue it to the role or the channel before it.
_RECIPIENT = re.compile(rf"(?:{_ROLE}|analysis|commentary|final)?to=(\S+)")
_CHANNEL_HEAD = re.compile(r"\s*(?:(?!to=)\S+\s*)?(?:to=\S*\s*)?")
_WORD = re.compile(r"\s*\S+\s*")
_BETWEEN_WORDS = re.compile(r"\s+|<\|(?:channel|constrain)\|>")
_NO_TOOLS = ("", "assistant", "user", "all")
_REASONING_CHANNELS = ("analysis", "thought", "thoughts", "reasoning")


class _Token(NamedTuple):
    """A run of text (marker "") or a marker of a header."""

    marker: str
    text: str
    real: bool


class State(Enum):
    LOOSE = auto()  # outside messages
    ROLE = auto()  # in the role part of a header
    NAMED = auto()  # in a header, after its `<|channel|>` or `<|constrain|>`
    BODY = auto()


def tool_recipient(header: str) -> str | None:
    """Read a tool's name out of a header's text; None where it is addressed to nobody, or to no tool."""
    for word in _BETWEEN_WORDS.split(header):
        found = _RECIPIENT.match(word)
        if found is not None:
            return None if found.group(1).lower() in _NO_TOOLS else found.group(1)
    return None


def kind_of(channel: str) -> Kind:
    """Say what a body is from its channel's name, in any case."""
    return REASONING if channel.lower() in _REASONING_CHANNELS else CONTENT


class HarmonyChannels:
    """How a harmony header is read outside of an output (`grammar.contract.Channels`)."""

    inner: tuple[str, ...] = (CHANNEL, CONSTRAIN)
    answers = frozenset({CONTENT})

    def body(self, header: str) -> tuple[Kind, str | None]:
        recipient = tool_recipient(header)
        channel = header.partition(CHANNEL)[2].split()
        return (kind_of(channel[0] if channel else "") if recipient is None else TOOL), recipient

    def switch(self, text: str) -> Kind | None:
        """Read a `<|message|>` without a `<|start|>`: the header that the text before it is."""
        return self.body(text)[0]


class HarmonyGrammar:
    """Splits one output of gpt_oss into `sink`.

    Args:
        family: the record.
        start: where the output starts; its header text counts.
        sink: receives the events.
        tools: accepted for the common interface; a message for a tool is one whether or not tools were offered.
    """

    __slots__ = (
        "_bare",
        "_channel",
        "_channel_at",
        "_family",
        "_header",
        "_kept",
        "_kind",
        "_length",
        "_prompted",
        "_role",
        "_run",
        "_sink",
        "_touched",
        "ended_by",
        "recipient",
        "state",
    )

    def __init__(self, family: Family, start: StartState, sink: Sink, tools: bool = True) -> None:
        self._family = family
        self._sink = sink
        self.ended_by = ""
        self.state = State.LOOSE
        self._kind = CONTENT
        self.recipient: str | None = None
        self._run = BlankRun()  # outside messages: blanks, or what may be a role without its `<|start|>`
        self._bare = True  # a role may stand here without its `<|start|>`: a message has just ended, or none begun
        self._header: list[_Token] = []  # what the model wrote of the header being read
        self._length = 0  # its length in characters, control tokens included
        self._prompted = False  # the prompt began it
        self._kept = ""  # the prompt's text of the part (role or channel) that the output goes on with
        self._role = ""  # text of the role part, the prompt's included
        self._channel: list[_Token] = []  # tokens after the last `<|channel|>`
        self._channel_at = 0  # where the first `<|channel|>` stands in the header
        self._touched = False  # a control token has been seen
        if start.kind == "header":
            self._resume(start.header)
        elif start.kind in ("reasoning", "content"):
            self._kind = TOOL if start.recipient else REASONING if start.kind == "reasoning" else CONTENT
            self.recipient = start.recipient
            self._enter()

    @property
    def plain(self) -> str:
        """What plain text is now (`contract.FamilyGrammar.plain`)."""
        if self.state is State.BODY:
            return self._kind
        return "loose" if self.state is State.LOOSE and self._run.over else ""

    def run(self, text: str) -> str:
        """Take plain text where `plain` says so: all of it goes out at once."""
        return text

    @property
    def held(self) -> int:
        """How many characters are kept back."""
        return len(self._run.held) + (self._length if self._header else 0)

    def text(self, text: str) -> None:
        if self.state is State.BODY:
            self._put(text)
        elif self.state is State.LOOSE:
            self._loose_text(text)
        elif self.state is State.ROLE:
            self._role_text(text)
        else:
            self._named_text("", text, False)

    def marker(self, marker: str, text: str, real: bool) -> None:
        if marker in self._family.end_of_sequence:
            if not real:
                self.text(text)
                return
            marker = CLOSERS[1]
        self._touched = True
        if self.state is State.BODY:
            self._body_marker(marker, text, real)
        elif self.state is State.LOOSE:
            self._loose_marker(marker, text, real)
        elif self.state is State.ROLE:
            self._role_marker(marker, text, real)
        else:
            self._named_marker(marker, text, real)

    def finish(self) -> None:
        if self.state is State.LOOSE:
            if self._touched:
                self._end_run()
            else:
                self._sink.loose(self._run.take())
        elif self.state is State.ROLE:
            if self._touched:
                self._end_role()
            else:
                self._settle(0, None, CONTENT)
        while self.state is State.NAMED:
            self._break_header()  # what belongs to no header may begin another one
        if self.state is State.BODY and self._kind is REASONING:
            self._sink.close_reasoning()

    # Outside messages

    def _loose_text(self, text: str) -> None:
        run = self._run
        # Blanks are told apart first: matching a long run of them at each delta would be slow.
        if run.over or (text.isspace() and (run.held.isspace() or not run.held)):
            self._sink.loose(run.add(text))
        elif len(run.held) + len(text) <= HARMONY_HEADER_SPAN and _BARE_OPEN.match(run.held + text):
            run.held += text
        else:
            self._sink.loose(run.open(text))

    def _loose_marker(self, marker: str, text: str, real: bool) -> None:
        if self._bare and marker in (CHANNEL, MESSAGE) and self._bare_header(marker, text, real):
            return
        self._end_run()
        if marker == START:
            self._begin()
            self._grow(marker, text, real)
        elif marker == CHANNEL:
            self._begin()
            self._name(marker, text, real)
        else:
            self._bare = marker in CLOSERS
            self._sink.marker(text)

    def _bare_header(self, marker: str, text: str, real: bool) -> bool:
        """Take the run as a header without its `<|start|>`: a role, or a channel's name, alone."""
        run = self._run.held
        name = _BARE_NAME.match(run)
        if name is None and not _BARE_WHOLE.match(run):
            return False
        self._run.take()
        self._begin()
        if name is None:
            self._role_text(run)
            self._role_marker(marker, text, real)
            return True
        self._role = run[name.end(1) :]
        self.recipient = tool_recipient(self._role)
        self._grow("", run, False)
        if marker == CHANNEL:
            self._name(marker, text, real)
        else:
            self._grow(marker, text, real)
            self._settle(self._length, self.recipient, kind_of(name.group(1)))
        return True

    def _end_run(self) -> None:
        """A control token follows: a blank run is dropped, anything else is content whole."""
        run = self._run.take()
        if run.isspace():
            self._sink.marker(run)
        else:
            self._sink.loose(run)

    # Headers

    def _begin(self) -> None:
        self._header, self._channel = [], []
        self._length = self._channel_at = 0
        self._prompted = False
        self._kept = self._role = ""
        self.recipient = None
        self.state = State.ROLE

    def _resume(self, header: str) -> None:
        """Go on with the header that the prompt began: after its role, or inside its channel part."""
        self._begin()
        self._prompted = True
        self._role, found, self._kept = header.partition(CHANNEL)
        self.recipient = tool_recipient(self._role)
        if not found:
            self._kept = header
            return
        self.state = State.NAMED
        before, found, self._kept = self._kept.rpartition(CHANNEL)
        self.recipient = self.recipient or tool_recipient(before)

    def _grow(self, marker: str, text: str, real: bool) -> None:
        self._header.append(_Token(marker, text, real))
        self._length += len(text)

    def _written(self) -> str:
        return "".join([text for _, text, _ in self._header])

    def _role_text(self, text: str) -> None:
        self._role += text
        self._grow("", text, False)
        if self._length > HARMONY_HEADER_SPAN or not (_ROLE_OPEN.match(self._role) or self._any_word()):
            self._break_role()

    def _any_word(self) -> bool:
        """Tell whether the role part may hold any word, if its `<|message|>` comes."""
        if self._prompted:
            return _ROLE_GOES_ON.match(self._role) is not None
        return bool(self._header) and self._header[0].marker == START

    def _role_marker(self, marker: str, text: str, real: bool) -> None:
        whole = _ROLE_WHOLE.match(self._role) is not None
        if not whole and not (self._any_word() and marker in (CHANNEL, CONSTRAIN, MESSAGE)):
            self._break_role()
            self.marker(marker, text, real)
        elif marker in (CHANNEL, CONSTRAIN):
            self.recipient = tool_recipient(self._role)
            self._name(marker, text, real)
        elif marker == MESSAGE:
            self.recipient = tool_recipient(self._role)
            self._grow(marker, text, real)
            self._settle(self._length, self.recipient, CONTENT)
        else:
            self._end_role()
            self.marker(marker, text, real)

    def _end_role(self) -> None:
        """The header ends in its role part: a whole one is a marker, what can be none is content."""
        if _ROLE_WHOLE.match(self._role):
            self._drop_header()
        else:
            self._break_role()

    def _break_role(self) -> None:
        """The role part is none: what belongs to no header is the message's body."""
        opener = self._header[0].text if self._header[0].marker else ""
        # Only what lies within the span can be header: how much more has arrived must not matter.
        head = _ROLE_HEAD.match(self._role[: len(self._kept) + HARMONY_HEADER_SPAN - len(opener)])
        end = head.end() if head is not None else 0
        cut = max(end - len(self._kept), 0)
        if not self._role[len(self._kept) :][:cut].strip():
            cut = 0
        recipient = tool_recipient(self._role[:end])
        if recipient is None and self._prompted and not self._touched:
            cut = 0  # a plain reply, as far as can be known: all of it is shown
        self._settle(len(opener) + cut, recipient, CONTENT)

    def _name(self, marker: str, text: str, real: bool) -> None:
        """Enter, or begin anew, the part of the header after `<|channel|>`."""
        if self.state is State.ROLE:
            self._channel_at = self._length
        self.state = State.NAMED
        self._kept = ""
        self._channel = [] if marker == CHANNEL else [_Token(marker, text, real)]
        self._grow(marker, text, real)
        self._limit()

    def _named_text(self, marker: str, text: str, real: bool) -> None:
        self._channel.append(_Token(marker, text, real))
        self._grow(marker, text, real)
        self._limit()

    def _limit(self) -> None:
        if self._length > HARMONY_HEADER_SPAN:
            self._break_header(by_length=True)

    def _named_marker(self, marker: str, text: str, real: bool) -> None:
        if marker == MESSAGE:
            channel = self._channel_text()
            self._grow(marker, text, real)
            recipient = self.recipient or tool_recipient(channel)
            self._settle(self._length, recipient, kind_of(_BETWEEN_WORDS.split(channel.strip())[0]))
        elif marker == CONSTRAIN:
            self._named_text(marker, text, real)
        elif marker == CHANNEL and self._addressed():
            self._name(marker, text, real)
        else:
            self._break_header()
            self.marker(marker, text, real)

    def _addressed(self) -> bool:
        """Tell whether the header so far names a tool, in its role part or right after the channel's name."""
        if self.recipient is None:
            before = self._length - sum([len(text) for _, text, _ in self._channel])
            words = self._channel_text()[: len(self._kept) + self._channel_words(before)]
            self.recipient = tool_recipient(words)
        return self.recipient is not None

    def _channel_text(self) -> str:
        return self._kept + "".join([text for _, text, _ in self._channel])

    def _break_header(self, by_length: bool = False) -> None:
        """The header ends without `<|message|>`: its words are the header, what follows them is the body."""
        if self._prompted and not self._touched and not self._kept.strip():
            self._settle(0, None, CONTENT)  # a plain reply: all of it is shown
            return
        if not _ROLE_WHOLE.match(self._role):
            self._break_role()  # words in the role part are header only if a `<|message|>` comes
            return
        before = self._length - sum([len(text) for _, text, _ in self._channel])
        cut = before + self._channel_words(before)
        if cut == self._length and not by_length:
            self._drop_header()
            return
        words = self._channel_text()[: len(self._kept) + cut - before]
        recipient = self.recipient or tool_recipient(words)
        self._settle(cut, recipient, kind_of(_BETWEEN_WORDS.split(words.strip())[0]))

    def _channel_words(self, before: int) -> int:
        """Count the characters of the channel part that are the channel's name, recipient and constraint."""
        at, pattern, kept = 0, _CHANNEL_HEAD, self._kept
        for marker, text, _ in self._merged(self._channel):
            # Only what lies within the span can be header: how much more has arrived must not matter.
            room = max(HARMONY_HEADER_SPAN - before - at, 0)
            if marker:
                if len(text) > room:
                    return at
                at += len(text)
            else:
                found = pattern.match(kept + text[:room])
                end = max(found.end() - len(kept), 0) if found is not None else 0
                at += end
                if end < len(text):
                    return at
            pattern, kept = _WORD, ""
        return at

    @staticmethod
    def _merged(tokens: list[_Token]) -> list[_Token]:
        """Join neighbouring runs of text: the header must not depend on how its text was cut."""
        merged: list[_Token] = []
        for token in tokens:
            if merged and not token.marker and not merged[-1].marker:
                merged[-1] = _Token("", merged[-1].text + token.text, False)
            else:
                merged.append(token)
        return merged

    def _drop_header(self) -> None:
        self._sink.marker(self._written())
        self._header = []
        self.state = State.LOOSE

    def _settle(self, cut: int, recipient: str | None, kind: Kind) -> None:
        """Begin the body: the header is what the model wrote up to `cut`, the rest is the body's beginning."""
        tokens, written = self._header, self._written()
        in_role = tool_recipient(self._role) is not None
        self._header = []
        self.recipient = recipient
        self._kind = TOOL if recipient is not None else kind
        if self._kind is TOOL:
            prefix = 0 if self._prompted or in_role else self._channel_at
            self._sink.marker(written[:prefix])
            self._sink.tool(written[prefix:cut], recipient)
        else:
            self._sink.marker(written[:cut])
        self._enter()
        at = 0
        for marker, text, real in tokens:
            rest = text[max(cut - at, 0) :]
            at += len(text)
            if rest and marker:
                self.marker(marker, text, real)
            elif rest:
                self.text(rest)

    # Bodies

    def _enter(self) -> None:
        self.state = State.BODY
        if self._kind is REASONING:
            self.ended_by = ""
            self._sink.open_reasoning()
        elif self._kind is CONTENT:
            self._sink.open_answer()

    def _put(self, text: str) -> None:
        if self._kind is REASONING:
            self._sink.reasoning(text)
        elif self._kind is CONTENT:
            self._sink.answer(text)
        else:
            self._sink.tool(text, self.recipient)

    def _body_marker(self, marker: str, text: str, real: bool) -> None:
        if marker in (MESSAGE, CONSTRAIN):
            if self._kind is TOOL:
                self._put(text)
            else:
                self._sink.marker(text)
            return
        if self._kind is REASONING:
            self._sink.close_reasoning()
            self.ended_by = "closer"
        self.state = State.LOOSE
        self._bare = marker in CLOSERS
        if marker in CLOSERS:
            if self._kind is TOOL:
                self._sink.tool(text, self.recipient, ends=True)
            else:
                self._sink.marker(text)
        else:
            self._sink.next_slice(self.recipient)
            self._loose_marker(marker, text, real)
