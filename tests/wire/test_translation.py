"""The settings of a translation are checked where they are made, in the library as in the environment."""

from typing import Any

import pytest

from vllm_reasoning_ext import StreamTextAccumulator
from vllm_reasoning_ext.core.grammar.tags import DEFAULT_TAGS
from vllm_reasoning_ext.wire.translation import CHOICES, Translation


@pytest.mark.parametrize("name", CHOICES)
def test_every_allowed_word_is_taken(name: str) -> None:
    for word in CHOICES[name]:
        assert getattr(Translation(**{name: word}), name) == word  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        (
            "reasoning_field",
            "thinking",
            "reasoning_field='thinking' is unknown: use one of reasoning_content, reasoning",
        ),
        ("messages_policy", "typo", "messages_policy='typo' is unknown: use one of off, drop, unsigned, redacted"),
        ("messages_policy", None, "messages_policy=None is unknown"),
        ("signature", "fake", "use one of omit, empty"),
        ("responses_events", "FULL", "use one of full, seed"),
        ("where", "here", "use one of prose, anywhere, head"),
        ("unclosed", "drop", "use one of reasoning, content"),
        ("family", "gpt9", "family='gpt9' is unknown: use one of inline, "),
        ("max_buffer_bytes", 0, "max_buffer_bytes=0 is no number of bytes: use 1 or more"),
        ("max_buffer_bytes", "64k", "is no number of bytes"),
        ("max_buffer_bytes", True, "is no number of bytes"),
        ("implicit_open", "yes", "implicit_open='yes' is neither True nor False"),
        ("tags", "bad", "'bad' is no tag pair"),
        ("tags", [("<a>", "")], "is no tag pair"),
    ],
)
def test_another_value_raises_with_the_choices(name: str, value: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Translation(**{name: value})


def test_a_joiner_is_text() -> None:
    with pytest.raises(TypeError, match="joiner=7 is no text"):
        Translation(joiner=7)  # type: ignore[arg-type]


@pytest.mark.parametrize("tags", ["<a>...</a>", [("<a>", "</a>")], (["<a>", "</a>"],)])
def test_tags_may_be_given_in_either_form(tags: Any) -> None:
    assert Translation(tags=tags).tags == (("<a>", "</a>"),)
    assert Translation().tags == DEFAULT_TAGS


def test_a_floor_is_checked_as_well() -> None:
    with pytest.raises(ValueError, match="floor='on' is unknown: use one of off, promote"):
        StreamTextAccumulator(floor="on")  # type: ignore[arg-type]
