"""Refused runs are found by their requester, and messages that wait by the id of their run.

Both indexes hold few rows: those of refused runs, and those of messages that had to wait.

Revision: 0013
Revises: 0012
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE INDEX runs_refused_of_a_requester ON runs (requester, created_position)"
        " WHERE stage = 'refused'"
    )
    # An expression of an index has to be immutable, which the conversion of bytes to text is not.
    op.execute(
        "CREATE INDEX events_of_messages_that_wait ON events"
        """ ((substring(encode(state, 'escape') from '"runId":"([0-9a-f-]{36})"')))"""
        " WHERE type = 'MessageQueued'"
    )


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
