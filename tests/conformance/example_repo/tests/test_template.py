"""The published template and the parser that serves it agree, in every mode."""

import pytest


@pytest.mark.reasoning_conformance(family="qwen3", template="../chat_template.jinja")
def test_template(reasoning_case):
    reasoning_case.check()
