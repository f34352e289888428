-- Cron text: what it means and when it fires. Schedules are checked here before pg_cron sees them,
-- because pg_cron accepts six fields and runs them once a minute, and knows no catching up.

DO $$
BEGIN
    IF to_regtype('scheduler.cron_spec') IS NULL THEN
        CREATE TYPE scheduler.cron_spec AS (
            seconds  integer,
            minutes  integer[],
            hours    integer[],
            days     integer[],
            months   integer[],
            weekdays integer[],
            any_day  boolean,
            any_weekday boolean
        );
    END IF;
END
$$;
COMMENT ON TYPE scheduler.cron_spec IS 'A parsed schedule: the minutes, hours, days, months and weekdays it fires in.';

CREATE OR REPLACE FUNCTION scheduler._cron_field(field text, label text, lowest integer, highest integer, names text[], schedule text)
RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    part text;
    m text[];
    first integer;
    last integer;
    step integer;
    found integer[] := '{}'::integer[];
    span integer := CASE label WHEN 'minute' THEN 60 WHEN 'hour' THEN 24 WHEN 'month' THEN 12 END;
BEGIN
    FOR n IN 1 .. coalesce(array_length(names, 1), 0) LOOP
        field := regexp_replace(field, '\m' || names[n] || '\M', (n - 1 + lowest)::text, 'gi');
    END LOOP;
    FOREACH part IN ARRAY string_to_array(field, ',') LOOP
        m := regexp_match(part, '^(?:(\*)|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?$');
        -- 5/15 means different things to different crons, and an error to pg_cron
        IF m IS NULL OR (m[4] IS NOT NULL AND m[1] IS NULL AND m[3] IS NULL) THEN
            RAISE EXCEPTION 'schedule %: % is not a valid % field', quote_literal(schedule), quote_literal(part), label
                USING ERRCODE = 'invalid_parameter_value',
                      HINT = format('Write *, a number from %s to %s, a range such as %s-%s, a list, or */n.', lowest, highest, lowest, highest);
        END IF;
        step := coalesce(m[4]::integer, 1);
        first := coalesce(m[2]::integer, lowest);
        last := CASE WHEN m[1] IS NOT NULL THEN highest WHEN m[3] IS NOT NULL THEN m[3]::integer ELSE first END;
        IF first < lowest OR last > highest OR first > last OR step < 1 THEN
            RAISE EXCEPTION 'schedule %: % is outside %-% in the % field', quote_literal(schedule), quote_literal(part), lowest, highest, label
                USING ERRCODE = 'invalid_parameter_value', HINT = format('Use numbers from %s to %s, smaller first, and a step of at least 1.', lowest, highest);
        END IF;
        -- */7 minutes fires at :56 and again at :00: the interval people read is not the one they get
        IF (m[1] IS NOT NULL OR first = lowest AND last = highest) AND step > 1 AND (span IS NULL OR span % step <> 0) THEN
            RAISE EXCEPTION 'schedule %: every % %s cannot be kept evenly', quote_literal(schedule), step, label
                USING ERRCODE = 'invalid_parameter_value',
                      HINT = CASE WHEN span IS NULL THEN format('Steps over the %s field start anew each month or week; list the days instead, such as 1,8,15,22.', label)
                                  ELSE format('Use a divisor of %s, or list the %ss you want.', span, label) END;
        END IF;
        SELECT found || array_agg(g) INTO found FROM generate_series(first, last, step) AS g;
    END LOOP;
    RETURN (SELECT array_agg(DISTINCT CASE WHEN label = 'weekday' THEN v % 7 ELSE v END ORDER BY CASE WHEN label = 'weekday' THEN v % 7 ELSE v END)
            FROM unnest(found) AS v);
END
$$;
COMMENT ON FUNCTION scheduler._cron_field(text, text, integer, integer, text[], text) IS 'Internal: one field of a schedule as the numbers it stands for.';

CREATE OR REPLACE FUNCTION scheduler.cron_parse(schedule text) RETURNS scheduler.cron_spec
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    words text[];
    spec scheduler.cron_spec;
    n integer;
BEGIN
    n := (regexp_match(schedule, '^\s*(\d{1,2}) seconds?\s*$'))[1]::integer;
    IF n IS NOT NULL THEN
        IF n NOT BETWEEN 1 AND 59 OR 60 % n <> 0 THEN
            RAISE EXCEPTION 'schedule %: seconds must be a divisor of 60 below 60', quote_literal(schedule)
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Use 1, 2, 3, 4, 5, 6, 10, 12, 15, 20 or 30 seconds, or cron text of five fields.';
        END IF;
        spec.seconds := n;
        RETURN spec;
    END IF;

    -- blanks as pg_cron sees them; it knows the words behind @ in lower case only
    schedule := btrim(schedule, E' \t\r\n');
    schedule := coalesce((CASE schedule
        WHEN '@hourly' THEN '0 * * * *' WHEN '@daily' THEN '0 0 * * *' WHEN '@midnight' THEN '0 0 * * *'
        WHEN '@weekly' THEN '0 0 * * 0' WHEN '@monthly' THEN '0 0 1 * *'
        WHEN '@yearly' THEN '0 0 1 1 *' WHEN '@annually' THEN '0 0 1 1 *' END), schedule);
    words := regexp_split_to_array(schedule, '[ \t]+');
    IF array_length(words, 1) IS DISTINCT FROM 5 OR words[1] = '' THEN
        RAISE EXCEPTION 'schedule % has % fields, not five', coalesce(quote_literal(schedule), 'NULL'), CASE WHEN schedule = '' THEN 0 ELSE coalesce(array_length(words, 1), 0) END
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = CASE WHEN array_length(words, 1) = 6
                              THEN 'Cron text has no seconds field (pg_cron would accept six fields and run them once a minute). Write minute hour day month weekday.'
                              ELSE 'Write minute hour day month weekday, such as */5 * * * *.' END;
    END IF;
    spec.minutes := scheduler._cron_field(words[1], 'minute', 0, 59, NULL, schedule);
    spec.hours := scheduler._cron_field(words[2], 'hour', 0, 23, NULL, schedule);
    spec.days := scheduler._cron_field(words[3], 'day', 1, 31, NULL, schedule);
    spec.months := scheduler._cron_field(words[4], 'month', 1, 12, '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}', schedule);
    spec.weekdays := scheduler._cron_field(words[5], 'weekday', 0, 7, '{sun,mon,tue,wed,thu,fri,sat}', schedule);
    spec.any_day := words[3] LIKE '*%';
    spec.any_weekday := words[5] LIKE '*%';
    RETURN spec;
END
$$;
COMMENT ON FUNCTION scheduler.cron_parse(text) IS 'A schedule taken apart; an error that names the fix when it is nonsense, has six fields or an uneven step.';

CREATE OR REPLACE FUNCTION scheduler._cron_day_matches(spec scheduler.cron_spec, day date) RETURNS boolean
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
    -- cron's old rule: when both day fields are restricted, either one is enough
    SELECT extract(month FROM day)::integer = ANY (spec.months)
       AND CASE WHEN spec.any_day OR spec.any_weekday
                THEN extract(day FROM day)::integer = ANY (spec.days) AND extract(dow FROM day)::integer = ANY (spec.weekdays)
                ELSE extract(day FROM day)::integer = ANY (spec.days) OR extract(dow FROM day)::integer = ANY (spec.weekdays) END
$$;
COMMENT ON FUNCTION scheduler._cron_day_matches(scheduler.cron_spec, date) IS 'Internal: does the schedule fire on that day at all.';

CREATE OR REPLACE FUNCTION scheduler._cron_nearest(schedule text, at timestamptz, zone text, direction integer) RETURNS timestamptz
LANGUAGE plpgsql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    spec scheduler.cron_spec := scheduler.cron_parse(schedule);
    day date;
    slot timestamptz;
    extra interval;
BEGIN
    IF spec.seconds IS NOT NULL THEN
        slot := to_timestamp(floor(extract(epoch FROM at) / spec.seconds) * spec.seconds);
        RETURN CASE WHEN direction > 0 THEN slot + make_interval(secs => spec.seconds) ELSE slot END;
    END IF;
    day := (at AT TIME ZONE zone)::date;
    -- eight years reach the next 29 February even across a century
    FOR i IN 0 .. 366 * 8 LOOP
        IF scheduler._cron_day_matches(spec, day) THEN
            -- The clocks go back: some local times come twice. The server takes the second one, and so does a schedule that
            -- names its hours; one that fires all day long goes on through both.
            extra := ((day + 1)::timestamp AT TIME ZONE zone) - (day::timestamp AT TIME ZONE zone) - interval '24 hours';
            IF extra < '0' OR cardinality(spec.hours) < 24 THEN
                extra := '0';
            END IF;
            SELECT CASE WHEN direction > 0 THEN min(f.slot) FILTER (WHERE f.slot > at) ELSE max(f.slot) FILTER (WHERE f.slot <= at) END INTO slot
            FROM unnest(spec.hours) AS h, unnest(spec.minutes) AS m,
                 LATERAL (SELECT day + make_time(h, m, 0) AS shown) AS l,
                 LATERAL (SELECT l.shown AT TIME ZONE zone AS slot
                          UNION ALL
                          SELECT (l.shown AT TIME ZONE zone) - extra WHERE extra > '0' AND ((l.shown AT TIME ZONE zone) - extra) AT TIME ZONE zone = l.shown) AS f;
            IF slot IS NOT NULL THEN
                RETURN slot;
            END IF;
        END IF;
        day := day + direction;
    END LOOP;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION scheduler._cron_nearest(text, timestamptz, text, integer) IS 'Internal: the slot after (direction 1) or at or before (direction -1) a moment.';

CREATE OR REPLACE FUNCTION scheduler._setting(name text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- of pg_cron only: others may hold secrets, such as primary_conninfo
    RETURN CASE WHEN name LIKE 'cron.%' THEN nullif(current_setting(name, true), '') END;
EXCEPTION
    -- pg_cron's settings are shown to pg_read_all_settings only; without it we know nothing of them
    WHEN insufficient_privilege THEN RETURN NULL;
END
$$;
COMMENT ON FUNCTION scheduler._setting(text) IS 'Internal: a setting of pg_cron, or NULL if it is not set or may not be read.';

CREATE OR REPLACE FUNCTION scheduler.cron_timezone() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    -- before 1.5 pg_cron ignores the setting and keeps GMT
    SELECT CASE WHEN string_to_array(regexp_replace(e.extversion, '[^0-9.].*$', ''), '.')::integer[] >= '{1,5}'
                THEN coalesce(scheduler._setting('cron.timezone'), 'GMT') ELSE 'GMT' END
    FROM (SELECT (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'pg_cron') AS extversion) AS e
$$;
COMMENT ON FUNCTION scheduler.cron_timezone() IS 'The time zone in which schedules are read: pg_cron''s own, GMT before pg_cron 1.5 and without it.';

CREATE OR REPLACE FUNCTION scheduler.cron_next(schedule text, after timestamptz DEFAULT now()) RETURNS timestamptz
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$ SELECT scheduler._cron_nearest(schedule, after, scheduler.cron_timezone(), 1) $$;
COMMENT ON FUNCTION scheduler.cron_next(text, timestamptz) IS 'When the schedule fires next after that moment; NULL if it never does.';

CREATE OR REPLACE FUNCTION scheduler.cron_previous(schedule text, upto timestamptz DEFAULT now()) RETURNS timestamptz
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$ SELECT scheduler._cron_nearest(schedule, upto, scheduler.cron_timezone(), -1) $$;
COMMENT ON FUNCTION scheduler.cron_previous(text, timestamptz) IS 'When the schedule last fired at or before that moment.';

CREATE OR REPLACE FUNCTION scheduler._check_schedule(schedule text) RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF schedule IS NULL THEN
        RETURN;
    END IF;
    IF scheduler.cron_next(schedule, now()) IS NULL THEN
        RAISE EXCEPTION 'schedule % never fires', quote_literal(schedule)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'No such date exists; check the day and month fields.';
    END IF;
    IF (scheduler.cron_parse(schedule)).seconds IS NOT NULL
       AND EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_cron'
                   AND string_to_array(regexp_replace(extversion, '[^0-9.].*$', ''), '.')::integer[] < '{1,5}') THEN
        RAISE EXCEPTION 'schedule % needs pg_cron 1.5 or newer; this database has %', quote_literal(schedule),
                (SELECT extversion FROM pg_extension WHERE extname = 'pg_cron')
            USING ERRCODE = 'feature_not_supported', HINT = 'Use * * * * *; with doorbell => ''commit'' queued rows start within milliseconds anyway.';
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._check_schedule(text) IS 'Internal: refuses a schedule that is nonsense, never fires or that this pg_cron cannot run.';
