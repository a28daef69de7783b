"""`--reasoning-parser auto` in vLLM: a class that makes the parser of the family that its tokenizer shows.

Theory of operation. vLLM looks a parser class up by name and calls it with a tokenizer, in the API server for each
request and in the engine core. `AutoParser` answers that call with the parser of the chosen family, so everything
after it (composition, gates, budgets, counters) is that family's own. This module imports the adapter of gpt_oss,
because vLLM fetches its HarmonyParser after it has looked the name up and before a tokenizer is there.
"""

from functools import cache, partial
from typing import Any

from vllm_reasoning_ext.core.record import NO_REASONING, Family
from vllm_reasoning_ext.engines.auto import chosen
from vllm_reasoning_ext.engines.logs import vllm_log
from vllm_reasoning_ext.engines.vllm import compose as vllm_compose
from vllm_reasoning_ext.engines.vllm import metrics as vllm_metrics
from vllm_reasoning_ext.engines.vllm.harmony import GptOssParser
from vllm_reasoning_ext.engines.vllm.parser import Composable, ReasoningExtParser, parser_class


class Choosing(Composable):
    """The type of `AutoParser`."""

    def __set_name__(cls, owner: type, name: str) -> None:  # noqa: N805 - a metaclass
        if name == "reasoning_parser_cls":
            Composable.composed = True
            vllm_compose.compose(owner)

    def __call__(cls, tokenizer: Any, *args: Any, **kwargs: Any) -> ReasoningExtParser:  # noqa: N805 - a metaclass
        made = _parser(tokenizer, None, args, kwargs)
        made.of_template = partial(_parser, tokenizer, args=args, kwargs=kwargs)
        return made


class AutoParser(ReasoningExtParser, metaclass=Choosing):
    """What vLLM finds under the names `auto` and `auto_ext`."""

    family = NO_REASONING


def _parser(tokenizer: Any, template: str | None, args: Any, kwargs: Any) -> ReasoningExtParser:
    record, tool_parsers = chosen(vllm_log, "vllm", tokenizer, template)
    made: ReasoningExtParser = adapter(record)(tokenizer, *args, **kwargs)
    made.tool_parsers = tuple(tool_parsers)
    return made


@cache
def adapter(record: Family) -> Any:
    """Give the parser class of a record, built in or derived."""
    if record.name == GptOssParser.family.name:
        return GptOssParser
    if record is not NO_REASONING:
        vllm_metrics.prepare(record.name)
    return parser_class(record)
