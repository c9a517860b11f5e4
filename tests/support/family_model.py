"""What should be true of a tree of runs, in the plainest form: the model of the property tests.

It counts by looking at the whole tree each time, where the domain looks one level up and down.
"""

from dataclasses import dataclass, field

PREPARING = ("requested", "scripts-resolved", "overridden")
OVER = ("ended", "announced", "archived", "refused")
DONE = ("announced", "archived", "refused")
ENDED = ("ended", "announced", "archived")
HELD = ("resume", "resolve", "override", "prepare", "create", "refuse", "start", "end")

OTHER_AGENT = "other"
"""Who a script puts in the place of the agent asked for."""

RECORDED = "recorded"
NOTHING = "nothing"
REFUSED = "refused"


@dataclass
class Life:
    """One run: who asked for it (`main` or a run), and how far it has come."""

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


@dataclass
class Tree:
    """All runs below the session `main`."""

    max_children: int
    max_depth: int
    lane_width: int
    lives: dict[str, Life] = field(default_factory=dict)

    def children(self, name: str) -> list[Life]:
        """Who was asked for by this session, in order."""
        return [life for life in self.lives.values() if life.by == name]

    def below_is_done(self, name: str) -> bool:
        """Whether every descendant is announced or refused."""
        return all(
            life.stage in DONE and self.below_is_done(life.name) for life in self.children(name)
        )

    def counted(self, name: str) -> list[str]:
        """Who holds a place of this session, in order of admission."""
        return [life.name for life in self.children(name) if self._counts(life)]

    def _counts(self, life: Life) -> bool:
        if not life.is_admitted or life.stage == "refused":
            return False
        return not (life.stage in ENDED and self.below_is_done(life.name))

    def unsettled(self, name: str) -> list[str]:
        """Whose announcement this session's own run waits for."""
        return [life.name for life in self.children(name) if life.stage not in DONE]

    def running(self, depth: int) -> int:
        """How many runs are out of the lane of this depth."""
        lives = self.lives.values()
        return sum(1 for life in lives if life.is_held and life.depth == depth)

    def sessions(self) -> list[str]:
        """Every session on record."""
        created = (life for life in self.lives.values() if life.stage in ("queued", "started"))
        over = (life for life in self.lives.values() if life.stage in ENDED)
        return ["main", *(life.name for life in created), *(life.name for life in over)]

    def spawns(self, name: str) -> bool:
        """Whether this session may ask at all."""
        life = self.lives.get(name)
        return life is None or not (life.stage in OVER or life.is_stopping)

    def rule_against(self, name: str) -> str | None:
        """The rule that refuses another child of this session; None when one is permitted."""
        depth = self.lives[name].depth if name in self.lives else 0
        if depth >= self.max_depth:
            return "depth"
        return "active_children" if len(self.counted(name)) >= self.max_children else None

    def ask(self, life: Life, kind: str) -> str:
        """What comes of a command from the right holder; the tree is then as it leaves it."""
        if not self.permits(life, kind):
            return REFUSED
        if kind == "stop":
            return self._stop(life)
        if kind == "acknowledge" and life.is_acknowledged:
            return NOTHING
        is_that_agent = kind == "override" and life.agent_id == OTHER_AGENT
        self._do(life, "resolve" if is_that_agent else kind)
        return RECORDED

    def permits(self, life: Life, kind: str) -> bool:
        """Whether a command from the right holder is not turned down."""
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
            "announce": life.stage == "ended" and self.below_is_done(life.name),
            "skip": life.stage == "ended" and self.below_is_done(life.name),
            "acknowledge": life.in_inbox,
            "archive": life.stage == "announced",
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

    def _stop(self, life: Life) -> str:
        if life.stage in OVER or life.is_stopping:
            return NOTHING
        if life.stage in PREPARING:
            life.stage = "refused"
        elif life.is_held:
            life.is_stopping = True
        else:
            life.stage = "ended"
            life.is_stopping = True
        return RECORDED


def next_step(life: Life) -> str | None:
    """What would happen to a run next if all went well; None when nothing would."""
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
