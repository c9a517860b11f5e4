"""Keep each text once, without a preview and a hash beside it, and drop an index nobody reads.

Revision: 3
Revises: 2
"""

from alembic import op

revision = "3"
down_revision = "2"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Each is a change of the catalog alone: no table is written anew, however long the log is.
    op.execute("ALTER TABLE contents DROP COLUMN preview, DROP COLUMN hmac")
    op.execute("DROP INDEX runs_by_session")


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
