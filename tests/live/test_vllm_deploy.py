"""Ways to deploy: a plug-in file in place of the entry point, several front ends, data parallel."""

from pathlib import Path

import pytest

from tests.live.chat_outputs import CHAT, flags, splits, wait_until
from tests.live.conftest import Start
from tests.support.outputs import of_family
from vllm_reasoning_ext.demo.chat_reply import from_body, from_events, wanted

pytestmark = [pytest.mark.vllm, pytest.mark.live]

FAMILY = "muse_glimmer"


def test_a_plugin_file_is_enough(start_vllm: Start, tmp_path: Path) -> None:
    """The three lines of docs/vllm.md, with every entry point switched off."""
    page = Path(__file__).parents[2] / "docs" / "vllm.md"
    code = page.read_text(encoding="utf-8").partition("# reasoning_ext.py\n")[2].partition("```")[0]
    plugin = tmp_path / "reasoning_ext.py"
    plugin.write_text(code, encoding="utf-8")
    named = ("--reasoning-parser-plugin", str(plugin), "--reasoning-parser", f"{FAMILY}_ext")
    scripted = start_vllm(FAMILY, *named, env=(("VLLM_PLUGINS", "none"),))
    for output in of_family(FAMILY):
        if not output.cities:
            assert from_body(scripted.server.post(CHAT, scripted.body(output))).shown == wanted(output), output.name
    log = scripted.server.log.read_text(encoding="utf-8")
    assert "VLLM_REASONING_EXT_KEEP_BUILTIN" in log  # the line that says what was replaced


@pytest.mark.parametrize(
    "several", [("--api-server-count", "2"), ("--data-parallel-size", "2")], ids=lambda f: f[0][2:]
)
def test_several_processes_serve_alike(start_vllm: Start, several: tuple[str, ...]) -> None:
    """Nothing of ours is shared between front ends or engines: whoever answers, the reply is the same."""
    scripted = start_vllm(FAMILY, *flags(FAMILY), *several, engine=True, cli=True)
    outputs = of_family(FAMILY)
    for output in outputs:
        body = scripted.body(output)
        for _ in range(3):
            assert from_body(scripted.server.post(CHAT, body)).shown == wanted(output), output.name
            assert from_events(scripted.server.stream(CHAT, body)).shown == wanted(output), output.name
    # Every front end's counts are on the page, whichever of them is asked for it.
    everything = 6 * len(outputs)
    wait_until(lambda: splits(scripted, family=FAMILY) == everything)
    assert splits(scripted, family=FAMILY) == everything
