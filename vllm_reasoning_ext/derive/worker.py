"""The process that compiles and renders one chat template; it may hang, swell or die without harm to its caller.

It runs as a script, isolated (`python -I`), and imports nothing of this package: one JSON object a line comes in,
one goes out. The environment has the settings of transformers' `apply_chat_template`, so that a template renders
here as an engine renders it.
"""

import contextlib
import json
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any


def limit(cpu_seconds: int, memory_bytes: int) -> None:
    """Bound this process where the operating system can; its parent's clock bounds it everywhere."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def environment(mutable: bool) -> Any:
    """Build the sandbox; a mutable one lets the template change lists and mappings."""
    from jinja2 import TemplateError, nodes
    from jinja2.exceptions import SecurityError
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment
    from jinja2.utils import Namespace

    class Generation(Extension):
        """`{% generation %}`: what the model wrote, for training; here its body alone counts."""

        tags = {"generation"}  # noqa: RUF012 - the name and form jinja2 asks for

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body).set_lineno(line)

    class Dictionary:
        """`dict` without the class's own attributes."""

        def __call__(self, *args: Any, **named: Any) -> dict[Any, Any]:
            return dict(*args, **named)

        def fromkeys(self, *args: Any) -> dict[Any, Any]:
            return dict.fromkeys(*args)

    class Names(Namespace):  # type: ignore[misc, unused-ignore]
        """`namespace` that refuses names with a leading underscore, as transformers does."""

        def __init__(*args: Any, **named: Any) -> None:
            values = dict(*args[1:], **named)
            for name in values:
                Names.check(name)
            Namespace.__init__(args[0], values)

        def __setitem__(self, name: str, value: Any) -> None:
            Names.check(name)
            Namespace.__setitem__(self, name, value)

        @staticmethod
        def check(name: Any) -> None:
            if isinstance(name, str) and name.startswith("_"):
                raise SecurityError(f"a namespace may not hold {name!r}")

    def refuse(message: str) -> None:
        raise TemplateError(message)

    def to_json(
        value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
    ) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    kind = SandboxedEnvironment if mutable else ImmutableSandboxedEnvironment
    made = kind(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    made.globals["dict"] = Dictionary()
    made.globals["namespace"] = Names
    return made


def seen_in(tree: Any) -> dict[str, Any]:
    """List what a template's syntax tree shows: texts, variables, the fields it reads, the values it compares."""
    from jinja2 import meta, nodes

    texts = [node.data for node in tree.find_all(nodes.TemplateData)]
    constants = [node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)]
    fields = [node.attr for node in tree.find_all(nodes.Getattr)]
    fields += [node.arg.value for node in tree.find_all(nodes.Getitem) if _text(node.arg)]
    compared: dict[str, list[Any]] = {}
    for node in tree.find_all(nodes.Compare):
        sides = [node.expr, *(operand.expr for operand in node.ops)]
        names = [name for side in sides for name in _names(side, nodes)]
        for value in [value for side in sides for value in _values(side, nodes)]:
            for name in names:
                compared.setdefault(name, []).append(value)
        if any(operand.op in ("in", "notin") for operand in node.ops) and _text(node.expr):
            fields.append(node.expr.value)
    for table, key in _looked_up(tree, nodes):
        for name in _names(key, nodes):
            compared.setdefault(name, []).extend(item.key.value for item in table.items if _text(item.key))
    for node in tree.find_all(nodes.Call):
        if isinstance(node.node, nodes.Getattr) and node.node.attr == "get" and node.args and _text(node.args[0]):
            fields.append(node.args[0].value)
    return {
        "texts": list(dict.fromkeys(texts)),
        "constants": list(dict.fromkeys(constants)),
        "fields": list(dict.fromkeys(fields)),
        "compared": {name: list(dict.fromkeys(map(json.dumps, values))) for name, values in compared.items()},
        "variables": sorted(meta.find_undeclared_variables(tree)),
        "assigned": sorted({node.name for node in tree.find_all(nodes.Name) if node.ctx in ("store", "param")}),
    }


def _looked_up(tree: Any, nodes: Any) -> Iterator[tuple[Any, Any]]:
    """List the literal mappings in which a template looks something up, with what it looks up."""
    for node in tree.find_all(nodes.Getitem):
        if isinstance(node.node, nodes.Dict):
            yield node.node, node.arg
    for node in tree.find_all(nodes.Call):
        called = node.node
        if isinstance(called, nodes.Getattr) and isinstance(called.node, nodes.Dict) and node.args:
            yield called.node, node.args[0]


def _text(node: Any) -> bool:
    return isinstance(getattr(node, "value", None), str)


def _names(node: Any, nodes: Any) -> list[str]:
    """Name the variable or field that a side of a comparison reads."""
    if isinstance(node, nodes.Filter | nodes.Call | nodes.Test):
        return _names(node.node, nodes)
    if isinstance(node, nodes.Getattr):
        return [node.attr, *(_names(node.node, nodes) if node.attr in ("lower", "strip", "upper") else [])]
    if isinstance(node, nodes.Getitem) and _text(node.arg):
        return [node.arg.value]
    return [node.name] if isinstance(node, nodes.Name) else []


def _values(node: Any, nodes: Any) -> list[Any]:
    if isinstance(node, nodes.Const):
        return [node.value]
    if isinstance(node, nodes.List | nodes.Tuple):
        return [item.value for item in node.items if isinstance(item, nodes.Const)]
    return []


def render(template: Any, context: dict[str, Any], most: int) -> str:
    """Render, and stop as soon as the text is longer than `most` characters."""
    pieces: list[str] = []
    size = 0
    for piece in template.generate(**context):
        size += len(piece)
        if size > most:
            raise OverflowError(f"the rendering is longer than {most} characters")
        pieces.append(piece)
    return "".join(pieces)


def told(error: BaseException) -> dict[str, Any]:
    """Describe an error in one line."""
    first = (str(error).strip().splitlines() or [""])[0]
    line = getattr(error, "lineno", None)
    where = f" (line {line})" if line else ""
    fatal = isinstance(error, MemoryError | OverflowError | RecursionError)
    return {"error": f"{type(error).__name__}: {first}{where}"[:300], "fatal": fatal}


def main() -> None:
    """Serve one template: the first line is the job, each further line one conversation."""
    answers = sys.stdout
    sys.stdout = sys.stderr  # nothing but answers on the pipe
    job = json.loads(sys.stdin.readline())
    sys.path[:] = job["path"]

    def answer(value: dict[str, Any]) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    limit(job["cpu_seconds"], job["memory_bytes"])
    try:
        made = environment(False)
        shown = seen_in(made.parse(job["template"]))
        templates = [made.from_string(job["template"]), environment(True).from_string(job["template"])]
    except Exception as error:
        answer(told(error))
        return
    answer({"seen": shown})
    for line in sys.stdin:
        try:
            question = json.loads(line)
            answer({"text": render(templates[question["mutable"]], question["context"], job["most"])})
        except Exception as error:
            answer(told(error))


if __name__ == "__main__":
    main()
