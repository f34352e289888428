"""The fixtures every other test stands on."""

import psycopg
import pytest
from psycopg import conninfo
from sqlalchemy import make_url

from tests.conftest import Connect
from tests.servers import Postgres, Remote


def test_an_empty_database_is_ones_own(empty_database: str, connect: Connect) -> None:
    session = connect(url=empty_database)
    session.execute("CREATE TABLE leftover ()")
    assert session.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (1,)


def test_the_next_test_does_not_see_its_tables(empty_database: str, connect: Connect) -> None:
    row = connect(url=empty_database).execute("SELECT to_regclass('leftover')").fetchone()
    assert row == (None,)


def test_a_session_of_a_role_has_only_that_roles_rights(empty_database: str, connect: Connect) -> None:
    admin = connect(url=empty_database)
    admin.execute("CREATE TABLE secret ()")
    admin.execute("DROP ROLE IF EXISTS test_nobody")
    admin.execute("CREATE ROLE test_nobody NOLOGIN")
    session = connect("test_nobody", url=empty_database)
    assert session.execute("SELECT session_user").fetchone() == ("test_nobody",)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute("SELECT * FROM secret")
    session.close()
    admin.execute("DROP ROLE test_nobody")


def test_a_session_without_autocommit_holds_its_transaction(empty_database: str, connect: Connect) -> None:
    writer, reader = connect(url=empty_database, autocommit=False), connect(url=empty_database)
    writer.execute("CREATE TABLE draft ()")
    assert reader.execute("SELECT to_regclass('draft')").fetchone() == (None,)
    writer.commit()
    assert reader.execute("SELECT to_regclass('draft')").fetchone() == ("draft",)


def test_a_server_that_is_named_is_reached_by_what_every_library_can_read() -> None:
    named = "host=127.0.0.1 port=5433 user='a b' password='p@/ss' sslmode=disable application_name=x"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Remote, "__init__", lambda self, url: setattr(self, "_url", url))
        url = Remote(named).url("my db")
    assert make_url(url).password == "p@/ss"
    wanted = {**conninfo.conninfo_to_dict(named), "dbname": "my db"}
    assert conninfo.conninfo_to_dict(url) == wanted


def test_pg_cron_survives_the_reset_of_its_database(postgres: Postgres, cron_database: str, connect: Connect) -> None:
    session = connect(url=cron_database)
    launchers = session.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pg_cron launcher'"
    ).fetchone()
    assert launchers == (1,)
    assert session.execute("SELECT count(*) FROM cron.job").fetchone() is not None
