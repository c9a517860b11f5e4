"""A plain application of the eventsourcing library, as somebody who knows only that writes one."""

from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event
from eventsourcing.persistence import IntegrityError


class Harbour(Aggregate):
    """Remembers who has come."""

    class Opened(Aggregate.Created):
        """It is there."""

        name: str

    class Arrived(Aggregate.Event):
        """A ship has come."""

        ship: str

    @event(Opened)
    def __init__(self, name: str) -> None:
        self.name = name
        self.ships: list[str] = []

    @event(Arrived)
    def arrive(self, ship: str) -> None:
        """Note a ship."""
        self.ships.append(ship)


class Harbours(Application[UUID]):
    """What one may do with harbours."""

    def open_harbour(self, name: str) -> UUID:
        """A new harbour."""
        harbour = Harbour(name)
        self.save(harbour)
        return harbour.id

    def arrive(self, harbour_id: UUID, ship: str) -> int:
        """A ship comes; gives the position of that event."""
        harbour: Harbour = self.repository.get(harbour_id)
        harbour.arrive(ship)
        (recording,) = self.save(harbour)
        return recording.notification.id

    def arrive_in_the_end(self, harbour_id: UUID, ship: str) -> int:
        """The same, however often somebody else is faster."""
        while True:
            try:
                return self.arrive(harbour_id, ship)
            except IntegrityError:
                continue

    def ships(self, harbour_id: UUID) -> list[str]:
        """Who has come."""
        harbour: Harbour = self.repository.get(harbour_id)
        return harbour.ships
