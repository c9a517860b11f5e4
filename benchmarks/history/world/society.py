"""Common state of all lives of a simulation: clock, log, configuration, chance, and texts."""

from uuid import UUID

from application.configuration.activate import decide_activation
from application.log.envelope import Actor, Provenance
from application.log.event_log import ContentKey, Submission
from application.log.texts import SessionTexts, TextStore
from application.ports.configurations import PinnedConfiguration
from benchmarks.history.world.configuration import revision
from benchmarks.history.world.fates import Deck
from benchmarks.history.world.scheduler import Life, LifeScheduler, ask
from benchmarks.history.world.texts import Texts
from domain.values.record import CONFIG_STREAM

OPERATOR = Actor(kind="token", token="admin")


class Society:
    """Common state of one simulation.

    Attributes:
        is_closing: No life begins anything new.
        shared: Values of shared contexts, by their keys.
        refused: The last refused request of each session, until it is respawned.
    """

    def __init__(
        self, scheduler: LifeScheduler, log_key: bytes, log_id: UUID, last_revision: int
    ) -> None:
        self.scheduler = scheduler
        self.log = scheduler.log
        self.ids = scheduler.ids
        self.random = scheduler.random
        self.texts = Texts(scheduler.random)
        self.deck = Deck(scheduler.random)
        self.shared: dict[str, dict[str, str]] = {}
        self.refused: dict[str, UUID] = {}
        self.busy_lives = 0
        self.resting_lives = 0
        self.is_closing = False
        self._log_id = log_id
        self._key = log_key
        self._number = last_revision + 1
        self._pinned: PinnedConfiguration | None = None

    @property
    def pinned(self) -> PinnedConfiguration:
        """Return the active configuration."""
        assert self._pinned is not None
        return self._pinned

    def any_holder(self) -> str:
        """Return a random server."""
        return self.random.choice(self.scheduler.holders)

    def other_holder(self, name: str | None) -> str:
        """Return a server with another name."""
        return next(holder for holder in self.scheduler.holders if holder != name)

    def traceparent(self) -> str | None:
        """Return the trace context of a caller, or None if it has none."""
        if self.random.random() >= 0.2:
            return None
        trace, span = self.random.getrandbits(128), self.random.getrandbits(64)
        return f"00-{trace:032x}-{span:016x}-01"

    def activation(self) -> Life[None]:
        """Activate the next revision of the configuration."""
        number = self._number
        loaded, pinned = revision(number)

        texts = SessionTexts(
            self._log_id,
            TextStore(self._log_id, self._key, self.ids.event_id),
            ContentKey(self._log_id, self._key),
            is_new_key=number == 1,
        )
        yield from ask(
            Submission(
                command_id=self.ids.event_id(),
                streams=(CONFIG_STREAM,),
                decide=lambda world: decide_activation(world, loaded, texts, number, OPERATOR),
                provenance=Provenance(actor=OPERATOR, config_revision=number),
            )
        )
        self._pinned = pinned
        self.scheduler.lane_width = pinned.configuration.subagent_defaults.max_concurrent
