"""Every function of the engine: free of mistakes a compiler would find, explained to a DBA, safe to call."""

import re

import psycopg
import pytest

from tests.conftest import Connect
from tests.servers import Postgres

# plpgsql_check dislikes these, and we mean them
ACCEPTED = {
    ("scheduler._fence(bigint,text[])", 'composite OUT variable "r" is not single argument'),
    ("scheduler.verify_deploy(text)", 'name of parameter "check" is reserved keyword'),
}


@pytest.mark.cron
def test_plpgsql_check_finds_nothing_in_any_function(postgres: Postgres, cron_database: str, connect: Connect) -> None:
    """Where pg_cron lives, as some statements are on its tables."""
    if not postgres.server.plpgsql_check:
        pytest.skip(
            f"PostgreSQL {postgres.server.version} here has no plpgsql_check, and no package of it could be had"
        )
    db = connect(url=cron_database)
    db.execute("CREATE EXTENSION plpgsql_check")
    db.execute("CREATE TABLE item (id integer PRIMARY KEY, status text)")
    found = db.execute(
        """
        SELECT p.oid::regprocedure::text, c.message, c.lineno, c.detail
        FROM pg_proc AS p
        JOIN pg_language AS l ON l.oid = p.prolang AND l.lanname = 'plpgsql'
        CROSS JOIN LATERAL plpgsql_check_function_tb(
            p.oid, CASE WHEN p.prorettype = 'trigger'::regtype THEN 'item'::regclass ELSE 0 END,
            fatal_errors => false, extra_warnings => true, performance_warnings => false) AS c
        WHERE p.pronamespace = 'scheduler'::regnamespace
        """
    ).fetchall()
    assert [row for row in found if (row[0], row[1]) not in ACCEPTED] == []


def test_a_dba_finds_what_each_function_view_and_table_is_for(db: psycopg.Connection) -> None:
    unexplained = db.execute(
        """
        SELECT p.oid::regprocedure::text FROM pg_proc AS p
        WHERE pronamespace = 'scheduler'::regnamespace AND obj_description(p.oid, 'pg_proc') IS NULL
        UNION ALL
        SELECT c.oid::regclass::text FROM pg_class AS c
        WHERE relnamespace = 'scheduler'::regnamespace AND relkind IN ('r', 'v')
          AND obj_description(c.oid, 'pg_class') IS NULL
        """
    ).fetchall()
    assert unexplained == []


def test_every_refusal_names_the_fix(db: psycopg.Connection) -> None:
    bare = [
        (name, statement)
        for name, source in db.execute(
            "SELECT oid::regprocedure::text, prosrc FROM pg_proc WHERE pronamespace = 'scheduler'::regnamespace"
        ).fetchall()
        for statement in re.findall(r"RAISE EXCEPTION.*?;\s*\n", source, re.DOTALL)
        if "HINT" not in statement
    ]
    assert bare == []


def test_no_definer_function_can_be_led_astray_by_a_search_path(db: psycopg.Connection) -> None:
    """pg_temp last: left out, the caller's temporary tables would come first."""
    loose = db.execute(
        """
        SELECT oid::regprocedure::text, proconfig FROM pg_proc
        WHERE pronamespace = 'scheduler'::regnamespace AND prosecdef
          AND NOT EXISTS (SELECT FROM unnest(proconfig) AS c WHERE c LIKE 'search\\_path=pg_catalog, %pg_temp')
        """
    ).fetchall()
    assert loose == []
    assert db.execute(
        "SELECT count(*) > 20 FROM pg_proc WHERE pronamespace = 'scheduler'::regnamespace AND prosecdef"
    ).fetchone() == (True,)


# Those look up the caller's table and predicate as the caller would.
CALLERS_PATH = {"_check_ready", "alter_workflow", "create_workflow", "requeue"}
# Called only by functions that have pinned theirs, and faster without.
INLINED = {"_order_sql", "_running_word", "_word"}


def test_only_functions_without_rights_of_their_own_use_the_path_of_the_caller(db: psycopg.Connection) -> None:
    free = db.execute(
        """
        SELECT DISTINCT proname, prosecdef FROM pg_proc
        WHERE pronamespace = 'scheduler'::regnamespace AND prokind = 'f'
          AND NOT EXISTS (SELECT FROM unnest(proconfig) AS c WHERE c LIKE 'search_path=%')
        """
    ).fetchall()
    assert set(free) == {(name, False) for name in CALLERS_PATH | INLINED}
