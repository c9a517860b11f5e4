"""Events are counted behind the head, runs at work are noted, and refused ones found by their rule.

Revision: 0008
Revises: 0007
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE TABLE event_counts (last_position bigint PRIMARY KEY, counts json NOT NULL)")
    op.execute("CREATE TABLE live_runs (position bigint PRIMARY KEY, run_ids uuid[] NOT NULL)")
    op.execute("ALTER TABLE runs ADD COLUMN rule text, ADD COLUMN depth integer")
    op.execute(
        "CREATE INDEX runs_refused_by_a_rule ON runs (rule, created_position)"
        " WHERE rule IS NOT NULL"
    )


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
