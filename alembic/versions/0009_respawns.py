"""Runs that were made from an earlier one are found.

Revision: 0009
Revises: 0008
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE runs ADD COLUMN respawned_from uuid")
    # Rows of the past too: a list as of a position goes along it, and few runs are in it.
    op.execute(
        "CREATE INDEX runs_by_respawned_from ON runs (respawned_from, created_position)"
        " WHERE respawned_from IS NOT NULL"
    )


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
