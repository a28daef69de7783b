"""SECURITY.md: every promise names its tests, and the tests are there; and the promises of what is not done."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import vllm_reasoning_ext
from tests.serve.liars import lying, reply
from tests.serve.servers import Upstream, proxied

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "SECURITY.md"
PACKAGE = Path(vllm_reasoning_ext.__file__).parent

NETWORK = {
    "socket",
    "ssl",
    "asyncio",
    "http",
    "urllib",
    "httpx",
    "httpcore",
    "requests",
    "aiohttp",
    "smtplib",
    "ftplib",
}
EXECUTION = {"subprocess", "os", "pickle", "marshal", "shelve", "runpy", "code", "ctypes", "multiprocessing"}
BUILTINS = {"eval", "exec", "compile", "__import__", "open"}


def promises() -> list[str]:
    """Give the points of the section on what is promised."""
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition("## What is promised")[2].partition("## What is not promised")[0]
    return re.findall(r"^- (.*?)(?=^- |^\*\*|\Z)", section, re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(not PAGE.exists(), reason="the page is not in the installed package")
def test_every_promise_names_tests_that_are_there() -> None:
    found = promises()
    assert len(found) == PAGE.read_text(encoding="utf-8").partition("## What is not")[0].count("\n- ") > 15
    for promise in found:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", promise)
        assert named, promise
        for path, name in named:
            assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (path, name)


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


def called(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


READERS = sorted([*(PACKAGE / "core").rglob("*.py"), *(PACKAGE / "wire").rglob("*.py")])


@pytest.mark.parametrize("path", READERS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_reads_model_text_executes_and_sends_nothing(path: Path) -> None:
    assert not set(imported(path)) & (NETWORK | EXECUTION)
    assert not set(called(path)) & BUILTINS


def test_only_the_proxy_and_the_demo_open_connections() -> None:
    assert len(READERS) > 20
    users = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if set(imported(path)) & (NETWORK - {"asyncio"})
    }
    assert users == {"serve/proxy/app.py", "serve/proxy/forward.py", "demo/ports.py", "demo/vllm_server.py"}


def test_proxy_settings_of_the_environment_are_not_read(
    upstream_at: tuple[Upstream, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login user password s3cret\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(netrc))
    with lying(reply(b"elsewhere")) as elsewhere, lying(reply(b"here")) as here:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, elsewhere.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        with proxied(here.url) as base:
            assert httpx.get(base + "/x", trust_env=False).content == b"here"
        assert not elsewhere.requests
        assert b"authorization" not in here.requests[0].lower()
