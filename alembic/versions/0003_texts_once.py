"""Store each text once, without preview and hash, and drop an unused index.

Revision: 3
Revises: 2
"""

from alembic import op

revision = "3"
down_revision = "2"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # These only change the catalog; no table is rewritten, however long the log is.
    op.execute("ALTER TABLE contents DROP COLUMN preview, DROP COLUMN hmac")
    op.execute("DROP INDEX runs_by_session")


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
