"""A plain application of the eventsourcing library, on a log by its environment alone."""

from uuid import UUID

import pytest
from eventsourcing.application import Application
from eventsourcing.cipher import AESCipher
from eventsourcing.persistence import (
    IntegrityError,
    NotSupportedError,
    ProgrammingError,
    Tracking,
)
from eventsourcing.utils import get_topic

from application.log.envelope import SYSTEM
from domain.event_types import LOG_FORMAT
from infrastructure.outbound.eventsourcing_log.factory import LogFactory
from tests.support.builders.application_logs import ask, whole_log
from tests.support.builders.eventsourcing_environments import environment_of, own_schema
from tests.support.builders.harbours import Harbour, Harbours


def test_its_events_are_a_log_with_every_column_of_ours(shared_database_url: str) -> None:
    schema = own_schema()
    with Harbours(env=environment_of(shared_database_url, schema)) as harbours:
        harbour = harbours.open_harbour("Bremen")
        assert [harbours.arrive(harbour, ship) for ship in ("Anna", "Berta")] == [2, 3]
        assert harbours.ships(harbour) == ["Anna", "Berta"]
    log = whole_log(shared_database_url, schema)
    assert [one.version for one in log] == [1, 2, 3]
    assert {one.stream for one in log} == {str(harbour)}
    assert [one.type for one in log] == [
        get_topic(Harbour.Opened),
        *[get_topic(Harbour.Arrived)] * 2,
    ]
    assert {one.type_version for one in log} == {0}
    assert [one.recorded_at for one in log] == sorted(one.recorded_at for one in log)
    assert {one.provenance.actor for one in log} == {SYSTEM}
    assert {one.event_id.version for one in log} == {7}
    assert len({one.event_id for one in log}) == len({one.command_id for one in log}) == 3
    assert ask(shared_database_url, schema, "SELECT count(*) FROM runs") == [(0,)]
    assert ask(shared_database_url, schema, "SELECT count(*) FROM sessions") == [(0,)]


def test_several_aggregates_are_one_append(shared_database_url: str) -> None:
    schema = own_schema()
    with Harbours(env=environment_of(shared_database_url, schema)) as harbours:
        first, second = Harbour("Bremen"), Harbour("Hamburg")
        first.arrive("Anna")
        assert [one.notification.id for one in harbours.save(first, second)] == [1, 2, 3]
    log = whole_log(shared_database_url, schema)
    assert {one.append_last for one in log} == {3}
    assert len({one.command_id for one in log}) == 1


def test_it_finds_everything_again_when_it_comes_back(shared_database_url: str) -> None:
    env = environment_of(shared_database_url, own_schema())
    with Harbours(env=env) as harbours:
        harbour = harbours.open_harbour("Bremen")
        harbours.arrive(harbour, "Anna")
    with Harbours(env={**env, "CREATE_TABLE": "no"}) as harbours:
        assert harbours.ships(harbour) == ["Anna"]
        assert harbours.arrive(harbour, "Berta") == 3


def test_snapshots_are_kept_beside_the_log(shared_database_url: str) -> None:
    schema = own_schema()
    env = environment_of(shared_database_url, schema, IS_SNAPSHOTTING_ENABLED="yes")
    with Harbours(env=env) as harbours:
        harbour = harbours.open_harbour("Bremen")
        harbours.arrive(harbour, "Anna")
        harbours.take_snapshot(harbour)
        harbours.arrive(harbour, "Berta")
        assert harbours.ships(harbour) == ["Anna", "Berta"]
        early: Harbour = harbours.repository.get(harbour, version=1)
        assert early.ships == []
    assert len(whole_log(shared_database_url, schema)) == 3
    assert ask(shared_database_url, schema, "SELECT count(*) FROM harbours_snapshots") == [(1,)]


def test_states_may_be_compressed_and_encrypted(shared_database_url: str) -> None:
    schema = own_schema()
    env = environment_of(
        shared_database_url, schema, COMPRESSOR_TOPIC="zlib", CIPHER_KEY=AESCipher.create_key(16)
    )
    with Harbours(env=env) as harbours:
        harbour = harbours.open_harbour("Bremen")
        assert harbours.ships(harbour) == []
    (state,) = ask(shared_database_url, schema, "SELECT state FROM events")
    assert b"Bremen" not in bytes(state[0])
    whole_log(shared_database_url, schema)


def test_a_conflict_stores_nothing_of_its_append_and_uses_up_no_position(
    shared_database_url: str,
) -> None:
    schema = own_schema()
    with Harbours(env=environment_of(shared_database_url, schema)) as harbours:
        harbour = harbours.open_harbour("Bremen")
        late: Harbour = harbours.repository.get(harbour)
        late.arrive("Berta")
        harbours.arrive(harbour, "Anna")
        new = Harbour("Hamburg")
        with pytest.raises(IntegrityError, match="its next version is 3; load it again"):
            harbours.save(new, late)
        assert harbours.recorder.select_events(new.id) == []
        assert harbours.arrive(harbour, "Clara") == 3
    assert len(whole_log(shared_database_url, schema)) == 3


def test_a_log_of_another_application_is_refused(shared_database_url: str) -> None:
    env = environment_of(shared_database_url, own_schema())
    with Harbours(env=env):
        pass
    with pytest.raises(NotSupportedError, match="log of application 'Harbours'; name one of its"):
        Application[UUID](env=env)


def test_a_log_of_a_newer_format_takes_nothing_from_this_release(shared_database_url: str) -> None:
    schema = own_schema()
    with Harbours(env=environment_of(shared_database_url, schema)) as harbours:
        ask(shared_database_url, schema, f"UPDATE log_head SET format = {LOG_FORMAT + 1}")
        with pytest.raises(NotSupportedError, match="install a newer spawnlog"):
            harbours.open_harbour("Bremen")
    assert whole_log(shared_database_url, schema) == []


def test_tracking_and_events_are_recorded_together_or_not_at_all(shared_database_url: str) -> None:
    schema = own_schema()
    factory = LogFactory(environment_of(shared_database_url, schema))
    try:
        recorder = factory.process_recorder()
        recorder.insert_events([], tracking=Tracking("harbours", 1))
        with pytest.raises(ProgrammingError, match="does not know manifest"):
            recorder.insert_events([], tracking=Tracking("harbours", 2), manifest="Anna")
        assert recorder.max_tracking_id("harbours") == 1
    finally:
        factory.close()
