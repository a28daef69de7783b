"""The kit finds what is wrong: templates broken on purpose, splitters broken on purpose; both renderers agree."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("jinja2")

from vllm_reasoning_ext.conformance import conform
from vllm_reasoning_ext.conformance.conform import Kit, run
from vllm_reasoning_ext.conformance.modes import modes_of
from vllm_reasoning_ext.conformance.render import Renderer, RenderError, read_template
from vllm_reasoning_ext.conformance.starts import near_miss
from vllm_reasoning_ext.conformance.templates import template_names, template_path
from vllm_reasoning_ext.core.events import Delta, Event, Kind
from vllm_reasoning_ext.core.families import get_family
from vllm_reasoning_ext.core.splitter import Splitter
from vllm_reasoning_ext.errors import SetupError

QWEN = template_path("qwen3").read_text(encoding="utf-8")


def problems(kit: Kit, mode: str, output: str) -> tuple[str, ...]:
    """Try one cell."""
    return kit.cell(next(each for each in kit.modes if each.name == mode), output).problems


@pytest.mark.parametrize(
    ("family", "change", "mode", "output", "says"),
    [
        pytest.param(
            "qwen3", ("<think>\\n", "<ponder>\\n"), "user", "own form", "the reasoning should be", id="foreign opener"
        ),
        pytest.param(
            "qwen3", ("<|im_start|>assistant\\n", "<|begin|>bot\\n"), "user", "start", "turn openers", id="foreign turn"
        ),
        pytest.param(
            "minimax", ("", ""), "user", "start", "is it a template of this family?", id="template of another family"
        ),
        pytest.param(
            "qwen3",
            ("{{- said -}}", '{{- " " ~ said -}}'),
            "user",
            "own form",
            "put back and rendered again it has",
            id="blanks that grow with every turn",
        ),
        pytest.param(
            "qwen3",
            ('"\\n</think>\\n\\n" -}}', '"\\n</think>\\n\\nSo: " -}}'),
            "user",
            "own form",
            "the content should be",
            id="words of the template's own in the answer",
        ),
    ],
)
def test_a_broken_template_is_found(family: str, change: tuple[str, str], mode: str, output: str, says: str) -> None:
    broken = QWEN.replace(*change) if change[0] else QWEN
    assert any(says in problem for problem in problems(Kit(family, broken), mode, output))
    assert problems(Kit("qwen3", QWEN), mode, output) == ()


ANSWER_FRAMED = {
    # An empty answer before each call, framed by the answer's own markers.
    "cohere": """\
{%- for m in messages -%}
{%- if m.role == "assistant" -%}
<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>{{ m.reasoning_content }}<|END_THINKING|>\
{%- if m.tool_calls -%}<|START_RESPONSE|><|END_RESPONSE|><|START_ACTION|>[{"tool_call_id": "0", \
"tool_name": "{{ m.tool_calls[0].function.name }}", "parameters": {{ m.tool_calls[0].function.arguments | tojson }}}]\
<|END_ACTION|>{%- else -%}<|START_RESPONSE|>{{ m.content }}<|END_RESPONSE|>{%- endif -%}<|END_OF_TURN_TOKEN|>
{%- else -%}<|START_OF_TURN_TOKEN|><|USER_TOKEN|>{{ m.content }}<|END_OF_TURN_TOKEN|>{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{%- endif -%}""",
    # Each message of a turn has a header of its own.
    "solar": """\
{%- for m in messages -%}
{%- if m.role == "assistant" -%}
<|begin|>assistant<|think|>{{ m.reasoning_content }}<|end|><|begin|>assistant
{%- if m.tool_calls -%}<|tool_calls|><|tool_call:begin|>a1<|tool_call:name|>{{ m.tool_calls[0].function.name }}\
<|tool_call:args|>{{ m.tool_calls[0].function.arguments | tojson }}<|tool_call:end|><|calls|>
{%- else -%}<|content|>{{ m.content }}<|end|>{%- endif -%}
{%- else -%}<|begin|>user<|content|>{{ m.content }}<|end|>{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<|begin|>assistant{%- endif -%}""",
}


@pytest.mark.parametrize("family", ANSWER_FRAMED)
def test_markers_of_an_empty_answer_before_a_call_are_no_content(family: str) -> None:
    kit = Kit(family, ANSWER_FRAMED[family])
    tools = next(mode for mode in kit.modes if mode.name == "tools")
    cell = kit.cell(tools, "own form, call")
    assert cell.problems == ()
    assert kit.cell(tools, "own form").problems == ()
    content = "".join(text for kind, text in cell.split if kind in ("content", "tool"))
    assert content.startswith(get_family(family).tool_marker)


HAND_WRITTEN = {
    "no markers": "{% for m in messages %}{{ m.content }}\n{% endfor %}",
    "nothing": "",
    "calls in words": (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}"
        "{{ c.function.name }}({{ c.function.arguments | tojson }}){% endfor %}\n{% endfor %}assistant: "
    ),
    "refuses": "{{ raise_exception('never') }}",
}
FOREIGN = {name: template_path(name).read_text(encoding="utf-8") for name in template_names()} | HAND_WRITTEN


@pytest.mark.parametrize("template", FOREIGN)
@pytest.mark.parametrize("family", ["gpt_oss", "muse_glimmer"])
def test_a_template_of_another_family_gives_wrong_cells_and_never_raises(family: str, template: str) -> None:
    if template == family:
        return
    kit = Kit(family, FOREIGN[template], checked=_CHECKED.setdefault(family, {}))
    rows = run(kit, kit.modes)
    cells = [cell for row in rows for cell in row.cells.values()]
    if template == "refuses":
        assert (cells, {row.start for row in rows}) == ([], {None})
        return
    wrong = {cell.output for cell in cells if cell.problems}
    assert "start" in wrong or "own form" in wrong
    # Where the template writes the call at all, it lacks what names a tool in this family (SPEC 5.2, 5.3).
    calls = [cell for cell in cells if cell.output == "own form, call"]
    assert all(cell.problems for cell in calls)
    assert {"to=" in problem for cell in calls for problem in cell.problems} <= {True}


_CHECKED: dict[str, dict[Any, Any]] = {}


@pytest.mark.parametrize(
    ("opener", "ending", "says"),
    [
        ("<|im_start|>assistant\n", "<|im_start|>assistant", "one newline short of the turn opener"),
        ("<|im_start|>assistant\n", "<|im_start|>assistant ", "which is not the turn opener"),
        ("<|im_start|>assistant\n", "<|im_start|>Assistant\n", "which is not the turn opener"),
        ("<|im_start|>assistant\n", "<|im_start|> assistant\n", "which is not the turn opener"),
        ("<|im_start|>assistant\n", "<|im_start|>assistant\n", ""),
        ("<|im_start|>assistant\n", "<|im_start|>assistant\n\n", ""),
        ("<|im_start|>assistant\n", "<|im_start|>assistant\n<think>\n", ""),
        ("<|im_start|>assistant\n", "assistant\n", ""),
    ],
)
def test_a_turn_opener_that_is_missed_by_little_is_named(opener: str, ending: str, says: str) -> None:
    before = f"{opener}Hello.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
    found = near_miss(before + ending, (opener, "<|assistant|>"))
    assert says in found
    assert bool(found) is bool(says)
    assert not found or repr(ending) in found


def test_a_near_miss_is_a_wrong_start_even_with_earlier_turns_in_the_prompt() -> None:
    broken = QWEN.replace("<|im_start|>assistant\\n", "<|im_start|>assistant")
    assert broken != QWEN
    for mode in ("user", "history"):
        found = problems(Kit("qwen3", broken), mode, "start")
        assert any("one newline short of the turn opener '<|im_start|>assistant\\n'" in each for each in found)


SWITCH = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


@pytest.mark.parametrize(
    ("more", "noted"),
    [
        ("{% if enable_thinking %}{% endif %}", True),
        ("{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}", False),
    ],
)
def test_a_switch_that_changes_no_prompt_is_noted(more: str, noted: bool) -> None:
    kit = Kit("qwen3", SWITCH + more)
    found = {row.mode.name: row.cells["start"].note for row in run(kit, kit.modes, "start") if row.start is not None}
    for mode in ("user enable_thinking=false", "user enable_thinking=true"):
        assert ("the same with every enable_thinking" in found[mode]) is noted
    assert not found["user"]


def _broken(spoil: Callable[[Delta], Iterable[Event]]) -> type[Splitter]:
    class Broken(Splitter):
        __slots__ = ()

        def feed(self, text: str, token_ids: Any = None) -> Delta:
            return Delta(tuple(spoil(super().feed(text, token_ids))))

    return Broken


def _raises(_: Delta) -> Iterable[Event]:
    raise ZeroDivisionError("spoiled")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda delta: [e for e in delta.events if e.kind is not Kind.MARKER], "lossless law"),
        (lambda delta: [e._replace(kind=Kind.CONTENT) for e in delta.events], "the content should be"),
        (lambda delta: [e for e in delta.events if len(e.text) > 1], "the reasoning should be"),
        (_raises, "raised ZeroDivisionError: spoiled"),
    ],
    ids=["drops markers", "shows markers", "drops single characters", "raises"],
)
def test_a_broken_splitter_is_found(
    spoil: Callable[[Delta], Iterable[Event]], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conform, "Splitter", _broken(spoil))
    assert any(says in problem for problem in problems(Kit("qwen3", QWEN), "user", "thought, answer"))


@pytest.mark.parametrize("name", template_names())
def test_jinja2_alone_renders_as_transformers_does(name: str) -> None:
    text = template_path(name).read_text(encoding="utf-8")
    ours, theirs = Renderer(text, transformers=False), Renderer(text)
    assert (ours.through.split()[0], theirs.through.split()[0]) == ("jinja2", "transformers")
    rendered = 0
    for mode in modes_of(text, ours.variables(), ("<think>", "</think>")):
        found = []
        for renderer in (ours, theirs):
            try:
                found.append(renderer.render(mode.messages, tools=mode.tools, kwargs=mode.kwargs, go_on=mode.go_on))
            except RenderError:
                found.append(None)
        assert found[0] == found[1], mode.name
        rendered += found[0] is not None
    assert rendered >= 8


@pytest.mark.parametrize(
    ("template", "ending"),
    [
        ("{% generation %}{{ messages[0].content }}{% endgeneration %}", "What is six times seven?"),
        ("{% for m in messages %}{% if loop.last %}{% break %}{% endif %}{{ m.content }}{% endfor %}|", "|"),
        ("{{ messages[0] | tojson }}", '{"role": "user", "content": "What is six times seven?"}'),
        ("{{ bos_token }}{{ revision }}", "<s>9"),
    ],
)
def test_what_templates_of_engines_may_use(template: str, ending: str) -> None:
    for transformers in (True, False):
        renderer = Renderer(template, {"bos_token": "<s>"}, {"revision": "9"}, transformers=transformers)
        assert renderer.render([{"role": "user", "content": "What is six times seven?"}]) == ending


def test_modes_follow_the_variables_that_a_template_reads() -> None:
    names = {mode.name for mode in Kit("qwen3", QWEN, kwargs={"revision": "3.8"}).modes}
    assert {"user enable_thinking=false", "tool-result enable_thinking=true", "user reasoning_effort=xhigh"} <= names
    plain = {mode.name for mode in Kit("qwen3", "{{ messages[0].content }}").modes}
    assert plain == {
        *("user", "system", "tools", "tool-result", "history", "quotes"),
        *("continue-answer", "continue-after-thought", "continue-thought"),
    }


def test_arguments_go_as_json_text_to_a_template_that_wants_it() -> None:
    text = QWEN.replace("value(function.arguments)", '"" ~ function.arguments.upper()')
    kit = Kit("qwen3", text)
    assert '{"CITY": "OSLO"}' in kit.prompt(next(mode for mode in kit.modes if mode.name == "tool-result"))


def test_a_refused_mode_keeps_the_templates_own_words() -> None:
    kit = Kit("qwen3", '{{- raise_exception("no tools here") if tools else "" -}}' + QWEN)
    refused = {row.mode.name: row.refused for row in run(kit, kit.modes) if row.start is None}
    assert "no tools here" in refused["tools"]
    assert "user" not in refused


def test_a_switch_that_the_template_ignores_is_noted() -> None:
    kit = Kit("qwen3", QWEN, kwargs={"revision": "2507-thinking"})
    mode = next(mode for mode in kit.modes if mode.name == "user enable_thinking=false")
    cell = kit.cell(mode, "start")
    assert (cell.problems, "ignores the switch" in cell.note) == ((), True)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("t.jinja", "A", ("A", {})),
        ("t.json", '{"chat_template": "B", "bos_token": {"content": "<s>"}}', ("B", {"bos_token": "<s>"})),
        ("chat_template.jinja", "C", ("C", {})),
        ("tokenizer_config.json", '{"chat_template": "D", "eos_token": "</s>"}', ("D", {"eos_token": "</s>"})),
        (
            "tokenizer_config.json",
            '{"chat_template": [{"name": "tool_use", "template": "E"}, {"name": "default", "template": "F"}]}',
            ("F", {}),
        ),
    ],
)
def test_templates_are_read_where_they_lie(tmp_path: Path, name: str, text: str, found: tuple[str, Any]) -> None:
    (tmp_path / name).write_text(text)
    assert read_template(tmp_path if name.startswith(("chat", "tokenizer")) else tmp_path / name) == found


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: read_template(path), "holds no chat template"),
        (lambda path: read_template(path / "nowhere.jinja"), "cannot read the template"),
        (lambda path: Kit("qwen3", "{% if %}"), "is no valid Jinja"),
        (lambda path: template_path("qwen4"), "no packaged template is called qwen4"),
    ],
)
def test_set_up_faults_name_the_remedy(tmp_path: Path, make: Callable[[Path], Any], problem: str) -> None:
    with pytest.raises(SetupError, match=problem) as caught:
        make(tmp_path)
    assert caught.value.remedy
