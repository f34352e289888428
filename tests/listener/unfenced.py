"""The control: the engine without its fence, to show that the tests under fault can see what it prevents."""

from typing import LiteralString

# Whoever asks owns everything, whatever the run and the row say. It stands in for both guards: the lock on the run with
# its keys, and the test that the row is still marked as running.
NO_FENCE: LiteralString = """
CREATE OR REPLACE FUNCTION
    scheduler._fence(run bigint, wanted text[], OUT r scheduler.run, OUT mine text[], OUT asked text[])
LANGUAGE plpgsql AS $$
BEGIN
    SELECT * INTO r FROM scheduler.run AS x WHERE x.id = _fence.run;
    asked := coalesce(wanted, r.keys);
    mine := asked;
    UPDATE public.item SET status = 'Processing' WHERE id::text = ANY (mine);
END
$$
"""
