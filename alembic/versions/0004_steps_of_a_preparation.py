"""Runs say when something outside has to be undone, and files wait for being written.

The rows are written anew by the program, which makes another version of them.

Revision: 0004
Revises: 0002
"""

from alembic import op

revision = "0004"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE runs ADD COLUMN effects_at timestamptz")
    op.execute(
        "CREATE INDEX runs_with_effects ON runs (effects_at)"
        " WHERE to_position = 4611686018427387904 AND effects_at IS NOT NULL"
    )
    op.execute(
        "CREATE TABLE staged_files (run_id uuid NOT NULL, ordinal integer NOT NULL,"
        " body bytea NOT NULL, PRIMARY KEY (run_id, ordinal))"
    )
    # To compress a file takes time under the lock of the log, and it stays for moments only.
    op.execute("ALTER TABLE staged_files ALTER COLUMN body SET STORAGE EXTERNAL")


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
