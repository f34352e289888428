"""What the database says of a town, beside what its builder wrote down."""

from collections.abc import Set
from typing import LiteralString

import psycopg

from services.simulation.lot import Dead
from services.simulation.world import World

FOUND: LiteralString = """
SELECT d.domain, c.email, c.phone FROM contact AS c JOIN domain AS d ON d.id = c.domain_id WHERE d.domain = ANY (%s)
"""
DOMAINS: LiteralString = """
SELECT DISTINCT d.domain FROM domain AS d JOIN local_business AS b ON b.domain_id = d.id WHERE b.place_id = ANY (%s)
"""
# Whose failure it is, in words that outlive the row's key.
DEAD: LiteralString = """
SELECT l.workflow, coalesce(p.place_id, b.place_id, d.domain, f.url, g.url) AS subject, l.error,
       coalesce(p.place_id, b.place_id, d.domain, fd.domain, gd.domain) AS owner
FROM scheduler.dead_letter AS l
LEFT JOIN place AS p ON l.workflow = 'deep_scan' AND p.id::text = l.key
LEFT JOIN local_business AS b ON l.workflow = 'domain_extraction' AND b.id::text = l.key
LEFT JOIN domain AS d ON l.workflow IN ('domain_metadata', 'sitemap_analysis') AND d.id::text = l.key
LEFT JOIN sitemap_file AS f ON l.workflow = 'sitemap_import' AND f.id::text = l.key
LEFT JOIN domain AS fd ON fd.id = f.domain_id
LEFT JOIN page AS g ON l.workflow = 'page_curation' AND g.id::text = l.key
LEFT JOIN domain AS gd ON gd.id = g.domain_id
"""


def dead_letters(db: psycopg.Connection, world: World) -> set[Dead]:
    """Of this town only; the database may hold another."""
    ours = {place["id"] for place in world.places} | world.expected.keys()
    found = [Dead(workflow, subject, error) for workflow, subject, error, owner in db.execute(DEAD) if owner in ours]
    expected = {(one.workflow, one.subject): one for one in world.dead}
    return {_known(one, expected.get((one.workflow, one.subject))) for one in found}


def _known(found: Dead, expected: Dead | None) -> Dead:
    """The expected one, if this only says more: how TLS failed differs from one OpenSSL to the next."""
    return expected if expected is not None and found.reason.startswith(expected.reason) else found


def differences(db: psycopg.Connection, world: World) -> list[str]:
    """One line for each thing missing, invented, or there twice; none if all is as it must be."""
    rows = db.execute(FOUND, [list(world.expected)]).fetchall()
    emails = [(domain, email) for domain, email, _ in rows if email]
    phones = {(domain, phone) for domain, _, phone in rows if phone}
    domains = {domain for (domain,) in db.execute(DOMAINS, [[place["id"] for place in world.places]])}
    dead = dead_letters(db, world)
    return [
        *_beside("address", set(emails), world.emails),
        *_beside("number", phones, world.phones),
        *_beside("domain", domains, set(world.expected)),
        *_beside("dead letter", dead, world.dead),
        *(f"twice: {pair}" for pair in sorted({pair for pair in emails if emails.count(pair) > 1})),
    ]


def _beside(what: str, found: Set[object], expected: Set[object]) -> list[str]:
    return [
        *(f"missing {what}: {one}" for one in sorted(map(str, expected - found))),
        *(f"unexpected {what}: {one}" for one in sorted(map(str, found - expected))),
    ]
