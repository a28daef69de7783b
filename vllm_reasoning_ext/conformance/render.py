"""Rendering a chat template as an engine does: through transformers, or through jinja2 with the same settings."""

import difflib
import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from vllm_reasoning_ext.errors import SetupError

REMEDY: Final = "pip install 'vllm-reasoning-ext[conformance]'"
REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "thinking")
"""The names under which templates read a message's reasoning."""

_TAG: Final = "\ue000continue-here\ue000 "
"""Marks where a continued message ends; its trailing blank shows whether the template trims."""


class RenderError(Exception):
    """The template refused a conversation; its own words."""


def read_template(where: str | Path) -> tuple[str, dict[str, str]]:
    """Read a chat template.

    Args:
        where: a Jinja file, a JSON file with a `chat_template` key, or a model directory.

    Returns:
        the template's text, and the special tokens (`bos_token`, ...) that stand beside it.

    Raises:
        SetupError: there is no template.
    """
    path = Path(where)
    if path.is_dir():
        text, tokens = read_model_template(path)
        if text:
            return text, tokens
        raise SetupError(
            f"{path} holds no chat template",
            f"{path}: chat_template.jinja, chat_template.json, tokenizer_config.json",
            "pass --template FILE; `vllm-reasoning-ext template NAME` prints one of the package's own",
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"cannot read the template {path}: {error}", str(path), "give a chat template") from error
    if text.startswith("\ufeff"):
        raise SetupError(
            f"{path} begins with a UTF-8 byte order mark, which engines would write into every prompt",
            str(path),
            "save it as UTF-8 without one",
        )
    if path.suffix == ".json":
        config = _json(text)
        return _chosen(config.get("chat_template")) or text, _tokens(config)
    return text, {}


def read_model_template(path: Path) -> tuple[str, dict[str, str]]:
    """Read the template of a model directory; "" where it has none."""
    config = _json(_text(path / "tokenizer_config.json"))
    text = _text(path / "chat_template.jinja")
    text = text or _chosen(_json(_text(path / "chat_template.json")).get("chat_template"))
    return text or _chosen(config.get("chat_template")), _tokens(config)


class Renderer:
    """Renders conversations with one template.

    Args:
        template: its text.
        tokens: special tokens it may name.
        kwargs: variables for every rendering (`revision`, ...).
        transformers: False renders with jinja2 alone, though transformers is there.

    Raises:
        SetupError: jinja2 is missing, or the template is no Jinja.
    """

    def __init__(
        self,
        template: str,
        tokens: Mapping[str, str] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        *,
        transformers: bool = True,
    ) -> None:
        if importlib.util.find_spec("jinja2") is None:
            raise SetupError("rendering a chat template needs jinja2", "this Python environment", REMEDY)
        import jinja2

        self.template = template
        self._kwargs = {**(tokens or {}), **(kwargs or {})}
        self._bare = _bare_tokenizer() if transformers else None
        try:
            self._compiled = _environment().from_string(template)
        except jinja2.TemplateSyntaxError as error:
            raise SetupError(
                f"the chat template is no valid Jinja: {error.message}", f"line {error.lineno}", "correct that line"
            ) from error

    @property
    def through(self) -> str:
        """What renders: "transformers VERSION" or "jinja2 VERSION"."""
        name = "jinja2" if self._bare is None else "transformers"
        return f"{name} {importlib.import_module(name).__version__}"

    def variables(self) -> frozenset[str]:
        """List the variables the template reads."""
        from jinja2 import meta

        return frozenset(meta.find_undeclared_variables(_environment().parse(self.template)))

    def check_read(self, names: Iterable[str], others: Iterable[str] = ()) -> None:
        """Check that the template reads some variables: a misspelled one would be tried in silence.

        Args:
            names: the variables that were set.
            others: further words that may have been meant, to suggest.

        Raises:
            SetupError: it does not read one of them.
        """
        read = sorted(self.variables() - {"messages", "tools", "add_generation_prompt"})
        for name in names:
            if name not in read:
                near = difflib.get_close_matches(name, [*others, *read], n=1)
                hint = f"did you mean {near[0]}? " if near else ""
                raise SetupError(
                    f"the template reads no variable {name}", name, f"{hint}it reads {', '.join(read) or 'none'}"
                )

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        generate: bool = True,
        go_on: str = "",
    ) -> str:
        """Render a conversation.

        Args:
            messages: the conversation.
            tools: the functions on offer.
            kwargs: template variables (`enable_thinking`, ...).
            generate: end in the generation prompt.
            go_on: the field of the last message that the model is to continue ("content", ...); then no
                generation prompt is asked for.

        Returns:
            the prompt.

        Raises:
            RenderError: the template raised; the message is its own.
        """
        every = {**self._kwargs, **(kwargs or {})}
        try:
            if self._bare is None:
                return self._by_jinja(messages, tools, every, generate, go_on)
            rendered: str = self._bare.apply_chat_template(
                [dict(message) for message in messages],
                chat_template=self.template,
                tools=[dict(tool) for tool in tools] if tools else None,
                tokenize=False,
                add_generation_prompt=generate and not go_on,
                continue_final_message=(True if go_on == "content" else go_on) if go_on else False,
                **every,
            )
        except RenderError:
            raise
        except Exception as error:  # a template may raise anything: TemplateError, TypeError, KeyError, ...
            first = (str(error).strip().splitlines() or [""])[0]
            raise RenderError(f"{type(error).__name__}: {first}"[:160]) from error
        return rendered

    def _by_jinja(
        self, messages: Sequence[Mapping[str, Any]], tools: Any, kwargs: Mapping[str, Any], generate: bool, go_on: str
    ) -> str:
        chat = [_with_every_field(message) for message in messages]
        final = ""
        if go_on:
            fields = REASONING_FIELDS if go_on in REASONING_FIELDS else (go_on,)
            final = str(chat[-1].get(go_on) or "")
            if not any(field in self.template for field in fields):
                raise RenderError(f"the template does not read the field {go_on}")
            for field in fields:
                if field in chat[-1]:
                    chat[-1][field] = final + _TAG
        text: str = self._compiled.render(
            messages=chat, tools=list(tools) if tools else None, add_generation_prompt=generate and not go_on, **kwargs
        )
        if not go_on:
            return text
        at = text.rfind(_TAG.strip())
        if at < 0 or final.strip() not in text:
            raise RenderError("the final message does not appear in the prompt, so it cannot be continued")
        return text[:at] if text.startswith(_TAG, at) else text[:at].rstrip()


def _with_every_field(message: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a message; its reasoning stands under every name, as transformers does it."""
    thought = next((message[field] for field in REASONING_FIELDS if message.get(field) is not None), None)
    if thought is None:
        return dict(message)
    return {**message, **{field: message.get(field, thought) for field in REASONING_FIELDS}}


def _bare_tokenizer() -> Any:
    """Make a tokenizer without a vocabulary, whose `apply_chat_template` is transformers' own."""
    if importlib.util.find_spec("transformers") is None or importlib.util.find_spec("tokenizers") is None:
        return None
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()))


@cache
def _environment() -> Any:
    """Build the sandbox in the settings of transformers' `apply_chat_template`."""
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """`{% generation %}`: marks what the model wrote, for training; here its body alone counts."""

        tags = {"generation"}  # noqa: RUF012 - the name and form jinja2 asks for

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body).set_lineno(line)

    def refuse(message: str) -> None:
        raise TemplateError(message)

    def to_json(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **options)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment


def _chosen(template: Any) -> str:
    """Choose among named templates: the default one, else the first."""
    if isinstance(template, list):
        named = {str(t.get("name", "")): str(t.get("template", "")) for t in template if isinstance(t, dict)}
        return named.get("default") or next(iter(named.values()), "")
    return template if isinstance(template, str) else ""


def _tokens(config: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for name, value in config.items():
        content = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(content, str):
            found[name] = content
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
