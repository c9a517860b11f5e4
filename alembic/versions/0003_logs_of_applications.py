"""A log may belong to an application of the eventsourcing library, which then is named in its head.

Revision: 0003
Revises: 0002
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE log_head ADD COLUMN application text")


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
