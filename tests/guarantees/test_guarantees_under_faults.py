"""Guarantees of the log under faults, with one and with four writer processes.

Appends are late before and after their commits, connections are cut, backends are ended, the clock
is set back, and PostgreSQL is stopped and restarted. Each test judges the results of the same
storm: the table, the answers to callers, and the reads.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest

from application.projections.fold import FOREVER
from infrastructure.outbound.log.codec.chain import chain_hash
from tests.support.tiers import nightly_but
from world.check import Rule
from world.checker.folding import Folded
from world.checker.log_judged import caps_kept, in_order, whole_appends
from world.checker.order_judged import after_the_highest, promises_are_kept
from world.storm.storm import OWN, RESTARTS_AT, Record, storm

SEEDS = {1: 101, 4: 104}
FENCED = ("ScriptsResolved", "PreparationStarted", "SessionCreated", "RunStarted")
CLAIMS = ("SpawnRequested", "PreparationResumed", "RunClaimed")

pytestmark = [pytest.mark.server, pytest.mark.timeout(180)]


@pytest.fixture(scope="module", params=nightly_but(SEEDS, [4]), ids=["one writer", "four writers"])
def record(request: pytest.FixtureRequest) -> Iterator[Record]:
    with storm(request.param, SEEDS[request.param]) as blown_over:
        yield blown_over


def broken(record: Record, rule: Rule) -> list[str]:
    return [*rule(record.history, Folded(record.history.events))]


def test_everything_went_wrong_that_should(record: Record) -> None:
    for fault in ("lost commit", "late commit", "cut question", "ended backend", "clock"):
        assert record.faults[fault] > 0, record.faults
    assert record.faults["restart"] == len(RESTARTS_AT)
    assert len({note["caller"].partition("-")[0] for note in record.told()}) == record.writers
    outcomes = Counter(note["outcome"] for note in record.told())
    assert min(outcomes[text] for text in ("recorded", "rejected", "reserved", "failed")) > 0
    assert record.of("poisoned")
    assert any("LostClaim" in (note["error"] or "") for note in record.told("rejected"))


def test_positions_are_one_two_three_without_gap_or_reorder(record: Record) -> None:
    assert broken(record, in_order) == []
    assert record.head[0] == record.commits[-1][0] == len(record.rows)


def test_each_event_is_chained_to_the_one_before_it(record: Record) -> None:
    previous = b""
    for row in record.rows:
        previous = chain_hash(previous, row.envelope, row.state)
        assert row.envelope.chain_hash == previous, row.envelope.position
    assert record.head[2] == previous


@pytest.mark.parametrize("reader", ["notified", "deaf"])
def test_a_reader_that_follows_by_position_never_misses_an_event(
    record: Record, reader: str
) -> None:
    envelopes = [row.envelope for row in record.rows]
    there = [
        (envelope.position, str(envelope.event_id), envelope.chain_hash.hex())
        for envelope in envelopes
    ]
    assert record.seen[reader] == there


def test_a_reader_in_the_process_of_a_writer_sees_what_all_writers_record(record: Record) -> None:
    envelopes = [row.envelope for row in record.rows]
    there = [
        (envelope.position, str(envelope.event_id), envelope.chain_hash.hex())
        for envelope in envelopes
    ]
    for number in range(record.writers):
        seen = record.seen[f"{OWN}{number}"]
        assert seen == there[: len(seen)]
        notes = [
            note for note in record.told("recorded") if note["caller"].startswith(f"w{number}")
        ]
        assert len(seen) >= max(note["position"] for note in notes)


def test_the_time_of_recording_never_runs_backwards(record: Record) -> None:
    envelopes = [row.envelope for row in record.rows]
    clocks = [envelope.occurred_at for envelope in envelopes]
    assert any(later < earlier for earlier, later in pairwise(clocks)), "the clock was never back"
    assert broken(record, in_order) == []
    assert record.head[1] == envelopes[-1].recorded_at
    noted = [at for _, at in record.commits]
    assert noted == sorted(noted)


def test_several_streams_land_together_or_not_at_all(record: Record) -> None:
    found = record.by_command()
    assert any(len({row.envelope.stream for row in rows}) > 2 for rows in found.values())
    streams = {note["command"]: note["streams"] for note in record.told()}
    for command, rows in found.items():
        assert [row.envelope.stream for row in rows] == streams[command]
        assert {row.envelope.append_last for row in rows} == {rows[-1].envelope.position}
    assert broken(record, whole_appends) == []


def test_the_rows_for_reading_are_those_of_the_events(record: Record) -> None:
    events: dict[str, list[int]] = {}
    for row in record.rows:
        events.setdefault(row.envelope.stream, []).append(row.envelope.position)
    assert set(record.spans) == set(events)
    for stream, spans in record.spans.items():
        for (_, _, ends_before), (_, begins_at, _) in pairwise(spans):
            assert ends_before == begins_at, stream
        assert spans[-1][2] == FOREVER
        for version, begins_at, _ in spans:
            assert begins_at == events[stream][version - 1], stream
        assert spans[-1][0] == len(events[stream]), stream


def test_a_losing_or_failing_command_hurts_nobody_else(record: Record) -> None:
    found = record.by_command()
    poisoned = {note["command"] for note in record.of("poisoned")}
    for note in record.told("rejected", "reserved", "failed", "broken"):
        assert note["command"] not in found, note
    broken = [note for note in record.told("broken") if note["command"] not in poisoned]
    assert broken == [], f"{len(broken)} callers were hurt, the first by {broken[0]['error']}"
    contested = Counter(
        row.envelope.stream for row in record.rows if ":race-" in row.envelope.stream
    )
    assert set(contested.values()) == {1}
    lost = [note["error"].removeprefix("SeenBefore: ") for note in record.told("rejected")]
    races = [f"session:{key}" for key in lost if ":race-" in key]
    assert races
    assert set(races) <= set(contested)


def test_what_was_confirmed_to_nobody_is_answered_with_what_was_recorded(record: Record) -> None:
    found = record.by_command()
    for note in record.told("recorded"):
        rows = found.pop(note["command"], [])
        assert len(rows) == len(note["streams"]), note
        assert not rows or rows[-1].envelope.position == note["position"], note
    for note in record.told("away"):
        rows = found.pop(note["command"], [])
        assert len(rows) in (0, len(note["streams"])), note
    assert not found, "events of commands whose callers were told that nothing was recorded"


def test_who_asks_again_under_the_same_key_hears_the_same_answer(record: Record) -> None:
    answers: dict[str, set[int | None]] = {}
    for note in record.of("answered"):
        answers.setdefault(note["key"], set()).add(note["turn"])
    assert answers
    assert {key: turns for key, turns in answers.items() if len(turns) > 1 or None in turns} == {}
    assert len(record.keys) == len(set(record.keys))
    assert set(answers) <= set(record.keys)


def test_no_reader_is_behind_or_ahead_of_what_a_reply_promised(record: Record) -> None:
    looks, found = record.of("looked"), record.by_command()
    assert looks
    assert broken(record, promises_are_kept) == []
    calls = record.history.calls
    commands = [call for call in calls if call.label in found]
    for call, high in after_the_highest(calls, commands):
        assert found[str(call.label)][0].envelope.position > high, call
    there = {row.envelope.position: str(row.envelope.event_id) for row in record.rows}
    for look in looks:
        assert look["last"] == ([there[look["head"]]] if look["head"] else []), look


def test_the_cap_is_exact_at_every_position(record: Record) -> None:
    assert broken(record, caps_kept) == []
    events = record.history.events
    assert any(event.facts["activeChildren"] for event in events if event.type == "ChildAdmitted")
    refused = [
        str(row.envelope.provenance.run_id)
        for row in record.rows
        if row.envelope.type == "SpawnRefused"
    ]
    runs = {note["run"] for note in record.of("spawned") if note["rule"]}
    assert len(refused) == len(set(refused))
    assert runs <= set(refused)


def test_a_holder_that_was_replaced_records_nothing_more(record: Record) -> None:
    holders: dict[object, str | None] = {}
    taken_over = 0
    for row in record.rows:
        run_id = row.envelope.provenance.run_id
        if row.envelope.type in CLAIMS:
            taken_over += holders.get(run_id, row.holder) != row.holder
            holders[run_id] = row.holder
        elif row.envelope.type in FENCED:
            assert row.holder == holders[run_id], f"{row.envelope} is not by {holders[run_id]}"
    assert taken_over > 0


def test_a_transcript_is_its_holders_and_stays_as_it_was_at_the_end(record: Record) -> None:
    claims = {
        str(row.envelope.provenance.run_id): (row.holder, row.envelope.version)
        for row in record.rows
        if row.envelope.type == "RunClaimed"
    }
    counts: Counter[str] = Counter()
    for run_id, entry in record.entries:
        assert (entry["holder"], entry["epoch"]) == claims[str(run_id)]
        counts[str(run_id)] += 1
    assert record.of("ended")
    for note in record.of("ended"):
        assert counts[note["run"]] == note["entries"], note
