"""Where sql/ and alembic/ are: beside the packages in a source checkout, inside the package in a wheel."""

from pathlib import Path

from listener.errors import UserError

_PACKAGE = Path(__file__).resolve().parent


def share(*parts: str) -> Path:
    """The path of a shipped file or folder, as in ``share("sql", "install.sql")``."""
    wheel = _PACKAGE / "_share"
    path = (wheel if wheel.is_dir() else _PACKAGE.parent).joinpath(*parts)
    if not path.exists():
        raise UserError(
            f"{Path(*parts)} is missing from this installation.",
            "Reinstall the package, or run from a complete checkout.",
        )
    return path
