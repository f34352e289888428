"""The pipeline: its tables, unless the engine is wanted alone.

Until the first release this runs sql/pipeline/tables.sql as it is. The first revision after a release freezes it: see
alembic/README.md.
"""

from alembic import op

from listener.schema import apply, wants_pipeline

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if wants_pipeline(op.get_context()):
        apply(op.get_context(), "pipeline/tables.sql")


def downgrade() -> None:
    """env.py has taken the workflows off the tables."""
    apply(op.get_context(), "pipeline/drop.sql")
