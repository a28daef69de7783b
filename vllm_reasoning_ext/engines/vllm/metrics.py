"""Counters of the splits on vLLM's own `/metrics`, and one warning per cause in its log.

The names do not begin with `vllm:`, because vLLM unregisters all that do when its engine starts.
"""

from functools import cache
from itertools import product
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext.engines.logs import vllm_log

SURFACES: Final = ("chat", "messages", "responses")
_CONVERTED: Final = frozenset(
    (
        *("max_tokens", "max_completion_tokens", "stop", "temperature", "top_p", "top_k"),
        *("kv_transfer_params", "chat_template_kwargs"),
    )
)
"""What vLLM (0.24 to 0.33) sets, if only to None, in the chat request that it makes of an Anthropic one."""
STARTS: Final = ("reasoning", "content", "undecided", "header")
ENDS: Final = ("closer", "tool", "unclosed", "none")
"""How the last thought ended: by its marker, by a tool call, not at all; or there was none."""


class Split(NamedTuple):
    """What is counted of one finished output.

    Attributes:
        family, surface, start, end: the labels.
        floored: the reasoning was given as content too.
        held: the most characters kept back at once.
        starved: it was cut while thinking: a thought and neither answer nor call.
    """

    family: str
    surface: str
    start: str
    end: str
    floored: bool
    held: int
    starved: bool


class _Meters:
    """The collectors, made once in the process that serves."""

    def __init__(self) -> None:
        from prometheus_client import Counter, Gauge

        self.splits = Counter(
            "reasoning_ext_splits",
            "Outputs split, by family, surface, start state and how the last thought ended.",
            ("family", "surface", "start", "end"),
        )
        self.unclosed = Counter("reasoning_ext_unclosed", "Outputs that ended in an open thought.", ("family",))
        self.floored = Counter(
            "reasoning_ext_floored", "Replies whose reasoning was given as content too.", ("family",)
        )
        self.starved = Counter(
            "reasoning_ext_starved", "Replies cut while thinking: no answer, no tool call.", ("family",)
        )
        self.held = Gauge(
            "reasoning_ext_largest_hold_characters",
            "The most characters kept back at once, because they could still be a marker.",
            ("family",),
            multiprocess_mode="max",
        )


@cache
def _meters() -> _Meters | None:
    try:
        return _Meters()
    except Exception as error:  # no prometheus_client, or the names are taken: serving matters more
        vllm_log.warning("no reasoning_ext metrics on /metrics: %r", error)
        return None


@cache
def prepare(family: str) -> None:
    """Create a family's series at zero, so that a rate is right from the first request on."""
    meters = _meters()
    if meters is None:
        return
    for labels in product((family,), SURFACES, STARTS, ENDS):
        meters.splits.labels(*labels)
    for counter in (meters.unclosed, meters.floored, meters.starved):
        counter.labels(family)
    meters.held.labels(family).set(0)


_largest: dict[str, int] = {}


def record(split: Split) -> None:
    """Count one finished output."""
    meters = _meters()
    if split.starved:
        _warn_starved(split.family)
    if meters is None:
        return
    meters.splits.labels(split.family, split.surface, split.start, split.end).inc()
    if split.end == "unclosed":
        meters.unclosed.labels(split.family).inc()
    if split.floored:
        meters.floored.labels(split.family).inc()
    if split.starved:
        meters.starved.labels(split.family).inc()
    if split.held > _largest.get(split.family, 0):
        _largest[split.family] = split.held
        meters.held.labels(split.family).set(split.held)


def surface_of(request: Any) -> str:
    """Name the API surface of a request by its type; an Anthropic one comes as a chat request with all fields set."""
    # The Responses API reads harmony outputs without handing the request to the parser.
    if request is None or "Responses" in type(request).__name__:
        return "responses"
    return "messages" if getattr(request, "model_fields_set", frozenset()) >= _CONVERTED else "chat"


@cache
def _warn_starved(family: str) -> None:
    vllm_log.warning(
        "%s: a reply was cut by its token limit while the model was still thinking, so it has no answer. "
        "Raise max_tokens, or lower the thinking (thinking_token_budget). "
        "(Said once; reasoning_ext_starved_total on /metrics counts them.)",
        family,
    )


@cache
def warn_stripped(family: str) -> None:
    """Say once that control tokens are removed before the parser sees the text."""
    vllm_log.warning(
        "%s: the request has skip_special_tokens=true, which removes the family's markers from the text before the "
        "parser sees it. Leave the field out of the request. (Said once.)",
        family,
    )
