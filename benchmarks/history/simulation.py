"""One shift of a history: root sessions and everything that they cause, to its end.

A shift has an exact number of events, so the first position of the next one is known in advance.
"""

from dataclasses import dataclass
from uuid import UUID

from application.log.envelope import Actor
from benchmarks.history.lives.life import spawn
from benchmarks.history.lives.requests import Asker
from benchmarks.history.lives.sharing import provided
from benchmarks.history.world.fates import Fate
from benchmarks.history.world.scheduler import Life, LifeScheduler, Wait
from benchmarks.history.world.simulated_log import Beginning, Sink
from benchmarks.history.world.society import Society

ROOT_SECONDS = 2.5
"""Mean seconds between two new root sessions."""

ROUNDS_MAX = 5
THINKING_SECONDS = 25.0
CROWD_SHARE = 0.08
CLERK_SHARE = 0.04
TELLING_SHARE = 0.05
BUSY_EVENTS_TO_COME = 10.0
RESTING_EVENTS_TO_COME = 3.6
"""Mean number of events that a life still records once no new one begins."""

RESERVE_EVENTS = 40
EVENTS_OF_A_PLAIN_LIFE_MAX = 17
REFUSED_FIRST_EVENTS = 3
REFUSED_EVENTS = 2


class LengthMissed(Exception):
    """The lives of the shift recorded more events than planned; the plan needs a larger reserve."""


@dataclass(frozen=True, slots=True)
class Shift:
    """Definition of a shift. Everything follows from `seed` and `number`, except for the id of the
    log, which is in no event.
    """

    number: int
    seed: int
    beginning: Beginning
    events: int
    log_id: UUID
    log_key: bytes
    reserve_events: int = RESERVE_EVENTS


class Simulation:
    """Carries one shift on, commit by commit."""

    def __init__(self, shift: Shift, sink: Sink) -> None:
        self._shift = shift
        self._scheduler = LifeScheduler(
            shift.seed * 1_000_003 + shift.number, sink, shift.beginning
        )
        self._society = Society(
            self._scheduler, shift.log_key, shift.log_id, shift.beginning.revision
        )
        self._end = shift.beginning.position + shift.events
        self._watch = self._asker("main", "watch")
        self._roots = 0
        self._scheduler.begin(self._comes())

    @property
    def left(self) -> int:
        """Return the number of events that are still to be recorded."""
        return self._end - self._scheduler.log.position

    @property
    def is_over(self) -> bool:
        """Return True if the shift has its length and no life is left."""
        return self.left == 0 and self._scheduler.is_over

    def step(self) -> None:
        """Advance by about one commit.

        Raises:
            LengthMissed: The exact length is no longer possible.
        """
        society = self._society
        to_come = (
            BUSY_EVENTS_TO_COME * society.busy_lives
            + RESTING_EVENTS_TO_COME * society.resting_lives
            + self._shift.reserve_events
        )
        society.is_closing = society.is_closing or self.left <= to_come
        if self._scheduler.is_over:
            self._fill_up()
        self._scheduler.step()

    def _fill_up(self) -> None:
        """Record the few events that are missing when all lives have ended."""
        left = self.left
        if left < REFUSED_EVENTS:
            raise LengthMissed(f"{left} events are left")
        plain = (left - REFUSED_EVENTS) // EVENTS_OF_A_PLAIN_LIFE_MAX
        for _ in range(plain):
            asker = self._asker("main", f"late-{self._next_root():05}")
            life = spawn(self._society, asker, fate=Fate.SUCCESS, agent_id="coder")
            self._scheduler.begin(life, after_seconds=self._scheduler.random.random())
        if plain == 0:
            is_new = left % REFUSED_EVENTS == 1
            asker = self._asker("main", "knocks") if is_new else self._watch
            self._scheduler.begin(spawn(self._society, asker, fate=Fate.NOT_ALLOWED))

    def _comes(self) -> Life[None]:
        """Activate the shift's configuration, then begin root sessions one after the other."""
        yield from self._society.activation()
        self._society.log.hold(self._watch.streams)
        yield from spawn(self._society, self._watch, fate=Fate.NOT_ALLOWED)
        random = self._scheduler.random
        while not self._society.is_closing:
            self._scheduler.begin(self._root(self._next_root()))
            yield Wait(random.expovariate(1 / ROOT_SECONDS))

    def _next_root(self) -> int:
        self._roots += 1
        return self._roots

    def _asker(self, agent_id: str, name: str) -> Asker:
        key = f"agent:{agent_id}:chat:direct:{self._shift.number:05}-{name}"
        actor = Actor(kind="token", token=f"gateway-{self._shift.number % 3}")
        return Asker(session_key=key, agent_id=agent_id, depth=0, actor=actor, root=key)

    def _root(self, number: int) -> Life[None]:
        """Live a session that spawns in rounds, sometimes more at once than allowed."""
        random = self._scheduler.random
        is_clerk = random.random() < CLERK_SHARE
        asker = self._asker("clerk" if is_clerk else "main", f"{number:05}")
        self._society.log.hold(asker.streams)
        for _ in range(random.randint(1, ROUNDS_MAX)):
            if self._society.is_closing:
                break
            crowd = random.random() < CROWD_SHARE
            for _ in range(random.randint(6, 9) if crowd else random.randint(1, 3)):
                named = None if is_clerk and random.random() < 0.5 else ""
                self._scheduler.begin(
                    spawn(self._society, asker, agent_id=named),
                    after_seconds=random.expovariate(2.0),
                )
            yield Wait(random.expovariate(1 / THINKING_SECONDS))
            if not self._society.is_closing and random.random() < TELLING_SHARE:
                yield from provided(self._society, asker)
        # Those it has spawned hold it as long as they need it.
        self._society.log.let_go(asker.streams)
