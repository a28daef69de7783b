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
        raise pytest.UsageError(f"{metafunc.definition.nodeid} takes {FIXTURE}: mark it with @pytest.mark.{HELP}")
    kit, missing = _kit(metafunc.definition.path.parent, metafunc.definition.nodeid, *mark.args, **mark.kwargs)
    if missing:
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: the tokenizer has no single id for {', '.join(missing)}; "
            "use the tokenizer the model came with"
        )
    cases = list(_cases(kit))
    metafunc.parametrize(FIXTURE, cases, ids=[f"{case.mode} | {case.output}" for case in cases])


def _kit(
    beside: Path, test: str, family: str, template: Any, tokenizer: Any = None, **variables: Any
) -> tuple["Kit", list[str]]:
    """Load what the marker names; a set-up fault is a usage error of the test."""
    from vllm_reasoning_ext.conformance.conform import Kit
    from vllm_reasoning_ext.conformance.render import read_template
    from vllm_reasoning_ext.conformance.tokenizers import load_tokenizer

    try:
        text, tokens = read_template(beside / template)
        loaded = load_tokenizer(beside / tokenizer) if isinstance(tokenizer, str | Path) else tokenizer
        kit = Kit(family, text, tokens, variables, loaded)
    except ValueError as error:  # a SetupError, or an unknown family
        raise pytest.UsageError(f"{test}: {error}") from error
    return kit, kit.missing_ids() if kit.family.required else []


def _cases(kit: "Kit") -> "list[ReasoningCase]":
    from vllm_reasoning_ext.conformance.render import RenderError

    cases = []
    for mode in kit.modes:
        try:
            cases += [ReasoningCase(kit, mode, output) for output in kit.columns(mode)]
        except RenderError as error:
            cases.append(ReasoningCase(kit, mode, "refused", str(error)))
    return cases
