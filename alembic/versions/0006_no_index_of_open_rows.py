"""Drop the indexes of the rows that are true: each is the newest of its key in the primary key.

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
    # Not of open rows alone: the planner would go through all of those to find one by its key.
    op.execute("CREATE INDEX sessions_by_id ON sessions (session_id)")


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
