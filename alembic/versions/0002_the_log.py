"""Create the log, its projections, the facts beside it and the coordination tables.

Revision: 2
Revises:
"""

from alembic import op

revision = "2"
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
-- An expression of an index must be immutable, and the conversion of bytes to text is not.
CREATE INDEX events_of_messages_that_wait ON events
    ((substring(encode(state, 'escape') from '"runId":"([0-9a-f-]{36})"')))
    WHERE type = 'MessageQueued';

CREATE TABLE commits (
    last_position bigint PRIMARY KEY,
    recorded_at timestamptz NOT NULL
);
CREATE INDEX commits_by_time ON commits (recorded_at, last_position);

CREATE TABLE event_counts (
    last_position bigint PRIMARY KEY,
    counts json NOT NULL
);

CREATE TABLE live_runs (
    position bigint PRIMARY KEY,
    run_ids uuid[] NOT NULL
);
"""

# States are text: no query looks inside them, and jsonb would be parsed and printed for each row.
# Without `toast_tuple_target` the server would compress rows slightly over 2 kB, which costs more
# time than the space is worth.
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
    state text,
    effects_at timestamptz,
    parked_position bigint,
    rule text,
    depth integer,
    respawned_from uuid,
    PRIMARY KEY (run_id, from_position)
) WITH (toast_tuple_target = 8160);
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
CREATE INDEX runs_with_effects ON runs (effects_at)
    WHERE to_position = 4611686018427387904 AND effects_at IS NOT NULL;
CREATE INDEX runs_refused_by_a_rule ON runs (rule, created_position) WHERE rule IS NOT NULL;
CREATE INDEX runs_refused_of_a_requester ON runs (requester, created_position)
    WHERE stage = 'refused';

-- The indexes below hold past rows too, for reads as of a position.
CREATE INDEX runs_by_respawned_from ON runs (respawned_from, created_position)
    WHERE respawned_from IS NOT NULL;
CREATE INDEX runs_in_inboxes ON runs (requester, inbox_position, from_position)
    WHERE inbox_position IS NOT NULL;
-- An expression, so that the planner does not choose it for a single inbox: old statistics do not
-- show that most announcements belong to other inboxes.
CREATE INDEX runs_announced ON runs ((inbox_position + 0), from_position)
    WHERE inbox_position IS NOT NULL;
CREATE INDEX runs_with_parked_deliveries ON runs (parked_position, from_position)
    WHERE parked_position IS NOT NULL;
-- Its first column is the class of a row's length: the place of the first bit of its number of
-- positions. All rows of a class that hold a position begin at most the length of that class before
-- the position, so that each class is one short range of the index.
CREATE INDEX runs_once_in_lanes ON runs
    (position(B'1' IN (to_position - from_position)::bit(64)), from_position, to_position)
    WHERE lane IS NOT NULL AND to_position < 4611686018427387904;

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
    state text NOT NULL,
    PRIMARY KEY (session_key, from_position)
) WITH (toast_tuple_target = 8160);
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

CREATE TABLE transcript_files (
    run_id uuid PRIMARY KEY,
    is_archived boolean NOT NULL,
    due_at timestamptz NOT NULL,
    attempts smallint NOT NULL DEFAULT 0
);

CREATE TABLE staged_files (
    run_id uuid NOT NULL,
    ordinal integer NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (run_id, ordinal)
);
-- Compression would take time under the lock of the log, and files stay for moments only.
ALTER TABLE staged_files ALTER COLUMN body SET STORAGE EXTERNAL;

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

CREATE TABLE page_tokens (
    digest bytea PRIMARY KEY,
    kind text NOT NULL,
    asker bytea NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX page_tokens_of_an_asker ON page_tokens (asker, expires_at);
CREATE INDEX page_tokens_by_end ON page_tokens (expires_at);

CREATE TABLE verifications (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    started_by text NOT NULL,
    origin text NOT NULL,
    process text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    noted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at timestamptz,
    outcome text,
    stop_requested_by text,
    began bigint NOT NULL DEFAULT 0,
    checked bigint NOT NULL DEFAULT 0,
    last_position bigint,
    head_hash bytea,
    run_rows bigint NOT NULL DEFAULT 0,
    session_rows bigint NOT NULL DEFAULT 0,
    contents bigint NOT NULL DEFAULT 0,
    transcripts bigint NOT NULL DEFAULT 0,
    erased bigint NOT NULL DEFAULT 0,
    difference_position bigint,
    difference_kind text,
    difference_text text,
    failure text
);
"""


def upgrade() -> None:
    for part in (LOG, PROJECTIONS, FACTS, COORDINATION):
        for statement in part.split(";\n"):
            if statement.strip():
                op.execute(statement)


def downgrade() -> None:
    raise RuntimeError("a log is never taken back to an older schema; restore a backup instead")
