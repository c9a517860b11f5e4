"""Model of a tree of runs for the property tests.

It is as simple as possible: it searches the whole tree each time, where the domain looks one level
up and down. Messages are in `world.model.messages`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

PREPARING = ("requested", "scripts-resolved", "overridden")
OVER = ("ended", "announced", "archived", "refused")
DONE = ("announced", "archived", "refused")
ENDED = ("ended", "announced", "archived")
HELD = ("resume", "resolve", "override", "prepare", "create", "refuse", "start", "end")
OTHER_AGENT = "other"
"""Agent that a script proposes in place of the requested one."""
RECORDED = "recorded"
NOTHING = "nothing"
REFUSED = "refused"
WAITING = "session-created"
Wish = tuple[str, bool]
"""Name of a run to wait for, and whether it must succeed."""


@dataclass
class Life:
    """A run of the model.

    A session has the name of its first run.

    Attributes:
        by: Requester: `main` or a session.
        continues: The previous run of the session.
        manner: How the session was requested: `plain`, `delete` (archived at once) or `lasting`
            (mode `session`).
        above: The run on whose behalf it was requested.
        unmet: The `wishes` that were not met at the last look.
        is_yielded: True if another run is to continue the session.
        is_released: True once the run and all that it waits for are over.
    """

    name: str
    by: str
    depth: int
    stage: str = "requested"
    agent_id: str = "main"
    has_key: bool = False
    is_held: bool = False
    is_stopping: bool = False
    in_inbox: bool = False
    is_acknowledged: bool = False
    is_admitted: bool = True
    is_released: bool = False
    session: str = ""
    manner: str = "plain"
    continues: str | None = None
    continued_by: str | None = None
    above: str | None = None
    is_put_away: bool = False
    is_stopped: bool = False
    is_yielded: bool = False
    outcome: str | None = None
    wishes: Sequence[Wish] = ()
    unmet: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.session = self.session or self.name
        self.unmet = {name for name, _ in self.wishes}


@dataclass
class Tree:
    """All runs below the session `main`."""

    max_children: int
    max_depth: int
    lane_width: int
    lives: dict[str, Life] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)

    def add(
        self,
        name: str,
        by: str,
        against: str | None,
        *,
        manner: str = "plain",
        wishes: Sequence[Wish] = (),
    ) -> Life:
        """Add a run that a session requested, with the rule that refused it, if any."""
        asker, above = self.lives.get(by), self.last(by)
        self.lives[name] = life = Life(
            name,
            by,
            asker.depth + 1 if asker else 1,
            "refused" if against else "requested",
            asker.agent_id if asker else "main",
            is_admitted=against is None,
            manner=manner,
            above=above.name if above else None,
            wishes=wishes,
        )
        self.settle()
        return life

    def children(self, name: str) -> list[Life]:
        """Return the runs that the session requested, in order."""
        return [life for life in self.lives.values() if life.by == name]

    def last(self, session: str) -> Life | None:
        """Return the newest run of a session; None for the session `main`."""
        runs = [life for life in self.lives.values() if life.session == session]
        return next((run for run in reversed(runs) if run.stage != "refused"), None)

    def below_is_done(self, session: str) -> bool:
        """Return True if all that the session's own run waits for is announced or refused.

        A run below that was done once may be active again; no run above waits for it then.
        """
        return not self.unsettled(session)

    def counted(self, session: str) -> list[str]:
        """Return the runs that count against the cap of this session, in order of admission."""
        children = self.children(session)
        return [child.name for child in children if child.is_admitted and not child.is_released]

    def unsettled(self, session: str) -> list[str]:
        """Return the runs whose announcement the session's own run waits for."""
        return [life.name for life in self.children(session) if life.stage not in DONE]

    def settle(self) -> None:
        """Release, for good, every run that is over with all that it waits for."""
        for life in self.lives.values():
            is_over = life.stage == "ended" and self.below_is_done(life.session)
            life.is_released = life.is_released or life.stage in DONE or is_over

    def running(self, depth: int) -> int:
        """Return the number of claimed runs at this depth."""
        lives = self.lives.values()
        return sum(1 for life in lives if life.is_held and life.depth == depth)

    def sessions(self) -> list[str]:
        """Return every recorded session, active ones first."""
        firsts = [life.name for life in self.lives.values() if life.session == life.name]
        lasts = [(name, last.stage) for name in firsts if (last := self.last(name)) is not None]
        working = [name for name, stage in lasts if stage in ("queued", "started")]
        return ["main", *working, *(name for name, stage in lasts if stage in ENDED)]

    def spawns(self, session: str) -> bool:
        """Return True if the session may spawn at all."""
        last = self.last(session)
        if last is None:
            return True
        return session not in self.closed and not (last.stage in OVER or last.is_stopping)

    def rule_against(self, name: str, places: int = 1) -> str | None:
        """Return the rule that refuses `places` more children of this session, or None."""
        depth = self.lives[name].depth if name in self.lives else 0
        if depth >= self.max_depth:
            return "depth"
        taken = len(self.counted(name))
        return "active_children" if taken + places > self.max_children else None

    def rule_against_waiting(self, by: str, wishes: Sequence[Wish]) -> str | None:
        """Return the rule that refuses a child of this session with these wishes, or None."""
        for name, requires_success in wishes:
            target = self.lives[name]
            has_failed = self._has_failed(target, requires_success)
            if not has_failed and not target.is_released and self._closes_ring(by, target):
                return "dependency_cycle"
            if has_failed:
                return "dependency_failed"
        return None

    def _closes_ring(self, by: str, target: Life) -> bool:
        waited_for = self._waited_for(target)
        return any(life.name in waited_for for life in self._ending_after_children(by))

    def _ending_after_children(self, session: str) -> Iterator[Life]:
        """Yield the newest runs of this session and of those above it, as long as each waits for
        the one below.
        """
        while (last := self.last(session)) is not None and last.stage not in DONE:
            yield last
            session = last.by

    def _waited_for(self, target: Life) -> set[str]:
        """Return the runs that must be over before this one is done, itself included."""
        seen: set[str] = set()
        ahead = [target]
        while ahead:
            life = ahead.pop()
            if life.name in seen:
                continue
            seen.add(life.name)
            ahead += [self.lives[name] for name in self.unsettled(life.session)]
            wished = self._unmet(life) if life.stage in (*PREPARING, WAITING) else []
            if not any(
                self._has_failed(life_before, requires_success)
                for life_before, requires_success in wished
            ):
                ahead += [dependency for dependency, _ in wished if not dependency.is_released]
        return seen

    def _unmet(self, life: Life) -> list[tuple[Life, bool]]:
        return [
            (self.lives[name], requires_success)
            for name, requires_success in life.wishes
            if name in life.unmet
        ]

    def _has_failed(self, target: Life, requires_success: bool) -> bool:
        """Return True if the run can no longer end as required, even if runs below it continue."""
        failed = requires_success and target.stage in OVER and target.outcome != "success"
        return target.stage == "refused" or failed

    def look(self, life: Life) -> None:
        """Advance a prepared or waiting run, as far as its wishes allow."""
        wished = self._unmet(life)
        if any(
            self._has_failed(dependency, requires_success)
            for dependency, requires_success in wished
        ):
            over = ("ended", "error") if life.stage == WAITING else ("refused", None)
            life.stage, life.outcome = over
        else:
            life.unmet -= {dependency.name for dependency, _ in wished if dependency.is_released}
            life.stage = WAITING if life.unmet else "queued"
        self.settle()

    def ask(self, life: Life, kind: str) -> str:
        """Apply a command of the right holder, and return its result."""
        if not self.permits(life, kind):
            return REFUSED
        recorded = self._ask(life, kind)
        self.settle()
        return recorded

    def _ask(self, life: Life, kind: str) -> str:
        if kind == "stop":
            return self._stop(life)
        if kind == "close" and (life.is_put_away or life.stage in ("archived", "refused")):
            return NOTHING
        if kind == "acknowledge" and life.is_acknowledged:
            return NOTHING
        is_that_agent = kind == "override" and life.agent_id == OTHER_AGENT
        self._do(life, "resolve" if is_that_agent else kind)
        return RECORDED

    def permits(self, life: Life, kind: str) -> bool:
        """Return True if a command of the right holder is not refused."""
        prepared = life.stage in ("scripts-resolved", "overridden")
        held = life.is_held and life.stage in ("queued", "started")
        lane_is_free = self.running(life.depth) < self.lane_width
        return {
            "resume": life.stage in PREPARING,
            "resolve": life.stage == "requested",
            "override": life.stage == "requested",
            "prepare": prepared,
            "create": prepared and life.has_key,
            "refuse": life.stage in PREPARING,
            "claim": life.stage == "queued" and not life.is_held and lane_is_free,
            "take over": life.stage == "queued" and (life.is_held or lane_is_free),
            "start": life.stage == "queued" and held and not life.is_stopping,
            "end": held,
            "stop": True,
            "announce": life.stage == "ended" and self.below_is_done(life.session),
            "skip": life.stage == "ended" and self.below_is_done(life.session),
            "acknowledge": life.in_inbox,
            "archive": life.stage == "announced"
            and (life.continued_by is None or life.is_put_away),
            "close": life.is_put_away
            or life.stage in ("archived", "refused")
            or (life.stage not in PREPARING and life.continued_by is None),
        }[kind]

    def _do(self, life: Life, kind: str) -> None:
        stages = {
            "resolve": "scripts-resolved",
            "override": "overridden",
            "create": "queued",
            "refuse": "refused",
            "start": "started",
            "end": "ended",
            "announce": "announced",
            "skip": "announced",
            "archive": "archived",
        }
        life.stage = stages.get(kind, life.stage)
        life.agent_id = OTHER_AGENT if kind == "override" else life.agent_id
        life.has_key = life.has_key or kind == "prepare"
        life.is_held = (life.is_held or kind in ("claim", "take over")) and kind != "end"
        life.in_inbox = life.in_inbox or kind == "announce"
        life.is_acknowledged = life.is_acknowledged or kind == "acknowledge"
        life.is_put_away = life.is_put_away or kind == "close"
        if kind in ("archive", "close"):
            self.closed.add(life.session)
        if kind == "archive" and life.continues is not None:
            before = self.lives[life.continues]
            before.is_put_away = True

    def _stop(self, life: Life) -> str:
        if life.stage in OVER or life.is_stopping:
            return NOTHING
        if life.stage in PREPARING:
            life.stage = "refused"
        elif life.is_held:
            life.is_stopping = True
        else:
            life.stage, life.outcome = "ended", "stopped"
            life.is_stopping = life.is_stopped = True
        return RECORDED


def next_step(life: Life) -> str | None:
    """Return the next command of a run if all goes well, or None."""
    if life.stage in ("scripts-resolved", "overridden"):
        return "create" if life.has_key else "prepare"
    if life.stage == "queued":
        return "end" if life.is_stopping else "start" if life.is_held else "claim"
    return {
        "requested": "resolve",
        "started": "end",
        "ended": "announce",
        "announced": "archive",
    }.get(life.stage)
