"""The log, the rows folded from it, the facts beside it and the tables of coordination.

Revision: 0001
Revises:
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

LOG = """
CREATE TABLE log_head (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    log_id uuid NOT NULL,
    position bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    chain_hash bytea NOT NULL,
    format integer NOT NULL,
    storage_home text
);

INSERT INTO log_head (log_id, position, recorded_at, chain_hash, format)
VALUES (gen_random_uuid(), 0, 'epoch', '\\x'::bytea, 1);

CREATE TABLE events (
    position bigint PRIMARY KEY,
    stream text NOT NULL,
    version integer NOT NULL,
    type text NOT NULL,
    type_version smallint NOT NULL,
    recorded_at timestamptz NOT NULL,
    occurred_at timestamptz NOT NULL,
    event_id uuid NOT NULL,
    command_id uuid NOT NULL,
    actor_kind text NOT NULL,
    actor_token text,
    actor_session text,
    causation uuid,
    correlation text,
    run_id uuid,
    traceparent text,
    config_revision integer NOT NULL,
    writer_version text NOT NULL,
    append_last bigint NOT NULL,
    chain_hash bytea NOT NULL,
    state bytea NOT NULL,
    UNIQUE (stream, version)
);
CREATE INDEX events_of_a_run ON events (run_id, position) WHERE run_id IS NOT NULL;
CREATE INDEX events_of_a_tree ON events (correlation, position) WHERE correlation IS NOT NULL;

CREATE TABLE commits (
    last_position bigint PRIMARY KEY,
    recorded_at timestamptz NOT NULL
);
CREATE INDEX commits_by_time ON commits (recorded_at, last_position);
"""

PROJECTIONS = """
CREATE TABLE projections (
    name text PRIMARY KEY,
    version integer NOT NULL
);

CREATE TABLE runs (
    run_id uuid NOT NULL,
    version integer NOT NULL,
    created_position bigint NOT NULL,
    created_at timestamptz NOT NULL,
    from_position bigint NOT NULL,
    to_position bigint NOT NULL,
    stage text NOT NULL,
    outcome text,
    session_id uuid NOT NULL,
    requester text NOT NULL,
    root text NOT NULL,
    child_session_key text,
    agent_id text,
    label text,
    lane text,
    lane_depth integer,
    queued_position bigint,
    holder text,
    epoch integer NOT NULL,
    due_kind text,
    due_at timestamptz,
    inbox_position bigint,
    state jsonb NOT NULL,
    PRIMARY KEY (run_id, from_position)
);
CREATE UNIQUE INDEX runs_open ON runs (run_id) WHERE to_position = 4611686018427387904;
CREATE INDEX runs_as_of ON runs (created_position, from_position);
CREATE INDEX runs_of_a_requester ON runs (requester, created_position);
CREATE INDEX runs_of_a_tree ON runs (root, created_position);
CREATE INDEX runs_by_label ON runs (label, created_position) WHERE label IS NOT NULL;
CREATE INDEX runs_by_child ON runs (child_session_key)
    WHERE to_position = 4611686018427387904 AND child_session_key IS NOT NULL;
CREATE INDEX runs_by_session ON runs (session_id) WHERE to_position = 4611686018427387904;
CREATE INDEX runs_due ON runs (due_kind, due_at)
    WHERE to_position = 4611686018427387904 AND due_kind IS NOT NULL;
CREATE INDEX runs_in_lanes ON runs (lane, lane_depth, queued_position)
    WHERE to_position = 4611686018427387904 AND lane IS NOT NULL;
CREATE INDEX runs_in_inboxes ON runs (requester, inbox_position)
    WHERE to_position = 4611686018427387904 AND inbox_position IS NOT NULL;

CREATE TABLE sessions (
    session_key text NOT NULL,
    version integer NOT NULL,
    created_position bigint NOT NULL,
    created_at timestamptz NOT NULL,
    from_position bigint NOT NULL,
    to_position bigint NOT NULL,
    session_id uuid NOT NULL,
    root text NOT NULL,
    run_id uuid,
    state jsonb NOT NULL,
    PRIMARY KEY (session_key, from_position)
);
CREATE UNIQUE INDEX sessions_open ON sessions (session_key)
    WHERE to_position = 4611686018427387904;
CREATE INDEX sessions_by_id ON sessions (session_id, from_position);
"""

FACTS = """
CREATE TABLE content_keys (
    session_id uuid PRIMARY KEY,
    key bytea NOT NULL
);

CREATE TABLE contents (
    content_id uuid PRIMARY KEY,
    session_id uuid NOT NULL,
    kind text NOT NULL,
    bytes integer NOT NULL,
    hmac text NOT NULL,
    preview text NOT NULL,
    body text NOT NULL
);
CREATE INDEX contents_of_a_session ON contents (session_id);

CREATE TABLE transcript_entries (
    run_id uuid NOT NULL,
    sequence integer NOT NULL,
    recorded_at timestamptz NOT NULL,
    kind text NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (run_id, sequence)
);

CREATE TABLE idempotency (
    token text NOT NULL,
    method text NOT NULL,
    path text NOT NULL,
    key text NOT NULL,
    fingerprint bytea NOT NULL,
    run_id uuid,
    kind text,
    body text,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (token, method, path, key)
);
CREATE INDEX idempotency_by_run ON idempotency (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX idempotency_by_age ON idempotency (created_at);
"""

COORDINATION = """
CREATE TABLE holders (
    holder text PRIMARY KEY,
    url text,
    until timestamptz NOT NULL
);

CREATE TABLE work_claims (
    run_id uuid NOT NULL,
    kind text NOT NULL,
    holder text NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (run_id, kind)
);
"""


def upgrade() -> None:
    for part in (LOG, PROJECTIONS, FACTS, COORDINATION):
        for statement in part.split(";\n"):
            if statement.strip():
                op.execute(statement)


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
