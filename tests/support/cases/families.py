"""Families as cases describe them, on a log that can be folded again."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from application.projections.run_rows import due
from domain.run.decide import dedupe_key
from domain.run.events import ContinuationPlanned, RunAnnounced
from domain.run.evolve import evolve
from domain.run.facts import Ingredient, RunOutcome
from domain.run.plan_facts import PlanFacts
from domain.run.state import Run
from domain.spawn.continuation import ContinuationDecision, Message, continue_session
from domain.values.record import Stamp
from domain.values.refusals import NotYet
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.family_log import FamilyLog, Recorded, keep
from tests.support.builders.storytelling import plan, ref, run_id, run_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OUTCOMES: Mapping[str, RunOutcome] = {"ok": "success", "error": "error", "timeout": "timeout"}


class CaseFamily(FamilyLog):
    """A family of up to five levels."""

    def __init__(self) -> None:
        super().__init__(max_spawn_depth=5)

    def begin_with(self, name: str, by: str = "main", **request: Any) -> None:
        """Start a child that was requested with these options."""
        self.spawn(name, by, **request)
        self.create(name)
        self.tell(name, ask.claim())
        self.tell(name, ask.start(self.run(name).epoch))

    def continued(self, name: str, last: str) -> ContinuationDecision:
        """Return the decision about a message to the session whose last run this is; record
        nothing.
        """
        before = self.run(last)
        number = len(self.names) + 1
        self.names[run_id(number)] = name
        message = Message(
            run_id=run_id(number),
            text=ref(f"message: {name}"),
            by="admin",
            config_revision=1,
            max_children=self.policy.max_children,
        )
        planned = ContinuationPlanned(
            max_depth=self.policy.max_spawn_depth,
            role="orchestrator",
            control_scope="children",
            plan=plan(),
            ingredients=(Ingredient(source="message", position="task", content=message.text),),
            facts=PlanFacts(agent_configured=True),
        )
        sessions, runs = self.fold.sessions, self.fold.runs
        return continue_session(sessions, runs, message, before, planned, keep)

    def go_on(self, name: str, last: str) -> None:
        """Continue the session whose last run is `last` by a message; its run gets this name."""
        self.record(self.continued(name, last).changes)
        self.tell(name, ask.claim())
        self.tell(name, ask.start(self.run(name).epoch))

    def parent(self, name: str, children: int) -> None:
        """Start a child of `main` with this number of children."""
        self.begin(name)
        for number in range(children):
            self.begin(f"{name}-{number}", name)

    def restarted(self) -> "CaseFamily":
        """Return the family, folded again from its events."""
        again = CaseFamily()
        again.names = dict(self.names)
        for item in self.recorded:
            event = type(item.event).from_json(item.event.to_json().decode())
            again.fold.apply(item.stream, event, item.stamp)
            again.recorded.append(Recorded(item.stream, event, item.stamp))
        return again

    def announce_what_is_due(self, name: str, *, after_ms: int = 0) -> None:
        """Announce an ended run if it is due this long after its end."""
        run = self.run(name)
        kind, at = due(run)
        assert run.ended_at is not None
        if kind == "announce" and at is not None and at <= run.ended_at + _span(after_ms):
            self.announce(name)

    def announcement_waits(self, name: str) -> bool:
        """Return True if an announcement is neither due nor permitted."""
        if due(self.run(name))[0] is not None:
            return False
        try:
            self.announce(name)
        except NotYet:
            return True
        return False

    @property
    def announced(self) -> list[RunAnnounced]:
        """Return every recorded announcement."""
        return [event.event for event in self.recorded if isinstance(event.event, RunAnnounced)]


def accounts_told(origins: Iterable[Mapping[str, Any]]) -> int:
    """Return the number of inbox entries of runs that were requested from these addresses."""
    family = CaseFamily()
    for number, origin in enumerate(origins):
        name = f"child-{number}"
        family.begin_with(name, origin=json.dumps(origin))
        family.end(name)
        family.announce(name)
    return len({event.dedupe_key for event in family.announced})


def announced_as(child_session_key: str, run_id: str) -> str:
    """Return the key of the announcement of such a run."""
    run = run_of(*past.a_created_run())
    return dedupe_key(run.changed({"child_session_key": child_session_key, "run_id": run_id}))


def ended_after(started_ms: int, ended_ms: int, outcome: str) -> Run:
    """Return a run that started and ended this many milliseconds after the epoch."""
    run = run_of(*past.a_claimed_run())
    for at_ms, event in (
        (started_ms, past.started()),
        (ended_ms, past.ended(outcome=OUTCOMES[outcome])),
    ):
        stamp = Stamp(run.version + 1, run.version + 1, EPOCH + _span(at_ms))
        run = evolve(run, event, stamp)
    return run


def milliseconds(at: datetime | None) -> int | None:
    """Since the epoch."""
    return None if at is None else (at - EPOCH) // _span(1)


def as_set(at: datetime | None) -> str | None:
    """Return `set` for a time, else None."""
    return None if at is None else "set"


def _span(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)
