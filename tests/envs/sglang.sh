#!/usr/bin/env bash
# Build the CPU environment of the SGLang tests, once per set of pins, and print its python.
#
#   PY=$(bash tests/envs/sglang.sh)
#
# It lies outside the checkout, in a folder named after the hash of the pins and of this script, so that a
# change of either builds a new one. SGLANG_TEST_PYTHON=/path/python uses an environment of your own instead;
# SGLANG_TEST_CACHE=DIR puts the cache elsewhere. Building takes about three minutes and 2.8 GB.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
base=${PYTHON:-$(command -v python3.11 || command -v python3)}
old=0.5.20 # the oldest supported SGLang: its parser module is unpacked beside, for the contract tests

install_checkout() { # the entry points must belong to this checkout, not to the one that built the environment
    "$1" -m pip install -qq --disable-pip-version-check --no-deps -e "$root" >&2
}

if [ -n "${SGLANG_TEST_PYTHON:-}" ]; then
    install_checkout "$SGLANG_TEST_PYTHON"
    echo "$SGLANG_TEST_PYTHON"
    exit 0
fi

key=$( (cat "$here/sglang.txt" "$here/sglang.nodeps.txt" "$here/sglang.sh"; "$base" --version) | sha256sum | cut -c1-12)
cache=${SGLANG_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vllm-reasoning-ext}
env=$cache/sglang-$key
mkdir -p "$cache"
exec 9>"$cache/sglang.lock"
flock 9 # two runs at once build it once

if [ ! -e "$env/complete" ]; then
    echo "building the SGLang CPU environment in $env (about three minutes)" >&2
    rm -rf "$env"
    "$base" -m venv "$env"
    pip=("$env/bin/python" -m pip install -qq --disable-pip-version-check)
    "${pip[@]}" -r "$here/sglang.txt" >&2
    "${pip[@]}" --no-deps -r "$here/sglang.nodeps.txt" >&2
    "${pip[@]}" --no-deps --target "$env/sglang-$old" "sglang==$old" >&2
    # torchvision's wheel is built for CUDA; on a CPU torch two of its operators are never declared and its
    # import fails. Declaring them is enough: no test ever calls one.
    meta=$(echo "$env"/lib/python3*/site-packages/torchvision/_meta_registrations.py)
    { cat "$here/sglang.torchvision.py"; cat "$meta"; } >"$meta.new"
    mv "$meta.new" "$meta"
    "$env/bin/python" -c 'import sglang.srt.parser.reasoning_parser' >&2
    touch "$env/complete"
fi
install_checkout "$env/bin/python"
echo "$env/bin/python"
