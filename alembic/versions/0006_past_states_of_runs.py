"""Rows of runs that have ended hold no state.

Revision: 0006
Revises: 0005
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE runs ALTER COLUMN state DROP NOT NULL")


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
