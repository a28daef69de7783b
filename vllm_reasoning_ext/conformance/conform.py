"""Does a chat template agree with a family's parser? Every mode rendered, every output replayed in every way."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext.conformance.char_tokenizer import Token
from vllm_reasoning_ext.conformance.modes import Mode, modes_of, with_json_arguments
from vllm_reasoning_ext.conformance.outputs import NAMES, Output, outputs_of
from vllm_reasoning_ext.conformance.own_form import CALL, PLAIN, Form, forms_of
from vllm_reasoning_ext.conformance.render import Renderer, RenderError
from vllm_reasoning_ext.conformance.runner import Fed, Outcome, Piece, id_ways, replay, text_ways
from vllm_reasoning_ext.conformance.starts import Seen, siblings, start_problems, switch_note
from vllm_reasoning_ext.conformance.tokenizers import (
    check_given_back,
    control_ids,
    encode,
    missing_markers,
    spell,
    tokenise,
)
from vllm_reasoning_ext.core.families import Family, get_family
from vllm_reasoning_ext.core.reading.ids import decoder
from vllm_reasoning_ext.core.splitter import Splitter
from vllm_reasoning_ext.core.start import StartState, start_state

START: Final = "start"
"""The column that judges the start state itself."""

COLUMNS: Final = (START, *NAMES, PLAIN, CALL)
PROBLEMS_MAX: Final = 3
"""Differences shown of one cell: the first tells the cause, the rest repeat it."""

TAIL: Final = 120
"""Characters of a prompt's end that a report shows."""

_REMEDY: Final = "use the tokenizer the model came with, or leave it out: then the text alone is tried"

Checked = tuple[tuple[str, ...], tuple[Piece, ...], int]
"""What came of an output: the problems, the split, and in how many ways it was fed."""


class Cell(NamedTuple):
    """One output in one mode.

    Attributes:
        mode, output: where it stands in the report.
        problems: what differs; empty when all is right.
        text: the output that was fed.
        split: the pieces it was split into, fed whole.
        ways: in how many ways it was fed.
        note: something worth knowing that is no fault.
        expected: reasoning and content as they must be; None where no split is expected.
    """

    mode: str
    output: str
    problems: tuple[str, ...] = ()
    text: str = ""
    split: tuple[Piece, ...] = ()
    ways: int = 0
    note: str = ""
    expected: tuple[str, str] | None = None

    @property
    def actual(self) -> tuple[str, str]:
        """Reasoning and content as they came, fed whole."""
        pieces = [(kind.lstrip("+"), text) for kind, text in self.split]
        return (
            "".join([text for kind, text in pieces if kind == "reasoning"]),
            "".join([text for kind, text in pieces if kind in ("content", "tool")]),
        )


class Row(NamedTuple):
    """One mode of the template.

    Attributes:
        mode: how it was rendered.
        tail: the end of the prompt.
        start: the start state read from it; None when the template refused the mode.
        refused: the template's own words then.
        cells: by column; an output that cannot follow this start is missing.
    """

    mode: Mode
    tail: str
    start: StartState | None
    refused: str
    cells: Mapping[str, Cell]


class Kit:
    """The modes and cells of one template for one family.

    Args:
        family: the family's name, or its record.
        template: the template's text.
        tokens: its special tokens (`bos_token`, ...).
        kwargs: template variables for every mode (`revision`, ...).
        tokenizer: the model's; then everything is tried with token ids too, unless a marker is missing in it.
        transformers: False renders with jinja2 alone.
        checked: what has been fed already; kits of one family and one tokenizer may share it.

    Raises:
        SetupError: the template cannot be read.
    """

    def __init__(
        self,
        family: str | Family,
        template: str,
        tokens: Mapping[str, str] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        tokenizer: Any = None,
        *,
        transformers: bool = True,
        checked: dict[Any, "Checked"] | None = None,
    ) -> None:
        self.family = get_family(family) if isinstance(family, str) else family
        self.tokenizer = tokenizer
        self.renderer = Renderer(template, tokens, kwargs, transformers=transformers)
        quotable = self.family.required[:2] or (self.family.opener, self.family.closer)
        fixed = set(kwargs or {})
        variables = self.renderer.variables() - fixed
        self.modes = [self._accepted(mode) for mode in modes_of(template, variables, tuple(quotable))]
        self.ids = control_ids(self.family, tokenizer) if tokenizer is not None else {}
        # The turn's end as this template writes it: a family's models differ, and with ids only a real one counts.
        ends = [text for text in self.family.end_of_sequence if tokenizer is None or text in self.ids]
        self.end = next((text for text in ends if text in template), "")
        self._prompts: dict[str, str] = {}
        self._checked: dict[Any, Checked] = {} if checked is None else checked

    def missing_ids(self) -> list[str]:
        """List the markers that should be single tokens and are none in the tokenizer."""
        return missing_markers(self.family, self.ids) if self.tokenizer is not None else []

    @property
    def by_ids(self) -> bool:
        """Whether token ids are tried too: a missing marker is told by itself, all else would only follow from it."""
        return self.tokenizer is not None and not self.missing_ids()

    def row(self, mode: Mode, only: str = "") -> Row:
        """Try one mode.

        Args:
            mode: the mode.
            only: one column, or "" for all.

        Raises:
            SetupError: the tokenizer does not give a text back.
        """
        try:
            prompt = self.prompt(mode)
        except RenderError as error:
            return Row(mode, "", None, str(error), {})
        start = start_state(prompt, self.family)
        cells = {cell.output: cell for cell in self._cells(mode, prompt, start, only)}
        return Row(mode, prompt[-TAIL:], start, "", cells)

    def columns(self, mode: Mode) -> list[str]:
        """List the columns that a mode has, without trying them.

        Raises:
            RenderError: the template refuses the mode.
        """
        start = start_state(self.prompt(mode), self.family)
        outputs = [output.name for output in self._outputs(start)]
        return [START, *outputs, *[form.name for form in self._forms(mode, self.prompt(mode), start)]]

    def cell(self, mode: Mode, column: str) -> Cell:
        """Try one cell."""
        return self.row(mode, column).cells[column]

    def prompt(self, mode: Mode) -> str:
        """Render a mode, once."""
        if mode.name not in self._prompts:
            self._prompts[mode.name] = self.renderer.render(
                mode.messages, tools=mode.tools, kwargs=mode.kwargs, go_on=mode.go_on
            )
        return self._prompts[mode.name]

    def _accepted(self, mode: Mode) -> Mode:
        """Choose the form of call arguments that the template takes; the mapping where it takes neither."""
        if not any("tool_calls" in message for message in mode.messages):
            return mode
        for form in (mode, with_json_arguments(mode)):
            try:
                self.renderer.render(form.messages, tools=form.tools, kwargs=form.kwargs, go_on=form.go_on)
            except RenderError:
                continue
            return form
        return mode

    def _outputs(self, start: StartState) -> list[Output]:
        return [output for output in outputs_of(self.family, start, self.end) if self.by_ids or not output.ids]

    def _forms(self, mode: Mode, prompt: str, start: StartState) -> list[Form]:
        return forms_of(self.renderer, self.family, mode, prompt, start)

    def _cells(self, mode: Mode, prompt: str, start: StartState, only: str) -> Iterator[Cell]:
        if only in ("", START):
            problems, note = self._judge_start(mode, prompt, start)
            yield Cell(mode.name, START, problems, note=note)
        for output in self._outputs(start):
            if only in ("", output.name):
                problems, split, ways = self._check(start, output)
                yield _cell(mode, output.name, output, (problems, split, ways))
        for form in self._forms(mode, prompt, start) if only in ("", PLAIN, CALL) else ():
            if only in ("", form.name):
                if form.problem:
                    yield Cell(mode.name, form.name, (form.problem,), form.output.text, note=form.note)
                    continue
                problems, split, ways = self._check(start_state(form.prompt, self.family), form.output)
                if not problems:
                    problems = form.put_back(self.renderer, split)
                yield _cell(mode, form.name, form.output, (problems, split, ways), form.note)

    def _judge_start(self, mode: Mode, prompt: str, start: StartState) -> tuple[tuple[str, ...], str]:
        seen = Seen(mode, prompt, start)
        plain = None
        if mode.base == "quotes":
            plain = start_state(self.prompt(next(m for m in self.modes if m.name == "user")), self.family)
        problems = list(start_problems(self.family, seen, plain))
        note = switch_note(seen, [other for m in siblings(mode, self.modes) if (other := self._seen(m)) is not None])
        if self.by_ids and not problems:
            ids = encode(prompt, self.tokenizer)
            by_ids = start_state(None, self.family, prompt_token_ids=ids, tokenizer=self.tokenizer)
            if (by_ids.kind, by_ids.answer_begun) != (start.kind, start.answer_begun):
                check_given_back(prompt, decoder(self.tokenizer)(ids), _REMEDY)
                problems.append(f"read from token ids the start is {by_ids.kind}, from the text {start.kind}")
        return tuple(problems), note

    def _seen(self, mode: Mode) -> Seen | None:
        """Render a mode for comparison; None where the template refuses it."""
        try:
            prompt = self.prompt(mode)
        except RenderError:
            return None
        return Seen(mode, prompt, start_state(prompt, self.family))

    def _check(self, start: StartState, output: Output) -> Checked:
        """Feed an output in every way; the same output from the same start is fed once for all modes."""
        key = (start.kind, start.answer_begun, start.header, start.recipient, start.body_begun, output)
        if key not in self._checked:
            self._checked[key] = self._feed(start, output)
        return self._checked[key]

    def _feed(self, start: StartState, output: Output) -> Checked:
        problems: dict[str, list[str]] = {}
        first: Outcome | None = None
        ways = 0
        for way, deltas, tokenizer in self._ways(output):
            ways += 1
            try:
                got = replay(Splitter(self.family, start=start, tokenizer=tokenizer), deltas, output.finish)
            except Exception as error:  # a law: model text never raises
                problems.setdefault(f"it raised {type(error).__name__}: {error}", []).append(way)
                continue
            first = first or got
            for problem in _differences(output, got, first):
                problems.setdefault(problem, []).append(way)
        told = [f"{problem} ({_in_ways(found, ways)})" for problem, found in problems.items()]
        return tuple(told[:PROBLEMS_MAX]), first.split if first else (), ways

    def _ways(self, output: Output) -> Iterator[tuple[str, list[Fed], Any]]:
        if not output.ids:
            for way, deltas in text_ways(output.text):
                yield way, deltas, None
        if self.by_ids:
            tokens = self._tokens(output)
            for way, deltas in id_ways(tokens):
                yield way, deltas, self.tokenizer

    def _tokens(self, output: Output) -> list[Token]:
        tokens = tokenise(spell(output.script, self.tokenizer), self.tokenizer)
        check_given_back(output.text, "".join([token.text for token in tokens]), _REMEDY)
        return tokens


def _cell(mode: Mode, column: str, output: Output, checked: Checked, note: str = "") -> Cell:
    problems, split, ways = checked
    return Cell(mode.name, column, problems, output.text, split, ways, note, (output.reasoning, output.content))


def _in_ways(found: list[str], ways: int) -> str:
    if len(found) == ways:
        return "however it is fed"
    return f"fed {found[0]}" + (f", and in {len(found) - 1} of {ways} ways more" if len(found) > 1 else "")


def _differences(output: Output, got: Outcome, first: Outcome) -> Iterator[str]:
    if got.reasoning != output.reasoning:
        yield f"the reasoning should be {output.reasoning!r}, is {got.reasoning!r}"
    if got.content != output.content:
        yield f"the content should be {output.content!r}, is {got.content!r}"
    if "".join([text for kind, text in got.split if not kind.startswith("+")]) != output.text:
        yield "the events do not join to the output (lossless law)"
    if got.split != first.split:
        yield f"split differently than whole (chunk law): {got.split!r}"
    if output.recipients and got.recipients != output.recipients:
        yield f"the recipients should be {output.recipients!r}, are {got.recipients!r}"


def run(kit: Kit, modes: list[Mode], output: str = "", progress: Callable[[], None] = lambda: None) -> list[Row]:
    """Try modes of a kit.

    Args:
        kit: the template and family.
        modes: which of its modes.
        output: one column, or "" for all.
        progress: called after each mode.
    """
    rows = []
    for mode in modes:
        rows.append(kit.row(mode, output))
        progress()
    return rows
