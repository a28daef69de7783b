"""Score records derived from real chat templates against an answer key, row by row.

The templates are those of two packages, whose archives are fetched with pip into a cache directory and read there;
none is part of this repository:

    python -m benchmarks.derive_templates --key template_forms.jsonl --cache /tmp/derive-templates
    python -m benchmarks.derive_templates --cache /tmp/derive-templates --all     # every template, no key
    python -m benchmarks.derive_templates --key … --cache … --sglang PYTHON       # SGLang's own detection beside it
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from vllm_reasoning_ext.derive.derivation import Derivation, derive
from vllm_reasoning_ext.errors import SetupError

PACKAGES: Final = {
    "llama.cpp": ("llama_cpp_python==0.3.36", "llama_cpp_python-0.3.36.tar.gz", ["--no-binary", ":all:"]),
    "xinference": ("xinference==4.1.0", "xinference-4.1.0-py3-none-any.whl", []),
}
"""Set -> requirement, archive, further options of `pip download`."""


class Score(NamedTuple):
    """The judgement of one row.

    Attributes:
        right: the record is the key's, or a built-in family that is equally right, or "no reasoning" where that is.
        warned: the derivation said that something is doubtful.
        wrong: the fields that differ.
    """

    right: bool
    warned: bool
    wrong: tuple[str, ...]


def archive(cache: Path, name: str) -> Path:
    """Give a package's archive, downloading it first if it is not there."""
    requirement, file, options = PACKAGES[name]
    path = cache / file
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--no-deps", *options, requirement, "-d", str(cache)]
        subprocess.run(command, check=True)
    return path


def templates(cache: Path) -> Iterator[tuple[str, str, str]]:
    """List the templates of both packages: set, file name, text."""
    with tarfile.open(archive(cache, "llama.cpp")) as tar:
        for member in tar:
            if "/vendor/llama.cpp/models/templates/" in member.name and member.name.endswith(".jinja"):
                file = tar.extractfile(member)
                assert file is not None
                yield "llama.cpp", Path(member.name).name, file.read().decode("utf-8")
    with zipfile.ZipFile(archive(cache, "xinference")) as wheel:
        for name in wheel.namelist():
            if name.startswith("xinference/model/llm/models/") and name.endswith(".json"):
                for model in _models(json.loads(wheel.read(name))):
                    yield "xinference", f"{model['model_name']}.jinja", model["chat_template"]


def _models(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if isinstance(value.get("chat_template"), str) and value["chat_template"]:
            yield value
        for inner in value.values():
            yield from _models(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _models(inner)


def digest(template: str) -> str:
    """Name a template as the key does: the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(template.encode("utf-8")).hexdigest()[:16]


def judge(row: Mapping[str, Any], found: Derivation | None) -> Score:
    """Compare a derivation with a row of the key, field by field."""
    verdict = row["verdict"]
    warned = found is not None and bool(found.warnings)
    if found is None or found.family is None:
        right = verdict is None or row["null_acceptable"]
        return Score(right, warned, () if right else ("no record",))
    if verdict is None:
        return Score(False, warned, ("a record where the key has none",))
    if verdict["builtin"] is not None and verdict["builtin"] == found.builtin:
        return Score(True, warned, ())
    wrong = tuple(name for name, same in _compared(verdict, found).items() if not same)
    return Score(not wrong, warned, wrong)


def _compared(verdict: Mapping[str, Any], found: Derivation) -> dict[str, bool]:
    family = found.family
    assert family is not None
    tools = [(tool.marker, closer) for tool in family.tools for closer in (tool.closers or ("",))]
    wanted = [(tool["marker"], tool["closer"] or "") for tool in verdict["tools"] or []]
    answer = verdict["answer"] and tuple(part or "" for part in verdict["answer"])
    return {
        "grammar": family.grammar == verdict["grammar"],
        "pairs": [list(pair) for pair in family.pairs] == verdict["pairs"],
        "label": family.label == verdict["label"],
        "always_open": family.always_open == verdict["always_open"],
        "answer": answer in family.answer if answer else not family.answer,
        "tools": set(wanted) <= set(tools) and bool(wanted) == bool(tools),
        "turn_openers": set(verdict["turn_openers"]) <= set(family.turn_openers),
        "end_of_sequence": set(verdict["end_of_sequence"]) <= set(family.end_of_sequence),
    }


def derived(template: str) -> tuple[Derivation | None, str]:
    """Derive, and give the error's words where that fails."""
    try:
        return derive(template), ""
    except SetupError as error:
        return None, str(error)


# SGLang also looks into the vocabulary. Without a tokenizer, the tags that stand in the template make one.
_SGLANG: Final = """
import json, re, sys
from sglang.srt.parser import template_detection as d
found = []
for text in json.load(sys.stdin):
    force, config = d.detect_reasoning_pattern(text)
    vocab = set(re.findall(r"<[^<>\\s]{1,80}>|\\[/?[A-Z_]+\\]", text))
    context = d.TemplateDetectionContext(template=text, reasoning_config=config, force_reasoning=force, vocab=vocab)
    found.append(next((rule.value for rule in d.REASONING_PARSER_RULES if rule.predicate(context)), None))
print(json.dumps(found))
"""


def by_sglang(python: str, texts: Sequence[str]) -> list[str | None]:
    """Ask SGLang's own detection, in its environment, which reasoning parser each template needs."""
    done = subprocess.run([python, "-c", _SGLANG], input=json.dumps(texts), capture_output=True, text=True, check=True)
    found: list[str | None] = json.loads(done.stdout.splitlines()[-1])
    return found


def score(key: Path, cache: Path, sglang: str | None) -> int:
    """Print the score of every row, and the totals; 1 if a row that is not doubtful is wrong without a warning."""
    texts = {(group, digest(text)): text for group, _, text in templates(cache)}
    rows = [json.loads(line) for line in key.read_text(encoding="utf-8").splitlines() if line]
    others = by_sglang(sglang, [texts[row["set"], row["sha256"]] for row in rows]) if sglang else [None] * len(rows)
    counts = dict.fromkeys(("sure", "sure right", "doubtful", "doubtful right", "wrong without a warning", "sglang"), 0)
    for row, other in zip(rows, others, strict=True):
        found, error = derived(texts[row["set"], row["sha256"]])
        result = judge(row, found)
        kind = "doubtful" if row["doubtful"] else "sure"
        counts[kind] += 1
        counts[f"{kind} right"] += result.right
        counts["wrong without a warning"] += not (result.right or result.warned)
        theirs = (row["verdict"] or {}).get("sglang")
        counts["sglang"] += kind == "sure" and (theirs or "").split(" ")[0] == (other or "")
        builtin = found.builtin if found else None
        words = [kind, "right" if result.right else f"WRONG {', '.join(result.wrong)}", builtin or "-"]
        words += [f"SGLang {other or '-'} (key {theirs or '-'})"] if sglang else []
        words += [f"error: {error}"] if error else []
        print(f"{row['set']:10} {row['template']:58} {'  '.join(words)}{'  warned' if result.warned else ''}")
    print(f"not doubtful: {counts['sure right']} of {counts['sure']} right")
    print(f"doubtful: {counts['doubtful right']} of {counts['doubtful']} right")
    print(f"wrong without a warning: {counts['wrong without a warning']}")
    if sglang:
        print(f"SGLang's own detection, not doubtful: {counts['sglang']} of {counts['sure']} as the key says")
    return int(bool(counts["wrong without a warning"]))


def show(cache: Path) -> int:
    """Print what each template gives, once for each text."""
    known: set[str] = set()
    for group, name, text in templates(cache):
        if digest(text) in known:
            continue
        known.add(digest(text))
        found, error = derived(text)
        family = found.family if found else None
        print(f"{group} {name}: {error or (family and (family.pairs or family.name)) or 'no reasoning'}")
        if family is not None and found is not None and not family.channels:
            print(f"    builtin {found.builtin}, turn {family.turn_openers[:1]}, answer {family.answer}")
            print(f"    tools {[(tool.marker, tool.closers) for tool in family.tools]}, ends {family.end_of_sequence}")
            print(f"    starts {dict(found.starts)}, warnings {list(found.warnings)}, unseen {list(found.unseen)}")
    return 0


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="where the packages' archives lie or shall lie")
    parser.add_argument("--key", type=Path, help="the answer key, one JSON row a line")
    parser.add_argument("--all", action="store_true", help="print the record of every template instead")
    parser.add_argument("--sglang", metavar="PYTHON", help="the Python of an environment with SGLang")
    options = parser.parse_args()
    if options.all:
        return show(options.cache)
    if options.key is None:
        parser.error("--key FILE or --all is needed")
    return score(options.key, options.cache, options.sglang)


if __name__ == "__main__":
    sys.exit(main())
