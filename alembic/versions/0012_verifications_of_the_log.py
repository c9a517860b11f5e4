"""What verifications of the log found, and how far one is that is under way.

Not a part of the log: what is verified is not written by verifying it.

Revision: 0012
Revises: 0011
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE TABLE verifications (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
        " started_by text NOT NULL, origin text NOT NULL, process text NOT NULL,"
        " started_at timestamptz NOT NULL DEFAULT clock_timestamp(),"
        " noted_at timestamptz NOT NULL DEFAULT clock_timestamp(), ended_at timestamptz,"
        " outcome text, stop_requested_by text, began bigint NOT NULL DEFAULT 0,"
        " checked bigint NOT NULL DEFAULT 0, last_position bigint, head_hash bytea,"
        " run_rows bigint NOT NULL DEFAULT 0, session_rows bigint NOT NULL DEFAULT 0,"
        " contents bigint NOT NULL DEFAULT 0, transcripts bigint NOT NULL DEFAULT 0,"
        " erased bigint NOT NULL DEFAULT 0, difference_position bigint, difference_kind text,"
        " difference_text text, failure text)"
    )


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
