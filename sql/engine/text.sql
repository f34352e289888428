-- Small pure functions: error text, durations, the audit row, refusals.

CREATE OR REPLACE FUNCTION scheduler.redact(message text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT left(
        regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(left(message, 8192),
            -- user:password@ in a URL
            '(://)[^/@\s]+@', '\1***@', 'g'),
            -- "key": "a value" and key='a value' for names that smell of a secret, to the closing quote; then key=value
            '(?i)((?:api[_-]?key|key|token|secret|passw(?:or)?d|pwd|signature|sig|auth|credential)["'']?\s*[=:]\s*")[^"\n]+"', '\1***"', 'g'),
            '(?i)((?:api[_-]?key|key|token|secret|passw(?:or)?d|pwd|signature|sig|auth|credential)["'']?\s*[=:]\s*'')[^''\n]+''', '\1***''', 'g'),
            '(?i)((?:api[_-]?key|key|token|secret|passw(?:or)?d|pwd|signature|sig|auth|credential)["'']?\s*[=:]\s*["'']?)[^\s&"'',;)]+', '\1***', 'g'),
            -- Authorization headers of any scheme
            '(?i)(authorization["'']?\s*[:=]\s*["'']?(?:\w+\s+)?|\m(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{6,}', '\1***', 'g'),
            -- Google API keys wherever they stand
            'AIza[0-9A-Za-z_-]{20,}', '***', 'g'),
        1024)
$$;
COMMENT ON FUNCTION scheduler.redact(text) IS 'Error text fit to be stored: secrets replaced by ***, at most 1024 characters.';

CREATE OR REPLACE FUNCTION scheduler._shape(message text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    shape text := message;
BEGIN
    -- asking first whether there is anything to fold halves the time of a page that groups a thousand errors
    IF strpos(shape, '://') > 0 THEN
        shape := regexp_replace(shape, 'https?://[^\s"''<>]+', '<url>', 'g');
    END IF;
    IF strpos(shape, '-') > 0 THEN
        shape := regexp_replace(shape, '[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}', '<uuid>', 'g');
    END IF;
    IF strpos(shape, '''') > 0 OR strpos(shape, '"') > 0 THEN
        shape := regexp_replace(shape, '''[^'']{1,200}''|"[^"]{1,200}"', '<text>', 'g');
    END IF;
    RETURN left(regexp_replace(shape, '\d+', '#', 'g'), 200);
END
$$;
COMMENT ON FUNCTION scheduler._shape(text) IS 'Internal: an error text without its numbers, ids and quoted words, to group by.';

CREATE OR REPLACE FUNCTION scheduler.duration_bucket(milliseconds double precision) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN milliseconds < 1 THEN 1
                ELSE least(48, 2 + floor(2 * ln(milliseconds) / ln(2.0::double precision))::integer) END
$$;
COMMENT ON FUNCTION scheduler.duration_bucket(double precision) IS 'Which of the 48 histogram buckets a duration falls in: two to an octave, 1 ms to 2.5 hours.';

CREATE OR REPLACE FUNCTION scheduler.histogram_percentile(histogram bigint[], fraction double precision) RETURNS interval
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    items bigint;
    total bigint := 0;
    upto bigint := 0;
BEGIN
    -- loops over 48 numbers: a quarter of the time of one query with window functions
    FOREACH items IN ARRAY histogram LOOP
        total := total + items;
    END LOOP;
    IF total > 0 THEN
        FOR n IN 1 .. cardinality(histogram) LOOP
            upto := upto + histogram[n];
            IF upto >= fraction * total THEN
                -- the upper edge of the bucket that holds the item at that rank
                RETURN make_interval(secs => power(2, (n - 1) / 2.0) / 1000);
            END IF;
        END LOOP;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION scheduler.histogram_percentile(bigint[], double precision) IS 'The duration below which that fraction of the items finished, to within half an octave.';

CREATE OR REPLACE FUNCTION scheduler.histogram_add(a bigint[], b bigint[]) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    joined bigint[] := coalesce(a, b, '{}');
BEGIN
    IF a IS NOT NULL AND b IS NOT NULL THEN
        FOR n IN 1 .. greatest(cardinality(a), cardinality(b)) LOOP
            joined[n] := coalesce(a[n], 0) + coalesce(b[n], 0);
        END LOOP;
    END IF;
    RETURN joined;
END
$$;
COMMENT ON FUNCTION scheduler.histogram_add(bigint[], bigint[]) IS 'Two histograms as one.';

DROP AGGREGATE IF EXISTS scheduler.histogram_sum(bigint[]);
CREATE AGGREGATE scheduler.histogram_sum(bigint[]) (SFUNC = scheduler.histogram_add, STYPE = bigint[], PARALLEL = SAFE);
COMMENT ON AGGREGATE scheduler.histogram_sum(bigint[]) IS 'Many histograms as one.';

CREATE OR REPLACE FUNCTION scheduler._who() RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
-- scheduler.actor names the person behind a shared login, such as the web page's
AS $$ SELECT session_user || coalesce(' for ' || nullif(left(current_setting('scheduler.actor', true), 200), ''), '') $$;
COMMENT ON FUNCTION scheduler._who() IS 'Internal: the role, and the person it acts for.';

CREATE OR REPLACE FUNCTION scheduler._audit(action text, workflow text, affected bigint, detail jsonb DEFAULT '{}') RETURNS void
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO scheduler.audit (who, action, workflow, affected, detail)
    VALUES (scheduler._who(), action, workflow, affected, coalesce(jsonb_strip_nulls(detail), '{}'))
$$;
COMMENT ON FUNCTION scheduler._audit(text, text, bigint, jsonb) IS 'Internal: one row in scheduler.audit.';

CREATE OR REPLACE FUNCTION scheduler._workflow(name text) RETURNS scheduler.workflow
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    w scheduler.workflow;
BEGIN
    SELECT * INTO w FROM scheduler.workflow AS x WHERE x.name = _workflow.name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no workflow %', coalesce(quote_literal(_workflow.name), 'NULL')
            USING ERRCODE = 'undefined_object',
                  HINT = coalesce('Registered: ' || (SELECT string_agg(x.name, ', ' ORDER BY x.name) FROM scheduler.workflow AS x) || '.',
                                  'Nothing is registered yet: see scheduler.create_workflow().');
    END IF;
    RETURN w;
END
$$;
COMMENT ON FUNCTION scheduler._workflow(text) IS 'Internal: the settings of a workflow, or an error that lists the registered ones.';

CREATE OR REPLACE FUNCTION scheduler._require_read_committed() RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- limits are read after a lock is taken; under an older snapshot they would be read stale
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the engine''s functions must run in a READ COMMITTED transaction, not %', upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'invalid_transaction_state', HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED;';
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._require_read_committed() IS 'Internal: refuses a snapshot under which limits could be exceeded.';
