"""The table of endings of our chat templates (`endings.jsonl`), written from the format documentation."""

import json
from pathlib import Path
from typing import Any, Final, NamedTuple


class Ending(NamedTuple):
    """What one mode must end in.

    `ending` is the text after the last turn opener; `tail`, where given, a longer stretch of the prompt's end
    that shows the history too; `state` is where generation starts; `answer_begun` is set where it matters.
    """

    family: str
    kwargs: dict[str, Any]
    conversation: str
    ending: str
    state: str
    tail: str
    answer_begun: bool | None

    @property
    def name(self) -> str:
        """A readable test id."""
        return "-".join([self.family, *(f"{k}={v}" for k, v in self.kwargs.items()), self.conversation])


def _load() -> list[Ending]:
    rows = map(json.loads, Path(__file__).with_name("endings.jsonl").read_text(encoding="utf-8").splitlines())
    return [
        Ending(r["family"], r["kwargs"], c, r["ending"], r["state"], r.get("tail", ""), r.get("answer_begun"))
        for r in rows
        for c in r["conversations"]
    ]


ENDINGS: Final = _load()
