-- Adopting a table: everything create_workflow() is told is checked here, and what it builds on the table is built here.
-- These functions run with the rights of the caller, who must own the table.

CREATE OR REPLACE FUNCTION scheduler._check_column(relation regclass, column_name text, role text) RETURNS pg_catalog.pg_attribute
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    a pg_catalog.pg_attribute;
BEGIN
    SELECT * INTO a FROM pg_catalog.pg_attribute
    WHERE attrelid = relation AND attname = column_name AND attnum > 0 AND NOT attisdropped;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'table % has no column % (given as %)', relation, quote_ident(column_name), role
            USING ERRCODE = 'undefined_column',
                  HINT = 'Its columns: ' || (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_catalog.pg_attribute
                                             WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped) || '.';
    END IF;
    IF a.attgenerated <> '' AND role IN ('status_column', 'error_column') THEN
        RAISE EXCEPTION 'column % of % is generated, so the engine cannot write it', quote_ident(column_name), relation
            USING ERRCODE = 'invalid_parameter_value', HINT = format('Name a plain column as %s.', role);
    END IF;
    RETURN a;
END
$$;
COMMENT ON FUNCTION scheduler._check_column(regclass, text, text) IS 'Internal: the column, or an error that lists those there are.';

CREATE OR REPLACE FUNCTION scheduler._base_type(type oid) RETURNS regtype
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    WITH RECURSIVE t AS (
        SELECT oid, typtype, typbasetype FROM pg_catalog.pg_type WHERE oid = type
        UNION ALL
        SELECT b.oid, b.typtype, b.typbasetype FROM t JOIN pg_catalog.pg_type AS b ON b.oid = t.typbasetype WHERE t.typtype = 'd'
    )
    SELECT oid::regtype FROM t WHERE typtype <> 'd'
$$;
COMMENT ON FUNCTION scheduler._base_type(oid) IS 'Internal: the type under a domain, or the type itself.';

CREATE OR REPLACE FUNCTION scheduler._check_owner(relation regclass, who name) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    owner oid := (SELECT relowner FROM pg_catalog.pg_class WHERE oid = relation);
BEGIN
    -- The index and the triggers need ownership. A definer function asks for its session's user, as the caller is hidden
    -- from it; without that it could be used to reach another's table.
    IF NOT pg_has_role(who, owner, CASE WHEN who = session_user THEN 'MEMBER' ELSE 'USAGE' END) THEN
        RAISE EXCEPTION 'only the owner of % may register a workflow on it', relation
            USING ERRCODE = 'insufficient_privilege', HINT = format('Do it as %1$I, or: GRANT %1$I TO %2$I;', pg_get_userbyid(owner), who);
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._check_owner(regclass, name) IS 'Internal: refuses whoever could not own the table.';

CREATE OR REPLACE FUNCTION scheduler._check_table(relation regclass) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c pg_catalog.pg_class;
BEGIN
    SELECT * INTO c FROM pg_catalog.pg_class WHERE oid = relation;
    IF c.relkind NOT IN ('r', 'p') THEN
        RAISE EXCEPTION '% is not a table', relation
            USING ERRCODE = 'wrong_object_type', HINT = 'Register the table itself, not a view or a foreign table.';
    END IF;
    IF c.relpersistence = 't' THEN
        RAISE EXCEPTION '% is a temporary table, which no other session can see', relation
            USING ERRCODE = 'wrong_object_type', HINT = 'Register a permanent table.';
    END IF;
    IF c.relnamespace = 'scheduler'::regnamespace OR c.relnamespace = 'pg_catalog'::regnamespace THEN
        RAISE EXCEPTION '% belongs to the system and cannot be a queue', relation USING ERRCODE = 'wrong_object_type';
    END IF;
    IF c.relrowsecurity AND NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'scheduler_owner' AND rolbypassrls)
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_policy WHERE polrelid = relation AND 'scheduler_owner'::regrole = ANY (polroles)) THEN
        RAISE EXCEPTION 'row security of % hides its rows from the engine', relation
            USING ERRCODE = 'insufficient_privilege', HINT = format('CREATE POLICY scrapersky ON %s TO scheduler_owner, scheduler_listener USING (true);', relation);
    END IF;
    PERFORM scheduler._check_owner(relation, current_user);
END
$$;
COMMENT ON FUNCTION scheduler._check_table(regclass) IS 'Internal: refuses what cannot be a queue or is not the caller''s to register.';

CREATE OR REPLACE FUNCTION scheduler._find_key(relation regclass, key_column text) RETURNS name
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found name;
BEGIN
    SELECT a.attname INTO found
    FROM pg_catalog.pg_index AS i
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    WHERE i.indrelid = relation AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
      AND i.indnkeyatts = 1 AND a.attnotnull
      AND a.attname = coalesce(_find_key.key_column, a.attname)
    ORDER BY i.indisprimary DESC, a.attnum LIMIT 1;
    IF found IS NULL THEN
        RAISE EXCEPTION 'table % has no unique key of one NOT NULL column%', relation,
                CASE WHEN key_column IS NULL THEN '' ELSE ' named ' || quote_ident(key_column) END
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = CASE WHEN key_column IS NULL
                              THEN format('Name a unique column as key_column, or add one: ALTER TABLE %s ADD COLUMN item_id bigint GENERATED ALWAYS AS IDENTITY UNIQUE NOT NULL;', relation)
                              ELSE format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL, ADD UNIQUE (%I);', relation, key_column, key_column) END;
    END IF;
    RETURN found;
END
$$;
COMMENT ON FUNCTION scheduler._find_key(regclass, text) IS 'Internal: the named unique column; without a name the primary key, else the first unique column.';

CREATE OR REPLACE FUNCTION scheduler._check_word(relation regclass, status_column text, word text, role text) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    a pg_catalog.pg_attribute := scheduler._check_column(relation, status_column, 'status_column');
    type_name text := format_type(a.atttypid, a.atttypmod);
    base oid := (SELECT CASE WHEN typtype = 'd' THEN typbasetype ELSE oid END FROM pg_catalog.pg_type WHERE oid = a.atttypid);
    labels text := (SELECT string_agg(quote_literal(enumlabel), ', ' ORDER BY enumsortorder) FROM pg_catalog.pg_enum WHERE enumtypid = base);
    stored text;
    c record;
    allowed boolean;
BEGIN
    IF labels IS NOT NULL AND base <> a.atttypid THEN
        RAISE EXCEPTION 'column % of % is of a domain over an enum, which PostgreSQL itself cannot compare', quote_ident(status_column), relation
            USING ERRCODE = 'invalid_parameter_value', HINT = format('ALTER TABLE %s ALTER COLUMN %I TYPE %s;', relation, status_column, format_type(base, NULL));
    END IF;
    BEGIN
        EXECUTE format('SELECT CAST(%L AS %s)::text', word, type_name) INTO stored;
    EXCEPTION
        WHEN data_exception OR integrity_constraint_violation OR cannot_coerce THEN
            stored := NULL;
    END;
    IF stored IS DISTINCT FROM word THEN
        RAISE EXCEPTION '% is not a value of %.% (type %), but was given as the % word', quote_literal(word), relation, quote_ident(status_column), type_name, role
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = coalesce(format('The type has %s. Use one of them, or: ALTER TYPE %s ADD VALUE %L;', labels, format_type(base, NULL), word),
                                  'Use a word the column can hold, or change its type.');
    END IF;
    -- CHECK constraints on the status column alone would refuse the word later, in the middle of the night
    FOR c IN SELECT conname, pg_get_expr(conbin, conrelid) AS expression FROM pg_catalog.pg_constraint
             WHERE conrelid = relation AND contype = 'c' AND conkey = ARRAY[a.attnum]
    LOOP
        EXECUTE format('SELECT %s FROM (SELECT CAST(%L AS %s) AS %I) AS row', c.expression, word, type_name, status_column) INTO allowed;
        IF NOT coalesce(allowed, true) THEN
            RAISE EXCEPTION 'the % word % is refused by constraint % of %', role, quote_literal(word), quote_ident(c.conname), relation
                USING ERRCODE = 'invalid_parameter_value', HINT = format('The constraint says %s. Use a word it allows, or change it.', c.expression);
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION scheduler._check_word(regclass, text, text, text) IS 'Internal: refuses a status word the column cannot hold, naming those it can.';

CREATE OR REPLACE FUNCTION scheduler._check_ready(relation regclass, ready text) RETURNS text
LANGUAGE plpgsql
-- the caller's search_path on purpose: the predicate means what it means to the person who wrote it
AS $$
DECLARE
    probe refcursor;
    canonical text;
    path text := pg_catalog.current_setting('search_path');
    dates text := pg_catalog.current_setting('datestyle');
BEGIN
    IF ready IS NULL THEN
        RETURN NULL;
    END IF;
    BEGIN
        -- a cursor takes exactly one query, so a predicate cannot smuggle in a second statement
        OPEN probe FOR EXECUTE pg_catalog.format(E'SELECT FROM %s AS t WHERE (%s\n) LIMIT 0', relation, ready);
        CLOSE probe;
        -- named as in the engine's statements, so that a subquery can refer to the row; last in the path, so that a real table t is not hidden
        PERFORM pg_catalog.set_config('search_path', pg_catalog.concat_ws(', ', nullif(path, ''), 'pg_temp'), true);
        EXECUTE pg_catalog.format('CREATE TEMPORARY TABLE t (LIKE %s)', relation);
        EXECUTE pg_catalog.format(E'CREATE POLICY ready ON pg_temp.t USING (%s\n)', ready);
    EXCEPTION
        WHEN query_canceled THEN RAISE;
        WHEN insufficient_privilege THEN
            RAISE EXCEPTION 'the ready predicate cannot be used by %: %', current_user, SQLERRM
                USING ERRCODE = 'insufficient_privilege', HINT = pg_catalog.format('Grant what is missing, as in: GRANT SELECT ON … TO %I;', current_user);
        WHEN OTHERS THEN
            RAISE EXCEPTION 'the ready predicate cannot be used: %', SQLERRM
                USING ERRCODE = 'invalid_parameter_value',
                      HINT = pg_catalog.format('It stands behind SELECT FROM %s AS t WHERE and must be one true-or-false expression. Given: %s', relation, ready);
    END;
    -- the server's own text of it, every name outside pg_catalog qualified and every date unmistakable, so it means the same in any session
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog', true), pg_catalog.set_config('datestyle', 'ISO', true);
    SELECT pg_catalog.pg_get_expr(p.polqual, p.polrelid) INTO canonical
    FROM pg_catalog.pg_policy AS p
    WHERE p.polrelid = pg_catalog.to_regclass('pg_temp.t') AND p.polname = 'ready';
    PERFORM pg_catalog.set_config('search_path', path, true), pg_catalog.set_config('datestyle', dates, true);
    DROP TABLE pg_temp.t;
    RETURN canonical;
END
$$;
COMMENT ON FUNCTION scheduler._check_ready(regclass, text) IS 'Internal: the predicate as the server understands it, fully qualified; an error if it does not parse.';

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

CREATE OR REPLACE FUNCTION scheduler._order_sql(w scheduler.workflow) RETURNS text
LANGUAGE sql STABLE
-- no SET: callers pin the path, and without it the planner inlines this (30 µs a call)
AS $$
    SELECT concat_ws(', ', quote_ident(w.priority_column) || ' DESC NULLS LAST',
                     CASE WHEN w.age_column IS NULL AND w.priority_column IS NULL THEN quote_ident(w.key_column) ELSE quote_ident(w.age_column) END)
$$;
COMMENT ON FUNCTION scheduler._order_sql(scheduler.workflow) IS 'Internal: the order of the queue, as in its index: priority, then age.';

CREATE OR REPLACE FUNCTION scheduler._word(w scheduler.workflow, word text) RETURNS text
LANGUAGE sql STABLE
-- no SET: callers pin the path, and without it the planner inlines this (30 µs a call)
AS $$ SELECT format('%L::%s', word, format_type(w.status_type, -1)) $$;
COMMENT ON FUNCTION scheduler._word(scheduler.workflow, text) IS 'Internal: a status word as a typed literal.';

CREATE OR REPLACE FUNCTION scheduler._build_index(w scheduler.workflow, kind text, predicate text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    index_name text := format('scheduler_%s_%s', w.name, kind);
    ddl text := format('CREATE INDEX %I ON %s (%s) WHERE %s', index_name, w.relation, scheduler._order_sql(w), predicate);
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
COMMENT ON FUNCTION scheduler._build_index(scheduler.workflow, text, text) IS 'Internal: the partial index of the queue or of the ready rows; one built beforehand is taken.';

CREATE OR REPLACE FUNCTION scheduler._build_indexes(w scheduler.workflow) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM scheduler._build_index(w, 'queued', format('%I = %s', w.status_column, scheduler._word(w, w.queued)));
    IF w.ready IS NOT NULL THEN
        PERFORM scheduler._build_index(w, 'ready', scheduler._ready_sql(w));
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
        WHERE tgrelid = w.relation AND tgname IN ('scheduler_' || w.name || '_insert', 'scheduler_' || w.name || '_update', 'scheduler_' || w.name || '_takeover')
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
        -- the engine's own functions run with scheduler.engine set, so only other people's writes are noted
        EXECUTE format('CREATE TRIGGER %I AFTER UPDATE ON %s FOR EACH ROW WHEN (OLD.%3$s = %4$s AND NEW.%3$s IS DISTINCT FROM OLD.%3$s AND pg_catalog.current_setting(''scheduler.engine'', true) IS DISTINCT FROM ''on'') EXECUTE FUNCTION scheduler.taken_over(%5$L, %6$L)',
                       'scheduler_' || w.name || '_takeover', w.relation, column_name, scheduler._word(w, w.processing), w.name, w.key_column);
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._build_triggers(scheduler.workflow, boolean) IS 'Internal: puts the workflow''s triggers on its table, or takes them off.';

CREATE OR REPLACE FUNCTION scheduler._grants(w scheduler.workflow) RETURNS TABLE (object oid, item text, privilege text, grantee text, held boolean)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
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
    WHERE a.attrelid = w.relation AND a.attname IN (w.status_column, w.error_column)
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
    PERFORM scheduler._drop_index(w, part) FROM unnest(ARRAY['queued', 'ready']) AS part;
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
