"""After a whole demo, and after things went wrong, no secret is anywhere: in no log, error, table or job."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo, sql

from tests.listener.started import ROOT
from tests.servers import Postgres
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.cron]

KEY = "AIzaSyMARKED0000000000000000000000000001"
WRONG_KEY = "AIzaSyMARKED0000000000000000000000000002"
TOKEN = "marked-token-of-the-web-page-0003"
USER_TOKEN = "marked-token-of-alice-000000000004"
WRONG_PASSWORD = "marked-password-0005"

_DEMO = f"import listener.cli, services.cli.demo as demo; demo.KEY = {KEY!r}; listener.cli.main()"
_LISTEN = "from listener.cli import main; main()"


@pytest.fixture
def secrets(cron_database: str) -> dict[str, str]:
    """What may be seen nowhere, by name; the password is the one that everything here really logs in with."""
    password = str(conninfo.conninfo_to_dict(cron_database)["password"])
    return {
        "the API key": KEY,
        "an API key that is refused": WRONG_KEY,
        "the web token": TOKEN,
        "a user's token": USER_TOKEN,
        "the database password": password,
        "a wrong database password": WRONG_PASSWORD,
    }


@pytest.mark.usefixtures("page_port")
def test_no_secret_is_left_behind_by_a_demo_and_its_failures(
    cron_database: str, secrets: dict[str, str], postgres: Postgres, tmp_path: Path
) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
        "PYTHONPATH": str(ROOT),
        "DATABASE_URL": cron_database,
        "WEB_PORT": "0",
        "WEB_TOKEN": TOKEN,
        "WEB_USERS": f"alice:{USER_TOKEN}",
        "LOG_LEVEL": "DEBUG",
    }
    demo = _run(tmp_path, environment, _DEMO, "demo", "--quick", "--businesses", "6")
    assert "none missing" in demo, demo
    refused = {"GOOGLE_PLACES_API_KEY": WRONG_KEY, "GOOGLE_PLACES_BASE_URL": "http://127.0.0.1:9", "LOG_FORMAT": "json"}
    places = _failing_search(tmp_path, {**environment, **refused}, cron_database)
    wrong = conninfo.make_conninfo(cron_database, password=WRONG_PASSWORD)
    locked_out = _run(tmp_path, {**environment, "DATABASE_URL": wrong}, _LISTEN, "listen")
    shown = [
        _run(tmp_path, environment, _LISTEN, *command)
        for command in (("status",), ("errors",), ("runs",), ("doctor",), ("settings",))
    ]
    texts = {
        "what the demo printed": demo,
        "the demo's listener": (tmp_path / ".local" / "demo-listener.log").read_text(),
        "a listener that Google refuses": places,
        "a listener that is locked out": locked_out,
        "what the commands print": "\n".join(shown),
    }
    if postgres.throwaway is not None:
        texts["the server's log"] = postgres.throwaway.cluster.home.log.read_text()
    assert all(len(text) > 100 for text in texts.values()), {name: len(text) for name, text in texts.items()}
    found = [f"{what} in {where}" for where, text in texts.items() for what, it in secrets.items() if it in text]
    with psycopg.connect(cron_database, autocommit=True) as db:
        found += list(_in_tables(db, secrets))
    assert not found


def _run(folder: Path, environment: dict[str, str], program: str, *arguments: str) -> str:
    """Everything it printed."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout + done.stderr


def _failing_search(folder: Path, environment: dict[str, str], url: str) -> str:
    """A search whose key leads nowhere: its error is written into the row, and into the log."""
    path = folder / "refused.log"
    with psycopg.connect(url, autocommit=True) as db, path.open("w") as log:
        db.execute("INSERT INTO place_search (business_type, location) VALUES ('baker', 'nowhere')")
        process = subprocess.Popen(
            [sys.executable, "-c", _LISTEN, "listen", "--workflows", "place_search"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            failed = "SELECT error FROM place_search WHERE error IS NOT NULL"
            wait_until(lambda: db.execute(failed).fetchone(), what="the search to fail")
        finally:
            process.terminate()
            process.wait()
    return path.read_text()


def _in_tables(db: psycopg.Connection, secrets: dict[str, str]) -> Iterator[str]:
    """Every table there is, pg_cron's too, and the settings of roles."""
    tables = db.execute(
        "SELECT n.nspname, c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema')"
    ).fetchall()
    assert ("cron", "job") in tables
    assert ("public", "contact") in tables
    for schema, name in [*tables, ("pg_catalog", "pg_db_role_setting")]:
        query = sql.SQL("SELECT EXISTS (SELECT FROM {} AS t WHERE position(%s IN t::text) > 0)").format(
            sql.Identifier(schema, name)
        )
        for what, secret in secrets.items():
            row = db.execute(query, [secret]).fetchone()
            if row == (True,):
                yield f"{what} in {schema}.{name}"
