"""`split`: what it shows, what it explains, every way of feeding, and faults with a remedy."""

import json
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from rich.console import Console

from tests.cli.drive import Said, run
from tests.support.byte_tokenizer import VOCABULARIES, byte_tokenizer
from vllm_reasoning_ext.conformance.tokenizers import encode, load_tokenizer, spell, tokenise

Capture = pytest.CaptureFixture[str]

REPLY = "<think>\nSix × seven 😀.\n</think>\n\nIt is <think> 42.<|im_end|>"


@pytest.fixture
def reply(tmp_path: Path) -> str:
    path = tmp_path / "reply.txt"
    path.write_bytes(REPLY.encode())
    return str(path)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("tokenizer")
    byte_tokenizer("qwen3").save_pretrained(directory)
    return str(directory)


def test_plain_text_where_there_is_no_terminal(capfd: Capture, reply: str) -> None:
    said = run(capfd, "split", reply, "--family", "qwen3")
    assert said == Said(
        0,
        "start      undecided: no prompt was given; qwen3 starts undecided by default\n"
        "marker     | <think>\\n\n"
        "reasoning  | Six × seven 😀.\n"
        "marker     | \\n</think>\\n\\n\n"
        "answer     | It is <think> 42.\n"
        "marker     | <|im_end|>\n"
        "characters reasoning 14, answer 17, tool 0, marker 29; 1 delta, at most 10 held\n",
        "",
    )


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({"FORCE_COLOR": "1", "TERM": "xterm-256color"}, True),
        ({"FORCE_COLOR": "1", "TERM": "xterm-256color", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, False),
        ({"TERM": "xterm-256color"}, False),
    ],
)
def test_colours_only_where_they_are_wanted(
    capfd: Capture, reply: str, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], coloured: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    out = run(capfd, "split", reply, "--family", "qwen3").out
    assert ("\x1b[" in out) is coloured
    assert ("reasoning  | " in out) is not coloured
    assert "It is <think> 42." in out


def test_a_tool_slice_is_boxed(capfd: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    path = tmp_path / "reply"
    path.write_text('<think>\nLook.\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>')
    out = run(capfd, "split", str(path), "--family", "qwen3").out
    box = [line for line in out.splitlines() if line.startswith("│")]
    assert len(box) == 3
    assert "tool" in next(line for line in out.splitlines() if line.startswith("╭"))


def test_a_long_line_of_a_call_is_boxed_whole(capfd: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    path = tmp_path / "reply"
    path.write_text('<tool_call>\n{"name": "' + "f" * 300 + '"}\n</tool_call>')
    out = run(capfd, "split", str(path), "--family", "qwen3", "--force-reasoning").out
    assert out.count("f") - out.partition("╭")[0].count("f") - out.rpartition("╯")[2].count("f") == 300


@pytest.mark.parametrize("coloured", [False, True])
def test_a_reply_of_many_lines_is_written_at_once(
    capfd: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coloured: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    if coloured:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
    rendered: list[object] = []
    monkeypatch.setattr(Console, "render_lines", lambda self, *given, **more: rendered.append(given) or [])
    monkeypatch.setattr(Console, "out", lambda self, *given, **more: rendered.append(given))
    path = tmp_path / "reply"
    path.write_text("<think>\n" + "a\tb\n" * 2000 + "</think>\n" + "c\n" * 2000)
    out = run(capfd, "split", str(path), "--family", "qwen3", "--explain").out
    assert rendered == []
    assert (out.count("a\tb"), out.count("c\n")) == (2000, 2000)
    assert out.count("\x1b[2;3ma\tb\x1b[0m\n") == (1999 if coloured else 0)


def test_a_reply_cannot_steer_the_terminal(capfd: Capture, tmp_path: Path) -> None:
    path = tmp_path / "reply"
    path.write_text("a\x1b[2Jb\x07\x9bc")
    out = run(capfd, "split", str(path), "--family", "qwen3").out
    assert "answer     | a\\x1b[2Jb\\x07\\x9bc" in out
    assert (
        json.loads(run(capfd, "split", str(path), "--family", "qwen3", "--json").out)["content"] == "a\x1b[2Jb\x07\x9bc"
    )


@pytest.mark.parametrize("chunks", ["whole", "char", "token", "1", "3", "7", "random:1", "random:2"])
@pytest.mark.parametrize("ids", [False, True], ids=["text", "ids"])
def test_every_way_of_feeding_gives_the_same(
    capfd: Capture, reply: str, tokenizer: str, chunks: str, ids: bool
) -> None:
    if chunks == "token" and not ids:
        said = run(capfd, "split", reply, "--family", "qwen3", "--chunks", chunks)
        assert (said.code, "add --tokenizer DIR" in said.err) == (2, True)
        return
    more = ["--tokenizer", tokenizer] if ids else []
    document = run(capfd, "split", reply, "--family", "qwen3", "--chunks", chunks, "--json", *more).document
    assert (document["reasoning"], document["content"]) == ("Six × seven 😀.", "It is <think> 42.")
    assert "".join(e["text"] for e in document["events"] if not e["synthetic"]) == REPLY
    assert (document["deltas"] == 1) is (chunks == "whole")
    assert document["held_at_most"] <= len("\n</think>\n\n")


def test_ids_tell_a_quoted_marker_from_a_real_one(capfd: Capture, tmp_path: Path, tokenizer: str) -> None:
    ids = spell("<think>\nIt ends at ‹</think>›.\n</think>\n\nYes.<|im_end|>", load_tokenizer(tokenizer))
    path = tmp_path / "ids"
    for form in (json.dumps(ids), " ".join(map(str, ids)), ",\n".join(map(str, ids))):
        path.write_text(form)
        arguments = ["--family", "qwen3", "--ids", str(path), "--tokenizer", tokenizer, "--explain", "--json"]
        document = run(capfd, "split", *arguments, "--chunks", "token").document
        assert (document["reasoning"], document["content"]) == ("It ends at </think>.", "Yes.")
        read = [(note["what"], note["text"], note["why"]) for note in document["explain"] if note["what"] != "held"]
        assert ("boundary", "<think>", "opener, by its token id 151667") in read
        assert ("text", "</think>", "closer, but spelled from ordinary tokens: it is text") in read


def test_a_text_that_the_ids_do_not_spell_is_split_by_its_text(capfd: Capture, tmp_path: Path, tokenizer: str) -> None:
    loaded = load_tokenizer(tokenizer)
    (tmp_path / "ids").write_text(json.dumps(encode("<think>\nA\n</think>\n\nB<|im_end|>", loaded)))
    (tmp_path / "text").write_text("C</think>D</think>")
    arguments = ["--family", "qwen3", "--ids", str(tmp_path / "ids"), "--tokenizer", tokenizer, "--explain", "--json"]
    document = run(capfd, "split", str(tmp_path / "text"), *arguments).document
    assert document["content"] == "C</think>D</think>"
    assert [(note["at"], note["why"].partition(":")[0]) for note in document["explain"] if note["what"] == "ids"] == [
        (0, "ids and text part here"),
        (18, "from here on the text alone decides"),
    ]


LET = "<think>\nLet me think about <x>.\nOk.\n</think>\n\nThe answer is **42**.\n"


@pytest.mark.parametrize("chunks", ["whole", "char", "token", "7", "random:3"])
@pytest.mark.parametrize(
    ("of", "at"),
    [
        ("<think>\nAnother output, much longer than the text that it should be of. " * 8, 8),
        ("<think>\nLet me think about <x>.\nOk, other.\n</think>\n\nNo", 34),
        ("Plain.", 0),
        ("", 0),
    ],
    ids=["another output", "late", "no block", "none"],
)
def test_ids_of_another_output_are_warned_of_and_swallow_nothing(
    capfd: Capture, tmp_path: Path, tokenizer: str, chunks: str, of: str, at: int
) -> None:
    # SPEC section 2, law 5: from where ids and text disagree the text rules apply.
    (tmp_path / "ids").write_text(json.dumps(encode(of, load_tokenizer(tokenizer))))
    (tmp_path / "text").write_text(LET)
    arguments = ["--family", "qwen3", "--ids", str(tmp_path / "ids"), "--tokenizer", tokenizer, "--chunks", chunks]
    said = run(capfd, "split", str(tmp_path / "text"), *arguments, "--explain", "--json")
    assert said.document["reasoning"] == "Let me think about <x>.\nOk."
    assert said.document["content"] == "The answer is **42**.\n"
    assert f"warning: ids and text part at character {at}: " in said.err
    assert (at, "ids") in {(note["at"], note["what"]) for note in said.document["explain"]}


def test_special_tokens_that_the_text_lacks_are_no_disagreement(capfd: Capture, tmp_path: Path, tokenizer: str) -> None:
    # An engine with skip_special_tokens gives the ids of <|im_start|> and <|im_end|>, and not their text.
    (tmp_path / "ids").write_text(
        json.dumps(encode("<think>\nA\n</think>\n\nB<|im_start|>C<|im_end|>", load_tokenizer(tokenizer)))
    )
    (tmp_path / "text").write_text("<think>\nA\n</think>\n\nBC")
    arguments = ["--family", "qwen3", "--ids", str(tmp_path / "ids"), "--tokenizer", tokenizer, "--json"]
    said = run(capfd, "split", str(tmp_path / "text"), *arguments)
    assert (said.document["reasoning"], said.document["content"], said.err) == ("A", "BC", "")


@pytest.mark.parametrize("form", ["[-5]", "-5", "[1, -5]", "1 -5 2"])
def test_an_id_below_zero_is_an_error(capfd: Capture, tmp_path: Path, tokenizer: str, form: str) -> None:
    (tmp_path / "ids").write_text(form)
    said = run(capfd, "split", "--family", "qwen3", "--ids", str(tmp_path / "ids"), "--tokenizer", tokenizer)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("error: -5 is no token id: ids are 0 or greater\n")


@pytest.mark.parametrize("number", [999999999, 2**33, 2**70])
def test_ids_that_the_tokenizer_does_not_know_are_warned_of(
    capfd: Capture, tmp_path: Path, tokenizer: str, number: int
) -> None:
    arguments = ["--family", "qwen3", "--ids", str(tmp_path / "ids"), "--tokenizer", tokenizer, "--json"]
    (tmp_path / "ids").write_text(json.dumps([number]))
    said = run(capfd, "split", *arguments)
    assert (said.code, said.document["content"]) == (0, "")
    assert f"knows no token of id {number}" in said.err
    assert "none of the 1 token ids gives any text" in said.err
    (tmp_path / "ids").write_text(json.dumps([*encode("<think>\nA\n</think>\n\nB", load_tokenizer(tokenizer)), number]))
    said = run(capfd, "split", *arguments)
    assert (said.document["reasoning"], said.document["content"]) == ("A", "B")
    assert f"knows no token of id {number}" in said.err
    assert "none of the" not in said.err


def test_jsonl_gives_one_event_a_line_as_it_comes(capfd: Capture, reply: str) -> None:
    said = run(capfd, "split", reply, "--family", "qwen3", "--chunks", "char", "--jsonl", "--explain")
    rows = [json.loads(line) for line in said.out.splitlines()]
    events, summary = rows[:-1], rows[-1]["summary"]
    assert "".join(event["text"] for event in events if not event["synthetic"]) == REPLY
    assert "".join(event["text"] for event in events if event["kind"] == "reasoning") == "Six × seven 😀."
    assert [event["delta"] for event in events] == sorted(event["delta"] for event in events)
    assert (summary["deltas"], summary["start"]["kind"]) == (len(REPLY), "undecided")
    assert {"events", "content", "reasoning"}.isdisjoint(summary)
    error = run(capfd, "split", "nowhere", "--family", "qwen3", "--jsonl").out
    assert (error.count("\n"), json.loads(error)["error"]["problem"][:11]) == (1, "cannot read")


def test_a_byte_order_mark_is_told_and_left_out(capfd: Capture, tmp_path: Path) -> None:
    (tmp_path / "reply").write_bytes(b"\xef\xbb\xbf<think>A</think>B")
    said = run(capfd, "split", str(tmp_path / "reply"), "--family", "qwen3", "--json")
    assert (said.document["reasoning"], said.document["content"]) == ("A", "B")
    assert said.err == f"warning: {tmp_path / 'reply'} begins with a UTF-8 byte order mark: it is left out\n"


def test_a_trimmed_stop_token_is_named(capfd: Capture, tmp_path: Path, tokenizer: str) -> None:
    loaded = load_tokenizer(tokenizer)
    (tmp_path / "ids").write_text(json.dumps(encode("<think>\nA\n</think>\n\nB<|im_end|>", loaded)))
    (tmp_path / "text").write_text("<think>\nA\n</think>\n\nB")
    arguments = ["--family", "qwen3", "--ids", str(tmp_path / "ids"), "--tokenizer", tokenizer, "--explain"]
    said = run(capfd, "split", str(tmp_path / "text"), *arguments)
    assert "answer     | B\n" in said.out
    assert "'<|im_end|>' end of sequence, by its token id 151645; its text never came" in said.out


EXPLANATIONS = [
    # family, prompt, output, options, lines that must be said
    ("qwen3", None, "<think>\nA\n</think>\n\nB", [], ["boundary   at 0: '<think>' opener, by its text", "dropped"]),
    ("qwen3", None, "A <think> B", [], ["stays in the answer: an opener counts only before the answer"]),
    ("qwen3", None, "A </think> B", [], ["closer, by its text, stays in the answer: no block is open"]),
    ("qwen3", None, "<think>A<think>B</think>C", [], ["stays in the reasoning: an opener counts only before"]),
    (
        "qwen3",
        None,
        "<think>A <tool_call> no</think>C",
        [],
        ["stays in the reasoning: the model quoted it, or wrote a"],
    ),
    ("qwen3", None, "<think>A", [], ["the block was never closed: what it held is reasoning"]),
    ("qwen3", None, "<think>A</think><think>B</think>C", [], ["joiner: added between two blocks"]),
    (
        "qwen3",
        None,
        "<think>A</think>",
        ["--floor", "promote"],
        ["floor: the reply had no answer, so its reasoning is the answer too"],
    ),
    (
        "qwen3",
        "<|im_start|>assistant\n<think>\n",
        'A<tool_call>\n{"name": "f"}\n</tool_call>',
        [],
        [
            "prompt     ends in '<|im_start|>assistant\\n<think>\\n'",
            "start      reasoning: after the last '<|im_start|>assistant\\n' a block is open",
            "a tool call ended the block without its closer",
            "'</tool_call>' closing tag of a call, by its text; part of a call, handed on to the tool parser",
        ],
    ),
    (
        "gpt_oss",
        "<|start|>assistant",
        "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>",
        [],
        ["header     kept header 'assistant'", "'<|channel|>' control token, by its text"],
    ),
    (
        "muse_glimmer",
        "<|start|>assistant",
        " to=f<|message|>{}",
        [],
        ["'<|start|>' added: the tool parser needs it", "'<|eom|>' added: the tool parser needs it"],
    ),
    (
        "inline",
        None,
        "x <think>A</think>B `<think>`",
        [],
        [
            "start      undecided: inline tags are looked for in the output alone",
            "boundary   at 2: '<think>' tag, by its text\nboundary   at 10: '</think>' tag, by its text\n",
        ],
    ),
    (
        "inline",
        None,
        "\n <a>A</a>B",
        ["--tags", "<a>...</a>", "--force-reasoning"],
        ["boundary   at 2: '<a>' tag, by its text\nboundary   at 6: '</a>' tag"],
    ),
]


@pytest.mark.parametrize(("family", "prompt", "output", "options", "lines"), EXPLANATIONS)
def test_explain_says_why(
    capfd: Capture, tmp_path: Path, family: str, prompt: str | None, output: str, options: list[str], lines: list[str]
) -> None:
    (tmp_path / "out").write_text(output)
    if prompt is not None:
        (tmp_path / "prompt").write_text(prompt)
        options = [*options, "--prompt", str(tmp_path / "prompt")]
    said = run(capfd, "split", str(tmp_path / "out"), "--family", family, "--explain", *options)
    assert said.code == 0
    for line in lines:
        assert line in said.out


def test_explain_says_what_was_held_and_what_became_of_it(capfd: Capture, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("<think>a</thin b</think>c")
    arguments = ["--family", "qwen3", "--chunks", "char", "--explain", "--json"]
    notes = run(capfd, "split", str(tmp_path / "out"), *arguments).document["explain"]
    held = {note["at"]: (note["text"], note["why"].rpartition("then ")[2]) for note in notes if note["what"] == "held"}
    assert held[0] == ("<think", "released as marker")
    assert held[8] == ("</thin", "released as reasoning")
    assert held[16] == ("</think", "released as marker")


def test_a_hold_names_its_deltas(capfd: Capture, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("<think>a\n</think>\n\nb")
    arguments = ["--family", "qwen3", "--chunks", "3", "--explain", "--json"]
    notes = run(capfd, "split", str(tmp_path / "out"), *arguments).document["explain"]
    held = [(note["at"], note["text"], note["why"].partition(" back ")[2]) for note in notes if note["what"] == "held"]
    assert held == [
        (0, "<think", "after deltas 1 to 2, then released as marker"),
        (8, "\n</thin", "after deltas 3 to 5, then released as marker"),
        (17, "\n", "after delta 6, then released as marker"),
    ]


def test_chunk_edges_are_drawn(capfd: Capture, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("<think>abc</think>defg")
    out = run(capfd, "split", str(tmp_path / "out"), "--family", "qwen3", "--chunks", "5").out
    assert "marker     | <thin▏k>" in out
    assert "reasoning  | abc" in out
    assert "answer     | de▏fg" in out
    assert "▏" not in run(capfd, "split", str(tmp_path / "out"), "--family", "qwen3", "--chunks", "char").out


@pytest.mark.parametrize(
    ("arguments", "problem", "remedy"),
    [
        (["{reply}", "--family", "qwen4"], "unknown reasoning family 'qwen4'", "choose one of"),
        (["nowhere", "--family", "qwen3"], "cannot read nowhere", "give an existing file"),
        (["{reply}", "--family", "qwen3", "--chunks", "often"], "--chunks often is no way", "use whole, char"),
        (["{reply}", "--family", "qwen3", "--chunks", "0"], "--chunks 0 is no way", "use whole, char"),
        (["--family", "qwen3", "--ids", "{reply}"], "--ids cannot be read without", "add --tokenizer DIR"),
        (["--family", "qwen3", "--ids", "{reply}", "--tokenizer", "{tok}"], "holds no list of token ids", "[1, 2, 3]"),
        (
            ["{reply}", "--family", "qwen3", "--tokenizer", "nowhere"],
            "there is no directory nowhere, and no such model in",
            "hf download",
        ),
        (["{reply}", "--family", "qwen3", "--floor", "up"], "--floor cannot be 'up'", "choose one of off, promote"),
        (
            ["{reply}", "--family", "inline", "--where", "there"],
            "--where cannot be 'there'",
            "choose one of prose, anywhere, head",
        ),
        (["{reply}", "--family", "qwen3", "--finish-reason", "lenght"], "cannot be 'lenght'", "did you mean length?"),
        (["{reply}", "--family", "qwen3", "--unclosed", "drop"], "--unclosed cannot be", "reasoning, content"),
        (["{reply}", "--family", "deepseek_v32"], "an engine's tool-call parser", "--family deepseekv32"),
        (["{reply}", "--family", "deepseek_v31"], "the family that serves it is deepseek_v3", "--family deepseek_v3"),
        (["{reply}", "--family", "muse"], "in SGLang those of Muse Glimmer; the latter are muse_glimmer", "choose one"),
        (["{reply}", "--family", "Qwen/Qwen3-8B"], "is the name of a model, not of a family", "--family qwen3"),
        (["{reply}", "--family", "inline", "--tags", "foo"], "'foo' is no tag pair: write opener...", "split --help"),
        (["{reply}", "--family", "inline", "--tags", "<a>...</a>,b"], "'b' is no tag pair", "split --help"),
        (["{reply}", "--family", "inline", "--tags", ","], "',' holds no tag pair", "split --help"),
        (["{reply}", "--family", "qwen3", "--tags", "<a>...</a>"], "go with 'inline' only, not", "split --help"),
        (["{reply}", "--family", "qwen3", "--unclosed", "content"], "go with 'inline' only, not", "split --help"),
    ],
)
def test_faults_name_place_and_remedy(
    capfd: Capture, tmp_path: Path, reply: str, tokenizer: str, arguments: list[str], problem: str, remedy: str
) -> None:
    given = [part.format(reply=reply, tok=tokenizer) for part in arguments]
    said = run(capfd, "split", *given)
    assert (said.code, said.out) == (2, "")
    assert problem in said.err
    assert "found in: " in said.err
    assert remedy in said.err.partition("remedy:")[2]
    assert "Traceback" not in said.err
    error = run(capfd, "split", *given, "--json").document["error"]
    assert problem in error["problem"]
    assert remedy in error["remedy"]


@pytest.mark.parametrize("name", ["deepseek_r1", "deepseek-r1", "openai_gptoss", "glm45", "kimi_k2"])
def test_what_an_engine_calls_its_parser_is_a_family(capfd: Capture, tmp_path: Path, name: str) -> None:
    (tmp_path / "out").write_text("Hi.")
    got = run(capfd, "split", str(tmp_path / "out"), "--family", name, "--no-force-reasoning", "--json")
    assert (got.code, got.document["content"]) == (0, "Hi.")


def test_an_unknown_family_lists_the_names_once(capfd: Capture, reply: str) -> None:
    said = run(capfd, "split", reply, "--family", "quen3").err
    assert said.startswith("error: unknown reasoning family 'quen3'. Did you mean 'qwen3'?\n")
    assert (said.count("muse_glimmer"), said.count("inline")) == (1, 1)


def test_bytes_that_are_no_text_are_told_and_split_all_the_same(capfd: Capture, tmp_path: Path, tokenizer: str) -> None:
    path = tmp_path / "binary"
    path.write_bytes(b"<think>a\xffb</think>c\xe2\x80")
    for more in ([], ["--tokenizer", tokenizer, "--chunks", "token"]):
        said = run(capfd, "split", str(path), "--family", "qwen3", "--json", *more)
        assert (said.code, said.document["reasoning"], said.document["content"]) == (0, "a\ufffdb", "c\ufffd")
        assert said.err == f"warning: {path} is not UTF-8 (byte 8 is 0xff): \ufffd stands for what cannot be read\n"


HINT = "hint: the output closes a block that it did not open; if the prompt did: "


@pytest.mark.parametrize(
    ("output", "options", "hint"),
    [
        ("A</think>B", ["--family", "qwen3"], HINT + "--prompt FILE, or --force-reasoning\n"),
        ("A</think>B", ["--family", "qwen3", "--chunks", "char"], HINT + "--prompt FILE, or --force-reasoning\n"),
        ("A</think>B", ["--family", "qwen3", "--prompt", "{prompt}"], HINT + "--force-reasoning\n"),
        ("A</think>B", ["--family", "qwen3", "--json"], ""),
        ("A</think>B", ["--family", "qwen3", "--force-reasoning"], ""),
        ("A</think>B", ["--family", "qwen3", "--no-force-reasoning"], ""),
        ("A</think>B", ["--family", "minimax"], ""),  # starts in reasoning
        ("</think>B", ["--family", "qwen3"], ""),  # no thinking this turn
        ("<think>A</think>B</think>", ["--family", "qwen3"], ""),
        ("A</think>B", ["--family", "inline"], ""),
    ],
)
def test_a_closer_without_an_opener_deserves_a_hint(
    capfd: Capture, tmp_path: Path, output: str, options: list[str], hint: str
) -> None:
    (tmp_path / "out").write_text(output)
    (tmp_path / "prompt").write_text("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    given = [option.format(prompt=tmp_path / "prompt") for option in options]
    assert run(capfd, "split", str(tmp_path / "out"), *given).err == hint


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("text", ["naïve 六 😀 é", "a\n\n  b", ""])
def test_tokens_bring_their_characters_as_an_engine_brings_them(vocabulary: str, text: str) -> None:
    tokenizer = byte_tokenizer(vocabulary)
    ids = encode(text, tokenizer)
    tokens = tokenise(ids, tokenizer)
    assert [token.id for token in tokens] == ids
    assert "".join(token.text for token in tokens) == text
    assert not any("\ufffd" in token.text for token in tokens)
