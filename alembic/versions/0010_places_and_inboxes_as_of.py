"""Who was in a lane, and what stood in inboxes, is found as of any position.

A row that was true for a while is found by the class of its length: by where in the number of its
positions the first bit stands. All rows of one class that hold a position begin not farther before
it than their class is long, so that each class is one short stretch of the index.

Revision: 0010
Revises: 0009
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE INDEX runs_once_in_lanes ON runs"
        " (position(B'1' IN (to_position - from_position)::bit(64)), from_position, to_position)"
        " WHERE lane IS NOT NULL AND to_position < 4611686018427387904"
    )
    # The rows that are true no more stand in these as well: a page goes on where it ends, and past
    # the few rows that each run has of its own.
    op.execute("DROP INDEX runs_in_inboxes")
    op.execute(
        "CREATE INDEX runs_in_inboxes ON runs (requester, inbox_position, from_position)"
        " WHERE inbox_position IS NOT NULL"
    )
    # An expression, so that nobody takes it who asks for one inbox: statistics that are old do not
    # tell that most announcements are others'.
    op.execute(
        "CREATE INDEX runs_announced ON runs ((inbox_position + 0), from_position)"
        " WHERE inbox_position IS NOT NULL"
    )
    op.execute("DROP INDEX runs_with_parked_deliveries")
    op.execute(
        "CREATE INDEX runs_with_parked_deliveries ON runs (parked_position, from_position)"
        " WHERE parked_position IS NOT NULL"
    )


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
