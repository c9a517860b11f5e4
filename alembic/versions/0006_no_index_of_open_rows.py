"""Drop the indexes of current rows: the primary key finds each as the newest row of its key.

Revision: 6
Revises: 5
"""

from alembic import op

revision = "6"
down_revision = "5"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("DROP INDEX runs_open, sessions_open, sessions_by_id")
    # Not a partial index of open rows: the planner would scan all of those to find one by its key.
    op.execute("CREATE INDEX sessions_by_id ON sessions (session_id)")


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
