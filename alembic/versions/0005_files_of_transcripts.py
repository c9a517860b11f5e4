"""The files of transcripts that are to be written behind the ends of their runs.

Revision: 0005
Revises: 0004
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE TABLE transcript_files (run_id uuid PRIMARY KEY, is_archived boolean NOT NULL,"
        " due_at timestamptz NOT NULL, attempts smallint NOT NULL DEFAULT 0)"
    )


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
