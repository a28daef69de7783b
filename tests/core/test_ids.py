"""Token ids beside the text: incomplete characters, lag, ids that do not fit, ids without a tokenizer, the gates."""

import pytest

from vllm_reasoning_ext import Splitter, start_state
from vllm_reasoning_ext.conformance.char_tokenizer import CharTokenizer, Token
from vllm_reasoning_ext.conformance.runner import Case, load_cases, replay
from vllm_reasoning_ext.core.count import ReasoningTokenCounter
from vllm_reasoning_ext.core.families import FAMILIES
from vllm_reasoning_ext.core.gate import reasoning_ended
from vllm_reasoning_ext.core.limits import IDS_PENDING_MAX, TEXT_LAG_MAX
from vllm_reasoning_ext.core.reading.ids import marker_ids

OPEN, X = "<think>", "</think>"


class ByteTokenizer:
    """One id per byte, and one per marker; looked up as the `tokenizers` package does; not weakly referable."""

    __slots__ = ("ids",)

    def __init__(self, *markers: str) -> None:
        self.ids = {marker: 256 + n for n, marker in enumerate(markers)}

    def token_to_id(self, token: str) -> int | None:
        return self.ids.get(token)

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        texts = {number: marker for marker, number in self.ids.items()}
        raw = b"".join(texts[n].encode() if n in texts else bytes([n]) for n in ids)
        return raw.decode("utf-8", "replace")


def test_characters_of_several_tokens() -> None:
    """A quoted marker, then a real one, between characters that are cut in every way; text when it is complete."""
    tokenizer = ByteTokenizer(OPEN, X)
    text = f"é🍞{X}🍞é{X}🍞"
    ids = [*f"é🍞{X}🍞é".encode(), tokenizer.ids[X], *"🍞".encode()]
    for size in (1, 2, 3, 5, len(ids)):
        splitter = Splitter("qwen3", force_reasoning=True, tokenizer=tokenizer)
        given, deltas = 0, []
        for at in range(0, len(ids), size):
            upto = len(tokenizer.decode(ids[: at + size]).rstrip("\ufffd"))
            deltas.append((text[given:upto], ids[at : at + size]))
            given = upto
        assert replay(splitter, deltas).split == (("reasoning", f"é🍞{X}🍞é"), ("marker", X), ("content", "🍞")), size


def test_marker_ids_are_those_that_decode_back() -> None:
    class Odd(ByteTokenizer):
        __slots__ = ()

        def token_to_id(self, token: str) -> int | None:
            return self.ids.get(token, 0)  # an unknown token's id, as some tokenizers answer

    assert marker_ids("qwen3", Odd(OPEN, X)) == {OPEN: 256, X: 257}
    tokenizer = CharTokenizer.of_family("minimax_m3")
    assert marker_ids("minimax_m3", tokenizer) is marker_ids("minimax_m3", tokenizer)
    assert "]<]minimax[>[" in marker_ids("minimax_m3", tokenizer)


def test_a_marker_without_an_id_counts_by_its_text() -> None:
    """The tokenizer knows the closer only: the opener is told by its text, the closer by its id."""
    tokenizer = ByteTokenizer(X)
    text = f"{OPEN}a{X}b{X}c"
    ids = [*f"{OPEN}a{X}b".encode(), tokenizer.ids[X], *b"c"]
    outcome = replay(Splitter("qwen3", tokenizer=tokenizer), [(text, ids)])
    assert outcome.split == (("marker", OPEN), ("reasoning", f"a{X}b"), ("marker", X), ("content", "c"))


def test_a_tokenizer_without_markers_leaves_the_text_to_decide() -> None:
    outcome = replay(Splitter("qwen3", tokenizer=ByteTokenizer()), [(f"{OPEN}a{X}b", [1, 2])])
    assert (outcome.reasoning, outcome.content) == ("a", "b")


@pytest.mark.parametrize(
    ("deltas", "reasoning", "content"),
    [
        pytest.param([(f"a{X}b", None)], "a", "b", id="no ids at all"),
        pytest.param([("a", [97]), (f"{X}b", None)], "a", "b", id="no ids any more"),
        pytest.param(
            [("a", [97]), ("", None), (f"{X}b", [*X.encode(), 98])], f"a{X}b", "", id="an empty delta without"
        ),
        pytest.param([("a", [97] * 5), (f"{X}b", [98])], "a", "b", id="ids of another text"),
        pytest.param([(f"a{X}", [*OPEN.encode()]), (f"{X}b", [])], "a", "b", id="another marker"),
        pytest.param(
            [("x", [*X.encode()] * 300), (f"y{X}b", [1]), (f"{X}c", [])], f"xy{X}b", "c", id="text too far behind"
        ),
        pytest.param([("x" * 999, [120]), (f"{X}b", [257])], "x" * 999, "b", id="ids too far behind"),
    ],
)
def test_where_ids_and_text_disagree_the_text_decides(
    deltas: list[tuple[str, list[int] | None]], reasoning: str, content: str
) -> None:
    outcome = replay(Splitter("qwen3", force_reasoning=True, tokenizer=ByteTokenizer(OPEN, X)), deltas)
    assert (outcome.reasoning, outcome.content) == (reasoning, content)


def test_long_plain_text_then_quoted_and_real() -> None:
    """Over IDS_PENDING_MAX ids of plain text, the text up to TEXT_LAG_MAX characters behind."""
    tokenizer = CharTokenizer.of_family("qwen3")
    text = "x" * (3 * IDS_PENDING_MAX) + X + "y" * 300 + X + "z"
    quoted = (3 * IDS_PENDING_MAX, 3 * IDS_PENDING_MAX + len(X))
    tokens = list(tokenizer.tokens(text, [quoted]))
    for lag in (0, 24, TEXT_LAG_MAX):
        splitter = Splitter("qwen3", force_reasoning=True, tokenizer=tokenizer)
        waiting, deltas = "", []
        for token in tokens:
            waiting += token.text
            cut = max(len(waiting) - lag, 0)
            deltas.append((waiting[:cut], [token.id]))
            waiting = waiting[cut:]
        outcome = replay(splitter, [*deltas, (waiting, [])])
        assert outcome.reasoning == text[: -len(X) - 1], lag
        assert outcome.content == "z"


@pytest.mark.parametrize(
    ("name", "text", "ids", "reasoning", "content"),
    [
        ("qwen3", f"a{X}b", {X: 5}, f"a{X}b", ""),
        ("qwen3", f"a{X}b{X}", {X: 5}, "a", f"b{X}"),
        ("minimax_m3", "a</mm:think>b", {"<mm:think>": 5}, "a", "b"),
        ("minimax_m3", "a]<]minimax[>[<tool_call>b</mm:think>", {"]<]minimax[>[": 5, "<tool_call>": 6}, None, None),
    ],
)
def test_marker_ids_without_a_tokenizer(
    name: str, text: str, ids: dict[str, int], reasoning: str | None, content: str | None
) -> None:
    """A spelling is real while unmatched ids of that marker remain."""
    real = [] if reasoning == f"a{X}b" else list(ids.values())
    outcome = replay(Splitter(name, force_reasoning=True, marker_ids=ids), [(text, [97, *real])])
    assert "".join(t for k, t in outcome.split if k[0] != "+") == text
    if reasoning is not None:
        assert (outcome.reasoning, outcome.content) == (reasoning, content)


def test_marker_ids_without_a_tokenizer_close_at_the_end() -> None:
    splitter = Splitter("qwen3", force_reasoning=True, marker_ids={X: 5})
    assert replay(splitter, [("a ", [97, 5])]).split == (("reasoning", "a"), ("marker", " "))
    assert splitter.ended_by == "closer"


@pytest.mark.parametrize("case", [c for c in load_cases() if c.start and "prompt" in c.options], ids=lambda c: c.id)
def test_the_start_state_from_ids_is_that_from_text(case: object) -> None:
    """Section 4: prompt token ids are decoded from the last turn opener on."""
    prompt, name = case.options["prompt"], case.family  # type: ignore[attr-defined]
    more = {key: case.options[key] for key in ("turn_openers", "force_reasoning") if key in case.options}  # type: ignore[attr-defined]
    family = CharTokenizer.of_family(name)
    tokenizer = CharTokenizer([*family.ids, "<|im_start|>", "]~b]", "<|turn>", "<｜Assistant｜>", "<|assistant|>"])
    ids = [token.id for token in tokenizer.tokens(prompt)]
    by_text, by_ids = (
        start_state(prompt, name, **more),
        start_state(None, name, prompt_token_ids=ids, tokenizer=tokenizer, **more),
    )
    assert (by_ids.kind, by_ids.answer_begun, by_ids.recipient) == (
        by_text.kind,
        by_text.answer_begun,
        by_text.recipient,
    )


def test_ids_may_be_named_beside_a_tokenizer() -> None:
    splitter = Splitter("qwen3", force_reasoning=True, tokenizer=ByteTokenizer(), marker_ids={X: 300})
    assert replay(splitter, [(f"a{X}b", [*f"a{X}b".encode()])]).reasoning == f"a{X}b"


def test_a_prompt_of_ids_without_a_turn_is_read_whole() -> None:
    tokenizer = CharTokenizer(["<|im_start|>", OPEN, X])
    ids = [token.id for token in tokenizer.tokens("<|im_start|>user\nhi " * 9 + OPEN)]
    assert start_state(None, "qwen3", prompt_token_ids=ids, tokenizer=tokenizer).kind == "reasoning"


def _in_reasoning(case: Case, tokens: list[Token]) -> int:
    """Count the tokens that stand in the case's reasoning pieces."""
    kinds = [kind for kind, text in case.split if kind[0] != "+" for _ in text]
    at = total = 0
    for token in tokens:
        total += kinds[at] == "reasoning"
        at += len(token.text)
    return total


def _dropped_blanks(case: Case) -> int:
    """Count the blanks in marker pieces: a counter may count them, as the model wrote them inside the block."""
    return sum(c.isspace() for kind, text in case.split if kind == "marker" for c in text)


GATED = [case for case in load_cases() if case.ids != "no" and not case.trimmed and "tags" not in case.options]


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_the_counter_counts_the_tokens_of_reasoning(name: str) -> None:
    """On every case with ids: the tokens in reasoning pieces, give or take dropped blanks."""
    tokenizer, numbers = CharTokenizer.of_family(name), marker_ids(name, CharTokenizer.of_family(name))
    wrong = []
    for case in GATED:
        if case.family != name:
            continue
        tokens = list(tokenizer.tokens(case.text, case.quoted))
        start = Splitter(name, **case.options).start
        counter = ReasoningTokenCounter(
            name, numbers, start, tokenizer.decode, tools=case.options.get("tools") is not False
        )
        counter.feed([token.id for token in tokens])
        total = counter.finish()
        least = _in_reasoning(case, tokens)
        if not least <= total <= least + _dropped_blanks(case):
            wrong.append((case.id, total, least))
    assert wrong == []


def test_the_counter_reads_tags_that_no_vocabulary_has() -> None:
    """SPEC 5.5: of a family's pairs one may be ordinary text in a tokenizer that has tokens for the other."""
    tokenizer = CharTokenizer(["[THINK]", "[/THINK]", "[TOOL_CALLS]", "</s>"])
    numbers = marker_ids("mistral", tokenizer)
    rest = "c" * 300  # more than the counter lets wait
    for text in (f"<think>ab</think>{rest}", f"[THINK]ab[/THINK]{rest}"):
        counter = ReasoningTokenCounter("mistral", numbers, start_state("[/INST]", "mistral"), tokenizer.decode)
        counter.feed([token.id for token in tokenizer.tokens(text)])
        assert counter.finish() == 2, text


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_reasoning_ends_where_a_real_token_ends_it(name: str) -> None:
    """`reasoning_ended`: for the delta that holds it, and for no delta before."""
    tokenizer = CharTokenizer.of_family(name)
    numbers = marker_ids(name, tokenizer)
    before, end = {
        "gpt_oss": ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final", "<|message|>"),
        "muse_glimmer": (" to=self<|message|>a<|eom|><|start|>assistant to=user", "<|message|>"),
    }.get(name, ("a", FAMILIES[name].closer))
    ids = [token.id for token in tokenizer.tokens(before + end + "b")]
    at = len(ids) - 2
    answers = [reasoning_ended(name, ids[: n + 1], ids[n : n + 1], numbers, tokenizer.decode) for n in range(len(ids))]
    assert answers == [n == at for n in range(len(ids))]
    assert reasoning_ended(name, ids, ids, numbers, tokenizer.decode)
    quoted = [ord(c) for c in before + end]
    assert not reasoning_ended(name, quoted, quoted[-1:], numbers, tokenizer.decode)


@pytest.mark.parametrize(
    ("name", "text", "ended"),
    [
        ("gpt_oss", "<|channel|>analysis<|message|>", False),
        ("gpt_oss", "<|channel|>commentary to=functions.f<|message|>", None),
        ("gpt_oss", "<|message|>", True),
        ("muse_glimmer", " to=self<|message|>", False),
        ("muse_glimmer", " to=self<|message|>a to=user<|message|>", True),
        ("muse_glimmer", " to=self<|message|>a<|message|>", False),
        ("muse_glimmer", " to=self<|message|>a to=self<|message|>", False),
    ],
)
def test_what_a_message_opens(name: str, text: str, ended: bool | None) -> None:
    tokenizer = CharTokenizer.of_family(name)
    ids, numbers = [token.id for token in tokenizer.tokens(text)], marker_ids(name, tokenizer)
    answer = reasoning_ended(name, ids, ids[-1:], numbers, tokenizer.decode)
    assert ended is None or answer is ended
    assert not reasoning_ended(name, ids, ids[-1:], numbers)


def test_a_closer_of_several_tokens_is_found_in_the_text() -> None:
    tokenizer = ByteTokenizer()
    ids = [*f"a{X}b".encode()]
    answers = [reasoning_ended("qwen3", ids[: n + 1], ids[n : n + 1], {}, tokenizer.decode) for n in range(len(ids))]
    assert answers == [n == len(ids) - 2 for n in range(len(ids))]
    assert not reasoning_ended("qwen3", ids, ids, {})


def test_a_closer_of_several_tokens_needs_those_that_are_control_tokens() -> None:
    """One real piece beside a spelled one is no marker; the word between the pieces is ordinary text always."""
    tokenizer = CharTokenizer.of_family("kimi_k3")
    numbers = marker_ids("kimi_k3", tokenizer)
    text, closer = "a<|close|>think<|sep|>", (1, 22)
    piece = len("<|close|>")
    for quoted, ended in (([], True), ([(1, 1 + piece)], False), ([(closer[1] - len("<|sep|>"), closer[1])], False)):
        ids = [token.id for token in tokenizer.tokens(text, quoted)]
        assert reasoning_ended("kimi_k3", ids, ids[-1:], numbers, tokenizer.decode) is ended, quoted
        assert reasoning_ended("kimi_k3", [*ids, 98], [98], numbers, tokenizer.decode) is False


@pytest.mark.parametrize(
    ("name", "start", "rest"),
    [
        ("gpt_oss", "<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
        ("muse_glimmer", " to=self<|message|>", "to=user<|message|>"),
    ],
)
def test_the_counter_on_long_bodies(name: str, start: str, rest: str) -> None:
    """Bodies longer than any header: what is kept of them for a header is forgotten, the count is exact."""
    tokenizer = CharTokenizer.of_family(name)
    header = Splitter(name, "<|start|>assistant").start
    counter = ReasoningTokenCounter(name, marker_ids(name, tokenizer), header, tokenizer.decode)
    text = start + "x" * 1000 + rest + "y" * 1000
    assert counter.feed([token.id for token in tokenizer.tokens(text)]) == 1000


@pytest.mark.parametrize(
    ("text", "total"),
    [
        # The call's tokens: a tag, nine characters, a tag.
        pytest.param('ab<tool_call>{"a": 1}!</tool_call> no</think>c', 2 + 11 + 3, id="a draft is reasoning"),
        pytest.param('ab<tool_call>{"a": 1}!</tool_call></think>c', 2, id="a call is not"),
        pytest.param('ab<tool_call>{"a"</think>c', 2 + 5, id="a quoted one is"),
        pytest.param('ab<tool_call>{"' + "v" * 600 + "</tool_call></think>c", 2, id="a long one is not"),
    ],
)
def test_the_counter_on_calls_in_a_block(text: str, total: int) -> None:
    tokenizer = CharTokenizer.of_family("qwen3")
    start = Splitter("qwen3", force_reasoning=True).start
    counter = ReasoningTokenCounter("qwen3", marker_ids("qwen3", tokenizer), start, tokenizer.decode)
    counter.feed([token.id for token in tokenizer.tokens(text)])
    assert counter.finish() == total


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_a_running_count_covers_what_was_shown(name: str) -> None:
    """At every token of every case with ids: no token shown is missing, none is taken back or counted in advance."""
    tokenizer, numbers = CharTokenizer.of_family(name), marker_ids(name, CharTokenizer.of_family(name))
    for case in GATED:
        if case.family != name or case.options.get("stream_reasoning") is False:
            continue
        splitter = Splitter(name, tokenizer=tokenizer, **case.options)
        counter = ReasoningTokenCounter(
            name, numbers, splitter.start, tokenizer.decode, tools=case.options.get("tools") is not False
        )
        shown = before = 0
        for token in tokenizer.tokens(case.text, case.quoted):
            delta = splitter.feed(token.text, (token.id,))
            shown += sum(len(e.text) for e in delta.events if e.kind == "reasoning" and not e.synthetic)
            count = counter.feed((token.id,)) - counter.undecided(splitter.held)
            assert before <= count <= shown, case.id
            before = count


@pytest.mark.parametrize("cut", [2, 3])
def test_the_first_bytes_of_a_character_wait_for_the_others(cut: int) -> None:
    """Two real markers in a delta that ends within a character: its ids are read twice before it is whole."""
    tokenizer = ByteTokenizer("<|im_end|>", OPEN, X)
    end, eos = tokenizer.ids["<|im_end|>"], "<\uff5cend\u2581of\u2581sentence\uff5c>"
    raw = eos.encode()
    splitter = Splitter("qwen3", force_reasoning=False, prompt="a", tokenizer=tokenizer)
    splitter.observe(heard := Heard())
    got = splitter.feed("<|im_end|><|im_end|>x<", [end, end, ord("x"), *raw[:cut]]).content
    got += splitter.feed(eos[1:], [*raw[cut:], end]).content + splitter.finish().content
    assert (got, heard.alone) == (f"x{eos}", [])


class Heard:
    def __init__(self) -> None:
        self.alone: list[str] = []

    def spelling(self, marker: str, position: int, real: bool | None) -> None:
        pass

    def text_alone(self, why: str) -> None:
        self.alone.append(why)


QUOTE = "<|im_start|>user\nWrite <|im_start|>assistant\n<think>\n.<|im_end|>\n"


@pytest.mark.parametrize(
    ("prompt", "quoted", "control", "kind"),
    [
        pytest.param(QUOTE + "<|im_start|>assistant\n", "<|im_start|>assistant", (), "undecided", id="typed by a user"),
        pytest.param(
            "<|im_start|>assistant\n<think>\nwe write <|im_start|>assistant\n",
            "<|im_start|>assistant\n",
            (),
            "reasoning",
            id="typed in the open block",
        ),
        pytest.param(
            "Write <|im_start|>assistant\n<think>\n.<|im_end|><|im_assistant|>assistant<|im_middle|>",
            "",
            ("<|im_end|>", "<|im_assistant|>", "<|im_middle|>", "<think>"),
            "undecided",
            id="a tokenizer without that token",
        ),
    ],
)
def test_a_turn_opener_that_a_user_typed_opens_no_turn(
    prompt: str, quoted: str, control: tuple[str, ...], kind: str
) -> None:
    tokenizer = CharTokenizer(control) if control else CharTokenizer.of_family("qwen3")
    at = prompt.rfind(quoted) if kind == "reasoning" else prompt.find(quoted)
    spans = [(at, at + len(quoted))] if quoted else []
    ids = [token.id for token in tokenizer.tokens(prompt, spans)]
    assert start_state(None, "qwen3", prompt_token_ids=ids, tokenizer=tokenizer).kind == kind


@pytest.mark.parametrize(
    ("beginning", "off"),
    [
        ("<bos><|turn>system\n<|think|>\nBe brief.<turn|>\n", False),
        ("<bos><|turn>system\nBe brief. <|think|><turn|>\n", True),
        ("<bos>", True),
    ],
)
@pytest.mark.parametrize("as_ids", [False, True], ids=["text", "ids"])
def test_gemma4_says_in_the_first_turn_whether_it_thinks(beginning: str, off: bool, as_ids: bool) -> None:
    """SPEC 4: the start stays undecided, a gate finds reasoning ended; a user's own switch switches nothing."""
    prompt = f"{beginning}<|turn>user\n<|think|> please<turn|>\n<|turn>model\n"
    tokenizer = CharTokenizer.of_family("gemma4")
    ids = [token.id for token in tokenizer.tokens(prompt)]
    start = (
        start_state(None, "gemma4", prompt_token_ids=ids, tokenizer=tokenizer)
        if as_ids
        else start_state(prompt, "gemma4")
    )
    assert (start.kind, start.thinking_off, start.ended) == ("undecided", off, off)
