# Two commands matter on a fresh machine with python3.11+ and make:
#   make demo    the parser in a real vLLM server, beside vLLM's own
#   make test    everything that proves the package here, real engines included
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check

# Each target that takes long says first what it does and how many minutes that takes on 2 idle cores: its own line of
# `make help`. The minutes are measured by `make test`, which prints them; CONTRIBUTING.md has the same.
say = @sed -nE 's/^$@:.*\#\# (.*)/$@: \1/p' $(firstword $(MAKEFILE_LIST))

.PHONY: help venv format lint test test-light clean

help: ## what there is to make
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort

# pip older than 25.1 knows no dependency groups, and a new virtual environment may bring one.
$(BIN)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade "pip>=25.1"
	$(PIP) -e '.[proxy,conformance]' --group dev
	@touch $@

venv: $(BIN)/ready ## .venv with the package (editable) and everything the light tests need

format: venv ## ruff, fixes applied
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lint: venv ## ruff and mypy, as CI sees them (about 1 minute)
	$(say)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test-light: venv ## the tests without an engine, on the built wheel, outside the checkout (about 4 minutes)
	$(say)
	VENV=$(CURDIR)/$(VENV) bash tests/wheel.sh

# Two lanes, one for each core: each engine has its own, and the light tests run while vLLM's environment is built.
test: ## everything, real engines included (about 15 minutes, and 10 more the first time)
	$(say)
	+MAKE="$(MAKE)" $(PYTHON) tests/stages.py lint,test-light,test-sglang test-vllm

# The engine environments lie outside the checkout, cached by their pins; see the head of tests/envs/vllm.sh.
# Where the minutes of an engine stage go is printed at its end.
SLOWEST := --durations=15 --durations-min=5
.PHONY: demo smoke-cuda test-vllm bench core-bench calls compat harmony-table

demo: ## a real vLLM server, nine scripted outputs, beside vLLM's own parser (about 2 minutes)
	$(say)
	PY=$$(bash tests/envs/vllm.sh) && "$$PY" -m vllm_reasoning_ext.demo

smoke-cuda: ## the demo on the vLLM of the active python3, with its GPU (never run by CI)
	PY=$$(VLLM_EXT_VLLM_PYTHON=$${VLLM_EXT_VLLM_PYTHON:-$$(command -v python3)} bash tests/envs/vllm.sh) \
	&& "$$PY" -c 'import torch; assert torch.cuda.is_available(), "torch sees no GPU here: make demo needs none"' \
	&& "$$PY" -m vllm_reasoning_ext.demo --cuda

test-vllm: ## contract and live tests, in the vLLM environment (about 12 minutes)
	$(say)
	PY=$$(bash tests/envs/vllm.sh) && "$$PY" tests/twice.py $(SLOWEST) -m vllm tests/engines tests/live

.PHONY: test-sglang
test-sglang: ## the same outputs in a real SGLang server on the CPU, contracts of 0.5.23 and 0.5.20 (about 8 minutes)
	$(say)
	PY=$$(bash tests/envs/sglang.sh) \
	&& "$$PY" tests/twice.py $(SLOWEST) -m sglang tests/engines tests/live/sglang \
	&& PYTHONPATH="$$(dirname "$$(dirname "$$PY")")/sglang-0.5.20" "$$PY" -m pytest tests/engines/test_sglang_*.py

bench: ## cost per token inside vLLM, beside a do-nothing parser and vLLM's own (about 1 minute)
	$(say)
	PY=$$(bash tests/envs/vllm.sh) && "$$PY" -m benchmarks.vllm_delta

core-bench: ## the core's cost per token in every phase, beside the Rust harmony parser and vLLM's own (about 1 minute)
	$(say)
	PY=$$(bash tests/envs/vllm.sh) && "$$PY" -m benchmarks.core_phases

calls: venv ## Python calls per delta, against the committed baseline; ARGS=--write renews it (seconds)
	$(BIN)/python -m benchmarks.calls $(or $(ARGS),--check)

harmony-table: ## outputs of gpt-oss through our parser, beside vLLM's own
	PY=$$(bash tests/envs/vllm.sh) && "$$PY" -m benchmarks.harmony_table

compat: ## the contract tests against vLLM 0.24, 0.28, 0.32 and 0.33; three wheels come once (minutes)
	$(say)
	PY=$$(bash tests/envs/vllm.sh) && "$$PY" -m benchmarks.compat

.PHONY: laws linear
laws: venv ## the laws as properties, at least 20,000 examples (about 3 minutes)
	$(say)
	LAWS_PROFILE=laws $(BIN)/python -m pytest tests/laws

linear: venv ## cost per character at 10 kB, 100 kB and 1 MB, every family, hostile text too (about 5 minutes)
	$(say)
	$(BIN)/python -m benchmarks.linear -v

clean: ## what builds and tests left in the checkout
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
