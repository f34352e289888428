"""A table that was a queue for a while is, to pg_dump, the table it was before."""

import re
import subprocess

import psycopg
import pytest

from tests.servers import Postgres, program_of
from tests.sql.queue import call, one

# Whatever a table can have that a careless clean-up would take along.
TABLE = """
    CREATE ROLE {reader};
    CREATE SCHEMA "My Shop";
    GRANT USAGE ON SCHEMA "My Shop" TO {reader};
    CREATE TABLE "My Shop"."Order" (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        "Status" varchar(20) DEFAULT 'New' NOT NULL CHECK ("Status" <> ''),
        error text,
        price numeric(10, 2),
        gross numeric GENERATED ALWAYS AS (price * 1.19) STORED,
        created_at timestamptz DEFAULT now()
    ) WITH (fillfactor = 77, autovacuum_vacuum_scale_factor = 0.03);
    ALTER TABLE "My Shop"."Order" ALTER COLUMN error SET STORAGE EXTERNAL;
    COMMENT ON TABLE "My Shop"."Order" IS 'what people bought';
    COMMENT ON COLUMN "My Shop"."Order"."Status" IS 'how far it is';
    ALTER TABLE "My Shop"."Order" ALTER COLUMN "Status" SET STATISTICS 500;
    ALTER TABLE "My Shop"."Order" REPLICA IDENTITY FULL;
    CREATE INDEX scheduler_ish ON "My Shop"."Order" ("Status") WHERE "Status" = 'Queued';
    CREATE STATISTICS "My Shop".both ON "Status", price FROM "My Shop"."Order";
    CREATE FUNCTION "My Shop".touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
    CREATE TRIGGER scheduler_touch BEFORE UPDATE ON "My Shop"."Order"
        FOR EACH ROW EXECUTE FUNCTION "My Shop".touch();
    ALTER TABLE "My Shop"."Order" DISABLE TRIGGER scheduler_touch;
    GRANT SELECT, UPDATE ("Status") ON "My Shop"."Order" TO {reader};
    GRANT UPDATE (error) ON "My Shop"."Order" TO scheduler_owner WITH GRANT OPTION;
    ALTER TABLE "My Shop"."Order" ENABLE ROW LEVEL SECURITY;
    CREATE POLICY everybody ON "My Shop"."Order" TO scheduler_owner, scheduler_listener USING (true);
    CREATE TABLE "My Shop".line ("order" bigint REFERENCES "My Shop"."Order" ON DELETE CASCADE);
    INSERT INTO "My Shop"."Order" (price) SELECT n FROM generate_series(1, 3) AS n;
"""


@pytest.fixture
def reader(db: psycopg.Connection) -> str:
    return str(one(db, "SELECT 'reader_' || substr(md5(current_database()), 1, 12)"))


def test_a_table_is_to_pg_dump_what_it_was_before(
    db: psycopg.Connection, database: str, postgres: Postgres, reader: str
) -> None:
    program = program_of(postgres.server, "pg_dump")

    def dump() -> str:
        done = subprocess.run([program, '--schema="My Shop"', database], capture_output=True, text=True, check=True)
        return re.sub(r"^\\(un)?restrict .*$", "", done.stdout, flags=re.MULTILINE)

    db.execute(TABLE.format(reader=reader).encode())
    try:
        before = dump()
        for name, ready in (("first", None), ("second", "price > 1")):
            call(
                db,
                "create_workflow",
                name=name,
                relation='"My Shop"."Order"',
                status_column="Status",
                error_column="error",
                queued=f"{name} Queued",
                processing=f"{name} Running",
                ready=ready,
            )
        assert dump() != before
        call(db, "alter_workflow", name="first", ready="price < 0", doorbell="dispatch", max_instances=2)
        call(db, "repair_workflow", name="second")
        # in the order in which they came, so that what the first was granted outlives it for the second
        for name in ("first", "second"):
            call(db, "drop_workflow", name=name)
        assert dump() == before
    finally:
        db.execute(f"DROP OWNED BY {reader}; DROP ROLE {reader}".encode())
