"""A pytest plugin: one test a mode and output of a chat template, for the tests of a model repository.

    @pytest.mark.reasoning_conformance(family="qwen3", template="chat_template.jinja", tokenizer=".")
    def test_template(reasoning_case):
        reasoning_case.check()

Nothing is imported until a test asks for `reasoning_case`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from vllm_reasoning_ext.conformance.conform import Kit
    from vllm_reasoning_ext.conformance.modes import Mode

MARK: Final = "reasoning_conformance"
FIXTURE: Final = "reasoning_case"
ARGUMENTS: Final = ("family", "template", "tokenizer")
"""The marker's own; every other keyword is a variable of the template."""

HELP: Final = (
    f"{MARK}(family, template, tokenizer=None, **variables): try the chat template against the family's parser; "
    f"the test takes the fixture {FIXTURE} and calls {FIXTURE}.check(). Paths are relative to the test file; "
    "variables (revision, ...) go to the template in every mode."
)


class ReasoningCase:
    """One mode and output of a template.

    Attributes:
        mode, output: which.
    """

    def __init__(self, kit: "Kit", mode: "Mode", output: str, refused: str = "") -> None:
        self.mode, self.output = mode.name, output
        self._kit, self._mode, self._refused = kit, mode, refused

    def check(self) -> None:
        """Fail the test if the cell is wrong; skip it if the template refuses the mode."""
        if self._refused:
            pytest.skip(f"the template refuses this mode: {self._refused}")
        from vllm_reasoning_ext.errors import SetupError

        try:
            cell = self._kit.cell(self._mode, self.output)
        except SetupError as error:
            pytest.fail(str(error), pytrace=False)
        if cell.problems:
            lines = [f"{cell.mode} x {cell.output}", *cell.problems, f"the output was {cell.text!r}"]
            pytest.fail("\n".join(lines), pytrace=False)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", HELP)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each mode and output."""
    if FIXTURE not in metafunc.fixturenames:
        return
    mark = metafunc.definition.get_closest_marker(MARK)
    if mark is None:
        raise _misused(metafunc, f"it takes {FIXTURE}: mark it with @pytest.mark.{HELP}")
    kit = _kit(metafunc, *_named(metafunc, mark))
    missing = kit.missing_ids() if kit.family.required else []
    if missing:
        raise _misused(
            metafunc,
            f"the tokenizer has no single id for {', '.join(missing)}; use the tokenizer the model came with",
        )
    cases = list(_cases(kit))
    metafunc.parametrize(FIXTURE, cases, ids=[f"{case.mode} | {case.output}" for case in cases])


def _misused(metafunc: pytest.Metafunc, problem: str) -> Exception:
    """Make the error that pytest prints as it is, without a traceback through pytest and this plug-in."""
    return pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: {problem}")


def _named(metafunc: pytest.Metafunc, mark: pytest.Mark) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tell the marker's own arguments from the template's variables."""
    if len(mark.args) > len(ARGUMENTS):
        raise _misused(metafunc, f"too many arguments without a name: {HELP}")
    own = dict(zip(ARGUMENTS, mark.args, strict=False))
    twice = next((name for name in own if name in mark.kwargs), None)
    if twice is not None:
        raise _misused(metafunc, f"{twice} is given twice: {HELP}")
    own |= {name: value for name, value in mark.kwargs.items() if name in ARGUMENTS}
    missing = next((name for name in ("family", "template") if name not in own), None)
    if missing is not None:
        raise _misused(metafunc, f"{missing} is missing: {HELP}")
    return own, {name: value for name, value in mark.kwargs.items() if name not in ARGUMENTS}


def _kit(metafunc: pytest.Metafunc, own: dict[str, Any], variables: dict[str, Any]) -> "Kit":
    """Load what the marker names; a set-up fault is an error of the test."""
    from vllm_reasoning_ext.conformance.conform import Kit
    from vllm_reasoning_ext.conformance.render import read_template
    from vllm_reasoning_ext.conformance.tokenizers import load_tokenizer

    beside, tokenizer = metafunc.definition.path.parent, own.get("tokenizer")
    try:
        text, tokens = read_template(beside / own["template"])
        loaded = load_tokenizer(beside / tokenizer) if isinstance(tokenizer, str | Path) else tokenizer
        kit = Kit(own["family"], text, tokens, variables, loaded)
        kit.renderer.check_read(variables, ARGUMENTS)
    except ValueError as error:  # a SetupError, or an unknown family
        raise _misused(metafunc, str(error)) from None
    return kit


def _cases(kit: "Kit") -> "list[ReasoningCase]":
    from vllm_reasoning_ext.conformance.render import RenderError

    cases = []
    for mode in kit.modes:
        try:
            cases += [ReasoningCase(kit, mode, output) for output in kit.columns(mode)]
        except RenderError as error:
            cases.append(ReasoningCase(kit, mode, "refused", str(error)))
    return cases
