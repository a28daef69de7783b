"""The command `split`: an output, split and shown."""

from bisect import bisect_left
from itertools import accumulate, pairwise
from typing import Annotated, Any, Final, Literal, get_args

import typer
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from vllm_reasoning_ext.cli import auto, paint
from vllm_reasoning_ext.cli.explain import Note, Recorder, as_json, closes_unopened, explain
from vllm_reasoning_ext.cli.inputs import check_family, one_of, read_text
from vllm_reasoning_ext.cli.models import model_files
from vllm_reasoning_ext.cli.output import read_output
from vllm_reasoning_ext.conformance.runner import Fed
from vllm_reasoning_ext.conformance.tokenizers import load_tokenizer
from vllm_reasoning_ext.core.events import Event
from vllm_reasoning_ext.core.families import Family
from vllm_reasoning_ext.core.floor import FloorPolicy
from vllm_reasoning_ext.core.grammar.inline import Unclosed, Where
from vllm_reasoning_ext.core.grammar.tags import parse_tags
from vllm_reasoning_ext.core.reading.ids import marker_ids
from vllm_reasoning_ext.core.splitter import Splitter
from vllm_reasoning_ext.errors import SetupError

EPILOG: Final = """\b
Examples:
  vllm-reasoning-ext split reply.txt --family qwen3
  printf '<think>hm</think>42' | vllm-reasoning-ext split - --family qwen3 --explain
  vllm-reasoning-ext split reply.txt --family gpt_oss --prompt prompt.txt --chunks char
  vllm-reasoning-ext split --ids ids.json --tokenizer ./model --family muse_glimmer --json

\b
Reasoning is dim, the answer plain, a tool call boxed, a marker reversed, text the
splitter added underlined; ▏ stands between two deltas. Without --prompt the family's
default decides the start: pass the rendered prompt if the server renders one.
"""

FinishReason = Literal["stop", "length", "tool_calls", "function_call", "content_filter", "abort", "error"]
"""What vLLM, SGLang and OpenAI-style endpoints give; "length" is the one that changes anything (the floor)."""

REASONS: Final[tuple[FinishReason, ...]] = get_args(FinishReason)

PROMPT_TAIL: Final = 90
"""Characters of the prompt that are shown: enough for any turn opener and what follows it."""


def command(
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", help="The model's raw output; - is standard input.")] = "-",
    *,
    family: Annotated[str, typer.Option(metavar="NAME", help="Whose markers: see `families`; or inline, for tags.")],
    prompt: Annotated[str, typer.Option(metavar="FILE", help="The rendered prompt; its end decides the start.")] = "",
    chunks: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="How the output arrives: whole, char, a number of characters, random:SEED, or token (needs "
            "--tokenizer; then a number counts tokens too).",
        ),
    ] = "whole",
    ids: Annotated[str, typer.Option(metavar="FILE", help="The output's token ids, as JSON or plain numbers.")] = "",
    tokenizer: Annotated[
        str, typer.Option(metavar="DIR|NAME", help="The model's tokenizer; without --ids it encodes the text.")
    ] = "",
    force_reasoning: Annotated[
        bool | None, typer.Option("--force-reasoning/--no-force-reasoning", help="Start inside a block, or do not.")
    ] = None,
    tools: Annotated[
        bool | None, typer.Option("--tools/--no-tools", help="Whether the request offers tools; it does unless told.")
    ] = None,
    floor: Annotated[str, typer.Option(metavar="off|promote", help="promote: never leave the answer empty.")] = "off",
    finish_reason: Annotated[str, typer.Option(metavar="REASON", help=f"The engine's: {', '.join(REASONS)}.")] = "",
    tags: Annotated[str, typer.Option(metavar="TAGS", help="inline only: pairs as <a>...</a>,<b>...</b>.")] = "",
    where: Annotated[str, typer.Option(metavar="WHERE", help="inline only: prose, anywhere or head.")] = "prose",
    unclosed: Annotated[
        str, typer.Option(metavar="WHAT", help="inline only: an unclosed block is reasoning or content.")
    ] = "reasoning",
    why: Annotated[bool, typer.Option("--explain", help="Say what made each boundary and what was held.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the events as one JSON document.")] = False,
    as_lines: Annotated[
        bool, typer.Option("--jsonl", help="Print one JSON object a line: each event as it comes, then a summary.")
    ] = False,
) -> None:
    """Split a model's output into reasoning, answer and tool calls, and show the split."""
    automatic = auto.asked(family)
    name: str | Family = family if automatic else check_family(family, inline=True)
    values = {
        "floor": one_of("--floor", floor, get_args(FloorPolicy)),
        "where": one_of("--where", where, get_args(Where)),
        "unclosed": one_of("--unclosed", unclosed, get_args(Unclosed)),
    }
    reason = one_of("--finish-reason", finish_reason, REASONS) if finish_reason else None
    loaded = load_tokenizer(model_files(tokenizer, "--tokenizer")) if tokenizer else None
    chosen = auto.choose_family("add --tokenizer DIR, or name the family", loaded) if automatic else None
    if chosen is not None:
        name = chosen.family
        _show_chosen(chosen)
    given = read_output(file, ids, loaded, chunks)
    rendered = read_text(prompt) if prompt else None
    try:
        splitter = Splitter(
            name,
            rendered,
            force_reasoning=force_reasoning,
            tools=tools,
            tokenizer=loaded,
            tags=parse_tags(tags, strict=True) if tags else None,
            **values,
        )
    except ValueError as error:
        raise SetupError(str(error), "the options of split", "see `vllm-reasoning-ext split --help`") from error
    for warning in given.warnings:
        paint.line(paint.console(stderr=True), ("warning: ", "warn"), warning)
    recorder = Recorder(splitter)
    recorder.run(given.deltas, reason, _print_event if as_lines else None)
    known = marker_ids(name, loaded) if loaded is not None and name != "inline" else None
    notes = [*explain(recorder, known, None if chosen is None else chosen.family), *given.notes] if why else []
    notes.sort(key=lambda note: note.at)
    if as_lines:
        document = _document(recorder, given.deltas, rendered, notes if why else None)
        paint.print_json_line({"summary": {key: value for key, value in document.items() if key not in _LONG}})
    elif as_json:
        paint.print_json(_document(recorder, given.deltas, rendered, notes if why else None))
    else:
        out = paint.console()
        _show_start(out, splitter, rendered, why)
        _show(out, recorder, given.deltas)
        paint.lines(out, map(_note, notes))
        if force_reasoning is None and closes_unopened(recorder):
            told = "the output closes a block that it did not open; if the prompt did: "
            told += "--force-reasoning" if prompt else "--prompt FILE, or --force-reasoning"
            paint.line(paint.console(stderr=True), ("hint: ", "warn"), told)
    lost = "".join(event.text for event, _ in recorder.events if not event.synthetic) != given.text
    if lost:
        paint.line(
            paint.console(stderr=True), ("WRONG: the events do not join to the output; please report it", "fail")
        )
    raise typer.Exit(1 if lost else 0)


def _show_chosen(chosen: auto.Chosen) -> None:
    err = paint.console(stderr=True)
    paint.line(err, ("auto: ", "info"), paint.visible(f"{chosen.family.name}, because {chosen.reason}"))
    for warning in chosen.warnings:
        paint.line(err, ("warning: ", "warn"), paint.visible(warning))


_LONG: Final = ("events", "reasoning", "content")
"""Parts of the JSON document that `--jsonl` has given line by line already."""


def _event(event: Event, number: int) -> dict[str, Any]:
    return {
        "kind": event.kind.value,
        "text": event.text,
        "synthetic": event.synthetic,
        "recipient": event.recipient,
        "begins": event.begins,
        "ends": event.ends,
        "delta": number,
    }


def _print_event(event: Event, number: int) -> None:
    paint.print_json_line(_event(event, number))


def _document(recorder: Recorder, deltas: list[Fed], prompt: str | None, notes: list[Note] | None) -> dict[str, Any]:
    splitter, events = recorder.splitter, recorder.events
    start = splitter.start
    document = {
        "family": splitter.family,
        "start": {
            "kind": start.kind,
            "answer_begun": start.answer_begun,
            "header": start.header,
            "recipient": start.recipient,
            "reason": start.reason,
        },
        "reasoning": "".join(event.text for event, _ in events if event.kind == "reasoning"),
        "content": "".join(event.text for event, _ in events if event.kind in ("content", "tool")),
        "events": [_event(event, number) for event, number in events],
        "deltas": len(deltas),
        "held_at_most": max((len(hold.text) for hold in recorder.holds), default=0),
        "floored": splitter.floored,
    }
    if notes is not None:
        document["prompt_tail"] = None if prompt is None else prompt[-PROMPT_TAIL:]
        document["explain"] = as_json(notes)
    return document


def _show_start(out: Console, splitter: Splitter, prompt: str | None, why: bool) -> None:
    start = splitter.start
    paint.line(out, ("start      ", "head"), f"{start.kind}: {paint.visible(start.reason)}")
    if why and prompt is not None:
        paint.line(out, ("prompt     ", "head"), f"ends in {paint.shorten(prompt, PROMPT_TAIL, end=True)}")
    if why and (start.header or start.recipient):
        kept = f"kept header {start.header!r}" + (f", recipient {start.recipient!r}" if start.recipient else "")
        paint.line(out, ("header     ", "head"), kept)


def _show(out: Console, recorder: Recorder, deltas: list[Fed]) -> None:
    pieces = _pieces([event for event, _ in recorder.events], _edges(deltas))
    if paint.painted(out):
        _show_colours(out, pieces)
    else:
        out.file.write("".join([_plain(label, text) for label, text in pieces]))
    lengths = dict.fromkeys(("reasoning", "content", "tool", "marker"), 0)
    for event, _ in recorder.events:
        lengths[event.kind.value] += len(event.text)
    counts = ", ".join(f"{paint.LABELS[kind]} {length}" for kind, length in lengths.items())
    held = max((len(hold.text) for hold in recorder.holds), default=0)
    arrived = "1 delta" if len(deltas) == 1 else f"{len(deltas)} deltas"
    paint.line(out, ("characters ", "head"), f"{counts}; {arrived}, at most {held} held")


def _edges(deltas: list[Fed]) -> list[int]:
    """List where deltas meet, in characters; none when every character is a delta, which nobody could read."""
    ends = list(accumulate(len(text) for text, _ in deltas))
    total = ends[-1] if ends else 0
    found = sorted(set(ends) - {0, total})
    return [] if len(found) >= total - 1 and total > 2 else found


def _pieces(events: list[Event], edges: list[int]) -> list[tuple[str, str]]:
    """Join neighbours of one kind; an edge between deltas is a character of its own."""
    joined: list[tuple[str, list[str]]] = []
    at = 0
    for event in events:
        label = event.kind.value + ("+" if event.synthetic else "")
        end = at if event.synthetic else at + len(event.text)
        inside = edges[bisect_left(edges, at) : bisect_left(edges, end)]
        cuts = [0, *[edge - at for edge in inside], len(event.text)]
        shown = [paint.visible(event.text[a:b], newlines=event.kind != "marker") for a, b in pairwise(cuts)]
        if not joined or joined[-1][0] != label:
            joined.append((label, []))
        joined[-1][1].append(paint.EDGE.join(shown))
        at = end
    return [(label, "".join(texts)) for label, texts in joined]


def _plain(label: str, text: str) -> str:
    kind = label.rstrip("+")
    head = paint.LABELS[kind] + label.removeprefix(kind)
    return f"{head:<10} | " + text.replace("\n", f"\n{'':<10} | ") + "\n"


def _show_colours(out: Console, pieces: list[tuple[str, str]]) -> None:
    running: list[str] = []
    out.file.write("\n")
    for label, text in pieces:
        kind = label.rstrip("+")
        style = paint.STYLES[kind] + (" underline" if label.endswith("+") else "")
        if kind == "tool":
            out.file.write("".join([*running, "\n"] if running else []))
            running = []
            out.print(Panel(_edged(text, style), title="tool", title_align="left", expand=False), soft_wrap=False)
        else:
            edge = paint.styled(paint.EDGE, f"{style} {paint.STYLES['edge']}")
            running.append(edge.join([paint.styled(part, style) for part in text.split(paint.EDGE)]))
    out.file.write("".join([*running, "\n\n"] if running else ["\n"]))


def _edged(text: str, style: str) -> Text:
    part = Text(text, style)
    part.highlight_words([paint.EDGE], paint.STYLES["edge"])
    return part


def _note(note: Note) -> tuple[paint.Part, ...]:
    text = f"{paint.shorten(note.text)} " if note.text else ""
    return (f"{note.what:<10} ", "head"), f"at {note.at}: {text}{note.why}"
