#!/usr/bin/env bash
# Build the wheel, check its metadata, install it into a clean environment outside the checkout and run the
# light tests on what was installed.
#
#   VENV=.venv bash tests/wheel.sh [pytest arguments]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
venv=${VENV:-$root/.venv}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$venv/bin/python" -m build --outdir "$work/dist" "$root" >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
"$venv/bin/twine" check --strict "$work"/dist/*

python3 -m venv "$work/env"
pip=("$work/env/bin/python" -m pip install -q --disable-pip-version-check)
"${pip[@]}" --upgrade 'pip>=25.1'
wheel=$(ls "$work"/dist/*.whl)
# The engine hosts' view first: the library and the plugin must import with nothing but the wheel beside them.
"${pip[@]}" --no-deps "$wheel"
(cd "$work" && env/bin/python -c "
import sys
import vllm_reasoning_ext
from vllm_reasoning_ext.engines.register import register_sglang, register_vllm
register_vllm(); register_sglang()
extra = {'typer', 'rich', 'httpx', 'starlette'} & set(sys.modules)
assert not extra, extra
assert vllm_reasoning_ext.split('<think>a</think>b', 'qwen3').content == 'b'
print('the bare wheel imports, registers and splits with the standard library alone')
")
(cd "$root" && "${pip[@]}" "$wheel[proxy,conformance]" --group test)

# The tests beside the installed package, without the checkout's own copy of it.
mkdir "$work/tree"
cp -r "$root"/{tests,benchmarks,templates,docs,pyproject.toml,README.md,CHANGELOG.md,CONTRIBUTING.md,SECURITY.md} "$work/tree/"
cp -r "$root"/{Makefile,.ci,.github,.pre-commit-config.yaml} "$work/tree/"
cd "$work/tree"
"$work/env/bin/python" tests/twice.py -m 'not live and not vllm and not sglang' "$@"
