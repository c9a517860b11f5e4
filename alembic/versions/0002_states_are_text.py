"""States of rows are kept as the text they are.

Nobody asks inside them, and to parse, sort and print one for every row that is written and read
costs more than all else about the row.

The rows are written anew by the program, which makes another version of them.

Revision: 0002
Revises: 0001
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("runs", "sessions"):
        op.execute(f"ALTER TABLE {table} ALTER COLUMN state TYPE text USING state::text")
        # A row of a little over 2 kB would be compressed, which costs more than it saves.
        op.execute(f"ALTER TABLE {table} SET (toast_tuple_target = 8160)")


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
