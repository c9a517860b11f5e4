"""Allow past rows of sessions without a state, as for runs.

Revision: 4
Revises: 3
"""

from alembic import op

revision = "4"
down_revision = "3"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Existing past rows keep their states; `spawnlog log rebuild` removes those too.
    op.execute("ALTER TABLE sessions ALTER COLUMN state DROP NOT NULL")


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
