-- What create_workflow() and alter_workflow() are told is checked here: each refusal names the fix, and nothing is left behind.
-- Most run with the rights of the caller; where a function that has more calls them, they ask for the session's user.

CREATE OR REPLACE FUNCTION scheduler._check_name(name text) RETURNS void
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF name IS NULL OR name !~ '^[a-z][a-z0-9_]{0,39}$' THEN
        RAISE EXCEPTION '% cannot be the name of a workflow', coalesce(quote_literal(name), 'NULL')
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Use lower-case letters, digits and _, a letter first, at most 40 characters.';
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._check_name(text) IS 'Internal: refuses names that are not plain.';

CREATE OR REPLACE FUNCTION scheduler._check_free(name text) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM scheduler._check_name(name);
    IF name = 'maintain' THEN
        RAISE EXCEPTION 'maintain is the engine''s own job' USING ERRCODE = 'invalid_parameter_value', HINT = 'Choose another name.';
    END IF;
    IF EXISTS (SELECT FROM scheduler.workflow AS x WHERE x.name = _check_free.name) THEN
        RAISE EXCEPTION 'workflow % exists already', name
            USING ERRCODE = 'duplicate_object', HINT = format('Change it with scheduler.alter_workflow(%1$L, …), or remove it with scheduler.drop_workflow(%1$L).', name);
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._check_free(text) IS 'Internal: refuses a name that is not plain, reserved or taken.';

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
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    under oid := type;
BEGIN
    WHILE under IS NOT NULL LOOP
        type := under;
        under := (SELECT t.typbasetype FROM pg_catalog.pg_type AS t WHERE t.oid = type AND t.typtype = 'd');
    END LOOP;
    RETURN type::regtype;
END
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

CREATE OR REPLACE FUNCTION scheduler._rows_hidden(relation regclass) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    -- The engine reads rows and writes them; a policy that allows only the one leaves a queue that looks empty. One for
    -- everybody counts if it hides nothing: what a tenant's shows depends on the session.
    SELECT c.relrowsecurity AND NOT r.rolbypassrls
       AND EXISTS (SELECT FROM unnest('{r,w}'::"char"[]) AS needed (command)
                   WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_policy AS p
                                     WHERE p.polrelid = c.oid AND p.polpermissive AND p.polcmd IN ('*', needed.command)
                                       AND (r.oid = ANY (p.polroles) OR 0 = ANY (p.polroles) AND pg_get_expr(p.polqual, p.polrelid) = 'true')))
    FROM pg_catalog.pg_class AS c, pg_catalog.pg_roles AS r WHERE c.oid = relation AND r.rolname = 'scheduler_owner'
$$;
COMMENT ON FUNCTION scheduler._rows_hidden(regclass) IS 'Internal: whether row security keeps the engine from a table''s rows.';

CREATE OR REPLACE FUNCTION scheduler._check_visible(relation regclass) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF scheduler._rows_hidden(relation) THEN
        RAISE EXCEPTION 'row security of % hides its rows from the engine', relation
            USING ERRCODE = 'insufficient_privilege', HINT = format('CREATE POLICY scrapersky ON %s TO scheduler_owner, scheduler_listener USING (true);', relation);
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._check_visible(regclass) IS 'Internal: refuses a table whose rows the engine cannot see.';

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
        RAISE EXCEPTION '% belongs to the system and cannot be a queue', relation
            USING ERRCODE = 'wrong_object_type', HINT = 'Register a table of your own.';
    END IF;
    -- a key is unique in one table only, and so is the index of the queue
    IF c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent = relation) THEN
        RAISE EXCEPTION 'other tables inherit from %, so its key does not tell one row from another', relation
            USING ERRCODE = 'wrong_object_type', HINT = 'Register the tables that inherit from it, one by one, or make it a partitioned table.';
    END IF;
    IF EXISTS (SELECT FROM pg_catalog.pg_rewrite WHERE ev_class = relation AND ev_type = '2') THEN
        RAISE EXCEPTION 'a rule rewrites each UPDATE of %, so the engine cannot tell which rows it changed', relation
            USING ERRCODE = 'wrong_object_type',
                  HINT = format('Make it a trigger, then: DROP RULE %I ON %s;', (SELECT rulename FROM pg_catalog.pg_rewrite WHERE ev_class = relation AND ev_type = '2' LIMIT 1), relation);
    END IF;
    PERFORM scheduler._check_visible(relation);
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
                  HINT = CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = relation AND relkind = 'p')
                              THEN 'A unique key of a partitioned table must contain its partition key, so partition by the key, or register the partitions one by one: each can have a unique key of its own.'
                              WHEN key_column IS NULL
                              THEN format('Name a unique column as key_column, or add one: ALTER TABLE %s ADD COLUMN item_id bigint GENERATED ALWAYS AS IDENTITY UNIQUE NOT NULL;', relation)
                              ELSE format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL, ADD UNIQUE (%I);', relation, key_column, key_column) END;
    END IF;
    RETURN found;
END
$$;
COMMENT ON FUNCTION scheduler._find_key(regclass, text) IS 'Internal: the named unique column; without a name the primary key, else the first unique column.';

CREATE OR REPLACE FUNCTION scheduler._check_key(w scheduler.workflow) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    other CONSTANT text := format('Name another unique column as key_column, such as a new one: ALTER TABLE %s ADD COLUMN item_id bigint GENERATED ALWAYS AS IDENTITY UNIQUE NOT NULL;', w.relation);
BEGIN
    -- keys are kept as text, and each session has its own dates, zones, digits and bytes
    IF EXISTS (SELECT FROM pg_catalog.pg_type AS t LEFT JOIN pg_catalog.pg_range AS r ON t.oid IN (r.rngtypid, r.rngmultitypid)
               WHERE t.oid = w.key_type
                 AND coalesce(nullif(r.rngsubtype, 0), t.oid) IN ('bytea'::regtype, 'date'::regtype, 'timestamp'::regtype, 'timestamptz'::regtype, 'interval'::regtype, 'money'::regtype, 'real'::regtype, 'double precision'::regtype)) THEN
        RAISE EXCEPTION 'column % of % cannot be the key: the text of a % depends on the settings of a session', quote_ident(w.key_column), w.relation, w.key_type
            USING ERRCODE = 'invalid_parameter_value', HINT = other;
    END IF;
    -- the engine pins its search_path, so the operators of some extensions' types are out of its sight; an array has none with its own elements
    EXECUTE format('SELECT FROM %1$s AS t, unnest(NULL::%2$s[]) AS g (key) WHERE t.%3$I = g.key AND t.%3$I = ANY (NULL::%2$s[]) LIMIT 0', w.relation, format_type(w.key_type, -1), w.key_column);
EXCEPTION
    WHEN undefined_function OR datatype_mismatch OR undefined_object OR ambiguous_function THEN
        RAISE EXCEPTION 'column % of % cannot be the key: the engine cannot compare values of type %', quote_ident(w.key_column), w.relation, w.key_type
            USING ERRCODE = 'invalid_parameter_value', HINT = other;
END
$$;
COMMENT ON FUNCTION scheduler._check_key(scheduler.workflow) IS 'Internal: refuses a key whose text is not the same in every session, or that the engine cannot look up.';

CREATE OR REPLACE FUNCTION scheduler._check_error_column(w scheduler.workflow) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    a pg_catalog.pg_attribute;
    longest CONSTANT text := repeat('x', 1024);
    widen CONSTANT text := format('ALTER TABLE %s ALTER COLUMN %2$s TYPE text, ALTER COLUMN %2$s DROP NOT NULL; or leave error_column out.', w.relation, quote_ident(w.error_column));
    c record;
    allowed boolean;
BEGIN
    IF w.error_column IS NULL THEN
        RETURN;
    END IF;
    a := scheduler._check_column(w.relation, w.error_column, 'error_column');
    IF a.attnotnull OR scheduler._base_type(a.atttypid) NOT IN ('text'::regtype, 'varchar'::regtype) THEN
        RAISE EXCEPTION 'error column % of % must be of a text type and allow NULL', quote_ident(w.error_column), w.relation
            USING ERRCODE = 'invalid_parameter_value', HINT = widen;
    END IF;
    -- a failure that cannot be written down would fail for ever; a cast truncates silently what a write refuses
    BEGIN
        EXECUTE format('SELECT CAST(%L AS %s) = %1$L, CAST(NULL AS %2$s)', longest, format_type(a.atttypid, a.atttypmod)) INTO allowed;
    EXCEPTION
        WHEN data_exception OR integrity_constraint_violation THEN
            allowed := false;
    END;
    IF NOT allowed THEN
        RAISE EXCEPTION 'error column % of % (type %) does not hold every error text of up to 1024 characters, and NULL', quote_ident(w.error_column), w.relation, format_type(a.atttypid, a.atttypmod)
            USING ERRCODE = 'invalid_parameter_value', HINT = widen;
    END IF;
    FOR c IN SELECT conname, pg_get_expr(conbin, conrelid) AS expression FROM pg_catalog.pg_constraint
             WHERE conrelid = w.relation AND contype = 'c' AND conkey = ARRAY[a.attnum]
    LOOP
        EXECUTE format('SELECT %s FROM (SELECT CAST(%L AS %s) AS %I) AS row', c.expression, longest, format_type(a.atttypid, a.atttypmod), w.error_column) INTO allowed;
        IF NOT allowed THEN
            RAISE EXCEPTION 'constraint % of % refuses error texts of 1024 characters', quote_ident(c.conname), w.relation
                USING ERRCODE = 'invalid_parameter_value', HINT = format('ALTER TABLE %s DROP CONSTRAINT %I; or leave error_column out.', w.relation, c.conname);
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION scheduler._check_error_column(scheduler.workflow) IS 'Internal: refuses an error column that cannot hold an error text.';

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
                  HINT = CASE WHEN labels IS NULL THEN 'Use a word the column can hold, or change its type.'
                              ELSE format('The type has %s. Use one of them, or: ALTER TYPE %s ADD VALUE %L;', labels, format_type(base, NULL), word) END;
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
    intervals text := pg_catalog.current_setting('intervalstyle');
BEGIN
    IF ready IS NULL THEN
        RETURN NULL;
    END IF;
    IF pg_catalog.to_regclass('pg_temp.t') IS NOT NULL THEN
        RAISE EXCEPTION 'a predicate is tried on a temporary table named t, and this session has one of its own'
            USING ERRCODE = 'duplicate_table', HINT = 'DROP TABLE pg_temp.t; then again.';
    END IF;
    IF NOT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY') THEN
        RAISE EXCEPTION 'a predicate is tried on a temporary table, and % may not create one', current_user
            USING ERRCODE = 'insufficient_privilege', HINT = pg_catalog.format('GRANT TEMPORARY ON DATABASE %I TO %I;', pg_catalog.current_database(), current_user);
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
    -- the server's own text of it, every name outside pg_catalog qualified and every date and interval unmistakable, so it means the same in any session
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog', true), pg_catalog.set_config('datestyle', 'ISO', true), pg_catalog.set_config('intervalstyle', 'iso_8601', true);
    SELECT pg_catalog.pg_get_expr(p.polqual, p.polrelid) INTO canonical
    FROM pg_catalog.pg_policy AS p
    WHERE p.polrelid = pg_catalog.to_regclass('pg_temp.t') AND p.polname = 'ready';
    PERFORM pg_catalog.set_config('search_path', path, true), pg_catalog.set_config('datestyle', dates, true), pg_catalog.set_config('intervalstyle', intervals, true);
    DROP TABLE pg_temp.t;
    RETURN canonical;
END
$$;
COMMENT ON FUNCTION scheduler._check_ready(regclass, text) IS 'Internal: the predicate as the server understands it, fully qualified; an error if it does not parse.';

CREATE OR REPLACE FUNCTION scheduler._check_settings(w scheduler.workflow) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    rule record;
BEGIN
    FOR rule IN
        SELECT * FROM (VALUES
            ('batch_size', w.batch_size::text, w.batch_size BETWEEN 1 AND 10000, 'a number from 1 to 10000'),
            ('max_instances', w.max_instances::text, coalesce(w.max_instances BETWEEN 1 AND 10000, true), 'a number from 1 to 10000, or NULL for no limit; pause() stops a workflow'),
            ('concurrency', w.concurrency::text, w.concurrency BETWEEN 1 AND 10000, 'a number from 1 to 10000'),
            ('rate_limit', w.rate_limit::text, coalesce(w.rate_limit > 0, true), 'a number above 0, or NULL for no limit'),
            ('rate_period', w.rate_period::text, w.rate_period BETWEEN '1 second' AND '1 day', 'an interval from 1 second to 1 day'),
            ('lease', w.lease::text, w.lease BETWEEN '1 second' AND '1 day', 'an interval from 1 second to 1 day'),
            ('timeout', w.timeout::text, w.timeout BETWEEN '1 second' AND '7 days', 'an interval from 1 second to 7 days'),
            ('max_attempts', w.max_attempts::text, w.max_attempts BETWEEN 1 AND 1000, 'a number from 1 to 1000'),
            ('backoff', w.backoff::text, w.backoff >= '0', 'an interval of 0 or more'),
            ('backoff_max', w.backoff_max::text, w.backoff_max BETWEEN w.backoff AND '10 years', 'an interval no shorter than backoff and at most 10 years'),
            ('grace', w.grace::text, coalesce(w.grace > '0', true), 'an interval above 0, or NULL to make up every missed slot once'),
            ('breaker', w.breaker::text, w.breaker IS NOT NULL, 'true or false'),
            ('downstream_limit', w.downstream_limit::text, w.downstream_limit > 0, 'a number above 0'),
            ('doorbell', w.doorbell, w.doorbell IN ('commit', 'dispatch', 'off'), 'commit, dispatch or off')
        ) AS r (name, value, kept, allowed)
    LOOP
        IF rule.kept IS NOT TRUE THEN
            RAISE EXCEPTION '% cannot be %', rule.name, coalesce(quote_literal(rule.value), 'NULL')
                USING ERRCODE = 'invalid_parameter_value', HINT = format('Give %s.', rule.allowed);
        END IF;
    END LOOP;
    PERFORM scheduler._check_schedule(w.schedule);
    IF w.downstream IS NOT NULL THEN
        PERFORM scheduler._workflow(w.downstream);
        IF w.downstream = w.name THEN
            RAISE EXCEPTION 'workflow % cannot be its own downstream', w.name
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Name the workflow that takes over its results.';
        END IF;
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._check_settings(scheduler.workflow) IS 'Internal: refuses limits and intervals that make no sense, and says what does.';

CREATE OR REPLACE FUNCTION scheduler._check_words(w scheduler.workflow) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    given record;
    twice text;
    rival record;
BEGIN
    IF w.queued IS NULL OR w.completed IS NULL OR w.failed IS NULL THEN
        RAISE EXCEPTION 'the queued, completed and failed words cannot be NULL'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Only processing and idle may be NULL.';
    END IF;
    FOR given IN
        SELECT * FROM (VALUES ('queued', w.queued), ('processing', w.processing), ('completed', w.completed), ('failed', w.failed), ('idle', w.idle)) AS v (role, word)
        WHERE word IS NOT NULL
    LOOP
        PERFORM scheduler._check_word(w.relation, w.status_column, given.word, given.role);
    END LOOP;
    -- idle may be the failed word, where the column has no other to go back to
    SELECT v.word INTO twice FROM unnest(ARRAY[w.queued, w.processing, w.completed, w.failed]) AS v (word)
    WHERE v.word IS NOT NULL GROUP BY v.word HAVING count(*) > 1;
    IF twice IS NULL AND w.idle IN (w.queued, w.processing, w.completed) THEN
        twice := w.idle;
    END IF;
    IF twice IS NOT NULL THEN
        RAISE EXCEPTION 'the word % has two meanings', quote_literal(twice)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Queued, processing, completed and failed must be four different words.';
    END IF;
    -- one column may carry an item from workflow to workflow; but what one has queued or runs, another must not claim
    SELECT x.name, v.word INTO rival
    FROM scheduler.workflow AS x, unnest(ARRAY[x.queued, x.processing]) AS v (word)
    WHERE x.relation = w.relation AND x.status_column = w.status_column AND x.name <> w.name AND v.word IN (w.queued, w.processing)
    ORDER BY x.name, v.word = w.processing LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'workflow % uses the word % of column % of % too', rival.name, quote_literal(rival.word), quote_ident(w.status_column), w.relation
            USING ERRCODE = 'duplicate_object', HINT = format('Give %s a status column or words of its own, or drop the other: SELECT scheduler.drop_workflow(%L);', w.name, rival.name);
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._check_words(scheduler.workflow) IS 'Internal: the words must differ, be values of the status column, and not be claimed by another workflow.';
