-- Budgets: how many paid calls a day may have. Whoever is about to make a call reserves it first.

CREATE OR REPLACE FUNCTION scheduler.reserve(budget text, calls integer DEFAULT 1, first_limit bigint DEFAULT NULL)
RETURNS TABLE (granted boolean, remaining bigint, resumes_at timestamptz, reason text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    b scheduler.budget;
    today date;
BEGIN
    IF calls IS NULL OR calls < 1 THEN
        RAISE EXCEPTION 'cannot reserve % calls', coalesce(calls::text, 'NULL') USING ERRCODE = 'invalid_parameter_value', HINT = 'Give a number above 0.';
    END IF;
    IF NOT EXISTS (SELECT FROM scheduler.budget AS x WHERE x.name = reserve.budget) THEN
        INSERT INTO scheduler.budget (name, daily_limit) VALUES (reserve.budget, first_limit) ON CONFLICT DO NOTHING;
    END IF;
    -- the row lock lets one caller at a time look and spend, so no two get the last call
    SELECT * INTO b FROM scheduler.budget AS x WHERE x.name = reserve.budget FOR NO KEY UPDATE;
    today := (now() AT TIME ZONE b.time_zone)::date;
    -- forward only: a transaction that began before midnight and waited until after it must not bring yesterday back
    IF b.day IS NULL OR b.day < today THEN
        b.day := today;
        b.used := 0;
        b.refused := 0;
    END IF;
    granted := coalesce(b.used + calls <= b.daily_limit, true);
    b.used := b.used + CASE WHEN granted THEN calls ELSE 0 END;
    b.refused := b.refused + CASE WHEN granted THEN 0 ELSE calls END;
    UPDATE scheduler.budget AS x SET day = b.day, used = b.used, refused = b.refused WHERE x.name = b.name;
    remaining := b.daily_limit - b.used;
    IF NOT granted AND calls > b.daily_limit THEN
        reason := format('the budget %s of %s calls a day can never grant %s: SELECT scheduler.set_budget(%L, …)', b.name, b.daily_limit, calls, b.name);
    ELSIF NOT granted THEN
        resumes_at := (b.day + 1)::timestamp AT TIME ZONE b.time_zone;
        reason := format('the budget %s of %s calls a day is used up until %s', b.name, b.daily_limit, to_char(resumes_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'));
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION scheduler.reserve(text, integer, bigint) IS
'Takes so many calls out of today''s budget, or says why not and when it goes on. Exact under any race. first_limit is the daily limit of a budget that does not exist yet; after that the database is the truth.';

CREATE OR REPLACE FUNCTION scheduler.set_budget(budget text, daily_limit bigint, time_zone text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    zone text;
BEGIN
    PERFORM scheduler._check_name(budget);
    IF daily_limit < 0 THEN
        RAISE EXCEPTION 'daily_limit cannot be %', daily_limit USING ERRCODE = 'invalid_parameter_value', HINT = 'Give 0 for no calls at all, or NULL for no limit.';
    END IF;
    IF time_zone IS NOT NULL AND NOT EXISTS (SELECT FROM pg_catalog.pg_timezone_names AS z WHERE z.name = set_budget.time_zone) THEN
        RAISE EXCEPTION 'there is no time zone %', quote_literal(time_zone) USING ERRCODE = 'invalid_parameter_value', HINT = 'SELECT name FROM pg_timezone_names lists them.';
    END IF;
    INSERT INTO scheduler.budget AS b (name, daily_limit, time_zone) VALUES (budget, set_budget.daily_limit, coalesce(set_budget.time_zone, 'America/Los_Angeles'))
    ON CONFLICT ON CONSTRAINT budget_pkey DO UPDATE SET daily_limit = excluded.daily_limit, time_zone = coalesce(set_budget.time_zone, b.time_zone)
    RETURNING b.time_zone INTO zone;
    PERFORM scheduler._audit('set_budget', NULL, NULL, jsonb_build_object('budget', budget, 'daily_limit', daily_limit, 'time_zone', zone));
    RETURN format('budget %s: %s calls a day, by the clock of %s', budget, coalesce(daily_limit::text, 'any number of'), zone);
END
$$;
COMMENT ON FUNCTION scheduler.set_budget(text, bigint, text) IS 'Sets how many calls a day may have: NULL for no limit, 0 for none. It holds from the next call on.';

CREATE OR REPLACE VIEW scheduler.budgets AS
SELECT b.name AS budget, b.daily_limit, d.used AS used_today, b.daily_limit - d.used AS remaining, d.refused AS refused_today,
       ((now() AT TIME ZONE b.time_zone)::date + 1)::timestamp AT TIME ZONE b.time_zone AS resets_at
FROM scheduler.budget AS b,
     LATERAL (SELECT CASE WHEN b.day >= (now() AT TIME ZONE b.time_zone)::date THEN b.used ELSE 0 END AS used,
                     CASE WHEN b.day >= (now() AT TIME ZONE b.time_zone)::date THEN b.refused ELSE 0 END AS refused) AS d;
COMMENT ON VIEW scheduler.budgets IS 'Each budget: what today has used of it, what is left, and when the next day begins.';
COMMENT ON COLUMN scheduler.budgets.budget IS 'The paid service, as in google_places.';
COMMENT ON COLUMN scheduler.budgets.daily_limit IS 'Calls a day may have; NULL: no limit. Change it with scheduler.set_budget().';
COMMENT ON COLUMN scheduler.budgets.used_today IS 'Calls that today has had.';
COMMENT ON COLUMN scheduler.budgets.remaining IS 'Calls that today may still have; NULL: no limit.';
COMMENT ON COLUMN scheduler.budgets.refused_today IS 'Calls that were not made because the budget was used up.';
COMMENT ON COLUMN scheduler.budgets.resets_at IS 'When the next day begins, in the budget''s time zone.';
COMMENT ON COLUMN scheduler.budget.name IS 'The paid service, as in google_places.';
COMMENT ON COLUMN scheduler.budget.day IS 'The day that used and refused are of; NULL: none yet.';
COMMENT ON COLUMN scheduler.budget.used IS 'Calls on that day.';
COMMENT ON COLUMN scheduler.budget.refused IS 'Calls refused on that day.';
