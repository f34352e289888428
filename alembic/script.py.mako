"""${message}."""
<%
    import re
    body = lambda text: text if text else "raise NotImplementedError"
%>
from alembic import op
% if "sa." in (upgrades or "") or "sa." in (downgrades or ""):
import sqlalchemy as sa
% endif
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    ${body(upgrades)}


def downgrade() -> None:
    ${body(downgrades)}
