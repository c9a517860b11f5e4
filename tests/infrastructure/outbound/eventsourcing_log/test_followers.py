"""The library's own followers of an application work on a log: projections and process managers."""

from uuid import NAMESPACE_URL, UUID, uuid5

import pytest
from eventsourcing.application import AggregateNotFoundError, ProcessingEvent
from eventsourcing.dispatch import singledispatchmethod
from eventsourcing.domain import Aggregate, DomainEventProtocol, event
from eventsourcing.persistence import NotSupportedError, Tracking
from eventsourcing.postgres import PostgresDatastore, PostgresTrackingRecorder
from eventsourcing.projection import (
    EventSourcedProjection,
    EventSourcedProjectionRunner,
    Projection,
    ProjectionRunner,
)
from psycopg.sql import SQL, Identifier

from tests.support.builders.application_logs import ask, whole_log
from tests.support.builders.eventsourcing_environments import environment_of, own_schema
from tests.support.builders.harbours import Harbour, Harbours

pytestmark = pytest.mark.server
WAIT_SECONDS = 10.0


class Register(Aggregate):
    """How often a ship has arrived anywhere."""

    def __init__(self, ship: str) -> None:
        self.ship = ship
        self.arrivals = 0

    @classmethod
    def create_id(cls, ship: str) -> UUID:
        return uuid5(NAMESPACE_URL, f"/ships/{ship}")

    @event("Counted")
    def count(self) -> None:
        self.arrivals += 1


class Registers(EventSourcedProjection[UUID]):
    """Follows the harbours, and records events of its own."""

    @singledispatchmethod
    def policy(
        self, domain_event: DomainEventProtocol[UUID], processing_event: ProcessingEvent[UUID]
    ) -> None:
        if isinstance(domain_event, Harbour.Arrived):
            ship = domain_event.ship
            try:
                register: Register = self.repository.get(Register.create_id(ship))
            except AggregateNotFoundError:
                register = Register(ship)
            register.count()
            processing_event.collect_events(register)


class ShipsView(PostgresTrackingRecorder):
    """A table of ships, written together with how far the application was followed."""

    def __init__(self, datastore: PostgresDatastore, *, tracking_table_name: str = "t") -> None:
        super().__init__(datastore, tracking_table_name=tracking_table_name)
        self._table = SQL("{}.ships").format(Identifier(datastore.schema))
        create = SQL("CREATE TABLE IF NOT EXISTS {} (ship text)").format(self._table)
        self.sql_create_statements.append(create)

    def add(self, ship: str | None, tracking: Tracking) -> None:
        with self.datastore.transaction(commit=True) as cursor:
            self._insert_tracking(cursor, tracking)
            if ship is not None:
                cursor.execute(SQL("INSERT INTO {} VALUES (%s)").format(self._table), [ship])


class Ships(Projection[ShipsView]):
    """Follows the harbours into a view."""

    @singledispatchmethod
    def process_event(self, domain_event: DomainEventProtocol[UUID], tracking: Tracking) -> None:
        self.view.add(getattr(domain_event, "ship", None), tracking)


def test_a_projection_that_records_events_has_a_log_of_its_own(shared_database_url: str) -> None:
    harbour_schema, own = own_schema(), own_schema()
    env = environment_of(shared_database_url, harbour_schema, REGISTERS_POSTGRES_SCHEMA=own)
    with EventSourcedProjectionRunner(
        application_class=Harbours, projection_class=Registers, env=env
    ) as runner:
        harbour = runner.app.open_harbour("Bremen")
        for ship in ("Anna", "Berta", "Anna"):
            last = runner.app.arrive(harbour, ship)
        runner.wait(last, timeout=WAIT_SECONDS)
        anna: Register = runner.projection.repository.get(Register.create_id("Anna"))
        assert anna.arrivals == 2
    assert len(whole_log(shared_database_url, harbour_schema)) == 4
    assert len(whole_log(shared_database_url, own)) == 5


def test_a_projection_of_the_same_schema_is_refused(shared_database_url: str) -> None:
    env = environment_of(shared_database_url, own_schema())
    with Harbours(env=env), pytest.raises(NotSupportedError, match="for 'Registers' with POSTGRES"):
        Registers(env=env)


def test_a_view_is_written_beside_the_log_it_follows(shared_database_url: str) -> None:
    schema = own_schema()
    env = environment_of(shared_database_url, schema)
    for ship, seen in (("Anna", ["Anna"]), ("Berta", ["Anna", "Berta"])):
        with ProjectionRunner(
            application_class=Harbours, projection_class=Ships, view_class=ShipsView, env=env
        ) as runner:
            harbour = runner.app.open_harbour("Bremen")
            runner.wait(runner.app.arrive(harbour, ship), timeout=WAIT_SECONDS)
        rows = ask(shared_database_url, schema, "SELECT ship FROM ships ORDER BY ship")
        assert [row[0] for row in rows] == seen
    tracked = ask(
        shared_database_url,
        schema,
        "SELECT notification_id FROM ships_tracking WHERE application_name = 'Harbours'",
    )
    assert tracked == [(4,)]
