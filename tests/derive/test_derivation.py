"""A record read from a chat template: the packaged templates, renamed markers, silence, hostile templates."""

import pytest

pytest.importorskip("jinja2")

from tests.support.byte_tokenizer import FAMILIES as VOCABULARY_NAMES
from tests.support.byte_tokenizer import byte_tokenizer, template_text
from vllm_reasoning_ext import Splitter, derive_family, split
from vllm_reasoning_ext.derive import Choice, choose, derive
from vllm_reasoning_ext.derive.sandbox import Sandbox
from vllm_reasoning_ext.derive.served import choice_for, template_of
from vllm_reasoning_ext.errors import SetupError

FAMILY_OF = {"glm": "qwen3"}
PLAIN = "{% for message in messages %}{{ message.content }}\n{% endfor %}"
THINKING = """{%- for message in messages -%}
<|im_start|>{{ message.role }}
{% if message.reasoning_content %}<muse>
{{ message.reasoning_content }}
</muse>

{% endif %}{{ message.content }}
{%- for call in message.tool_calls or [] %}<do_call>
{{ call.function | tojson }}
</do_call>{% endfor %}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<muse>

</muse>

{% endif %}{%- endif -%}"""


@pytest.mark.parametrize("name", VOCABULARY_NAMES)
@pytest.mark.parametrize("with_tokenizer", [False, True])
def test_a_packaged_template_gives_its_family(name: str, with_tokenizer: bool) -> None:
    choice = choose(template_text(name), byte_tokenizer(name) if with_tokenizer else None)
    assert choice.family is not None
    assert choice.family.name == FAMILY_OF.get(name, name)
    assert choice.derivation is not None
    assert choice.derivation.builtin == choice.family.name
    assert choice.tool_parsers.vllm
    assert choice.tool_parsers.sglang


def test_a_template_of_no_family_gives_a_record() -> None:
    found = derive(THINKING)
    assert found.builtin is None
    record = found.family
    assert record is not None
    assert (record.opener, record.closer) == ("<muse>", "</muse>")
    assert record.tool_marker == "<do_call>"
    assert record.tool_closers == ("</do_call>",)
    assert "<|im_end|>" in record.end_of_sequence
    assert any(opener.strip() == "<|im_start|>assistant" for opener in record.turn_openers)
    assert found.starts["default"] == "undecided"
    assert found.starts["enable_thinking=false"] == "content"
    proven = {field for proof in found.proofs for field in proof.field.split(", ")}
    assert {"opener", "closer", "tool_marker", "turn_openers"} <= proven
    text = "<muse>\nSix.\n</muse>\n\nForty-two."
    assert split(text, record).reasoning == "Six."
    assert split(text, record).content == "Forty-two."


RENAMED = [
    ("qwen3", {"think>": "ponder>", "tool_call>": "invoke_now>"}),
    ("glm", {"think>": "rumination>", "tool_call>": "use_tool>"}),
    ("minimax", {"think>": "hmm>", "minimax:tool_call>": "acme:call>"}),
    ("minimax_m3", {"mm:think>": "zz:brood>"}),
    ("gemma4", {"channel>": "canal>"}),
    ("deepseekv32", {"think>": "mull>"}),
]


@pytest.mark.parametrize(("name", "renames"), RENAMED, ids=[name for name, _ in RENAMED])
def test_renamed_markers_leave_the_result_as_good(name: str, renames: dict[str, str]) -> None:
    template = template_text(name)
    before = derive(template).family
    assert before is not None

    def renamed(text: str) -> str:
        for old, new in renames.items():
            text = text.replace(old, new)
        return text

    changed = renamed(template)
    assert changed != template
    found = derive(changed)
    assert found.builtin is None
    after = found.family
    assert after is not None
    assert (after.opener, after.closer) == (renamed(before.opener), renamed(before.closer))
    assert after.opener != before.opener
    assert after.tool_marker == renamed(before.tool_marker)
    assert after.tool_closers == tuple(map(renamed, before.tool_closers))
    assert after.label == before.label


def test_a_template_without_reasoning_says_so() -> None:
    found = derive(PLAIN)
    assert found.family is None
    with pytest.raises(SetupError, match="shows no reasoning"):
        derive_family(PLAIN)
    choice = choose(PLAIN)
    assert choice.family is None
    (warning,) = choice.warnings
    assert "everything is content" in warning
    assert "--reasoning-parser NAME" in warning


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{% for message in %}", "no valid Jinja"),
        ("{{ raise_exception('No.') }}", "No."),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}x", "cannot be rendered"),
        ("{{ 'x' * 20000000 }}", "cannot be rendered"),
        ("{% for message in messages %}{{ ('y' * 1000) * 1500 }}{% endfor %}", "cannot be rendered"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "cannot be rendered"),
        ("{{ undefined_function() }}", "undefined_function"),
    ],
    ids=["syntax", "raises", "divides", "loops", "large", "larger", "escapes", "undefined"],
)
def test_a_hostile_or_failing_template_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch, template: str, problem: str
) -> None:
    monkeypatch.setattr("vllm_reasoning_ext.derive.sandbox.CPU_SECONDS", 2)
    monkeypatch.setattr(
        Sandbox.__init__, "__kwdefaults__", {**(Sandbox.__init__.__kwdefaults__ or {}), "cpu_seconds": 2}
    )
    with pytest.raises(SetupError, match="chat template") as caught:
        derive(template)
    assert problem in str(caught.value)
    assert "--reasoning-parser NAME" in str(caught.value)


def test_a_template_cannot_reach_the_machine(tmp_path: object) -> None:
    with pytest.raises(SetupError):
        derive("{{ cycler.__init__.__globals__.os.system('true') }}")


# The choice.


def test_a_name_never_outranks_the_template() -> None:
    choice = choose(template_text("qwen3"), name="DeepSeek-V3.2")
    assert choice.family is not None
    assert choice.family.name == "qwen3"


@pytest.mark.parametrize(
    ("vocabulary", "config", "name", "family"),
    [
        ("deepseekv32", None, None, "deepseekv32"),
        (None, {"model_type": "gpt_oss"}, None, "gpt_oss"),
        (None, None, "MiniMax-M3", "minimax_m3"),
        (None, {"model_type": "llama"}, "llama", None),
    ],
)
def test_without_a_template_vocabulary_then_config_then_name_decide(
    vocabulary: str | None, config: dict[str, str] | None, name: str | None, family: str | None
) -> None:
    tokenizer = byte_tokenizer(vocabulary) if vocabulary else None
    choice: Choice = choose(None, tokenizer, config, name)
    assert (choice.family.name if choice.family else None) == family
    assert "there is no chat template" in choice.reason


class Words:
    """A tokenizer of which nothing but its vocabulary is known."""

    def __init__(self, *texts: str) -> None:
        self._vocabulary = {text: number for number, text in enumerate(texts)}

    def get_vocab(self) -> dict[str, int]:
        return self._vocabulary


def test_a_vocabulary_that_tells_little_is_doubted() -> None:
    choice = choose(None, Words("<think>", "</think>"))
    assert choice.family is not None
    (warning,) = choice.warnings
    assert "name one if answers or calls go wrong" in warning
    assert not choose(None, Words("[THINK]", "[/THINK]", "[TOOL_CALLS]")).warnings


def test_a_vocabulary_of_several_families_is_an_error_that_names_them() -> None:
    with pytest.raises(SetupError, match="fits several families") as caught:
        choose(None, Words("<think>", "</think>", "<tool_call>", "</tool_call>"))
    assert "qwen3" in caught.value.found
    assert "--reasoning-parser" in caught.value.remedy
    assert choose(None, Words("<think>", "</think>", "<tool_call>"), name="Reka-Edge").family is not None


def test_the_choice_is_made_once_for_a_tokenizer_and_template(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = byte_tokenizer.__wrapped__("qwen3")
    first = choice_for(tokenizer)
    monkeypatch.setattr("vllm_reasoning_ext.derive.served.choose", None)
    assert choice_for(tokenizer) is first
    with pytest.raises(TypeError):
        choice_for(tokenizer, PLAIN)


def test_a_tokenizer_with_several_templates_gives_the_default() -> None:
    tokenizer = byte_tokenizer.__wrapped__("qwen3")
    tokenizer.chat_template = {"tool_use": "x", "default": PLAIN}
    assert template_of(tokenizer) == PLAIN
    tokenizer.chat_template = None
    assert template_of(tokenizer) is None


@pytest.mark.parametrize("name", VOCABULARY_NAMES)
def test_auto_in_the_library(name: str) -> None:
    tokenizer = byte_tokenizer(name)
    assert Splitter("auto", tokenizer=tokenizer).family == FAMILY_OF.get(name, name)
    assert Splitter("auto", chat_template=template_text(name)).family == FAMILY_OF.get(name, name)


def test_auto_where_nothing_reasons_is_all_content() -> None:
    text = "\n\n<think>a</think>b "
    delta = split(text, "auto", chat_template=PLAIN)
    assert (delta.reasoning, delta.content) == ("", text)
    streamed = Splitter("auto", chat_template=PLAIN)
    got = [streamed.feed(char).content for char in text]
    assert "".join([*got, streamed.finish().content]) == text
    assert streamed.start.kind == "content"


def test_auto_needs_something_to_go_by() -> None:
    with pytest.raises(ValueError, match="give tokenizer= or chat_template="):
        Splitter("auto")
