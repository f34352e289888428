-- Which revision of alembic/versions/ the tables have. Alembic makes this table too; both ways give the same one.

DO $$
BEGIN
    IF to_regclass('scheduler.schema_version') IS NULL THEN
        CREATE TABLE scheduler.schema_version (
            version_num varchar(32) NOT NULL CONSTRAINT schema_version_pkc PRIMARY KEY
        );
    END IF;
END
$$;
COMMENT ON TABLE scheduler.schema_version IS 'The revision of the engine''s tables. Written by scrapersky migrate and alembic.';
