-- Adopting a table: what create_workflow() builds on the table, and how drop_workflow() takes it off again.
-- These functions run with the rights of the caller, who must own the table.

CREATE OR REPLACE FUNCTION scheduler._ready_sql(w scheduler.workflow) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    -- A predicate that never mentions the status column cannot mean "again and again", so rows the workflow has
    -- already touched are left out. Queued and running rows are never ready.
    SELECT format('(%s) AND (%2$I IS NULL OR %2$I <> ALL (%3$L::%4$s[]))', w.ready, w.status_column,
                  -- a text or the name of a type that reads the same is not the column
                  CASE WHEN regexp_replace(w.ready, '''(?:[^'']|'''')*''|::[\w."]+', '', 'g') ~ CASE WHEN quote_ident(w.status_column) = w.status_column THEN '\m' || w.status_column || '\M' ELSE '***=' || quote_ident(w.status_column) END
                       THEN array_remove(ARRAY[w.queued, w.processing], NULL)
                       ELSE array_remove(ARRAY[w.queued, w.processing, w.completed, w.failed], NULL) END,
                  format_type(w.status_type, -1))
$$;
COMMENT ON FUNCTION scheduler._ready_sql(scheduler.workflow) IS 'Internal: the whole condition under which dispatch marks a row Queued.';

CREATE OR REPLACE FUNCTION scheduler._order_sql(w scheduler.workflow, of text DEFAULT '') RETURNS text
LANGUAGE sql STABLE
-- no SET: callers pin the path, and without it the planner inlines this (30 µs a call)
AS $$
    -- of: 't.' in a query with names of its own, which ORDER BY prefers to columns that are called the same
    SELECT concat_ws(', ', of || quote_ident(w.priority_column) || ' DESC NULLS LAST',
                     of || CASE WHEN w.age_column IS NULL AND w.priority_column IS NULL THEN quote_ident(w.key_column) ELSE quote_ident(w.age_column) END)
$$;
COMMENT ON FUNCTION scheduler._order_sql(scheduler.workflow, text) IS 'Internal: the order of the queue, as in its index: priority, then age.';

CREATE OR REPLACE FUNCTION scheduler._word(w scheduler.workflow, word text) RETURNS text
LANGUAGE sql STABLE
-- no SET: callers pin the path, and without it the planner inlines this (30 µs a call)
AS $$ SELECT format('%L::%s', word, format_type(w.status_type, -1)) $$;
COMMENT ON FUNCTION scheduler._word(scheduler.workflow, text) IS 'Internal: a status word as a typed literal.';

CREATE OR REPLACE FUNCTION scheduler._key_needs_index(w scheduler.workflow) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    -- citext and its like: their own operators are in another schema, so the engine compares them as text, for which their unique index is no help
    SELECT EXISTS (SELECT FROM pg_catalog.pg_type AS t JOIN pg_catalog.pg_cast AS c ON c.castsource = t.oid
                   WHERE t.oid = w.key_type AND t.typnamespace <> 'pg_catalog'::regnamespace AND c.casttarget = 'text'::regtype AND c.castcontext = 'i')
$$;
COMMENT ON FUNCTION scheduler._key_needs_index(scheduler.workflow) IS 'Internal: whether the engine can look up the key only by an index of its own, over its text.';

CREATE OR REPLACE FUNCTION scheduler._build_index(w scheduler.workflow, kind text, predicate text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    index_name text := format('scheduler_%s_%s', w.name, kind);
    ddl text := format('CREATE INDEX %I ON %s (%s)', index_name, w.relation, CASE WHEN kind = 'key' THEN format('(%I::text)', w.key_column) ELSE scheduler._order_sql(w) END) || coalesce(' WHERE ' || predicate, '');
    existing record;
BEGIN
    SELECT i.indisvalid, i.indrelid INTO existing
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_index AS i ON i.indexrelid = c.oid
    WHERE c.relname = index_name AND c.relnamespace = (SELECT relnamespace FROM pg_catalog.pg_class WHERE oid = w.relation);
    IF FOUND THEN
        -- built beforehand with CONCURRENTLY, as one does on a large busy table
        IF existing.indisvalid AND existing.indrelid = w.relation THEN
            RETURN;
        END IF;
        RAISE EXCEPTION 'index % exists but is not valid or is on another table', quote_ident(index_name)
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = format('DROP INDEX %I; then again.', index_name);
    END IF;
    EXECUTE ddl;
EXCEPTION
    -- a function that may change its mind, or a subquery
    WHEN invalid_object_definition OR feature_not_supported THEN
        IF kind <> 'ready' THEN
            RAISE;
        END IF;
        RAISE NOTICE 'workflow %: no index can serve its ready predicate (%)', w.name, SQLERRM
            USING HINT = 'Each dispatch will search the table: give it an index that fits, or keep now() and other changing values out of the predicate.';
END
$$;
COMMENT ON FUNCTION scheduler._build_index(scheduler.workflow, text, text) IS 'Internal: the partial index of the queue or of the ready rows, or that of the keys; one built beforehand is taken.';

CREATE OR REPLACE FUNCTION scheduler._build_indexes(w scheduler.workflow) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM scheduler._build_index(w, 'queued', format('%I = %s', w.status_column, scheduler._word(w, w.queued)));
    IF w.ready IS NOT NULL THEN
        PERFORM scheduler._build_index(w, 'ready', scheduler._ready_sql(w));
    END IF;
    IF scheduler._key_needs_index(w) THEN
        PERFORM scheduler._build_index(w, 'key', NULL);
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._build_indexes(scheduler.workflow) IS 'Internal: the indexes that keep claim and dispatch as cheap as the backlog is small.';

CREATE OR REPLACE FUNCTION scheduler._drop_index(w scheduler.workflow, kind text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    ours regclass := (SELECT i.indexrelid FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
                      WHERE i.indrelid = w.relation AND c.relname = format('scheduler_%s_%s', w.name, kind));
BEGIN
    IF ours IS NOT NULL THEN
        EXECUTE format('DROP INDEX %s', ours);
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._drop_index(scheduler.workflow, text) IS 'Internal: removes one of the workflow''s indexes.';

CREATE OR REPLACE FUNCTION scheduler._build_triggers(w scheduler.workflow, wanted boolean DEFAULT true) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    column_name text := quote_ident(w.status_column);
    present text;
BEGIN
    FOR present IN
        SELECT tgname FROM pg_catalog.pg_trigger
        WHERE tgrelid = w.relation AND tgname IN ('scheduler_' || w.name || '_insert', 'scheduler_' || w.name || '_update', 'scheduler_' || w.name || '_takeover', 'scheduler_' || w.name || '_delete', 'scheduler_' || w.name || '_truncate')
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', present, w.relation);
    END LOOP;
    IF wanted AND w.doorbell = 'commit' THEN
        EXECUTE format('CREATE TRIGGER %I AFTER INSERT ON %s FOR EACH ROW WHEN (NEW.%s = %s) EXECUTE FUNCTION scheduler.doorbell(%L)',
                       'scheduler_' || w.name || '_insert', w.relation, column_name, scheduler._word(w, w.queued), w.name);
        -- not UPDATE OF: a BEFORE trigger of the application may be what sets the word
        EXECUTE format('CREATE TRIGGER %I AFTER UPDATE ON %s FOR EACH ROW WHEN (NEW.%3$s = %4$s AND OLD.%3$s IS DISTINCT FROM NEW.%3$s) EXECUTE FUNCTION scheduler.doorbell(%5$L)',
                       'scheduler_' || w.name || '_update', w.relation, column_name, scheduler._word(w, w.queued), w.name);
    END IF;
    IF wanted AND w.processing IS NOT NULL THEN
        -- the engine's own functions run with scheduler.engine set, so only other people's writes are noted; what a trigger of the application writes in their course is one of those
        EXECUTE format('CREATE TRIGGER %I AFTER UPDATE ON %s FOR EACH ROW WHEN (OLD.%3$s = %4$s AND NEW.%3$s IS DISTINCT FROM OLD.%3$s AND (pg_catalog.current_setting(''scheduler.engine'', true) IS DISTINCT FROM ''on'' OR pg_catalog.pg_trigger_depth() > 0)) EXECUTE FUNCTION scheduler.taken_over(%5$L, %6$L)',
                       'scheduler_' || w.name || '_takeover', w.relation, column_name, scheduler._word(w, w.processing), w.name, w.key_column);
        -- a row that comes back with the same key is another item
        EXECUTE format('CREATE TRIGGER %I AFTER DELETE ON %s FOR EACH ROW WHEN (OLD.%s = %s) EXECUTE FUNCTION scheduler.taken_over(%L, %L)',
                       'scheduler_' || w.name || '_delete', w.relation, column_name, scheduler._word(w, w.processing), w.name, w.key_column);
        EXECUTE format('CREATE TRIGGER %I AFTER TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION scheduler.taken_over(%L, %L)', 'scheduler_' || w.name || '_truncate', w.relation, w.name, w.key_column);
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._build_triggers(scheduler.workflow, boolean) IS 'Internal: puts the workflow''s triggers on its table, or takes them off.';

CREATE OR REPLACE FUNCTION scheduler._grants(w scheduler.workflow) RETURNS TABLE (object oid, item text, privilege text, grantee text, held boolean)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY
    -- the schemas of the table and of the types its words and keys are cast to
    WITH home AS (
        SELECT c.relnamespace AS id FROM pg_catalog.pg_class AS c WHERE c.oid = w.relation
        UNION
        SELECT t.typnamespace FROM pg_catalog.pg_type AS t
        WHERE t.oid IN (w.status_type, w.key_type, (SELECT a.atttypid FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = w.relation AND a.attname = w.status_column))
          AND t.typnamespace <> 'pg_catalog'::regnamespace
    )
    SELECT h.id, format('USAGE ON SCHEMA %s TO %s', h.id::regnamespace, r.name), format('USAGE ON SCHEMA %s', h.id::regnamespace), r.name, has_schema_privilege(r.name, h.id, 'USAGE')
    FROM home AS h, (VALUES ('scheduler_owner'), ('scheduler_listener')) AS r (name)
    UNION ALL
    SELECT w.relation, format('SELECT TO %s', r.name), format('SELECT ON %s', w.relation), r.name, has_table_privilege(r.name, w.relation, 'SELECT')
    FROM (VALUES ('scheduler_owner'), ('scheduler_listener')) AS r (name)
    UNION ALL
    -- the engine writes these columns and no others
    SELECT w.relation, format('UPDATE (%I) TO scheduler_owner', a.attname), format('UPDATE (%I) ON %s', a.attname, w.relation), 'scheduler_owner', has_column_privilege('scheduler_owner', w.relation, a.attnum, 'UPDATE')
    FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid = w.relation AND a.attname IN (w.status_column, w.error_column);
END
$$;
COMMENT ON FUNCTION scheduler._grants(scheduler.workflow) IS 'Internal: what the engine and the listener need on the table, and nothing more; and whether they have it.';

CREATE OR REPLACE FUNCTION scheduler._grant_table(w scheduler.workflow) RETURNS text[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    g record;
    granted text[] := '{}'::text[];
BEGIN
    FOR g IN SELECT * FROM scheduler._grants(w) AS x WHERE NOT x.held LOOP
        BEGIN
            EXECUTE format('GRANT %s TO %I', g.privilege, g.grantee);
        EXCEPTION WHEN insufficient_privilege THEN NULL;
        END;
        -- who may not grant gets an error or only a warning
        IF NOT (SELECT x.held FROM scheduler._grants(w) AS x WHERE x.item = g.item) THEN
            RAISE EXCEPTION 'the engine needs % and you may not grant it', g.privilege
                USING ERRCODE = 'insufficient_privilege', HINT = format('Ask its owner for: GRANT %s TO scheduler_owner, scheduler_listener;', g.privilege);
        END IF;
        granted := granted || g.item;
    END LOOP;
    RETURN granted;
END
$$;
COMMENT ON FUNCTION scheduler._grant_table(scheduler.workflow) IS 'Internal: grants what the engine and the listener lack on the table; returns what that was.';

CREATE OR REPLACE FUNCTION scheduler._leave_table(w scheduler.workflow) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    g record;
BEGIN
    PERFORM scheduler._build_triggers(w, wanted => false);
    PERFORM scheduler._drop_index(w, part) FROM unnest(ARRAY['queued', 'ready', 'key']) AS part;
    -- only what was granted for it, and not what another workflow needs
    FOR g IN
        SELECT * FROM scheduler._grants(w) AS mine
        WHERE mine.item = ANY (w.granted)
          AND NOT EXISTS (SELECT FROM scheduler.workflow AS o, LATERAL scheduler._grants(o) AS x WHERE o.name <> w.name AND x.object = mine.object AND x.item = mine.item)
    LOOP
        EXECUTE format('REVOKE %s FROM %I', g.privilege, g.grantee);
    END LOOP;
END
$$;
COMMENT ON FUNCTION scheduler._leave_table(scheduler.workflow) IS 'Internal: takes off the table everything create_workflow() put on it.';
