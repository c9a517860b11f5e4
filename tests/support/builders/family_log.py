"""Log of one tree in memory, which treats decisions as the writer does.

A decision gets only the streams that it declares, so that a missing one shows as a wrong decision.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from application.projections.fold import Fold
from domain.event_types import AnyEvent
from domain.run.commands import RunCommand
from domain.run.facts import BatchFacts, SpawnOptions
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn import cascade
from domain.spawn.admission import SpawnPolicy
from domain.spawn.batch import Speculation, decide_for_all
from domain.spawn.cascade import CascadeState, SessionWentOn
from domain.spawn.continuation import ContinuationDecision
from domain.spawn.decide import SpawnDecision, request_spawns
from domain.spawn.dependencies import linked_runs
from domain.spawn.request import RequestSpawn
from domain.values.record import ContentRef, Stamp, run_id_of, session_key_of
from domain.values.refusals import Rejected
from infrastructure.outbound.log.append.load import may_wait
from tests.support.builders import run_commands as ask
from tests.support.builders.continued_runs import close
from tests.support.builders.storytelling import ROOT, ref, run_id, stamp
from tests.support.builders.waiting_runs import above
from tests.support.models.message_verdicts import judged_message

Change = tuple[str, AnyEvent]


@dataclass(frozen=True)
class Recorded:
    """An event of the log."""

    stream: str
    event: AnyEvent
    stamp: Stamp


def keep(kind: str, text: str) -> ContentRef:
    return ref(f"{kind}: {text}")


def policy(**changes: Any) -> SpawnPolicy:
    """Three levels, five children, any agent of the requester's own id."""
    plain = {"max_spawn_depth": 3, "max_children": 5, "require_agent_id": False}
    return SpawnPolicy(**{**plain, "allow_agents": None, **changes})


def spawn_request(**changes: Any) -> RequestSpawn:
    """Return the request of the root for a child of its own agent."""
    key = changes.get("requester_key", ROOT)
    plain = {
        "run_id": run_id(1),
        "session_id": run_id(1001),
        "requester_key": key,
        "requester_display_key": "main" if key == ROOT else key,
        "requester_agent_id": "main",
        "requester_session_id": run_id(2000),
        "asserted_by": "admin",
        "agent_id_argument": None,
        "target_agent_id": "main",
        "label": None,
        "task": "look around",
        "preamble": None,
        "origin": None,
        "thread": False,
        "options": SpawnOptions(),
        "config_revision": 1,
        "holder": "server-1",
    }
    return RequestSpawn(**{**plain, **changes})


class FamilyLog:
    """A family in a log in memory. Runs have the names of the test; `main` is the root session."""

    def __init__(self, **policy_changes: Any) -> None:
        self.policy = policy(**policy_changes)
        self.fold = Fold((), ())
        self.recorded: list[Recorded] = []
        self.names: dict[UUID, str] = {}

    def run(self, name: str) -> Run:
        return self.fold.runs[self._id(name)]

    def key(self, name: str) -> str:
        if name == "main":
            return ROOT
        run = self.fold.runs.get(self._id(name))
        return (run and run.child_session_key) or child_key(self._id(name))

    def run_as_of(self, run_id: UUID, position: int) -> Run:
        return self._as_of(position).runs[run_id]

    def session_as_of(self, key: str, position: int) -> Session:
        return self._as_of(position).sessions[key]

    def _as_of(self, position: int) -> Fold:
        fold = Fold((), ())
        for event in self.recorded[:position]:
            fold.apply(event.stream, event.event, event.stamp)
        return fold

    def last(self, name: str) -> Run:
        newest = self.session(name).run_id
        assert newest is not None
        return self.fold.runs[newest]

    def session(self, name: str) -> Session:
        return self.fold.sessions[self.key(name)]

    def counted(self, name: str) -> list[str]:
        return [self.names[run] for run in self.session(name).counted]

    def record(self, changes: Iterable[Change]) -> list[str]:
        """Record changes. Return them as `run scout RunEnded`, `session main ChildReleased`."""
        result = []
        for stream, event in changes:
            place = stamp(len(self.recorded) + 1, self.fold.version_of(stream) + 1)
            self.fold.apply(stream, event, place)
            self.recorded.append(Recorded(stream, event, place))
            result.append(f"{self._called(stream)} {type(event).__name__}")
        return result

    def answer(self, name: str, by: str, **changes: Any) -> SpawnDecision:
        number = len(self.names) + 1
        self.names[run_id(number)] = name
        key = self.key(by)
        known = self.fold.sessions.get(key)
        own = self.fold.runs.get(known.run_id) if known and known.run_id else None
        agent_id = known.agent_id if known else "main"
        plain = {
            "run_id": run_id(number),
            "session_id": run_id(1000 + number),
            "requester_key": key,
            "requester_agent_id": agent_id,
            "target_agent_id": agent_id,
        }
        if own is not None and "dependencies" in changes:
            plain["ancestors"] = above(self.fold.runs, own.run_id)
        request = spawn_request(**{**plain, **changes})
        waiting = [run for run in self.fold.runs.values() if may_wait(run, ROOT)]
        named = {dependency.run_id for dependency in request.dependencies} | (
            {own.run_id} if own else set()
        )
        named |= {*request.ancestors, *linked_runs(waiting)}
        return request_spawns(
            {key: known} if known else {},
            {run: state for run, state in self.fold.runs.items() if run in named},
            [(request, keep)],
            self.policy,
            waiting,
        )

    def spawn(self, name: str, by: str = "main", **changes: Any) -> list[str]:
        return self.record(self.answer(name, by, **changes).changes)

    def judge(
        self, name: str, to: str, last: Run | None = None, **changes: Any
    ) -> ContinuationDecision:
        """Judge a message to the session of a run, made from its newest one or from `last`, and
        record nothing yet."""
        number = len(self.names) + 1
        self.names[run_id(number)] = name
        changes = {"max_children": self.policy.max_children, **changes}
        return judged_message(self.fold, run_id(number), last or self.last(to), keep, **changes)

    def message(self, name: str, to: str, **changes: Any) -> list[str]:
        """Send a message to the session of a run; the run that it becomes gets this name."""
        try:
            return self.record(self.judge(name, to, **changes).changes)
        except Rejected:
            self.names.popitem()
            raise

    def around(self, name: str) -> CascadeState:
        """Return the recorded state of the streams that a decision about this run declares."""
        streams = cascade.streams_of(self.run(name))
        runs = {run_id_of(stream) for stream in streams}
        keys = {session_key_of(stream) for stream in streams}
        return CascadeState(
            {run: state for run, state in self.fold.runs.items() if run in runs},
            {key: state for key, state in self.fold.sessions.items() if key in keys},
        )

    def tell(self, name: str, *commands: RunCommand) -> list[str]:
        """Ask something of a run; several commands are decided in turn and recorded as one."""
        begun, request = self.run(name).created_at, [(self._id(name), commands)]
        family = self.around(name)
        try:
            return self.record(decide_for_all(Speculation(family, begun), request))
        except SessionWentOn as newer:
            runs = {**family.runs, newer.run_id: self.fold.runs[newer.run_id]}
            return self.record(
                decide_for_all(Speculation(family._replace(runs=runs), begun), request)
            )

    def create(self, name: str) -> list[str]:
        run = self.run(name)
        depth = run.requester.depth + 1
        return self.tell(
            name,
            ask.resolve(run.epoch),
            ask.prepare(run.epoch, child_session_key=child_key(run.run_id)),
            ask.create(run.epoch, depth=depth, max_depth=self.policy.max_spawn_depth),
        )

    def begin(self, name: str, by: str = "main") -> None:
        self.spawn(name, by)
        self.create(name)
        self.tell(name, ask.claim())
        self.tell(name, ask.start(self.run(name).epoch))

    def end(self, name: str) -> list[str]:
        return self.tell(name, ask.end(self.run(name).epoch))

    def announce(self, name: str) -> list[str]:
        return self.tell(name, ask.announce())

    def go_on(self, name: str, to: str) -> None:
        """Send a message, and bring its run to where its runtime executes."""
        self.message(name, to)
        self.tell(name, ask.claim())
        self.tell(name, ask.start(self.run(name).epoch))

    def finish(self, *names: str) -> None:
        for name in names:
            self.end(name)
            self.announce(name)

    def refuse(self, name: str) -> list[str]:
        return self.tell(name, ask.refuse(self.run(name).epoch))

    def _id(self, name: str) -> UUID:
        return next(run for run, called in self.names.items() if called == name)

    def _called(self, stream: str) -> str:
        run = run_id_of(stream)
        if run is not None:
            return f"run {self.names[run]}"
        key = session_key_of(stream)
        names: Sequence[str] = ["main", *self.names.values()]
        return f"session {next((name for name in names if self.key(name) == key), key)}"


def child_key(run: UUID) -> str:
    return f"agent:main:subagent:{run}"


def ask_for_all(log: FamilyLog, names: Sequence[str], by: str = "main") -> SpawnDecision:
    """Request a batch of runs with these names for a session, and record the decision."""
    numbers = [len(log.names) + 1 + index for index in range(len(names))]
    run_ids = tuple(run_id(number) for number in numbers)
    log.names.update(zip(run_ids, names, strict=True))
    key = log.key(by)
    known = log.fold.sessions.get(key)
    own = log.fold.runs.get(known.run_id) if known and known.run_id else None
    agent_id = known.agent_id if known else "main"
    commands = [
        spawn_request(
            run_id=member_id,
            session_id=run_id(1000 + number),
            requester_key=key,
            requester_agent_id=agent_id,
            target_agent_id=agent_id,
            label=name,
            batch=BatchFacts(batch_id=run_id(5000 + numbers[0]), index=index, run_ids=run_ids),
        )
        for index, (number, member_id, name) in enumerate(zip(numbers, run_ids, names, strict=True))
    ]
    answered = request_spawns(
        {key: known} if known else {},
        {own.run_id: own} if own else {},
        [(command, keep) for command in commands],
        log.policy,
    )
    log.record(answered.changes)
    return answered


def tell_all(log: FamilyLog, request: Mapping[str, Sequence[RunCommand]]) -> list[str]:
    """Ask something of several runs; it is decided in their order and recorded as one."""
    around = [log.around(name) for name in request]
    family = CascadeState(
        {key: run for item in around for key, run in item.runs.items()},
        {key: session for item in around for key, session in item.sessions.items()},
    )
    commands = [(log.run(name).run_id, request) for name, request in request.items()]
    ahead = Speculation(family, log.run(next(iter(request))).created_at)
    return log.record(decide_for_all(ahead, commands))


# Families whose runs are over, so that their sessions accept messages.


def announced(*names: str, **policy: Any) -> FamilyLog:
    """Return a log of runs of which each spawned the next; all are over, the last one first."""
    log = FamilyLog(**policy)
    for by, name in zip(("main", *names), names, strict=False):
        log.begin(name, by)
    log.finish(*reversed(names))
    return log


# Complete lives of a family, from the first request to the archive.


def a_family() -> list[Recorded]:
    """Return the events of an orchestrator and its children.

    They are refused, stopped, announced and acknowledged; the orchestrator continues with a
    message, is closed and archived, and a child continues after that.
    """
    log = FamilyLog(max_children=2)
    log.begin("scout")
    log.begin("one", "scout")
    log.spawn("two", "scout")
    log.spawn("three", "scout")
    log.end("scout")
    log.refuse("two")
    log.tell("one", ask.stop())
    log.end("one")
    log.announce("one")
    log.announce("scout")
    log.tell("scout", ask.acknowledge())
    log.go_on("again", "scout")
    log.tell("again", close())
    log.finish("again")
    for name in ("again", "scout"):
        log.tell(name, ask.archive())
    log.message("later", "one")
    return log.recorded
