"""Where the peers live: a virtual environment and a folder of node modules of their own, under .local/peers."""

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.peers.roster import Peer
from listener import __version__

ROOT = Path(__file__).parents[2] / ".local" / "peers"
ADAPTERS = Path(__file__).parent / "adapters"


class UnavailableError(Exception):
    """A peer cannot take part; the text says why."""


class Environment:
    def __init__(self) -> None:
        self._python = ROOT / "python" / "bin" / "python"
        self._node = ROOT / "node"

    def install(self, peer: Peer) -> None:
        """Whatever is missing; what is there already is left as it is."""
        if peer.is_ours:
            return
        if peer.is_node:
            self._install_node(peer)
        else:
            self._install_python(peer)

    def command(self, peer: Peer, verb: str, items: int) -> list[str]:
        if peer.is_ours:
            return [sys.executable, "-m", "benchmarks.peers.ours", verb, str(items)]
        if peer.is_node:
            # modules are looked up from the script's own folder, so it must lie beside them
            script = self._node / peer.script
            shutil.copyfile(ADAPTERS / peer.script, script)
            return [str(self._node_program()), str(script), verb, str(items)]
        return [str(self._python), str(ADAPTERS / peer.script), verb, str(items)]

    def version(self, peer: Peer) -> str:
        if peer.is_ours:
            return __version__
        if peer.is_node:
            package = self._node / "node_modules" / peer.module / "package.json"
            return str(json.loads(package.read_text("utf-8"))["version"])
        script = f"import importlib.metadata as m; print(m.version({peer.requires[0]!r}))"
        return _run([str(self._python), "-c", script]).strip()

    def _node_program(self) -> Path | str:
        own = self._node / "node_modules" / ".bin" / "node"
        return own if own.exists() else "node"

    def _install_python(self, peer: Peer) -> None:
        if not self._python.exists():
            venv.create(ROOT / "python", with_pip=True)
        _run([str(self._python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *peer.requires])

    def _install_node(self, peer: Peer) -> None:
        if shutil.which("npm") is None:
            raise UnavailableError("npm is not installed")
        self._node.mkdir(parents=True, exist_ok=True)
        wanted = [name.partition("@")[0] for name in peer.requires]
        if not all((self._node / "node_modules" / name).exists() for name in wanted):
            _run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(self._node), *peer.requires])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).strip().splitlines() if "WARN" not in line.upper()]
        raise UnavailableError(f"{Path(command[0]).name} failed: {lines[-1] if lines else 'without a word'}")
    return done.stdout
