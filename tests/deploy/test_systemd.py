"""The systemd unit: systemd itself accepts it, finds little to criticise, and waits for the drain."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.files import DEPLOY

UNIT = DEPLOY / "systemd" / "scrapersky-listener@.service"


def setting(name: str) -> str:
    found = re.search(rf"^{name}=(.*)$", UNIT.read_text(), re.MULTILINE)
    assert found, name
    return found[1]


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """One instance, with a program that exists here."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed (Debian package systemd)")
    path = tmp_path / "scrapersky-listener@1.service"
    path.write_text(UNIT.read_text().replace("/opt/scrapersky/bin/scrapersky", "/bin/true"))
    return path


def analyze(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_systemd_accepts_it(unit: Path) -> None:
    verified = analyze("verify", unit)
    assert (verified.returncode, verified.stderr) == (0, "")


def test_its_exposure_is_at_most_one_and_a_half_of_ten(unit: Path) -> None:
    rated = analyze("security", "--offline=true", "--threshold=15", unit)
    if "unrecognized option" in rated.stderr:
        pytest.skip("this systemd-analyze cannot rate a unit file offline (systemd 250 and newer can)")
    assert rated.returncode == 0, rated.stdout[-200:]


def test_it_has_time_to_drain_before_it_is_killed() -> None:
    drain = re.search(r"LISTENER_DRAIN_SECONDS=(\d+)", setting("Environment"))
    assert drain
    assert int(setting("TimeoutStopSec")) > int(drain[1]) + 10
    assert setting("KillMode") == "mixed"
    assert setting("Restart") == "always"
