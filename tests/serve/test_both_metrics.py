"""The parser and the middleware in one server: both sets of counters, each name with one set of labels."""

import subprocess
import sys

import pytest

pytest.importorskip("prometheus_client")

BOTH = """
import logging, sys
logging.basicConfig(level=logging.WARNING)
order = sys.argv[1:]
def parser():
    from vllm_reasoning_ext.engines.vllm import metrics
    metrics.prepare("qwen3")
    metrics.record(metrics.Split("qwen3", "chat", "reasoning", "closer", False, 3, False))
def middleware():
    from vllm_reasoning_ext.serve.metrics import shared
    from vllm_reasoning_ext.wire.translation import Outcome
    shared().split(Outcome("chat", "stream", "closed", 3, 4))
for name in order:
    {"parser": parser, "middleware": middleware}[name]()
from prometheus_client import REGISTRY, generate_latest
print(generate_latest(REGISTRY).decode())
"""


@pytest.mark.parametrize("order", [("parser", "middleware"), ("middleware", "parser")])
def test_both_sets_of_counters_are_there(order: tuple[str, str]) -> None:
    done = subprocess.run([sys.executable, "-c", BOTH, *order], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert 'reasoning_ext_splits_total{end="closer",family="qwen3",start="reasoning",surface="chat"} 1.0' in done.stdout
    assert 'reasoning_ext_translations_total{end="closed",mode="stream",surface="chat"} 1.0' in done.stdout
    assert 'reasoning_ext_chars_total{channel="reasoning",surface="chat"} 3.0' in done.stdout
