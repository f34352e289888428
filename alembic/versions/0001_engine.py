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


def upgrade() -> None:
    apply(op.get_context(), "roles.sql", "engine/version.sql", "engine/tables.sql")


def downgrade() -> None:
    """env.py has taken the workflows off the business tables. The roles stay: other databases use them."""
    apply(op.get_context(), "engine/drop.sql", "engine/clean.sql")
