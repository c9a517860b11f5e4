"""Envelope of each event, in the answer and in the table, and storage of batches."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from application.log.envelope import SYSTEM, WRITER_VERSION, Actor, Provenance
from application.log.event_log import Decision, Following
from domain.run.events import SpawnRequested
from domain.values.record import run_stream, session_stream
from infrastructure.outbound.log.append import store
from infrastructure.outbound.log.append.store import FULLEST, StatementPart, store_query
from tests.support.builders import run_histories as past
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.storytelling import ROOT, requested, run_id
from tests.support.builders.submissions import key, observing, recording, seen, submission
from tests.support.memory.served_log import ServedLog
from tests.support.servers.running_log import RunningLog

CALLER, OPERATOR = Actor(kind="token", token="caller"), Actor(kind="token", token="operator")

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

COLUMNS = (
    "position, stream, version, type, type_version, recorded_at, occurred_at, event_id, command_id,"
    " actor_kind, actor_token, actor_session, causation, correlation, run_id, traceparent,"
    " config_revision, writer_version, append_last, chain_hash"
)


def _provenance(**changes: Any) -> Provenance:
    plain = {
        "actor": Actor(kind="token", token="orchestrator", session=ROOT),
        "correlation": ROOT,
        "causation": uuid7(),
        "run_id": run_id(1),
        "traceparent": TRACEPARENT,
        "config_revision": 7,
    }
    return Provenance(**{**plain, **changes})


async def test_columns_are_what_was_submitted_and_is_read(postgres: RunningLog) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    command, provenance = uuid7(), _provenance()
    await postgres.log.submit(observing(key(0)))
    requests = ((run_stream(run_id(1)), requested()), seen(key(1)))
    await postgres.log.submit(recording(*requests, command_id=command, provenance=provenance))
    rows = await postgres.ask(f"SELECT {COLUMNS} FROM events ORDER BY position")
    row = dict(zip(COLUMNS.replace(" ", "").split(","), rows[1], strict=True))
    result = {name: row.pop(name) for name in ("recorded_at", "occurred_at", "event_id")}
    assert before < result["occurred_at"] <= result["recorded_at"] < before + timedelta(seconds=30)
    assert result["event_id"].version == 7
    assert len(row.pop("chain_hash")) == 32
    assert row == {
        "position": 2,
        "stream": run_stream(run_id(1)),
        "version": 1,
        "type": "SpawnRequested",
        "type_version": 1,
        "command_id": command,
        "actor_kind": "token",
        "actor_token": "orchestrator",
        "actor_session": ROOT,
        "causation": provenance.causation,
        "correlation": ROOT,
        "run_id": run_id(1),
        "traceparent": TRACEPARENT,
        "config_revision": 7,
        "writer_version": WRITER_VERSION,
        "append_last": 3,
    }
    for recorded, stored in zip(await postgres.events(), rows, strict=True):
        event = recorded.envelope
        source = event.provenance
        assert stored == (
            *(event.position, event.stream, event.version, event.type, event.type_version),
            *(event.recorded_at, event.occurred_at, event.event_id, event.command_id),
            *(source.actor.kind, source.actor.token, source.actor.session),
            *(source.causation, source.correlation, source.run_id, source.traceparent),
            *(source.config_revision, event.writer_version, event.append_last, event.chain_hash),
        )
        assert event.stamp == (event.position, event.version, event.recorded_at, event.event_id)


async def test_what_nobody_said_stays_empty(running: ServedLog) -> None:
    await running.log.submit(observing(key(1), provenance=Provenance()))
    (recorded,) = await running.events()
    assert recorded.envelope.provenance == Provenance(actor=SYSTEM, config_revision=0)


async def test_event_ids_are_unique_and_ordered(running: ServedLog, family: LoggedFamily) -> None:
    await family.live("scout")
    envelopes = [event.envelope for event in await running.events()]
    ids = [envelope.event_id for envelope in envelopes]
    assert len(set(ids)) == len(ids)
    assert ids == sorted(ids)
    by_append: dict[int, set[UUID]] = {}
    for item in envelopes:
        by_append.setdefault(item.append_last, set()).add(item.command_id)
    assert all(len(commands) == 1 for commands in by_append.values())
    assert len(set.union(*by_append.values())) == len(by_append) == 7


async def test_event_names_its_run_and_cause(running: ServedLog, family: LoggedFamily) -> None:
    """The announcement of its child settles the scout, which is then released."""
    await family.begin("scout")
    await family.begin("below", "scout")
    await family.end("scout")
    await family.end("below")
    below, head = family.run("below"), await running.log.head()
    await family.announce("below")
    events = [event.envelope for event in await running.log.read(after=head, limit=9)]
    result = {event.type: (event.stream, event.provenance) for event in events}
    assert [*result] == ["RunAnnounced", "ChildSettled", "DescendantsSettled", "ChildReleased"]
    assert result["RunAnnounced"][1].run_id == result["ChildSettled"][1].run_id == below.run_id
    assert result["RunAnnounced"][1].causation == below.last_event_id
    assert result["ChildSettled"][0] == session_stream(family.key("scout"))
    settled = result["DescendantsSettled"][1]
    assert settled.run_id == family.id("scout")
    assert settled.correlation == ROOT
    by_type = {event.type: event.event_id for event in events}
    assert result["ChildSettled"][1].causation == by_type["RunAnnounced"]
    assert settled.causation == by_type["ChildSettled"]


async def test_event_of_another_tree_names_that_tree(
    running: ServedLog,
) -> None:
    other_family = LoggedFamily(running.log, root="agent:main:other", first=500)
    await other_family.begin("stranger")
    run = other_family.run("stranger")
    await running.log.submit(
        recording(
            seen(key(1)),
            (run_stream(run.run_id), past.ended()),
            (run_stream(run_id(2)), requested(run_id=run_id(2))),
            provenance=_provenance(),
        )
    )
    first, ended, born = [event.envelope.provenance for event in (await running.events())[-3:]]
    assert first.run_id == run_id(1)
    assert (ended.run_id, ended.correlation) == (run.run_id, "agent:main:other")
    assert ended.causation == run.last_event_id
    assert (born.run_id, born.correlation) == (run_id(2), ROOT)
    assert {item.traceparent for item in (first, ended, born)} == {TRACEPARENT}
    # Events about a run have the revision to which its spawn is pinned.
    revisions = [item.config_revision for item in (first, ended, born)]
    assert revisions == [7, run.config_revision, 7]


async def test_part_of_decision_names_its_command(running: ServedLog) -> None:
    part = Following(uuid7(), Provenance(actor=OPERATOR), Decision(None, [seen(key(2))]))
    first = submission(
        lambda _: Decision(None, [seen(key(1))], following=(part,)),
        session_stream(key(1)),
        provenance=Provenance(actor=CALLER),
    )
    await running.log.submit(first)
    envelopes = [event.envelope for event in await running.events()]
    assert [(envelope.command_id, envelope.provenance.actor) for envelope in envelopes] == [
        (first.command_id, CALLER),
        (part.command_id, OPERATOR),
    ]
    assert [envelope.append_last for envelope in envelopes] == [1, 2]


async def test_a_spawn_carries_its_actor_and_trace(
    running: ServedLog, family: LoggedFamily
) -> None:
    actor = Actor(kind="child", token="child:1", session="agent:main:subagent:x")
    await family.spawn("scout", actor=actor, traceparent=TRACEPARENT)
    sources = [event.envelope.provenance for event in await running.events()]
    assert len(sources) == 3
    assert {source.actor for source in sources} == {actor}
    assert {source.traceparent for source in sources} == {TRACEPARENT}
    assert {source.run_id for source in sources} == {family.id("scout")}


async def test_log_is_read_by_its_filters(running: ServedLog, family: LoggedFamily) -> None:
    other_family = LoggedFamily(running.log, root="agent:main:other", first=500)
    await family.live("scout")
    await other_family.spawn("stranger")
    everything = await running.events()

    async def positions(**query: Any) -> list[int]:
        limit = query.pop("limit", 99)
        found = await running.log.read(limit=limit, **query)
        return [event.envelope.position for event in found]

    assert await positions(limit=3) == [1, 2, 3]
    assert await positions(after=3, limit=2) == [4, 5]
    assert await positions(after=3, until=5) == [4, 5]
    assert await positions(after=len(everything)) == []
    born = [
        event.envelope.position for event in everything if isinstance(event.event, SpawnRequested)
    ]
    assert await positions(types=("SpawnRequested",)) == born
    assert (
        await positions(types=("SpawnRequested",), run_id=other_family.id("stranger")) == born[1:]
    )
    assert await positions(correlations=[ROOT, "agent:main:other"]) == [
        event.envelope.position for event in everything
    ]
    assert await positions(correlations=["agent:main:other"]) == [16, 17, 18]
    assert await positions(correlations=[]) == []
    assert await positions(types=("NoSuchType",)) == []


_FILLED = (
    "SELECT (SELECT array_agg(key ORDER BY key) FROM json_each_text(row_to_json(one))"
    " WHERE value IS NOT NULL)"
)

RUNS = f"{_FILLED}, version, stage, outcome, lane, due_kind FROM runs AS one WHERE run_id = %s"

SESSIONS = f"{_FILLED}, version FROM sessions AS one WHERE run_id = %s"

EVENTS = f"{_FILLED}, type FROM events AS one WHERE run_id = %s"

TEXTS = "SELECT count(*), sum(length(body)) FROM contents WHERE session_id = %s"


def test_query_of_single_rows_has_no_arrays() -> None:
    row = (
        StatementPart("runs", ("run_id", "version"), True),
        StatementPart("events", ("position", "state"), True),
    )
    query = store_query((StatementPart("head"), StatementPart("commit"), *row))
    assert "unnest" not in query
    assert "SELECT $6::uuid, $7::int)" in query


async def test_batch_beyond_the_shapes_is_stored_alike(
    postgres: RunningLog, family: LoggedFamily, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only the first life records an observation of the requester's session.
    for name in ("first", "own"):
        await family.live(name)
    monkeypatch.setattr(store, "_shapes", {FULLEST})
    monkeypatch.setattr(store, "SHAPES_MAX", 1)
    await family.live("fullest")
    assert store._shapes == {FULLEST}
    own, fullest = [await _stored(postgres, family, name) for name in ("own", "fullest")]
    assert own == fullest
    assert all(own)


async def _stored(postgres: RunningLog, family: LoggedFamily, name: str) -> list[Any]:
    """Return the rows of a life: the filled columns, with values that do not vary."""
    run_id, session_id = family.id(name), family.session_id(name)
    return [
        await postgres.ask(f"{RUNS} ORDER BY from_position", run_id),
        await postgres.ask(f"{SESSIONS} ORDER BY from_position", run_id),
        await postgres.ask(f"{EVENTS} ORDER BY position", run_id),
        await postgres.ask(TEXTS, session_id),
    ]
