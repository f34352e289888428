"""Error texts without secrets, durations in buckets."""

import psycopg

from tests.sql.queue import one

SECRETS = [
    ("https://bob:hunter2@example.org/x", "https://***@example.org/x"),
    ("GET /?api_key=abc123&q=1 failed", "GET /?api_key=***&q=1 failed"),
    ('{"password": "hunter2"}', '{"password": "***"}'),
    ("Authorization: Bearer abcdef123456", "Authorization: Bearer ***"),
    ("Authorization: Token abcdef123456", "Authorization: Token ***"),
    ("authorization=abcdef123456", "authorization=***"),
    ("key AIzaSyA0123456789abcdefghij was refused", "key *** was refused"),
    ("token=abc; secret='xyz'", "token=***; secret='***'"),
    ("password='two words' host=h", "password='***' host=h"),
    ('{"password": "two words", "n": "one"}', '{"password": "***", "n": "one"}'),
    ("nothing to hide: 3 keys, 2 tokens", "nothing to hide: 3 keys, 2 tokens"),
]


def test_no_secret_reaches_the_stored_text(db: psycopg.Connection) -> None:
    for told, stored in SECRETS:
        assert one(db, "SELECT scheduler.redact(%s)", told) == stored
    assert len(one(db, "SELECT scheduler.redact(%s)", "x" * 9000)) == 1024
    assert one(db, "SELECT scheduler.redact(NULL)") is None


def test_a_percentile_is_right_to_within_half_an_octave(db: psycopg.Connection) -> None:
    for milliseconds in (0.2, 1, 7, 150, 2_500, 60_000, 3_600_000):
        shown = db.execute(
            "WITH h AS (SELECT array_fill(0::bigint, ARRAY[scheduler.duration_bucket(%(ms)s) - 1]) || 1::bigint AS h)"
            " SELECT extract(epoch FROM scheduler.histogram_percentile(h, 0.5))::float * 1000 FROM h",
            {"ms": milliseconds},
        ).fetchone()
        assert shown is not None
        assert max(milliseconds, 1) <= shown[0] <= max(milliseconds, 1) * 1.42


def test_histograms_of_different_length_add_up(db: psycopg.Connection) -> None:
    assert one(db, "SELECT scheduler.histogram_add('{1,2}', '{1,0,5}')") == [2, 2, 5]
    assert one(db, "SELECT scheduler.histogram_add(NULL, '{1}')") == [1]
    assert one(db, "SELECT scheduler.histogram_sum(h) FROM (VALUES ('{1}'::bigint[]), (NULL), ('{0,4}')) AS v (h)") == [
        1,
        4,
    ]
    assert one(db, "SELECT scheduler.histogram_percentile('{0,0}', 0.5)") is None
