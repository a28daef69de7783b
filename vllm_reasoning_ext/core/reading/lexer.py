"""Cutting the fed text into plain runs and markers, with or without token ids."""

import logging
from collections.abc import Iterable

from vllm_reasoning_ext.core.grammar.contract import Grammar, Observer
from vllm_reasoning_ext.core.reading.ids import CONTEXT, CountTrack, IdTrack
from vllm_reasoning_ext.core.reading.markers import MarkerSet

_log = logging.getLogger(__name__)


class Lexer:
    """Turns deltas into `Grammar` calls; holds nothing but a tail that may become a marker.

    Args:
        markers: the spellings to look for.
        grammar: where runs and markers go.
        track: the ids' side, or None where the text decides alone.
        only_real: markers that count only when an id vouches for them, once ids are there.
        closing: markers that may lack their text at the end of the output (trimmed stop tokens).
    """

    __slots__ = (
        "_closing",
        "_grammar",
        "_markers",
        "_only_real",
        "held",
        "observer",
        "position",
        "recent",
        "track",
        "used_ids",
    )

    def __init__(
        self,
        markers: MarkerSet,
        grammar: Grammar,
        track: IdTrack | CountTrack | None = None,
        only_real: frozenset[str] = frozenset(),
        closing: frozenset[str] = frozenset(),
    ) -> None:
        self._closing = closing
        self._markers = markers
        self._grammar = grammar
        self._only_real = only_real
        self.position = 0  # characters handed on so far
        # The last texts since the last real marker, for comparing them with the ids; each has a character at least.
        self.recent: list[str] = []
        self.track = track
        self.observer: Observer | None = None
        self.held = ""
        self.used_ids = False

    # Thirteen branches: the loop is the road of every marker, and a call more in it costs a twentieth of the whole.
    def feed(self, text: str, token_ids: Iterable[int] | None) -> None:
        track = self.track
        if track is not None:
            if token_ids is not None and track.push(token_ids):
                self.used_ids = True
            else:
                self._no_ids(text, token_ids)
        buffer = self.held + text if self.held else text
        if not buffer:
            return
        if self._markers.absent(buffer):
            self.held = ""
            self.position += len(buffer)
            self._note(buffer)
            self._grammar.text(buffer)
            return
        if self.track is not None:
            self.track.plain = False
        base, plain, at, size = self.position, 0, 0, len(buffer)
        while at < size:
            start, end = (0, size) if buffer in self._markers.alone and not at else self._markers.find(buffer, at)
            if start < 0:
                break
            marker = buffer[start:end]
            real = self._verdict(marker, base + start, buffer[plain:start])
            if self.observer is not None:
                self.observer.spelling(marker, base + start, real)
            if real is None:
                # A quoted spelling may share characters with a real one: `[e~` before the token `[e~[`.
                quoted = self.track is not None and marker in self.track.known
                at = start + 1 if quoted else end
                continue
            at = end
            if start > plain:
                self._note(buffer[plain:start])
                self._grammar.text(buffer[plain:start])
            self._grammar.marker(marker, marker, real)
            plain = end
            if real:
                self.recent.clear()
            else:
                self._note(marker)
        hold = self._markers.partial(buffer, at) if at < size else size
        if hold > plain:
            self._note(buffer[plain:hold])
            self._grammar.text(buffer[plain:hold])
        self.held = buffer[hold:]
        self.position = base + hold

    def finish(self) -> None:
        """Release the held tail as text, then the control tokens whose text never came."""
        if self.held:
            self._grammar.text(self.held)
            self.position += len(self.held)
            self.held = ""
        if self.track is not None and self.used_ids:
            leftover = self.track.leftover()
            if all(marker in self._closing for marker in leftover):
                for marker in leftover:
                    if self.observer is not None:
                        self.observer.spelling(marker, self.position, True)
                    self._grammar.marker(marker, "", True)
            else:
                # More than a trimmed stop token: the markers were taken out of the text on its way here.
                self._give_up("control tokens of the output have no text")

    def _note(self, text: str) -> None:
        """Remember the end of the text that has been handed on."""
        if self.track is not None:
            self.recent.append(text[-CONTEXT:])
            del self.recent[:-CONTEXT]

    def _no_ids(self, text: str, token_ids: Iterable[int] | None) -> None:
        """Take a delta whose ids say nothing: the text decides from here on."""
        if token_ids is not None:
            self._give_up("the text is too far behind the token ids")
        elif text:
            self._give_up("a text delta came without token ids" if self.used_ids else "")

    def _verdict(self, marker: str, position: int, since: str) -> bool | None:
        """Say whether a spelling is real (True), counts by its text (False) or is plain text (None)."""
        if self.track is None:
            return False
        before = since if len(since) >= CONTEXT else "".join(self.recent) + since
        verdict = self.track.verdict(marker, position, before[-CONTEXT:])
        if verdict is None:
            self._give_up("token ids and text disagree")
            return False
        if marker not in self.track.known:
            return None if marker in self._only_real else False
        return True if verdict else None

    def _give_up(self, why: str) -> None:
        self.track = None
        if why and self.observer is not None:
            self.observer.text_alone(why)
        if why:
            _log.info("splitting by text from here on: %s", why)
