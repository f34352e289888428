"""The engine: its roles and its tables.

Until the first release this runs sql/engine/tables.sql as it is. The first revision after a release freezes it: see
alembic/README.md.
"""

from alembic import op
from listener.schema import apply

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Children before parents, so that nothing is dropped by CASCADE.
TABLES = ("takeover", "stat", "audit", "listener", "attempt", "run", "slot", "state", "workflow")


def upgrade() -> None:
    apply(op.get_context(), "roles.sql", "engine/version.sql", "engine/tables.sql")


def downgrade() -> None:
    """What create_workflow() put on business tables is gone by now (env.py). The roles stay: other databases use them."""
    for table in TABLES:
        op.drop_table(table, schema="scheduler")
