"""Places of blocks and items towards the client, where some are put in that upstream does not have."""


class Places:
    """The indexes of one message or response: upstream's own, moved by what was put in.

    As long as nothing was put in, an index is what upstream says, whatever that is.
    """

    __slots__ = ("_last", "_out", "_shift", "_touched")

    def __init__(self) -> None:
        self._out: dict[int, int] = {}
        self._shift = 0  # blocks put in, less blocks left out
        self._last: int | None = None  # the highest index that was given
        self._touched = False

    def of(self, upstream: int) -> int:
        """Give the index of a block that was announced; of another one, what it would have been."""
        return self._out.get(upstream, upstream + self._shift)

    def announced(self, upstream: int) -> bool:
        """Tell whether a block was announced."""
        return upstream in self._out

    @property
    def upstream(self) -> list[int]:
        """The indexes of upstream that were announced, ascending."""
        return sorted(self._out)

    def announce(self, upstream: int, waiting: int = 0) -> int:
        """Give an index to a block of upstream.

        Args:
            upstream: its index there.
            waiting: blocks before it that were put in for texts which are not announced yet themselves.
        """
        index = self._out[upstream] = self._given(upstream + self._shift - waiting)
        return index

    def put_in(self, before: int | None) -> int:
        """Give an index to a block that upstream does not have.

        Args:
            before: the block of upstream it precedes; None: it comes after all that were announced.
        """
        self._touched = True
        if before is None:
            before = 0
        index = self._given(before + self._shift)
        self._shift += 1
        return index

    def leave_out(self) -> None:
        """Take note that a block of upstream is not announced at all."""
        self._touched = True
        self._shift -= 1

    def _given(self, index: int) -> int:
        if self._touched and self._last is not None:
            index = max(index, self._last + 1)
        self._last = index if self._last is None else max(self._last, index)
        return index


class Numbers:
    """The sequence numbers towards the client: upstream's, moved by what was put in and left out.

    As long as nothing was, a number is what upstream says, whatever that is.
    """

    __slots__ = ("_came", "_last", "_shift", "_touched", "_waiting")

    def __init__(self) -> None:
        self._waiting = 0
        self._came: int | None = None
        self._last: int | None = None
        self._shift = 0
        self._touched = False

    def passed(self, number: int, *, waited: bool = False) -> int:
        """Give the number of an event of upstream's that is sent now, or has `waited` until now."""
        if waited:
            self._waiting -= 1
        else:
            self._came = number
        if self._touched:
            number += self._shift - self._waiting
            if self._last is not None:
                number = max(number, self._last + 1)
        self._last = number
        return number

    def held(self, number: int) -> None:
        """Take note that an event of upstream's waits."""
        self._waiting += 1
        self._come(number)

    def _come(self, number: int) -> None:
        self._came = number
        if self._last is None:
            self._last = number - 1

    def overtaken(self) -> None:
        """Take note that a later event is sent ahead of one that waits."""
        self._touched = True

    def left_out(self, number: int) -> None:
        """Take note that an event of upstream's is not sent."""
        self._come(number)
        self._touched = True
        self._shift -= 1

    def put_in(self) -> int | None:
        """Give the number of a new event; None where upstream numbers nothing."""
        if self._last is None:
            return None
        self._touched = True
        self._shift += 1
        self._last += 1
        return self._last

    def begins_anew(self, number: object) -> bool:
        """Tell whether a number belongs to a stream that counts from its beginning again."""
        return not isinstance(number, int) or self._came is None or number <= self._came
