"""Programs that a few tests want and that are not installed here: Debian's packages, unpacked and not installed.

So no service is started and nothing on the machine changes. `make clean` removes them.
"""

import subprocess
import tempfile
from pathlib import Path

from listener.postgres import packages
from listener.postgres.home import Say
from listener.postgres.trouble import last_line

FOLDER = Path(__file__).parents[1] / ".local" / "tests"
PGBOUNCER = "usr/sbin/pgbouncer"
FAKETIME = "usr/lib/*/faketime/libfaketimeMT.so.1"
_WANTED = {"pgbouncer": PGBOUNCER, "libfaketime": FAKETIME}


def find(pattern: str) -> Path | None:
    """The file, installed or unpacked."""
    return next((path for root in (Path("/"), FOLDER) for path in root.glob(pattern)), None)


def libraries() -> list[Path]:
    """What was unpacked along with the programs, for LD_LIBRARY_PATH."""
    return [path for path in FOLDER.glob("usr/lib/*/*.so.*") if path.is_file()]


def fetch(say: Say) -> None:
    """Get what is missing, where that is possible; tests that go without are skipped and say so."""
    if not packages.is_debian():
        return
    for package, pattern in _WANTED.items():
        if find(pattern) is None:
            say(f"Unpacking the package {package} for some tests ...")
            try:
                _unpack(package)
            except subprocess.CalledProcessError as error:
                say(f"{package} could not be had, so its tests are skipped: {last_line(error.stdout + error.stderr)}")


def _unpack(package: str) -> None:
    with tempfile.TemporaryDirectory() as archives:
        # without the lock no right to install is needed; with all that it depends on and that is not there
        options = ["-o", "Debug::NoLocking=1", "-o", f"Dir::Cache::archives={archives}"]
        _run("apt-get", "-y", "-q", "--download-only", "--no-install-recommends", *options, "install", package)
        for archive in Path(archives).glob("*.deb"):
            FOLDER.mkdir(parents=True, exist_ok=True)
            _run("dpkg", "-x", str(archive), str(FOLDER))


def _run(*command: str) -> None:
    subprocess.run(["env", "LC_ALL=C", *command], capture_output=True, text=True, check=True)
