"""The files of deploy/, read once."""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def documents(path: Path) -> list[dict[str, Any]]:
    """The documents of a YAML file."""
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def compose() -> dict[str, Any]:
    return documents(ROOT / "docker-compose.yml")[0]
