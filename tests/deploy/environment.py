"""An environment that holds the wheel, the libraries it asks for, and nothing of this repository."""

import os
import runpy
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from tests.deploy.files import DEPLOY, ROOT


def build(folder: Path) -> Path:
    """The source archive, and the wheel that is built from it and from nothing else; the wheel."""
    built = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path, *tools: str) -> Path:
    """Its `bin` folder. The libraries, and these tools with theirs, are linked from here rather than fetched:

    the same files, a minute sooner, and without a network.
    """
    venv.create(folder)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    closure: Any = runpy.run_path(str(DEPLOY / "listener" / "pins.py"))["closure"]
    for name in {*closure(), *tools, *(library for tool in tools for library in closure(tool))}:
        library = distribution(name)
        for entry in {file.parts[0] for file in library.files or () if file.parts[0] not in {"..", "__pycache__"}}:
            if not (packages / entry).exists():
                (packages / entry).symlink_to(Path(str(library.locate_file(entry))))
    subprocess.run([*pip(folder), "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
    return folder / "bin"


def pip(folder: Path) -> list[str]:
    """The command that installs into this environment."""
    return [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "--disable-pip-version-check"]


def alone(**more: str) -> dict[str, str]:
    """The environment variables of somebody who has never heard of the repository."""
    kept = {name: value for name, value in os.environ.items() if name in {"HOME", "LANG", "PATH", "USER"}}
    return {**kept, **more}
