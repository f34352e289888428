"""What the containers run, run here: the first-time script, the migration, a listener with its own small rights."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import conninfo

from listener.postgres.port import first_free
from listener.postgres.throwaway import throwaway
from tests.deploy.files import DEPLOY, ROOT, compose
from tests.listener.started import bench_on
from tests.servers import Postgres
from tests.waiting import PATIENCE, wait_until

SCRAPERSKY = [sys.executable, "-c", "from listener.cli import main; main()"]
PASSWORDS = {"LISTENER_PASSWORD": 'listener\'s "own"', "WEB_PASSWORD": "web's $own"}


def as_login(url: str, user: str, password: str) -> str:
    return conninfo.make_conninfo(url, user=user, password=password)


def assert_served(service: dict[str, Any], url: str, password: str, folder: Path) -> None:
    """The page starts with its own login, the image's health check says so, and SIGTERM ends it."""
    own = {
        **{name: value for name, value in service["environment"].items() if "$" not in value},
        "DATABASE_URL": conninfo.make_conninfo(url, password=password),
        "WEB_TOKEN": "x" * 32,
        # not 0.0.0.0: this machine has other inhabitants
        "WEB_HOST": "127.0.0.1",
        "WEB_PORT": str(first_free()),
    }
    assert service["environment"].keys() <= own.keys()
    image = (DEPLOY / "listener" / "Dockerfile").read_text()
    check = json.loads(re.findall(r"^ +CMD (\[.+\])$", image, re.MULTILINE)[0])
    assert check[0] == "scrapersky"
    start: dict[str, Any] = {
        "env": {**os.environ, **own, "PYTHONPATH": str(ROOT)},
        "cwd": folder,
        "stderr": subprocess.DEVNULL,
    }
    with subprocess.Popen([*SCRAPERSKY, *service["command"]], **start) as process:
        wait_until(
            lambda: not subprocess.call([*SCRAPERSKY, *check[1:]], stdout=subprocess.DEVNULL, **start), what="health"
        )
        process.terminate()
        assert process.wait(PATIENCE) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("page_port")
def test_the_entry_commands_work_with_the_logins_of_the_image(postgres: Postgres, tmp_path: Path) -> None:
    if postgres.throwaway is None:
        pytest.skip("this test creates roles, which is only done on a throw-away cluster")
    services = compose()["services"]
    with throwaway(postgres.throwaway.server) as cluster:
        url = cluster.url("scrapersky")
        given = conninfo.conninfo_to_dict(url)
        programs = Path(cluster.server.program("psql")).parent
        subprocess.run(
            [DEPLOY / "postgres" / "logins.sh"],
            env={
                "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
                "PGHOST": str(given["host"]),
                "PGPORT": str(given["port"]),
                "PGPASSWORD": str(given["password"]),
                "POSTGRES_USER": str(given["user"]),
                "POSTGRES_DB": "scrapersky",
                **PASSWORDS,
            },
            check=True,
        )
        subprocess.run(
            [*SCRAPERSKY, *services["migrate"]["command"]],
            env={**os.environ, "DATABASE_URL": url},
            check=True,
            capture_output=True,
        )
        with bench_on(url, tmp_path) as bench:
            bench.adopt("plain")
            bench.queue("one", "two")
            listener = bench.start(
                *services["listener"]["command"][1:],
                entries=("plain",),
                url=as_login(url, "scrapersky_listener", PASSWORDS["LISTENER_PASSWORD"]),
            )
            bench.wait_for("Completed")
            assert listener.stop() == 0
        with psycopg.connect(as_login(url, "scrapersky_web", PASSWORDS["WEB_PASSWORD"])) as web:
            web.execute("SELECT scheduler.pause('plain')")
            assert_served(services["web"], web.info.dsn, PASSWORDS["WEB_PASSWORD"], tmp_path)
        grafana = as_login(url, "scrapersky_grafana", PASSWORDS["WEB_PASSWORD"])
        with psycopg.connect(grafana) as reader:
            reader.execute("SELECT * FROM scheduler.status")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute("SELECT scheduler.resume('plain')")
