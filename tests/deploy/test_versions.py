"""Two versions side by side, as in every rolling deploy and every rollback.

No version has been released yet, so the other one is made here: the engine after a revision that does what a newer
version may do (columns with defaults, a wider claim(), a new function and view), and this engine, which is then the old
one. A real older wheel takes its place once there is one.
"""

import shutil
from pathlib import Path

import psycopg
import pytest

from listener import schema
from listener.share import share
from tests.listener.started import Bench, bench_on

NEWER = """
ALTER TABLE scheduler.workflow ADD COLUMN colour text NOT NULL DEFAULT 'red';
ALTER TABLE scheduler.run ADD COLUMN region text;
ALTER TABLE scheduler.attempt ADD COLUMN region text;
ALTER TABLE scheduler.listener ADD COLUMN region text NOT NULL DEFAULT 'here';
CREATE TABLE scheduler.region (name text PRIMARY KEY);
"""
OLDER = """
DROP TABLE scheduler.region;
ALTER TABLE scheduler.listener DROP COLUMN region;
ALTER TABLE scheduler.attempt DROP COLUMN region;
ALTER TABLE scheduler.run DROP COLUMN region;
ALTER TABLE scheduler.workflow DROP COLUMN colour;
"""
FUNCTIONS = """
CREATE FUNCTION scheduler.regions() RETURNS SETOF scheduler.region LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS 'TABLE scheduler.region';
CREATE VIEW scheduler.regional AS SELECT r.region, count(*) AS runs FROM scheduler.run AS r GROUP BY 1;
"""
CLAIM = "listener uuid DEFAULT NULL, items integer DEFAULT NULL)"


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """From here on this process migrates with the newer version's files; its revision. Listeners run this code."""
    folder = tmp_path / "newer"
    for name in ("sql", "alembic"):
        shutil.copytree(share(name), folder / name)
    shutil.copy(share("alembic.ini"), folder)
    claim = folder / "sql" / "engine" / "claim.sql"
    assert claim.read_text().count(CLAIM) == 1
    claim.write_text(claim.read_text().replace(CLAIM, f"{CLAIM[:-1]}, region text DEFAULT NULL)"))
    for path in [*(folder / "sql").rglob("*.sql")]:
        path.write_text(
            path.read_text().replace(
                "scheduler.claim(text, uuid, integer)", "scheduler.claim(text, uuid, integer, text)"
            )
        )
    (folder / "sql" / "extra.sql").write_text(FUNCTIONS)
    install = folder / "sql" / "install.sql"
    install.write_text(install.read_text().replace("COMMIT;", "\\ir extra.sql\nCOMMIT;"))
    head = schema.head()
    (folder / "alembic" / "versions" / "9999_newer.py").write_text(
        f"from alembic import op\nrevision = '9999'\ndown_revision = {head!r}\n"
        f"def upgrade():\n    op.execute({NEWER!r})\ndef downgrade():\n    op.execute({OLDER!r})\n"
    )
    monkeypatch.setattr("listener.share._PACKAGE", folder / "listener")
    return head


def work_through(bench: Bench, first: int) -> None:
    """Items that succeed, that are tried again, and that are refused."""
    bench.queue("ok", "break", "reject", "ok", first=first)
    ids = range(first, first + 4)
    words = ["Completed", "Failed", "Failed", "Completed"]
    bench.wait_for(*words * (first // 4 + 1))
    assert sorted(set(bench.effects()) & set(ids)) == [ids[0], ids[3]]


@pytest.mark.slow
def test_a_listener_works_before_during_and_after_an_upgrade_and_a_rollback(
    database: str, db: psycopg.Connection, tmp_path: Path, newer: str
) -> None:
    with bench_on(database, tmp_path) as bench:
        bench.adopt(max_attempts=2, breaker=False)
        listener = bench.start()
        work_through(bench, 1)

        schema.migrate(database)
        assert schema.current(database) == "9999"
        work_through(bench, 5)  # the one that has been running since before
        fresh = bench.start()
        assert listener.stop() == 0
        work_through(bench, 9)  # one of the older version that is started on the newer schema

        # the way back: down with the newer version, its functions by the older one, under the same listener
        schema.downgrade(database, newer)
        assert db.execute("SELECT to_regclass('scheduler.region')").fetchone() == (None,)
        (tmp_path / "newer").rename(tmp_path / "gone")
        with pytest.MonkeyPatch.context() as older:
            older.setattr("listener.share._PACKAGE", Path(schema.__file__).parent)
            schema.migrate(database)
            assert schema.current(database) == newer
        work_through(bench, 13)
        assert fresh.stop() == 0
        assert len(bench.effects()) == len(set(bench.effects())) == 8
