"""Finding a model on this machine: a directory, or ORG/NAME in the local cache of the Hugging Face hub."""

import contextlib
import os
import re
from pathlib import Path
from typing import Final

from vllm_reasoning_ext.errors import SetupError

_NAME: Final = re.compile(r"[\w.-]+(/[\w.-]+)?")


def model_directory(model: str, option: str) -> Path:
    """Find a model's directory; nothing is downloaded.

    Args:
        model: a directory, or a name as engines take it.
        option: where it was given, for the message.

    Raises:
        SetupError: there is no such directory, and no such model in the cache.
    """
    found = find_model(model, option)
    if found is not None:
        return found
    raise SetupError(
        f"there is no directory {model}" + (f", and no such model in {hub_cache()}" if _NAME.fullmatch(model) else ""),
        option,
        "give the model's directory, or download it first: hf download ORG/NAME",
    )


def model_files(where: str, option: str) -> Path:
    """Find a file, a model's directory or a model in the hub's cache, as `model_directory` does."""
    path = Path(where).expanduser()
    return path if path.is_file() else model_directory(where, option)


def find_model(model: str, option: str) -> Path | None:
    """Find a model's directory, as `model_directory` does; None for a name that is not on this machine.

    Raises:
        SetupError: the model is empty, or what can only be a path is no directory.
    """
    if not model.strip():
        raise SetupError("no model was named", option, "give a model's directory, or its name as in Qwen/Qwen3-8B")
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    if model.startswith(("/", "./", "../", "~")):
        raise SetupError(
            f"there is no directory {path}",
            option,
            "give a model's directory on this machine, or its name as in Qwen/Qwen3-8B",
        )
    return _cached(model) if _NAME.fullmatch(model) else None


def hub_cache() -> Path:
    """Name the directory in which the hub's downloads lie, by the variables that its own library reads."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return Path(os.environ[variable]).expanduser()
    home = os.environ.get("HF_HOME")
    if not home:
        home = os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")  # noqa: PTH118
    return Path(home).expanduser() / "hub"


def _cached(name: str) -> Path | None:
    repository = hub_cache() / f"models--{name.replace('/', '--')}"
    snapshots = repository / "snapshots"
    with contextlib.suppress(OSError):  # a download by revision leaves no ref
        named = (repository / "refs" / "main").read_text(encoding="utf-8").strip()
        if named and (snapshots / named).is_dir():
            return snapshots / named
    try:
        return max((each for each in snapshots.iterdir() if each.is_dir()), key=lambda each: each.stat().st_mtime)
    except (OSError, ValueError):  # no such download, or an unfinished one
        return None
