-- The engine's own tables. Business rows carry the status; these hold what a status column cannot.
-- No foreign key ever points from here to a business table: rows there may be deleted at any time.

CREATE TABLE scheduler.workflow (
    name             text PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9_]{0,39}$'),
    relation         regclass NOT NULL,
    key_column       name NOT NULL,
    key_type         regtype NOT NULL,
    status_column    name NOT NULL,
    status_type      regtype NOT NULL,
    error_column     name,
    priority_column  name,
    age_column       name,
    ready            text,
    queued           text NOT NULL,
    processing       text,
    completed        text NOT NULL,
    failed           text NOT NULL,
    idle             text,
    schedule         text,
    grace            interval CHECK (grace > '0'),
    batch_size       integer NOT NULL CHECK (batch_size BETWEEN 1 AND 10000),
    max_instances    integer CHECK (max_instances BETWEEN 1 AND 10000),
    concurrency      integer NOT NULL CHECK (concurrency BETWEEN 1 AND 10000),
    rate_limit       integer CHECK (rate_limit > 0),
    rate_period      interval NOT NULL CHECK (rate_period BETWEEN '1 second' AND '1 day'),
    lease            interval NOT NULL CHECK (lease BETWEEN '1 second' AND '1 day'),
    timeout          interval NOT NULL CHECK (timeout BETWEEN '1 second' AND '7 days'),
    max_attempts     integer NOT NULL CHECK (max_attempts BETWEEN 1 AND 1000),
    backoff          interval NOT NULL CHECK (backoff >= '0'),
    backoff_max      interval NOT NULL CHECK (backoff_max >= backoff),
    breaker          boolean NOT NULL,
    downstream       text REFERENCES scheduler.workflow (name) ON DELETE SET NULL,
    downstream_limit integer NOT NULL CHECK (downstream_limit > 0),
    doorbell         text NOT NULL CHECK (doorbell IN ('commit', 'dispatch', 'off')),
    paused_at        timestamptz,
    paused_by        text,
    paused_reason    text,
    created_at       timestamptz NOT NULL DEFAULT now(),
    created_by       text NOT NULL DEFAULT session_user,
    granted          text[] NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE scheduler.workflow IS 'One row a workflow. Read freely; change it with scheduler.alter_workflow(), which validates.';
COMMENT ON COLUMN scheduler.workflow.name IS 'Lower-case letters, digits and _. Its pg_cron job is scrapersky:<name>.';
COMMENT ON COLUMN scheduler.workflow.relation IS 'The business table whose rows are the items.';
COMMENT ON COLUMN scheduler.workflow.key_column IS 'Any unique NOT NULL column of one field. Default: the primary key.';
COMMENT ON COLUMN scheduler.workflow.status_column IS 'Text, varchar, an enum or a domain over one; its values are the words below.';
COMMENT ON COLUMN scheduler.workflow.error_column IS 'Text that allows NULL; shows the error of a failed item. NULL: errors are only in the ledger.';
COMMENT ON COLUMN scheduler.workflow.priority_column IS 'Higher first. NULL: by age alone.';
COMMENT ON COLUMN scheduler.workflow.age_column IS 'Older first. Default: queued_at, updated_at or created_at, whichever there is.';
COMMENT ON COLUMN scheduler.workflow.ready IS 'Rows for which this predicate holds are marked Queued by dispatch. NULL: only what the application queues.';
COMMENT ON COLUMN scheduler.workflow.queued IS 'Word of an item that waits for a listener.';
COMMENT ON COLUMN scheduler.workflow.processing IS 'Word of a running item. NULL: claiming leaves the business row alone and claims take turns.';
COMMENT ON COLUMN scheduler.workflow.completed IS 'Word of an item that succeeded.';
COMMENT ON COLUMN scheduler.workflow.failed IS 'Word of an item that failed: to be retried, or dead.';
COMMENT ON COLUMN scheduler.workflow.idle IS 'Word of an item nobody asked for; cancel puts it back. NULL: the status becomes NULL.';
COMMENT ON COLUMN scheduler.workflow.schedule IS 'Cron text of five fields (GMT unless cron.timezone says otherwise). NULL: never dispatched by a clock.';
COMMENT ON COLUMN scheduler.workflow.grace IS 'A slot missed by more than this is skipped, not made up. NULL: always made up, once.';
COMMENT ON COLUMN scheduler.workflow.batch_size IS 'Most items in one run; dispatch tops Queued up to this number.';
COMMENT ON COLUMN scheduler.workflow.max_instances IS 'Most open runs in the whole fleet. NULL: no limit.';
COMMENT ON COLUMN scheduler.workflow.concurrency IS 'How many items of one run a listener works on at once.';
COMMENT ON COLUMN scheduler.workflow.rate_limit IS 'Most items claimed in any window of rate_period, over all listeners. NULL: no limit.';
COMMENT ON COLUMN scheduler.workflow.rate_period IS 'The window of rate_limit.';
COMMENT ON COLUMN scheduler.workflow.lease IS 'A run whose listener has not been heard for this long is rescued.';
COMMENT ON COLUMN scheduler.workflow.timeout IS 'Deadline of the work on one item.';
COMMENT ON COLUMN scheduler.workflow.max_attempts IS 'Attempts before an item goes to the dead letter.';
COMMENT ON COLUMN scheduler.workflow.backoff IS 'Delay before the first retry; doubled each time, with jitter, up to backoff_max.';
COMMENT ON COLUMN scheduler.workflow.backoff_max IS 'The longest delay between two attempts.';
COMMENT ON COLUMN scheduler.workflow.breaker IS 'Stop by itself when recent items mostly fail, probe with one, go on when it succeeds.';
COMMENT ON COLUMN scheduler.workflow.downstream IS 'Dispatch holds back while this workflow has downstream_limit or more items Queued.';
COMMENT ON COLUMN scheduler.workflow.downstream_limit IS 'See downstream.';
COMMENT ON COLUMN scheduler.workflow.doorbell IS 'commit: a trigger rings when a row becomes Queued; dispatch: only the engine rings; off: listeners poll.';
COMMENT ON COLUMN scheduler.workflow.granted IS 'What create_workflow() granted to the engine''s roles because they did not have it; drop_workflow() takes it back.';

-- One row for the whole engine.
CREATE TABLE scheduler.control (
    one             boolean PRIMARY KEY DEFAULT true CHECK (one),
    paused_at       timestamptz,
    paused_by       text,
    paused_reason   text,
    pg_cron_seen_at timestamptz,
    maintained_at   timestamptz,
    maintained_by   text,
    maintain_took   interval
);
INSERT INTO scheduler.control DEFAULT VALUES;
COMMENT ON TABLE scheduler.control IS 'One row: is everything paused, when was pg_cron last heard, when did maintain() last run.';

-- What changes while a workflow runs, apart from its settings so that the settings row stays cold.
CREATE TABLE scheduler.state (
    workflow         text PRIMARY KEY REFERENCES scheduler.workflow (name) ON DELETE CASCADE,
    next_slot        timestamptz,
    last_slot        timestamptz,
    last_dispatch_at timestamptz,
    last_clock       text,
    last_queued      integer,
    last_note        text,
    missed_slots     bigint NOT NULL DEFAULT 0,
    breaker_state    text NOT NULL DEFAULT 'closed' CHECK (breaker_state IN ('closed', 'open', 'probing')),
    breaker_until    timestamptz,
    breaker_trips    integer NOT NULL DEFAULT 0,
    breaker_closed_at timestamptz,
    hold_until       timestamptz,
    hold_reason      text,
    problem          text,
    problem_at       timestamptz
) WITH (fillfactor = 50);
COMMENT ON TABLE scheduler.state IS 'Where each workflow stands: next slot, breaker, hold, last problem. Written by the engine only.';

-- One row for each run that may be open at once: taking one is taking the right to run.
CREATE TABLE scheduler.slot (
    workflow text NOT NULL REFERENCES scheduler.workflow (name) ON DELETE CASCADE,
    n        integer NOT NULL,
    run      bigint,
    PRIMARY KEY (workflow, n)
) WITH (fillfactor = 50);
COMMENT ON TABLE scheduler.slot IS 'max_instances rows a workflow; a slot with a run is taken. Makes the limit exact without counting.';

CREATE TABLE scheduler.run (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    workflow    text NOT NULL,
    listener    uuid,
    slot        integer,
    probe       boolean NOT NULL DEFAULT false,
    keys        text[] NOT NULL,
    places      tid[],
    revoked     text[] NOT NULL DEFAULT '{}',
    claimed     integer NOT NULL,
    succeeded   integer NOT NULL DEFAULT 0,
    failed      integer NOT NULL DEFAULT 0,
    rejected    integer NOT NULL DEFAULT 0,
    released    integer NOT NULL DEFAULT 0,
    cancelled   integer NOT NULL DEFAULT 0,
    discarded   integer NOT NULL DEFAULT 0,
    rescued     integer NOT NULL DEFAULT 0,
    started_at  timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    deadline    timestamptz NOT NULL,
    finished_at timestamptz,
    rolled_up   boolean NOT NULL DEFAULT false,
    histogram   integer[]
);
-- 40 kB of keys do not compress well enough to be worth the attempt at every claim
ALTER TABLE scheduler.run ALTER COLUMN keys SET STORAGE EXTERNAL, ALTER COLUMN places SET STORAGE EXTERNAL;
CREATE INDEX run_open ON scheduler.run (workflow) WHERE finished_at IS NULL;
CREATE INDEX run_started ON scheduler.run (workflow, started_at);
CREATE INDEX run_to_roll_up ON scheduler.run (workflow) WHERE finished_at IS NOT NULL AND NOT rolled_up;
COMMENT ON TABLE scheduler.run IS 'One claimed batch. keys holds the items the run still owns: an item not in it can no longer be finished by it.';
COMMENT ON COLUMN scheduler.run.keys IS 'Keys the run owns right now; shrinks as items finish, empty when the run is closed.';
COMMENT ON COLUMN scheduler.run.places IS 'Where the rows were when they were claimed: a hint that saves looking each up by its key. A row that has moved since is found by its key. NULL: unknown, as in a partitioned table, or the run is closed.';
COMMENT ON COLUMN scheduler.run.revoked IS 'Keys taken away by cancel or by another claim; the listener learns of them with its next heartbeat.';
COMMENT ON COLUMN scheduler.run.discarded IS 'Results not recorded because a person changed or deleted the row meanwhile.';

CREATE TABLE scheduler.attempt (
    workflow   text NOT NULL REFERENCES scheduler.workflow (name) ON DELETE CASCADE,
    key        text NOT NULL,
    state      text NOT NULL CHECK (state IN ('active', 'waiting', 'dead', 'cancelled')),
    attempts   integer NOT NULL DEFAULT 0,
    rescues    integer NOT NULL DEFAULT 0,
    retry_at   timestamptz CHECK ((state = 'waiting') = (retry_at IS NOT NULL)),
    error      text,
    reason     text,
    first_at   timestamptz NOT NULL DEFAULT now(),
    last_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workflow, key)
);
CREATE INDEX attempt_waiting ON scheduler.attempt (workflow, retry_at) WHERE state = 'waiting';
CREATE INDEX attempt_dead ON scheduler.attempt (workflow, last_at) WHERE state = 'dead';
CREATE INDEX attempt_suspect ON scheduler.attempt (workflow) WHERE state = 'active' AND rescues > 0;
COMMENT ON TABLE scheduler.attempt IS 'The ledger: one row an item that has failed or was rescued. Items that succeed at once never get one.';
COMMENT ON COLUMN scheduler.attempt.state IS 'active: queued or running again; waiting: retried at retry_at; dead: in the dead letter; cancelled: not queued again by the schedule.';
COMMENT ON COLUMN scheduler.attempt.rescues IS 'How often its listener vanished while it ran. Such items are claimed in ever smaller runs, so a killer ends up alone.';

-- Written by a trigger, so it must never block the writer: no key, no unique index.
CREATE TABLE scheduler.takeover (
    workflow text NOT NULL,
    key      text NOT NULL,
    upto     bigint NOT NULL
);
CREATE INDEX takeover_workflow ON scheduler.takeover (workflow);
COMMENT ON TABLE scheduler.takeover IS 'Items whose status someone changed while they ran: runs up to this id no longer own them.';

CREATE TABLE scheduler.listener (
    id         uuid PRIMARY KEY,
    host       text,
    pid        integer,
    version    text,
    workflows  text[],
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now(),
    stopped_at timestamptz,
    detail     jsonb NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50);
COMMENT ON TABLE scheduler.listener IS 'One row a listener process, new on every start; seen_at moves with each heartbeat.';

CREATE TABLE scheduler.audit (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    who      text NOT NULL,
    action   text NOT NULL,
    workflow text,
    affected bigint,
    detail   jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_at ON scheduler.audit (at);
-- the doctor asks for each workflow under which name its table was registered
CREATE INDEX audit_created ON scheduler.audit (workflow, id) WHERE action = 'create_workflow';
COMMENT ON TABLE scheduler.audit IS 'Who did what, when: one row for each call of an operating function.';

CREATE TABLE scheduler.alert (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT now(),
    workflow text NOT NULL REFERENCES scheduler.workflow (name) ON DELETE CASCADE,
    code     text NOT NULL,
    event    text NOT NULL CHECK (event IN ('raised', 'cleared')),
    text     text NOT NULL,
    fix      text NOT NULL,
    tries    integer NOT NULL DEFAULT 0,
    again_at timestamptz,
    sent_at  timestamptz
);
CREATE INDEX alert_workflow ON scheduler.alert (workflow, code, id);
COMMENT ON TABLE scheduler.alert IS 'What listeners with ALERT_WEBHOOK_URL have told the webhook: one row a change. Empty where no listener has one.';
COMMENT ON COLUMN scheduler.alert.again_at IS 'When to send it, or to send it again if nobody has said by then that it arrived; NULL: it arrived, or was given up after five tries.';

CREATE TABLE scheduler.stat (
    workflow  text NOT NULL REFERENCES scheduler.workflow (name) ON DELETE CASCADE,
    grain     text NOT NULL CHECK (grain IN ('minute', 'hour', 'day')),
    at        timestamptz NOT NULL,
    runs      bigint NOT NULL,
    claimed   bigint NOT NULL,
    succeeded bigint NOT NULL,
    failed    bigint NOT NULL,
    rejected  bigint NOT NULL,
    released  bigint NOT NULL,
    cancelled bigint NOT NULL,
    discarded bigint NOT NULL,
    rescued   bigint NOT NULL,
    histogram bigint[] NOT NULL,
    PRIMARY KEY (workflow, grain, at)
);
COMMENT ON TABLE scheduler.stat IS 'Outcomes and durations rolled up by scheduler.maintain(); histogram counts items by scheduler.duration_bucket().';
