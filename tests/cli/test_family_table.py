"""The page of families is what the command writes, and every family stands in it."""

from pathlib import Path

from vllm_reasoning_ext.cli.family_table import SERVES, markdown
from vllm_reasoning_ext.core.builtin import SEVEN
from vllm_reasoning_ext.core.more import MORE

PAGE = Path(__file__).resolve().parents[2] / "docs" / "families.md"


def test_the_page_is_what_the_command_writes() -> None:
    written = PAGE.read_text(encoding="utf-8") == markdown()
    assert written, "run `vllm-reasoning-ext families --markdown > docs/families.md`"


def test_every_family_is_in_the_table_in_order() -> None:
    assert list(SERVES) == [record.name for record in (*SEVEN, *MORE)]
