"""One splitter used in any order: text, ids, late text, finish, misuse; against a model that only remembers."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.laws import tried
from tests.support.strategies import NAMES, fragments, options
from vllm_reasoning_ext import Splitter
from vllm_reasoning_ext.conformance.char_tokenizer import CharTokenizer, Token
from vllm_reasoning_ext.conformance.runner import as_piece, merged, replay


class OneSplitter(RuleBasedStateMachine):
    """The model: what was fed, what is still to be fed, and what has come out."""

    @initialize(data=st.data(), name=st.sampled_from(NAMES), ids=st.booleans())
    def start(self, data: st.DataObject, name: str, ids: bool) -> None:
        tried.one()
        self.name = name
        self.ids = ids and name != "inline"
        self.options = data.draw(options(name))
        if self.ids:
            self.tokenizer = CharTokenizer.of_family(name)
            self.options["tokenizer"] = self.tokenizer
        self.splitter = Splitter(name, **self.options)
        self.tokens: list[Token] = []
        self.fed = self.waiting = ""
        self.events: list = []
        self.fits = True  # ids and text belong together
        self.closed = False

    def feed(self, text: str, ids: list[int] | None) -> None:
        self.fed += text
        self.events.extend(self.splitter.feed(text, ids).events)

    @precondition(lambda self: not self.closed)
    @rule(data=st.data(), quote=st.booleans(), keep=st.integers(0, 24))
    def feed_something(self, data: st.DataObject, quote: bool, keep: int) -> None:
        fragment = data.draw(fragments(self.name))
        if not self.ids:
            self.feed(fragment, None)
            return
        new = list(self.tokenizer.tokens(fragment, [(0, len(fragment))] if quote else ()))
        self.tokens.extend(new)
        self.waiting += fragment
        cut = max(len(self.waiting) - keep, 0)
        ready, self.waiting = self.waiting[:cut], self.waiting[cut:]
        self.feed(ready, [token.id for token in new])

    @precondition(lambda self: not self.closed)
    @rule()
    def feed_late_text(self) -> None:
        ready, self.waiting = self.waiting, ""
        self.feed(ready, [] if self.ids else None)

    @precondition(lambda self: not self.closed and self.ids)
    @rule()
    def feed_without_ids(self) -> None:
        self.fits = self.fits and not self.waiting and not self.tokens
        self.feed(self.waiting + "?", None)
        self.fits = self.ids = False
        self.waiting = ""

    @precondition(lambda self: not self.closed)
    @rule(reason=st.sampled_from((None, "stop", "length")))
    def finish(self, reason: str | None) -> None:
        if self.waiting:
            self.feed_late_text()
        self.events.extend(self.splitter.finish(reason).events)
        self.closed = True
        assert "".join(e.text for e in self.events if not e.synthetic) == self.fed
        if not self.fits:
            return
        ids = [token.id for token in self.tokens] if self.ids else None
        once = replay(Splitter(self.name, **self.options), [(self.fed, ids)], reason)
        assert merged(map(as_piece, self.events)) == once.split

    @precondition(lambda self: self.closed)
    @rule(text=st.sampled_from(("", "x")))
    def misuse(self, text: str) -> None:
        with pytest.raises(RuntimeError, match="new Splitter"):
            self.splitter.feed(text)
        with pytest.raises(RuntimeError, match="new Splitter"):
            self.splitter.finish()

    @invariant()
    def nothing_is_taken_back(self) -> None:
        if hasattr(self, "events"):
            assert self.fed.startswith("".join(e.text for e in self.events if not e.synthetic))


TestOneSplitter = OneSplitter.TestCase
TestOneSplitter.settings = settings(settings.default, stateful_step_count=25)
