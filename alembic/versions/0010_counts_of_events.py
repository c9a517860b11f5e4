"""Events are counted behind the head, and runs that are at work are noted: both can be made anew.

Revision: 0010
Revises: 0007
"""

from alembic import op

revision = "0010"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE TABLE event_counts (last_position bigint PRIMARY KEY, counts json NOT NULL)")
    op.execute("CREATE TABLE live_runs (position bigint PRIMARY KEY, run_ids uuid[] NOT NULL)")


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
