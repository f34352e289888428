"""The pipeline in the middle of its day, for pictures: real tables, and real functions made most of what it shows."""

import json
from dataclasses import dataclass

import psycopg

from tests.sql.queue import call, one

LISTENER = "6f8f1a52-8c1d-4b53-9a39-2f4b7c0d1e77"


@dataclass(frozen=True)
class Step:
    """A workflow's day so far."""

    name: str
    pace: int
    """Items a minute."""
    failing: float
    """The share that failed."""
    milliseconds: int
    dead: tuple[str, ...] = ()
    retried: int = 0
    runs: bool = True


STEPS = (
    Step("place_search", 3, 0.0, 900),
    Step("deep_scan", 42, 0.01, 420, ("REQUEST_DENIED: this place is not available",)),
    Step("domain_extraction", 40, 0.0, 6, runs=False),
    Step(
        "domain_metadata",
        95,
        0.06,
        1900,
        (
            "TLS: certificate expired on 2026-03-01",
            "HTTP 403 from https://shop3.example/",
            "no such host: old-bakery.example",
            "no such host: joes-garage.example",
        ),
        retried=2,
    ),
    Step("sitemap_analysis", 60, 0.02, 2600, ("the sitemap is larger than 50 MB: https://big.example/sitemap.xml",)),
    Step("sitemap_import", 0, 0.0, 700, runs=False),
    Step(
        "page_curation",
        310,
        0.03,
        1100,
        ("timeout after 30 s: https://slow.example/contact", "timeout after 30 s: https://slow.example/about"),
        retried=2,
    ),
)

_ROWS = """
INSERT INTO place_search (business_type, location)
SELECT (ARRAY['bakery', 'dentist', 'garage', 'florist'])[1 + n % 4], (ARRAY['Graz', 'Linz', 'Wien'])[1 + n % 3]
FROM generate_series(1, 9) AS n;

INSERT INTO place (place_id, place_search_id, name, status, deep_scan_status, created_at)
SELECT 'place-' || n, (SELECT id FROM place_search ORDER BY id LIMIT 1), 'Bakery ' || n, 'Selected',
       CASE WHEN n <= 240 THEN 'Queued'::deep_scan_status ELSE 'Completed' END, now() - n * interval '2 seconds'
FROM generate_series(1, 400) AS n;

INSERT INTO domain (domain, status, sitemap_analysis_status, created_at)
SELECT 'shop' || n || '.example', CASE WHEN n <= 1420 THEN 'pending'::domain_status ELSE 'completed' END,
       CASE WHEN n > 1420 AND n <= 1510 THEN 'queued'::sitemap_analysis_status ELSE 'pending' END,
       now() - n * interval '300 milliseconds'
FROM generate_series(1, 1600) AS n;

INSERT INTO local_business (place_id, name, website, status, domain_id, domain_extraction_status)
SELECT p.place_id, p.name, 'https://shop' || row_number() OVER () || '.example/', 'Selected', d.id,
       CASE WHEN p.place_id > 'place-38' THEN 'Queued'::domain_extraction_status ELSE 'Completed' END
FROM place AS p JOIN domain AS d ON d.domain = replace(p.place_id, 'place-', 'shop') || '.example'
WHERE p.deep_scan_status = 'Completed';

INSERT INTO sitemap_file (domain_id, url, deep_scrape_curation_status)
SELECT id, 'https://' || domain || '/sitemap.xml', 'Selected' FROM domain
WHERE status = 'completed' ORDER BY domain LIMIT 6;

INSERT INTO page (domain_id, sitemap_file_id, url, page_curation_status, page_processing_status, created_at)
SELECT f.domain_id, f.id, 'https://shop.example/' || n, 'Selected', 'Queued', now() - n * interval '40 milliseconds'
FROM (SELECT * FROM sitemap_file LIMIT 1) AS f, generate_series(1, 30511) AS n;

INSERT INTO contact (domain_id, name, role, email, phone, email_type, contact_curation_status, source_url, created_at)
SELECT d.id, (ARRAY['Anna Berger', 'Luca Conti', 'Marie Dubois', 'Jonas Weber', NULL])[1 + n % 5],
       (ARRAY['Owner', 'Manager', NULL, 'Head of sales'])[1 + n % 4],
       (ARRAY['office', 'info', 'hello', 'contact'])[1 + n % 4] || '@' || d.domain, '+4316' || 1000000 + n * 7919,
       (ARRAY['corporate', 'service', 'free'])[1 + n % 3]::email_type,
       (ARRAY['New', 'New', 'Selected', 'Maybe'])[1 + n % 4]::curation_status, 'https://' || d.domain || '/contact',
       now() - n * interval '11 minutes'
FROM (SELECT *, row_number() OVER (ORDER BY domain) AS n FROM domain WHERE status = 'completed') AS d WHERE n <= 60;
"""


def prepare(db: psycopg.Connection) -> None:
    """Rows in every table, an hour and a day of history, listeners, items that run, wait, failed for good."""
    db.execute("SET scheduler.actor = 'maria'")
    call(db, "pause", name="sitemap_import", reason="waiting for the new parser")
    db.execute("RESET scheduler.actor")
    db.execute(_ROWS)
    _listeners(db)
    for step in STEPS:
        _history(db, step)
        for error in step.dead:
            _fail(db, step, error, permanent=True)
        for number in range(step.retried):
            _fail(db, step, f"HTTP 503 from https://shop{number}.example/", permanent=False)
        if step.runs:
            _run(db, step)
    db.execute(
        "UPDATE local_business SET domain_id = %s WHERE place_id = 'place-300'", [a_dead_item(db, "domain_metadata")]
    )
    # as if pg_cron had fired before; its first firing is up to a minute away
    db.execute("UPDATE scheduler.control SET pg_cron_seen_at = now()")
    db.execute(
        "UPDATE scheduler.state SET next_slot = scheduler.cron_next(w.schedule, now() + interval '20 seconds')"
        " FROM scheduler.workflow AS w WHERE w.name = state.workflow"
    )
    db.execute("ANALYZE")


def a_dead_item(db: psycopg.Connection, workflow: str) -> str:
    return str(one(db, "SELECT key FROM scheduler.dead_letter WHERE workflow = %s LIMIT 1", workflow))


def _listeners(db: psycopg.Connection) -> None:
    names = [step.name for step in STEPS]
    detail = json.dumps({"listening": True, "draining": False, "working": 12, "waiting": 40})
    for identity, host, pid, some in (
        (LISTENER, "worker-1", 2211, names),
        ("0c7a7e5e-77d5-4b40-a2c0-9ad7e1c2b3aa", "worker-2", 907, names),
        ("b7e1f3c4-2a3b-4f9c-8a57-7a0f6f1d9c10", "worker-2", 908, names[3:]),
    ):
        db.execute("SELECT scheduler.heartbeat(%s, '{}', %s, %s, '0.1.0', %s, %s)", [identity, host, pid, some, detail])


def _claim(db: psycopg.Connection, step: Step, items: int | None) -> tuple[int, list[str]]:
    row = db.execute("SELECT run, keys FROM scheduler.claim(%s, %s, %s)", [step.name, LISTENER, items]).fetchone()
    assert row is not None
    assert row[0] is not None, step.name
    return row[0], row[1]


def _fail(db: psycopg.Connection, step: Step, error: str, *, permanent: bool) -> None:
    run, keys = _claim(db, step, 1)
    db.execute("SELECT scheduler.fail(%s, %s, %s, %s)", [run, keys, [error], [permanent]])


def _run(db: psycopg.Connection, step: Step) -> None:
    """One run that is over and one that is under way."""
    finished, _ = _claim(db, step, 3)
    db.execute("SELECT scheduler.succeed(%s)", [finished])
    run, _ = _claim(db, step, None)
    db.execute("UPDATE scheduler.run SET started_at = now() - interval '7 seconds' WHERE id = %s", [run])


def _history(db: psycopg.Connection, step: Step) -> None:
    """Statistics as maintain() would have rolled them up, by minute and by hour."""
    for grain, length in (("minute", 60), ("hour", 24)):
        db.execute(
            """INSERT INTO scheduler.stat (workflow, grain, at, runs, claimed, succeeded, failed, rejected, released,
                                           cancelled, discarded, rescued, histogram)
               SELECT %(name)s, %(grain)s, at, 1, n, n - bad, bad, 0, 0, 0, 0, 0,
                      ARRAY(SELECT CASE b - middle WHEN -1 THEN n / 4 WHEN 0 THEN n / 2 WHEN 2 THEN n / 5
                                                   WHEN 4 THEN n / 20 + 1 ELSE 0 END
                            FROM generate_series(1, 48) AS b)::bigint[]
               FROM (SELECT date_trunc(%(grain)s, now()) - k * ('1 ' || %(grain)s)::interval AS at,
                            round(%(pace)s * (1 + 0.35 * sin(k / 5.0) + 0.18 * sin(k * 1.7)))::bigint AS n,
                            round(%(pace)s * %(failing)s * (1 + sin(k / 3.0)))::bigint AS bad,
                            scheduler.duration_bucket(%(milliseconds)s * (1 + 0.5 * sin(k / 9.0))) AS middle
                     FROM generate_series(1, %(length)s) AS k) AS q WHERE n > 0""",
            {
                "name": step.name,
                "grain": grain,
                "pace": step.pace * (1 if grain == "minute" else 60),
                "failing": step.failing,
                "milliseconds": step.milliseconds,
                "length": length,
            },
        )
