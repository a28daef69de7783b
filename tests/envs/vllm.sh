#!/usr/bin/env bash
# Build the environment of the vLLM tests and of the demo, once per set of pins, and print its python.
#
#   PY=$(bash tests/envs/vllm.sh)
#
# Without a GPU it is vLLM's CPU build, outside the checkout, in a folder named after the hash of the pins and of
# this script, so that a change of either builds a new one (about three minutes, 3 GB; python 3.11 or newer is needed).
# Used instead, with only this package installed into it:
#   VLLM_EXT_VLLM_PYTHON=/path/python   an environment of your own that has vLLM
#   the active python3, if it can import vLLM (a CUDA host)
# VLLM_EXT_CACHE=DIR puts the cache elsewhere. VLLM_EXT_WHEEL=FILE installs that wheel and not the checkout.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
base=${PYTHON:-$(command -v python3.11 || command -v python3)}
torch=2.13.0

install_package() { # the entry points must belong to this checkout, not to the one that built the environment
    if [ -n "${VLLM_EXT_WHEEL:-}" ]; then
        "$1" -m pip install -q --disable-pip-version-check --no-deps --force-reinstall "$VLLM_EXT_WHEEL" >&2
    else
        "$1" -m pip install -q --disable-pip-version-check --no-deps -e "$root" >&2
    fi
}

python=${VLLM_EXT_VLLM_PYTHON:-}
if [ -z "$python" ] && python3 -c 'import importlib.util as u, sys; sys.exit(u.find_spec("vllm") is None)' 2>/dev/null; then
    python=$(command -v python3)
fi
if [ -n "$python" ]; then
    echo "using the vLLM of $python" >&2
    install_package "$python"
    echo "$python"
    exit 0
fi

key=$( (cat "$here/vllm.txt" "$here/vllm.sh"; "$base" --version) | sha256sum | cut -c1-12)
cache=${VLLM_EXT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vllm-reasoning-ext}
env=$cache/vllm-$key
mkdir -p "$cache"
exec 9>"$cache/vllm.lock"
flock 9 # two runs at once build it once

if [ ! -e "$env/complete" ]; then
    echo "building the vLLM CPU environment in $env (about three minutes)" >&2
    rm -rf "$env"
    "$base" -m venv "$env"
    pip=("$env/bin/python" -m pip --disable-pip-version-check)
    # torch first and alone: vLLM's CPU build takes whatever torch is there, and a CPU build of it saves gigabytes.
    "${pip[@]}" install -q "torch==$torch" >&2
    "${pip[@]}" install -q -r "$here/vllm.txt" >&2
    # Their builds on the package index are made for a CUDA torch and break the import beside a CPU one.
    "${pip[@]}" uninstall -q -y torchvision torchaudio torchcodec >&2
    "$env/bin/python" -c 'import vllm.reasoning' >&2
    touch "$env/complete"
fi
install_package "$env/bin/python"
echo "$env/bin/python"
