"""One scripted upstream and one proxy before it, for all the tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.serve.servers import Upstream, proxied, running

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")


@pytest.fixture(scope="session")
def upstream_at() -> Iterator[tuple[Upstream, str]]:
    upstream = Upstream()
    with running(upstream.app) as base:
        yield upstream, base


@pytest.fixture
def upstream(upstream_at: tuple[Upstream, str]) -> Upstream:
    found, _ = upstream_at
    found.seen.clear()
    found.bodies.clear()
    found.gone.clear()
    found.resume.clear()
    return found


@pytest.fixture(scope="session")
def proxy(upstream_at: tuple[Upstream, str]) -> Iterator[str]:
    with proxied(upstream_at[1]) as base:
        yield base
