"""Let a past row of a session hold no state, as those of runs.

Revision: 4
Revises: 3
"""

from alembic import op

revision = "4"
down_revision = "3"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Past rows keep the states that they have: `spawnlog log rebuild` leaves these out too.
    op.execute("ALTER TABLE sessions ALTER COLUMN state DROP NOT NULL")


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
