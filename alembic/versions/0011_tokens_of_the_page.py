"""The page is signed in to by a code that works once.

Of codes and tokens there are digests alone: who reads the table can sign in by none of them.

Revision: 0011
Revises: 0010
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE TABLE page_tokens (digest bytea PRIMARY KEY, kind text NOT NULL,"
        " asker bytea NOT NULL, expires_at timestamptz NOT NULL)"
    )
    op.execute("CREATE INDEX page_tokens_of_an_asker ON page_tokens (asker, expires_at)")
    op.execute("CREATE INDEX page_tokens_by_end ON page_tokens (expires_at)")


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
