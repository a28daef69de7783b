"""The framing that SGLang's own channel-aware tool parsers expect of the content they are given.

SGLang's `muse` and `gpt-oss` tool parsers read a whole channel format, not just calls: an answer that stands
unframed before a call hides the call from them, and a header of another spelling is no call to them. So with
exactly these two, the answer and the calls are put into that format; they unwrap it again. Every other tool
parser finds its markup in plain content.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from vllm_reasoning_ext.core.events import CONTENT, TOOL, Event

ANSWER_TO_MUSE: Final = "<|start|>assistant to=user<|message|>{}<|eom|>"
ANSWER_TO_HARMONY: Final = "<|start|>assistant<|channel|>final<|message|>{}<|return|>"
CALL_TO_HARMONY: Final = "<|start|>assistant<|channel|>commentary to={}<|constrain|>json<|message|>{}<|call|>"
HARMONY_ENDS: Final = ("<|call|>", "<|end|>", "<|return|>")
# Where an answer is cut, so that no quoted marker in it is one to a parser that sees no ids. In a final message
# only <|return|> is a marker to SGLang, and a `<|` that begins none of the others hides what follows it; and
# the parts of a whole reply are joined with a blank, so it is cut nowhere else.
CUT_FOR_MUSE: Final = re.compile(r"(?<=<)(?=\|(?:eom|eot)\|>)")
CUT_FOR_HARMONY: Final = re.compile(r"(?<=<)(?=\|(?!(?:start|channel|message|constrain|end|call)\|>))")
HARMONY_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


class Framing(Protocol):
    """Write content events the way one tool parser reads them."""

    def write(self, events: Sequence[Event], *, ends: bool) -> str:
        """Frame the next events of the output; `ends` releases what waits for its end."""


def framing(tool_parser: str | None, grammar: str, *, whole: bool) -> Framing | None:
    """Choose the framing for a tool parser.

    Args:
        tool_parser: the server's `--tool-call-parser`.
        grammar: the family's grammar.
        whole: the output comes in one piece; SGLang then shows it to the tool parser only if that finds a
            call in it, so without one nothing may be framed.
    """
    if tool_parser == "muse" and grammar == "atem":
        return MuseFraming(whole)
    if tool_parser == "gpt-oss" and grammar == "harmony":
        return HarmonyFraming(whole)
    return None


def _runs(events: Iterable[Event]) -> list[Event]:
    """Leave out markers, and join neighbouring answer texts."""
    runs: list[Event] = []
    for event in events:
        if event.kind is CONTENT and runs and runs[-1].kind is CONTENT:
            runs[-1] = Event(CONTENT, runs[-1].text + event.text)
        elif event.kind is CONTENT or event.kind is TOOL:
            runs.append(event)
    return runs


def _answer(frame: str, cut: re.Pattern[str], text: str) -> str:
    return "".join(frame.format(part) for part in cut.split(text))


def _plain(runs: Iterable[Event]) -> str:
    return "".join(run.text for run in runs)


class MuseFraming:
    """For `--tool-call-parser muse`: every answer text in a user channel, every call with its `<|start|>`."""

    def __init__(self, whole: bool) -> None:
        self._whole = whole
        self._in_call = False

    def write(self, events: Sequence[Event], *, ends: bool) -> str:
        runs = _runs(events)
        if self._whole and not any("<atem:" in run.text for run in runs):
            return _plain(runs)
        return "".join(self._framed(run) for run in runs)

    def _framed(self, run: Event) -> str:
        if run.kind is CONTENT:
            self._in_call = False
            return _answer(ANSWER_TO_MUSE, CUT_FOR_MUSE, run.text)
        text = run.text
        if not self._in_call and not text.startswith("<|start|>"):
            text = f"<|start|>{text}"  # a headerless switch, which SGLang's parser would take for prose
        if text.endswith("<|end_of_text|>"):
            text += "<|eom|>"  # SGLang's parser knows no such end
        self._in_call = not text.endswith(("<|eom|>", "<|eot|>"))
        return text


class HarmonyFraming:
    """For `--tool-call-parser gpt-oss`: every call's header in one spelling, every answer a final message."""

    def __init__(self, whole: bool) -> None:
        self._whole = whole
        self._call: Event | None = None
        self._waiting = ""
        self._after_call = False

    def write(self, events: Sequence[Event], *, ends: bool) -> str:
        runs = _runs(events)
        if self._whole and not any(run.kind is TOOL or "<|channel|>commentary" in run.text for run in runs):
            return _plain(runs)
        out = [part for run in runs for part in self._framed(run)]
        if ends:
            out += [self._close_call(), self._write_answer("", ends=True)]
        return "".join(out)

    def _framed(self, run: Event) -> list[str]:
        if run.kind is CONTENT:
            return [self._close_call(), self._write_answer(run.text, ends=False)]
        out = []
        call = self._call
        if call is not None and (call.recipient != run.recipient or _ended(call.text)):
            out.append(self._close_call())
            call = None
        self._call = run if call is None else Event(TOOL, call.text + run.text, False, run.recipient)
        return out

    def _write_answer(self, text: str, *, ends: bool) -> str:
        self._waiting += text
        # After a call SGLang's parser swallows what may be the word "commentary", piece by piece.
        undecided = self._after_call and "commentary".startswith(self._waiting.strip().lower())
        if not self._waiting or (undecided and not ends):
            return ""
        text, self._waiting, self._after_call = self._waiting, "", False
        return _answer(ANSWER_TO_HARMONY, CUT_FOR_HARMONY, text)

    def _close_call(self) -> str:
        call, self._call = self._call, None
        if call is None:
            return ""
        message, body = _body(call.text)
        name = call.recipient or ""
        if not (message and HARMONY_NAME.fullmatch(name) and _is_json(body)):
            # SGLang's parser would drop it without a word; shown as it stands it is at least there.
            return _answer(ANSWER_TO_HARMONY, CUT_FOR_HARMONY, call.text)
        before = self._write_answer("", ends=True)
        self._after_call = True
        # In JSON a "<" can only stand in a string, where the escape means the same and is no marker.
        return before + CALL_TO_HARMONY.format(name, body.replace("<", "\\u003c"))


def _body(call: str) -> tuple[str, str]:
    """Find `<|message|>` and the arguments in a call's text, without its terminator."""
    _, message, body = call.partition("<|message|>")
    for end in HARMONY_ENDS:
        body = body.removesuffix(end)
    return message, body


def _ended(call: str) -> bool:
    """Tell whether a call is over; a piece may also end in a terminator that the arguments quote."""
    return call.endswith(HARMONY_ENDS) and _is_json(_body(call)[1])


def _is_json(text: str) -> bool:
    try:
        json.loads(text or "{}")
    except ValueError:
        return False
    return True
