"""Conversations of sentinel words, rendered in every way that templates distinguish (SPEC section 8, step 2)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext.derive.sandbox import Sandbox

# Plain words: no template tests for them, and neither JSON nor a markup escape changes them.
USER, NEXT_USER, SYSTEM = "Zquser1", "Zquser2", "Zqsystem1"
THOUGHT, ANSWER = "Zqreason1", "Zqcontent1"
# Digits keep them apart from the bare words that stand between markers.
FUNCTION, PARAMETER = "zq_tool1", "zq_city1"
ARGUMENTS: Final = ("Zqarg1", "Zqarg2")
RESULTS: Final = ("Zqresult1", "Zqresult2")
# Nine letters and digits: Mistral's templates refuse any other form of id.
IDS: Final = ("Zqcallid1", "Zqcallid2")
DUMPED: Final = "zqdumped"
"""Stands in every structure that a template must read and not print: where it shows, the template did not read it."""
BOS, EOS = "<BOS>", "<EOS>"
"""What stands for a tokenizer's special tokens where there is no tokenizer."""

FIELDS: Final = ("reasoning_content", "reasoning", "thinking")
_KNOWN_FIELDS: Final = frozenset(
    """role content tool_calls tool_call_id name function arguments id type text image image_url video audio parameters
    description properties required items get split strip lstrip rstrip startswith endswith lower upper replace append
    update keys values first last index index0 length revindex0 previtem nextitem loop self string number title enum
    tool_call_name documents json join format is_error results output blocks calls""".split()  # noqa: SIM905
)
_STANDARD_VARIABLES: Final = frozenset(
    """messages tools documents add_generation_prompt bos_token eos_token pad_token unk_token namespace range dict
    raise_exception strftime_now loop caller varargs kwargs""".split()  # noqa: SIM905
)
_EXTRA_FIELDS_MAX: Final = 16
_MODES_MAX: Final = 40

TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": FUNCTION,
        "description": "Tell the weather.",
        "parameters": {
            "type": "object",
            "properties": {PARAMETER: {"type": "string", "description": "A city."}},
            "required": [PARAMETER],
        },
    },
}

Message = dict[str, Any]


class Scene(NamedTuple):
    """One rendering that succeeded.

    Attributes:
        text: what the template wrote.
        said: the conversation and its variables, in words.
    """

    text: str
    said: str

    def between(self, left: str, right: str) -> str | None:
        """Cut out what stands between two sentinels; None where they do not follow each other."""
        start = self.text.find(left)
        if start < 0:
            return None
        start += len(left)
        end = self.text.find(right, start)
        return None if end < 0 else self.text[start:end]

    def after(self, sentinel: str) -> str | None:
        """Cut out what follows the last `sentinel`."""
        start = self.text.rfind(sentinel)
        return None if start < 0 else self.text[start + len(sentinel) :]


class Carrier(NamedTuple):
    """A way in which a message carries reasoning: a field of it, or a typed part of its content."""

    name: str
    kind: str  # "field", "part" or "blocks"

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}" if self.kind != "blocks" else "content blocks"


class Mode(NamedTuple):
    """Template variables beside the conversation; `()` is the default mode."""

    values: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return ", ".join(f"{name}={json.dumps(value)}" for name, value in self.values) or "default"

    @property
    def off(self) -> bool:
        """Tell whether its value is one that switches things off."""
        return any(value in (False, 0, "none", "disabled", "off", "no_think") for _, value in self.values)


DEFAULT: Final = Mode()


class Scenes:
    """Renders sentinel conversations with one template.

    Args:
        sandbox: the template.
        tokens: its tokenizer's special tokens (`bos_token`, ...); placeholders stand for missing ones.
        fixed: template variables that every rendering gets.
    """

    def __init__(self, sandbox: Sandbox, tokens: Mapping[str, str], fixed: Mapping[str, Any]) -> None:
        self.sandbox = sandbox
        self.tokens = {"bos_token": BOS, "eos_token": EOS, **tokens}
        self.fixed = dict(fixed)
        self.errors: dict[str, str] = {}
        self.mutable = False

    def modes(self) -> list[Mode]:
        """List the modes: the default one, and each variable with each value that can matter."""
        seen = self.sandbox.seen
        found = [DEFAULT]
        # A variable that the template also sets is seldom one that a caller sets: those come last.
        for name in sorted(
            seen.variables - _STANDARD_VARIABLES - set(self.fixed), key=lambda name: (name in seen.assigned, name)
        ):
            compared = [value for value in seen.compared.get(name, ()) if isinstance(value, str | int)]
            words = [value for value in compared if isinstance(value, str) and value]
            values: list[Any] = [*words, *(["none"] if "effort" in name else [])] if words else [True, False]
            values += [0, *compared] if any(type(value) is int for value in compared) else []
            found += [Mode(((name, value),)) for value in _distinct(values)]
        return found[:_MODES_MAX]

    def carriers(self) -> list[Carrier]:
        """List how reasoning can be handed to the template, the usual ways first."""
        seen = self.sandbox.seen
        further = [name for name in seen.fields if name not in _KNOWN_FIELDS and name not in FIELDS]
        kinds = [value for value in seen.compared.get("type", ()) if isinstance(value, str)]
        found = [Carrier(name, "field") for name in FIELDS]
        found += [Carrier(kind, "part") for kind in dict.fromkeys(["thinking", *kinds]) if kind not in _KNOWN_FIELDS]
        found.append(Carrier("blocks", "blocks"))
        return [*found, *(Carrier(name, "field") for name in further[:_EXTRA_FIELDS_MAX])]

    def render(
        self,
        messages: Sequence[Message],
        said: str,
        *,
        mode: Mode = DEFAULT,
        tools: bool = False,
        generate: bool = False,
    ) -> Scene | None:
        """Render; None where the template refuses.

        Args:
            messages: the conversation.
            said: what it is, in words.
            mode: template variables.
            tools: whether the one function is on offer.
            generate: whether the prompt is to end where the assistant begins.
        """
        context: dict[str, Any] = {
            "messages": list(messages),
            "tools": [TOOL] if tools else None,
            "documents": None,
            "add_generation_prompt": generate,
            **self.tokens,
            **self.fixed,
            **dict(mode.values),
        }
        done = self.sandbox.render(context, mutable=self.mutable)
        words = f"{said}, {mode}{', tools' if tools else ''}{', generation prompt' if generate else ''}"
        if done.error:
            self.errors.setdefault(words, done.error)
            return None
        return Scene(done.text, words)

    def either(
        self, messages: Sequence[Message], said: str, *, mode: Mode = DEFAULT, generate: bool = False
    ) -> Iterator[Scene]:
        """Render without tools and with them."""
        for tools in (False, True):
            scene = self.render(messages, said, mode=mode, tools=tools, generate=generate)
            if scene is not None:
                yield scene


def user(text: str = USER) -> Message:
    """Build a user's message."""
    return {"role": "user", "content": text}


def assistant(carrier: Carrier | None, content: str | None = ANSWER, calls: Sequence[Message] = ()) -> Message:
    """Build an assistant's message.

    Args:
        carrier: how it carries the thought; None for none.
        content: its answer.
        calls: its tool calls.
    """
    message: Message = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = list(calls)
    if carrier is None:
        return message
    if carrier.kind == "field":
        message[carrier.name] = THOUGHT
    elif carrier.kind == "part":
        thought = {"type": carrier.name, "text": THOUGHT, carrier.name: THOUGHT, "content": THOUGHT, DUMPED: DUMPED}
        message["content"] = [thought, *([{"type": "text", "text": content}] if content else [])]
    else:
        message = {"role": "assistant", "content": {"blocks": _blocks(content, calls)}}
    return message


def _blocks(content: str | None, calls: Sequence[Message]) -> list[Message]:
    found: list[Message] = [{"type": "thoughts", "text": THOUGHT, DUMPED: DUMPED}]
    if calls:
        named = [{"name": c["function"]["name"], "arguments": c["function"]["arguments"]} for c in calls]
        found.append({"type": "tool_calls", "calls": named})
    return [*found, *([{"type": "response", "text": content}] if content else [])]


def calls_of(count: int, *, as_text: bool) -> list[Message]:
    """Build tool calls; their arguments are a mapping or JSON text."""
    found = []
    for number in range(count):
        arguments: Any = {PARAMETER: ARGUMENTS[number]}
        if as_text:
            arguments = json.dumps(arguments)
        call = {"id": IDS[number], "type": "function", "function": {"name": FUNCTION, "arguments": arguments}}
        found.append(call)
    return found


def results_of(count: int) -> list[Message]:
    """Build the tool messages that answer `count` calls."""
    return [
        {"role": "tool", "name": FUNCTION, "tool_call_id": IDS[number], "content": RESULTS[number]}
        for number in range(count)
    ]


def _distinct(values: Sequence[Any]) -> list[Any]:
    """Drop repeated values; 0 and False, which are equal in Python, are two."""
    return [json.loads(text) for text in dict.fromkeys(map(json.dumps, values))]
