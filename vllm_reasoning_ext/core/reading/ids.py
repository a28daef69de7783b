"""Token ids beside the text: which spelling of a marker is a control token, and which was only written out.

Theory of operation. The text decides where things stand; ids only say what is real (SPEC section 2, law 5). The
fed ids are cut at control ids and the runs between them decoded, which gives a second copy of the output in
which every marker spelling is known to be real or quoted. Those spellings wait in a queue; each spelling that
the text brings takes the next one. Text may lag behind the ids, so the queue may be ahead, never behind. Ids
wait undecoded until a spelling turns up; those of plain text are forgotten once their text must have come, so that
plain text costs no decoding.
"""

import weakref
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext.core.families import get_family
from vllm_reasoning_ext.core.limits import IDS_KEPT, IDS_PENDING_MAX, TEXT_LAG_MAX
from vllm_reasoning_ext.core.reading.decode import Decode, TextOfIds
from vllm_reasoning_ext.core.reading.markers import MarkerSet, marker_set
from vllm_reasoning_ext.core.record import Family

CONTEXT: Final = 12
"""Characters before a marker by which decoded ids and fed text are compared."""


class _Spelling(NamedTuple):
    marker: str
    real: bool | None  # None: the tokenizer has no id for this marker, so the text decides
    position: int
    before: str  # what stands before it, since the last real marker


class Plan(NamedTuple):
    """What the ids of one tokenizer mean for one family; made once per tokenizer."""

    by_id: Mapping[int, str]  # control tokens
    alone: frozenset[int]  # those among them that are a marker whatever stands around them
    parts: Mapping[str, list[tuple[int, int]]]  # marker -> the spans in it that must be control tokens
    known: frozenset[str]  # markers that ids can vouch for


class IdTrack:
    """Follows the ids of one output and answers for each marker spelling in the text.

    Args:
        markers: the spellings that the text is searched for (shared with the lexer).
        plan: what the ids of this tokenizer mean for the family.
        decode: ids -> text for a run of ordinary ids.
    """

    __slots__ = (
        "_adrift",
        "_alone",
        "_base",
        "_before",
        "_broken",
        "_by_id",
        "_decode",
        "_length",
        "_markers",
        "_parts",
        "_pending",
        "_queue",
        "_run",
        "_spans",
        "_tail",
        "_tail_at",
        "known",
        "plain",
    )

    def __init__(self, markers: MarkerSet, plan: Plan, decode: Decode) -> None:
        self._by_id, self._alone, self._parts, self.known = plan
        self._decode = decode
        self._run = TextOfIds(decode)  # the run of ordinary ids that is being read
        self._markers = markers
        self._pending: list[int] = []
        self._queue: list[_Spelling] = []  # short: as much as the text may lag behind
        self._tail = ""  # decoded text not searched yet: it may hold the beginning of a spelling
        self._before = ""  # the last characters before the tail, since the last real marker
        self._tail_at = 0  # where it stands in the decoded output, in characters
        self._length = 0  # characters decoded so far
        self._spans: dict[tuple[int, int], None] = {}  # where the control tokens of the tail stand
        self._base = 0  # how far decoded and fed text have drifted apart at the last match
        self._broken = False  # the tokenizer could not decode an id
        self._adrift = False  # ids have been forgotten since, so that is not known
        self.plain = True  # the lexer has met no character that a marker begins with since the last reading

    def push(self, token_ids: Iterable[int]) -> bool:
        """Take the ids of one delta; they are copied.

        Returns:
            False when the text has fallen so far behind that the two no longer belong together.
        """
        if self._broken or len(self._queue) > TEXT_LAG_MAX:
            return False
        # Before the new ids: the text of those that came earlier has come, but for what it may lag behind.
        if len(self._pending) > IDS_PENDING_MAX:
            if not self._drop():
                self._read()
            self.plain = True
        self._pending.extend(token_ids)
        return True

    def verdict(self, marker: str, position: int, before: str) -> bool | None:
        """Say whether the spelling at `position` (characters of fed text) is a control token.

        Args:
            marker: the spelling.
            position: where it stands.
            before: the fed text before it, `CONTEXT` characters or what there is since the last real marker.

        Returns:
            True or False; None when decoded ids and text disagree.
        """
        if not self._read() or not self._queue:
            return None
        spelling = self._queue.pop(0)
        drift = spelling.position - position - self._base
        if spelling.marker != marker or (abs(drift) > TEXT_LAG_MAX and not self._adrift):
            return None
        if spelling.before != before and not _same_text(spelling.before, before):
            return None
        self._base += drift
        self._adrift = False
        return bool(spelling.real) if marker in self.known else True

    def leftover(self) -> list[str]:
        """List the control tokens whose text never came, in order (trimmed stop tokens)."""
        if not self._read():
            return []
        return [s.marker for s in self._queue if s.real]

    def _read(self) -> bool:
        """Decode what is pending and queue the spellings in it; False when the tokenizer cannot decode it."""
        try:
            self._decode_pending()
        except Exception:
            # Ids that no vocabulary has: whatever a tokenizer raises for them, the text decides then.
            self._pending.clear()
            self._queue.clear()
            self._broken = True
        return not self._broken

    def _decode_pending(self) -> None:
        at = 0 if self._tail else self._take_markers()
        if at < len(self._pending):
            self._decode_rest(self._pending[at:])
        self._pending.clear()

    def _take_markers(self) -> int:
        """Queue the markers that stand alone at the head of what is pending, the usual case, without a search.

        Returns:
            how many of the pending ids are done with.
        """
        done = 0
        for at, number in enumerate(self._pending):
            if number not in self._alone:
                if number in self._by_id:
                    break
                continue
            ordinary = self._run.end(self._pending[done:at]) if at > done or self._run.waits else ""
            self._length += len(ordinary)
            if not self._markers.absent(ordinary):
                self._tail = ordinary
                return at
            marker = self._by_id[number]
            self._queue.append(_Spelling(marker, True, self._length, (self._before + ordinary)[-CONTEXT:]))
            self._before = ""
            self._length += len(marker)
            self._tail_at = self._length
            done = at + 1
        return done

    def _decode_rest(self, ids: list[int]) -> None:
        pieces, run = [self._tail], []
        length = self._length
        for number in ids:
            text = self._by_id.get(number)
            if text is None:
                run.append(number)
                continue
            ordinary = self._run.end(run) if run or self._run.waits else ""
            start = length + len(ordinary)
            length = start + len(text)
            pieces += (ordinary, text)
            self._spans[start, length] = None
            run = []
        if run:
            pieces.append(self._run.push(run))
            length += len(pieces[-1])
        self._tail, self._length = "".join(pieces), length
        self._search()

    def _drop(self) -> bool:
        """Forget ids whose text has come and held no marker; False where they have to be decoded after all."""
        if not self.plain or self._tail or not self._by_id.keys().isdisjoint(self._pending):
            return False
        del self._pending[:-IDS_KEPT]
        self._run = TextOfIds(self._decode)
        # How long their text was is not known, so the next spelling settles anew how far the two are apart.
        self._adrift = True
        return True

    def _search(self) -> None:
        tail, at = self._tail, 0
        kept = 0  # where the text since the last real marker begins
        while True:
            start, end = self._markers.find(tail, at)
            if start < 0:
                break
            marker = tail[start:end]
            real = self._real(marker, self._tail_at + start)
            before = (self._before + tail[max(kept, start - CONTEXT) : start])[-CONTEXT:]
            self._queue.append(_Spelling(marker, real, self._tail_at + start, before))
            at = start + 1 if real is False else end  # as the lexer does
            if real:
                self._before, kept = "", end
        at = self._markers.partial(tail, at)
        self._before = (self._before + tail[max(kept, at - CONTEXT) : at])[-CONTEXT:]
        self._tail = tail[at:]
        self._tail_at += at
        if self._spans:
            self._spans = {span: None for span in self._spans if span[0] >= self._tail_at}

    def _real(self, marker: str, position: int) -> bool | None:
        pieces = self._parts.get(marker)
        if pieces is None:
            return None
        for start, end in pieces:  # noqa: SIM110 - this is asked of every spelling
            if (position + start, position + end) not in self._spans:
                return False
        return True


def _same_text(decoded: str, fed: str) -> bool:
    """Tell whether two texts agree as far as both go; blanks, which detokenizers add and drop, do not count."""
    if "\ufffd" in decoded or "\ufffd" in fed:
        return True
    decoded, fed = "".join(decoded.split()), "".join(fed.split())
    return decoded.endswith(fed) or fed.endswith(decoded)


class CountTrack:
    """Stands in for `IdTrack` where no tokenizer can decode: counts ids instead of placing them.

    A spelling is real while unmatched ids of its marker remain (SPEC section 2, law 5: approximate, and exempt
    from the chunk law).
    """

    __slots__ = ("_by_id", "_open", "_parts", "known", "plain")

    def __init__(self, family: Family, markers: MarkerSet, ids: Mapping[str, int]) -> None:
        self._by_id = {number: text for text, number in ids.items()}
        self._parts = {m: [m[a:b] for a, b in spans] for m, spans in _parts(family, ids).items()}
        self.known = frozenset(m for m in markers.spellings if m in self._parts)
        self._open: dict[str, int] = {}
        self.plain = True  # as IdTrack's; nothing follows from it here

    def push(self, token_ids: Iterable[int]) -> bool:
        for number in token_ids:
            text = self._by_id.get(number)
            if text is not None:
                # Deleted and set again, so that the dict keeps the order of arrival.
                self._open[text] = self._open.pop(text, 0) + 1
        return True

    def verdict(self, marker: str, position: int, before: str) -> bool | None:
        pieces = self._parts.get(marker)
        if pieces is None:
            return True
        if any(not self._open.get(piece) for piece in pieces):
            return False
        for piece in pieces:
            self._open[piece] -= 1
        return True

    def leftover(self) -> list[str]:
        return [text for text, count in self._open.items() for _ in range(min(count, 1)) if text in self.known]


def _parts(family: Family, ids: Mapping[str, int]) -> dict[str, list[tuple[int, int]]]:
    """Map each marker that ids can vouch for to the spans in it that must be control tokens."""
    found: dict[str, list[tuple[int, int]]] = {}
    composite = dict(family.parts)
    for marker in family.markers:
        if marker in ids:
            found[marker] = [(0, len(marker))]
            continue
        spans, at = [], 0
        for piece in composite.get(marker, ()):
            start = marker.index(piece, at)
            at = start + len(piece)
            if piece in ids:
                spans.append((start, at))
        if spans:
            found[marker] = spans
    return found


_CACHE: "weakref.WeakKeyDictionary[Any, dict[tuple[str, ...], dict[str, int]]]" = weakref.WeakKeyDictionary()


def marker_ids(family: str | Family, tokenizer: Any) -> dict[str, int]:
    """Resolve the family's control tokens in a tokenizer, once per tokenizer.

    Args:
        family: a family or its name.
        tokenizer: anything with `convert_tokens_to_ids` (transformers) or `token_to_id` (tokenizers) and
            `decode`. Its whole vocabulary is never asked for: that costs 0.2 s on a large one.

    Returns:
        control token text -> id, only those whose id decodes back to the text (an unknown token's id does not).
    """
    record = get_family(family) if isinstance(family, str) else family
    return _resolve(tokenizer, record.control)


def single_tokens(tokenizer: Any, texts: tuple[str, ...]) -> dict[str, int]:
    """Map those texts that are one token each to their ids, resolved once per tokenizer."""
    return _resolve(tokenizer, texts)


def _resolve(tokenizer: Any, texts: tuple[str, ...]) -> dict[str, int]:
    try:
        cached = _CACHE.setdefault(tokenizer, {})
    except TypeError:  # not hashable, or not weakly referable
        cached = {}
    if texts not in cached:
        decode = decoder(tokenizer)
        cached[texts] = {t: n for t in texts if (n := _single_id(tokenizer, decode, t)) is not None}
    return cached[texts]


def _single_id(tokenizer: Any, decode: Decode, text: str) -> int | None:
    lookup = getattr(tokenizer, "convert_tokens_to_ids", None) or getattr(tokenizer, "token_to_id", None)
    number = lookup(text) if lookup is not None else None
    if not isinstance(number, int) or decode([number]).strip() != text.strip():
        return None
    return number


def decoder(tokenizer: Any) -> Decode:
    """Build a plain `ids -> text` from a tokenizer: special tokens kept, no cleaning up of spaces."""

    def decode(ids: list[int]) -> str:
        return str(tokenizer.decode(ids, skip_special_tokens=False))

    return decode


# A plan must not hold its tokenizer, or neither would ever be freed.
_PLANS: "weakref.WeakKeyDictionary[Any, dict[Family, Plan]]" = weakref.WeakKeyDictionary()


def make_plan(family: Family, ids: Mapping[str, int]) -> Plan:
    """Prepare what an `IdTrack` needs of a tokenizer.

    Args:
        family: whose markers are looked for.
        ids: control token text -> id.
    """
    parts = _parts(family, ids)
    searched = marker_set(family.markers)
    alone = frozenset(n for text, n in ids.items() if text in searched.alone and parts[text] == [(0, len(text))])
    return Plan({number: text for text, number in ids.items()}, alone, parts, frozenset(parts))


def _plan(family: Family, tokenizer: Any) -> Plan:
    try:
        known = _PLANS.setdefault(tokenizer, {})
    except TypeError:  # not hashable, or not weakly referable
        known = {}
    plan = known.get(family)
    if plan is None:
        plan = known[family] = make_plan(family, marker_ids(family, tokenizer))
    return plan


def make_track(
    family: Family, markers: MarkerSet, tokenizer: Any, ids: Mapping[str, int] | None
) -> IdTrack | CountTrack | None:
    """Build the track for one output; None when neither tokenizer nor ids can vouch for a marker."""
    if tokenizer is None:
        return CountTrack(family, markers, ids) if ids else None
    if ids:
        plan = make_plan(family, {**marker_ids(family, tokenizer), **ids})
    else:
        plan = _plan(family, tokenizer)
    return IdTrack(markers, plan, decoder(tokenizer)) if plan.by_id else None
