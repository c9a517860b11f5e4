"""Runs whose announcement is not sent any more are found.

Revision: 0007
Revises: 0006
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE runs ADD COLUMN parked_position bigint")
    op.execute(
        "CREATE INDEX runs_with_parked_deliveries ON runs (parked_position)"
        " WHERE to_position = 4611686018427387904 AND parked_position IS NOT NULL"
    )


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
