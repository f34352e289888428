-- Claimable: which of many workflows are worth a claim. One question of a listener that serves a thousand, in place of a
-- thousand claims that find nothing.

CREATE OR REPLACE FUNCTION scheduler.claimable(workflows text[]) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- a table that someone has locked keeps nobody waiting here: its own claim does the waiting
SET lock_timeout = '10ms'
AS $$
DECLARE
    f record;
BEGIN
    PERFORM scheduler._require_read_committed();
    FOR f IN
        SELECT asked.name, x AS settings,
               x.paused_at IS NOT NULL OR EXISTS (SELECT FROM scheduler.control AS c WHERE c.paused_at IS NOT NULL) AS paused,
               -- not Queued and yet something to do, or to say
               c.oid IS NULL
               OR EXISTS (SELECT FROM scheduler.takeover AS t WHERE t.workflow = x.name)
               OR EXISTS (SELECT FROM scheduler.attempt AS a WHERE a.workflow = x.name AND a.state = 'waiting')
               OR EXISTS (SELECT FROM scheduler.run AS r WHERE r.workflow = x.name AND r.finished_at IS NULL AND r.lease_until < now()) AS due
        FROM unnest(claimable.workflows) AS asked (name)
        LEFT JOIN scheduler.workflow AS x ON x.name = asked.name
        LEFT JOIN pg_catalog.pg_class AS c ON c.oid = x.relation
    LOOP
        IF NOT f.due AND NOT f.paused THEN
            BEGIN
                f.due := scheduler._count_queued(f.settings, 1) > 0;
            EXCEPTION WHEN OTHERS THEN
                -- broken or locked: what is wrong is for the claim to find out, and to say
                f.due := true;
            END;
        END IF;
        IF f.due THEN
            RETURN NEXT f.name;
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION scheduler.claimable(text[]) IS
'Those of the workflows that are worth a claim: items are Queued, wait for a retry, or were lost; or the claim would say what is wrong. For listeners of many workflows.';
