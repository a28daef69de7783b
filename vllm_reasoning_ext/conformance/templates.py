"""Where the package's own chat templates lie: in a wheel inside the package, in a checkout beside it."""

from pathlib import Path

from vllm_reasoning_ext.errors import SetupError

_PACKAGE = Path(__file__).resolve().parents[1]


def template_directory() -> Path:
    """Find the directory of the packaged templates."""
    inside = _PACKAGE / "templates"
    return inside if inside.is_dir() else _PACKAGE.parent / "templates"


def template_names() -> list[str]:
    """List the packaged templates."""
    return sorted(path.stem for path in template_directory().glob("*.jinja"))


def template_path(name: str) -> Path:
    """Find a packaged template by its family's name.

    Raises:
        SetupError: there is none of that name.
    """
    path = template_directory() / f"{name.replace('-', '_')}.jinja"
    if not path.is_file():
        raise SetupError(
            f"no packaged template is called {name}",
            str(template_directory()),
            f"choose one of {', '.join(template_names())}",
        )
    return path
