"""Inline tags of any model: blocks of reasoning between an opener and its own closer, in running text.

How it works. A machine with one cursor. In the answer it looks for the leftmost opener, in a block for the
block's closer. What could still grow into either is kept as `_tail`; blank runs that may still be dropped are
kept as a list of pieces. With `unclosed="content"` a block is kept back whole until its closer shows that it
was one. Nothing that has been looked at is looked at again, but for the tail (shorter than the longest tag).
"""

import re
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import Final, Literal, get_args

from vllm_reasoning_ext.core.events import CONTENT, MARKER, Delta
from vllm_reasoning_ext.core.grammar.blanks import BlankRun
from vllm_reasoning_ext.core.grammar.contract import Observer
from vllm_reasoning_ext.core.grammar.sink import Sink
from vllm_reasoning_ext.core.grammar.tags import DEFAULT_TAGS, needles, parse_tags

__all__ = ["BUFFER_BYTES", "DEFAULT_TAGS", "UNCLOSED", "WHERE", "Inline", "Unclosed", "Where", "parse_tags"]

Where = Literal["prose", "anywhere", "head"]
Unclosed = Literal["reasoning", "content"]
WHERE: Final[tuple[Where, ...]] = get_args(Where)
UNCLOSED: Final[tuple[Unclosed, ...]] = get_args(Unclosed)
BUFFER_BYTES: Final = 65536
"""Default cap of a block that is kept back, in UTF-8 bytes between opener and closer."""

_BACKTICKS: Final = re.compile("`+")


class _State(Enum):
    ANSWER = auto()
    OPENED = auto()  # forced open, before the first visible character: an opener may still come
    BLOCK = auto()
    PASS = auto()  # a kept-back block grew over the cap: everything is content from here on


class Inline:
    """Split running text at inline tags (SPEC section 5.4).

    Args:
        tags: pairs, or their string form (`parse_tags`); the nine `DEFAULT_TAGS` if None.
        where: "prose" (anywhere but inside an open ``` fence and directly after a backtick), "anywhere", or
            "head" (blocks before the first visible answer character only).
        unclosed: "reasoning" streams a block as it comes; "content" keeps it back until its closer and
            releases it verbatim, opener included, as content if none comes.
        joiner: text between two non-blank blocks, a synthetic event.
        max_buffer_bytes: with unclosed="content", the most UTF-8 bytes a block may have between its tags;
            over it the block is content and so is all that follows.
        force_reasoning: True when the block was opened outside the text (by the prompt): the first closer of
            any pair ends it; one opener before its first visible character is swallowed, and then only that
            one's closer counts.
        sink: where the events go; it then has the joiner.

    Raises:
        ValueError: an unknown `where` or `unclosed`, or a malformed pair.
    """

    __slots__ = (
        "_after_tick",
        "_blank",
        "_body",
        "_body_bytes",
        "_cap",
        "_closer",
        "_closers",
        "_fence",
        "_found",
        "_head",
        "_lead",
        "_opener",
        "_openers",
        "_run",
        "_sink",
        "_state",
        "_tail",
        "_ticks",
        "_where",
        "closed",
        "unreleased",
    )

    def __init__(
        self,
        tags: str | Iterable[Sequence[str]] | None = None,
        where: str = "prose",
        unclosed: str = "reasoning",
        joiner: str = "\n",
        max_buffer_bytes: int = BUFFER_BYTES,
        force_reasoning: bool | None = None,
        sink: Sink | None = None,
    ) -> None:
        if where not in WHERE:
            raise ValueError(f"where={where!r} is unknown: use one of {', '.join(WHERE)}")
        if unclosed not in UNCLOSED:
            raise ValueError(f"unclosed={unclosed!r} is unknown: use one of {', '.join(UNCLOSED)}")
        pairs = parse_tags(tags)
        self._where = where
        self._sink = sink or Sink(joiner)
        cap = max_buffer_bytes if max_buffer_bytes > 0 else BUFFER_BYTES
        # None: blocks are streamed, nothing is kept back whole.
        self._cap = cap if unclosed == "content" else None
        self._openers = needles(tuple([opener for opener, _ in pairs]))
        self._closers = [needles((closer,)) for _, closer in pairs]
        self._closer = needles(tuple([closer for _, closer in pairs]))
        self._state = _State.OPENED if force_reasoning else _State.ANSWER
        self._tail = ""
        self.closed = False
        self.unreleased = 0  # characters that were fed and have not come out yet
        # The answer: a leading blank run that may still be dropped, and the code fence.
        self._head = True
        self._found = False
        self._blank = BlankRun()
        self._fence = False
        self._after_tick = False
        self._ticks = 0
        # The block.
        self._opener = ""
        self._body: list[str] = []
        self._body_bytes = 0
        self._lead = True
        self._run = BlankRun()

    # Inline tags are read in the text alone, and nobody asks what is kept back.
    held = max_held = 0
    ended_by = ""

    def observe(self, observer: Observer) -> None:
        """Tell nobody: there are no ids, so every spelling is read by its text."""

    def feed(self, text: str, token_ids: Iterable[int] | None = None) -> Delta:
        """Take the next characters and return what they release.

        Args:
            text: the characters.
            token_ids: not looked at.

        Raises:
            RuntimeError: the text has been finished.
        """
        if self.closed:
            raise RuntimeError("this splitter is finished: make a new one for the next text")
        if text:
            self._advance(self._tail + text if self._tail else text, final=False)
        delta = Delta(self._sink.take())
        self.unreleased += len(text) - sum([len(event.text) for event in delta.events if not event.synthetic])
        return delta

    def finish(self) -> Delta:
        """Release what was held; the machine is then closed.

        Raises:
            RuntimeError: the text has been finished already.
        """
        if self.closed:
            raise RuntimeError("this splitter is finished already")
        self.closed = True
        self._advance(self._tail, final=True)
        if self._state in (_State.OPENED, _State.BLOCK):
            if self._cap is None:
                self._sink.marker(self._run.take())
            else:
                self._give_up()
        self._sink.close_reasoning()
        self._drop_blank()
        return Delta(self._sink.take())

    def _advance(self, text: str, *, final: bool) -> None:
        self._tail = ""
        place, end = 0, len(text)
        while place < end:
            if self._state is _State.ANSWER:
                place = self._in_answer(text, place, final=final)
            elif self._state is _State.BLOCK:
                place = self._in_block(text, place, final=final)
            elif self._state is _State.OPENED:
                place = self._in_opened(text, place, final=final)
            else:
                self._sink.put(CONTENT, text[place:])
                place = end

    # -- the answer

    def _in_answer(self, text: str, place: int, *, final: bool) -> int:
        scan = seen = place
        while True:
            if self._where == "head" and not self._head:
                self._sink.put(CONTENT, text[place:])
                return len(text)
            spot, number = self._openers.find(text, scan, final=final)
            if self._where == "prose":
                self._look_for_fences(text[seen:spot])
                seen = spot
            elif self._where == "head":
                # A visible character before the tag ends the head: nothing after it counts or is held.
                self._answer(text[place:spot])
                place = scan = spot
                if not self._head:
                    continue
            if number < 0:
                self._answer(text[place:spot])
                self._tail = text[spot:]
                return len(text)
            if not (self._fence or self._after_tick):
                self._answer(text[place:spot])
                self._open(number)
                return spot + len(self._opener)
            scan = spot + 1

    def _look_for_fences(self, text: str) -> None:
        if not text:
            return
        end = 0
        for run in _BACKTICKS.finditer(text):
            ticks = run.end() - run.start() + (self._ticks if run.start() == 0 else 0)
            if ticks // 3 % 2:
                self._fence = not self._fence
            self._ticks, end = ticks % 3, run.end()
        self._after_tick = end == len(text)
        if not self._after_tick:
            self._ticks = 0

    def _answer(self, text: str) -> None:
        if not self._head:
            self._sink.put(CONTENT, text)
            return
        visible = text.lstrip()
        over = self._blank.add(text[: len(text) - len(visible)])
        if not visible and not over:
            return
        self._head = False
        if self._found and not over:
            dropped, kept = self._blank.split()
            self._sink.marker(dropped)
        else:
            kept = over or self._blank.take()
        self._sink.put(CONTENT, kept + visible)

    def _drop_blank(self) -> None:
        self._sink.put(MARKER if self._found else CONTENT, self._blank.take())

    # -- the block

    def _open(self, number: int, before: str = "") -> None:
        self._opener = before + self._openers.spellings[number]
        self._closer = self._closers[number]
        self._state = _State.BLOCK
        self._after_tick, self._ticks = False, 0
        self._lead = True
        if self._cap is None:
            self._begin()

    def _begin(self) -> None:
        self._found = True
        self._sink.marker(self._blank.take())
        self._sink.marker(self._opener)
        self._sink.open_reasoning()

    def _in_opened(self, text: str, place: int, *, final: bool) -> int:
        rest = text[place:]
        visible = rest.lstrip()
        over = self._run.add(rest[: len(rest) - len(visible)])
        if not visible and not over:
            return len(text)
        place += len(rest) - len(visible)
        if not over:
            spot, number = self._openers.find(text, place, final=final)
            if number >= 0 and spot == place:
                self._open(number, before=self._run.take())
                length = len(self._openers.spellings[number])
                return place + length
            if number < 0 and spot == place and place < len(text):
                self._tail = text[place:]
                return len(text)
        self._state = _State.BLOCK
        before = over or self._run.take()
        self._run.over = False
        if self._cap is None:
            self._begin()
        self._reason_or_keep(before)
        return place

    def _in_block(self, text: str, place: int, *, final: bool) -> int:
        spot, number = self._closer.find(text, place, final=final)
        self._reason_or_keep(text[place:spot])
        if self._state is _State.PASS:
            return spot
        if number < 0:
            self._tail = text[spot:]
            return len(text)
        closer = self._closer.spellings[number]
        if self._cap is not None:
            body = "".join(self._body)
            self._body, self._body_bytes = [], 0
            self._begin()
            self._reason(body)
        self._sink.marker(self._run.take())
        self._sink.marker(closer)
        self._sink.close_reasoning()
        self._state = _State.ANSWER
        return spot + len(closer)

    def _reason_or_keep(self, text: str) -> None:
        if self._cap is None:
            self._reason(text)
        elif text:
            self._body.append(text)
            self._body_bytes += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
            if self._body_bytes > self._cap:
                self._give_up()

    def _give_up(self) -> None:
        """Release a kept-back block verbatim as content: it was none."""
        self._state = _State.PASS
        self._answer(self._opener + self._run.take() + "".join(self._body))
        self._body = []
        self._drop_blank()

    def _reason(self, text: str) -> None:
        visible = text.lstrip()
        over = self._run.add(text[: len(text) - len(visible)])
        if over:
            self._lead = False
            self._sink.reasoning(over)
        if not visible:
            return
        if self._lead:
            self._lead = False
            dropped, kept = self._run.split()
            self._sink.marker(dropped)
        else:
            kept = self._run.take()
        solid = visible.rstrip()
        self._sink.reasoning(kept + solid)
        self._sink.reasoning(self._run.add(visible[len(solid) :]))
