"""WF3. A business's website -> its domain, made if it is new and linked either way."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from listener import Done, Reject, Tools, Workflow
from services.models import LocalBusiness
from services.settings import DEFAULT_SYSTEM_USER, PipelineSettings
from services.websites import Kind, website


@dataclass(frozen=True, slots=True)
class Extracted:
    domain: str | None
    note: str | None
    """Why there is no domain."""
    country_code: str | None
    tenant_id: UUID
    created_by: str


async def work(business: LocalBusiness, tools: Tools) -> Extracted:
    found = website(business.website)
    if found.kind is Kind.INVALID:
        raise Reject(f"the website {(business.website or '')[:200]!r} has no domain: {found.reason}")
    settings = tools.settings
    author = settings.scheduler_system_user_id if isinstance(settings, PipelineSettings) else DEFAULT_SYSTEM_USER
    note = None if found.domain else found.reason
    return Extracted(found.domain, note, business.country_code, business.tenant_id, str(author))


# In the order of their names, so that two listeners with the same domains wait for each other and do not deadlock. The
# empty update locks a domain that exists, also one that another transaction is just making, and returns its key.
_LINK = text("""
WITH given AS (
    SELECT * FROM unnest(CAST(:ids AS uuid[]), CAST(:domains AS text[]), CAST(:countries AS text[]),
                         CAST(:tenants AS uuid[]), CAST(:authors AS text[]))
        AS g (id, domain, country_code, tenant_id, created_by)
), wanted AS (
    SELECT DISTINCT ON (domain) * FROM given ORDER BY domain, country_code NULLS LAST, id
), linked AS (
    INSERT INTO domain AS d (domain, country_code, tenant_id, created_by, status)
    SELECT domain, country_code, tenant_id, created_by, 'pending' FROM wanted ORDER BY domain
    ON CONFLICT (domain) DO UPDATE SET country_code = coalesce(d.country_code, excluded.country_code)
    RETURNING id, domain
)
UPDATE local_business AS b SET domain_id = linked.id, domain_extraction_note = NULL
FROM given JOIN linked USING (domain) WHERE b.id = given.id""")

_NOTE = text("""
UPDATE local_business AS b SET domain_id = NULL, domain_extraction_note = g.note
FROM unnest(CAST(:ids AS uuid[]), CAST(:notes AS text[])) AS g (id, note) WHERE b.id = g.id""")


async def save(session: AsyncSession, results: list[Done[LocalBusiness, Extracted]]) -> None:
    linked = [done for done in results if done.result.domain]
    if linked:
        await session.execute(
            _LINK,
            {
                "ids": [done.item.id for done in linked],
                "domains": [done.result.domain for done in linked],
                "countries": [done.result.country_code for done in linked],
                "tenants": [done.result.tenant_id for done in linked],
                "authors": [done.result.created_by for done in linked],
            },
        )
    without = [done for done in results if not done.result.domain]
    if without:
        await session.execute(
            _NOTE, {"ids": [done.item.id for done in without], "notes": [done.result.note for done in without]}
        )


domain_extraction = Workflow("domain_extraction", LocalBusiness, work, save, settings=PipelineSettings)
