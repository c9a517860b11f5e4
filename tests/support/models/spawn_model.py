"""Model of the admission of spawns. `tests.support.models.planned_model` has that of plans.

Nothing of `domain` is used: if a rule changes there, it must be changed here as well. Caps and
stages of runs are in the tree of `world.model.tree`.
"""

from dataclasses import dataclass, field

from tests.support.builders.configured_spawns import Rules
from tests.support.models import spawn_words as words
from world.model import messages
from world.model.tree import ENDED, Life, Tree

LANE_WIDTH = 3


@dataclass(frozen=True)
class Asked:
    """A request; None for a value that is not given.

    Of its requester it may state another agent (`poses_as`), a sandbox (`is_boxed`), a folder
    (`folder`), and the current model and thinking level (`active_*`).
    """

    agent_id: str | None = None
    mode: str | None = None
    thread: bool = False
    thinking: str | None = None
    model: str | None = None
    seconds: float | None = None
    sandbox: str = "inherit"
    poses_as: str | None = None
    is_boxed: bool = False
    folder: str | None = None
    active_model: str | None = None
    active_thinking: str | None = None

    @property
    def effective_mode(self) -> str:
        """Return the mode, with the default if none is given."""
        return self.mode or ("session" if self.thread else "run")


@dataclass(frozen=True)
class Told:
    """A refusal, with the compared numbers, if any."""

    rule: str
    status: str
    text: str
    current: int | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Seen:
    """A session as it stays on record."""

    key: str
    agent: str
    depth: int
    role: str
    scope: str
    root: str
    parent: str | None
    is_boxed: bool
    folder: str | None = None
    has_spawn: bool = True
    has_yield: bool = False


def may(depth: int, depth_max: int) -> tuple[str, str]:
    """Role and control scope of a session that is so deep."""
    if depth == 0:
        return "main", "children"
    return ("orchestrator", "children") if depth < depth_max else ("leaf", "none")


@dataclass
class SpawnModel:
    """Sessions and runs by name: a root session by its key, a child by its run.

    Attributes:
        revisions: Rules by revision; item n - 1 is revision n.
        asked: Request and revision of each run.
        given: Requested agent of each run.
        boxed: Whether the requester was sandboxed then.
    """

    revisions: list[Rules]
    tree: Tree = field(default_factory=lambda: Tree(0, 0, LANE_WIDTH))
    seen: dict[str, Seen] = field(default_factory=dict)
    asked: dict[str, tuple[Asked, int]] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    refused: dict[str, Told] = field(default_factory=dict)
    boxed: dict[str, bool] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)

    def requesters(self) -> list[str]:
        """Return the possible requesters: root sessions, and existing children."""
        return [*words.ROOTS, *(name for name in self.seen if name not in words.ROOTS)]

    def closed(self, name: str) -> str | None:
        """Return why a session may not spawn anymore, or None if it may."""
        if self.tree.spawns(name):
            return None
        key, last = self.seen[name].key, self.tree.last(name)
        assert last is not None
        if name in self.tree.closed:
            return words.is_closed(key)
        return words.is_over(key) if last.stage in ENDED else words.is_stopping(key)

    def spawn(self, name: str, by: str, request: Asked) -> Told | None:
        """Spawn a child of a session. Return the refusal, if any."""
        rules = self.revisions[-1]
        is_boxed = request.is_boxed or self._is_boxed_now(by, request, rules)
        if by not in self.seen:
            agent, depth = words.ROOTS[by]
            role, scope = may(depth, rules.depth)
            agent = request.poses_as or agent
            self.seen[by] = Seen(by, agent, depth, role, scope, by, None, is_boxed)
        self.boxed[name] = self.seen[by].is_boxed or is_boxed
        result = self._judged(by, request, rules)
        target = words.AGENT_IDS.get(request.agent_id or "", self.seen[by].agent)
        stage = "refused" if result else "requested"
        depth = self.seen[by].depth + 1
        manner = "lasting" if request.effective_mode == "session" else "plain"
        admitted = result is None
        self.tree.lives[name] = Life(
            name, by, depth, stage, target, is_admitted=admitted, manner=manner
        )
        self.asked[name], self.given[name] = (request, len(self.revisions)), target
        if result is not None:
            self.refused[name] = result
        return result

    def _is_boxed_now(self, by: str, request: Asked, rules: Rules) -> bool:
        """Return True if the current rules sandbox the requester, as its own agent or as the one in
        its key.
        """
        if by in self.seen:
            key, agent = self.seen[by].key, self.seen[by].agent
        else:
            key, agent = by, request.poses_as or words.ROOTS[by][0]
        named = words.ROOTS[by][0] if by in words.ROOTS else agent
        return rules.boxes(agent, key) or rules.boxes(named, key)

    def _judged(self, by: str, request: Asked, rules: Rules) -> Told | None:
        """Return the first rule that refuses, or None."""
        depth, children = self.seen[by].depth, len(self.tree.counted(by))
        if request.agent_id in words.NO_AGENT_IDS:
            text = words.invalid_agent_id(words.NO_AGENT_IDS[request.agent_id])
            return Told("agent_id", "error", text)
        if request.mode == "session" and not request.thread:
            return Told("mode", "error", words.NEEDS_THREAD)
        if depth >= rules.depth:
            text = words.too_deep(depth, rules.depth)
            return Told("depth", "forbidden", text, depth, rules.depth)
        if not self.seen[by].has_spawn:
            return Told("tools", "forbidden", words.NO_SPAWN_TOOL)
        if children >= rules.children:
            text = words.too_many(children, rules.children)
            return Told("active_children", "forbidden", text, children, rules.children)
        agent = self.seen[by].agent
        if request.agent_id is None:
            if not rules.require(agent):
                return None
            return Told("require_agent_id", "forbidden", words.NEEDS_ID)
        allowed = rules.allowed(agent)
        if allowed is None or words.AGENT_IDS[request.agent_id] in allowed:
            return None
        return Told("allow_agents", "forbidden", words.not_allowed(allowed))

    def message(self, name: str, session: str) -> str:
        """Send a message to a session under the current rules; its run gets this name."""
        self.tree.max_children = limit = self.revisions[-1].children
        last = self.tree.last(session)
        assert last is not None
        children = len(self.tree.counted(last.by))
        answer = messages.send(self.tree, name, session)
        if answer == messages.FULL:
            text = words.too_many(children, limit)
            self.refused[name] = Told("active_children", "forbidden", text, children, limit)
        return answer

    def refuse(self, name: str, refusal: Told) -> None:
        """Let the preparation fail."""
        self.tree.ask(self.tree.lives[name], "refuse")
        self.refused[name] = refusal

    def note(self, name: str) -> str | None:
        """Return the note in the acceptance, or None."""
        if self.asked[name][0].effective_mode == "session":
            return words.SESSION_NOTE
        by = self.tree.lives[name].by
        if ":cron:" in by:
            return None
        return words.RUN_NOTE if self.seen[by].has_yield else words.INBOX_NOTE
