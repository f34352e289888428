-- Installs the engine and the pipeline with psql alone, in one transaction; nothing else is needed, not even Python:
--
--   psql -f sql/install.sql "$DATABASE_URL"
--   psql -v pipeline=off -f sql/install.sql "$DATABASE_URL"     the engine alone, for workflows of your own
--
-- `scrapersky migrate` and `alembic upgrade head` read the list below as well and give the same schema. They also
-- upgrade what this file has installed.

\set ON_ERROR_STOP on
\set QUIET on
\encoding UTF8
\if :{?pipeline}
\else
  \set pipeline on
\endif
BEGIN;
-- nothing that someone has put into another schema can take the place of what is meant
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;

\ir engine/schema.sql
DO $$
DECLARE
    installed text;
BEGIN
    IF to_regclass('scheduler.schema_version') IS NOT NULL THEN
        SELECT version_num INTO installed FROM scheduler.schema_version;
    END IF;
    IF installed IS NOT NULL THEN
        RAISE EXCEPTION 'the engine is installed in database % already (revision %)', current_database(), installed
            USING ERRCODE = 'duplicate_object', HINT = 'Upgrade it with: scrapersky migrate (or: alembic upgrade head)';
    END IF;
END
$$;

-- Once, in this order. A later change of a table is a revision in alembic/versions/ and an edit of tables.sql.
\ir roles.sql
\ir engine/version.sql
\ir engine/tables.sql
\if :pipeline
\ir pipeline/tables.sql
\endif
INSERT INTO scheduler.schema_version (version_num) VALUES ('0002');

-- Repeatable: replaced as a whole after every upgrade, in this order. One line a file. Those of the pipeline only where
-- its tables are.
\ir engine/clean.sql
\ir engine/text.sql
\ir engine/cron_text.sql
\ir engine/doorbell.sql
\ir engine/check.sql
\ir engine/adopt.sql
\ir engine/cron_jobs.sql
\ir engine/items.sql
\ir engine/workflow.sql
\ir engine/rescue.sql
\ir engine/dispatch.sql
\ir engine/claim.sql
\ir engine/claimable.sql
\ir engine/finish.sql
\ir engine/operate.sql
\ir engine/maintain.sql
\ir monitoring/depth.sql
\ir monitoring/views.sql
\ir monitoring/why.sql
\ir monitoring/examine.sql
\ir monitoring/doctor.sql
\ir monitoring/alerts.sql
\ir monitoring/comments.sql
\ir monitoring/verify.sql
\if :pipeline
\ir pipeline/touch.sql
\ir pipeline/curation.sql
\ir pipeline/budget.sql
\ir pipeline/trace.sql
\ir pipeline/register.sql
\endif
\ir grants.sql
\if :pipeline
\ir pipeline/grants.sql
\ir pipeline/setup.sql
\endif

COMMIT;
