"""How many children a session would have had, had what is newly refused never run.

What is newly refused is taken out of the counts for as long as it was counted. What is newly
allowed was never there, so nobody knows for how long it would have been: the count is between two
numbers from then on.
"""

from dataclasses import dataclass, field
from uuid import UUID

from domain.run.events import ContinuationPlanned, SessionCreated
from domain.run.facts import Plan
from domain.run.state import Run
from domain.what_if.decide_again import DecidedAgain
from domain.what_if.record import RecordedDecision
from domain.what_if.verdict import VerdictName

REMOVED_MAX = 1_000_000
"""So many are remembered at all: runs that would not have run, or by another plan, since what they
spawned would not have been requested, or by somebody else; and sessions that would have had more
children."""
_OTHER_PLAN: frozenset[VerdictName] = frozenset(
    {"different-agent", "different-model", "different-plan"}
)


class CascadeTooLarge(Exception):
    """More would be otherwise than can be remembered."""


@dataclass(frozen=True, slots=True)
class CountRange:
    """A count that lies between two numbers, both included. `unknown` is a run of which nobody
    knows for how long it would have been counted; None when the numbers are equal."""

    least: int
    most: int
    unknown: UUID | None = None


@dataclass(slots=True)
class CascadeCounts:
    """Follows decisions and releases in the order of the log."""

    _removed: dict[str, set[UUID]] = field(default_factory=dict)
    _added: dict[str, tuple[int, UUID]] = field(default_factory=dict)
    _never_ran: set[UUID] = field(default_factory=set)
    _plans: dict[str, Plan] = field(default_factory=dict)
    _known_plans: dict[Plan, Plan] = field(default_factory=dict)
    _agents: dict[str, str] = field(default_factory=dict)

    def active_children(self, requester_key: str, recorded: int) -> CountRange:
        """The children of a session that would be counted, of which so many were."""
        least = max(0, recorded - len(self._removed.get(requester_key, ())))
        added = self._added.get(requester_key)
        if not added:
            return CountRange(least, least)
        return CountRange(least, least + added[0], added[1])

    def never_ran(self, run: Run) -> UUID | None:
        """The run but for which this one would not have been requested, and which would not have
        run: that of its requester, or the one that opened the session a message goes to; None when
        there is none."""
        needed = (run.requester.run_id, run.opened_by if run.continues is not None else None)
        return next((one for one in needed if one is not None and one in self._never_ran), None)

    def plan(self, requester_key: str) -> Plan | None:
        """The plan of a requester that would have another one; None when it is the recorded one, or
        there is none."""
        return self._plans.get(requester_key)

    def agent(self, requester_key: str) -> str | None:
        """The agent that would be in the place of a requester; None when it is the recorded one.
        Nobody knows what another agent would ask for."""
        return self._agents.get(requester_key)

    def note(self, record: RecordedDecision, decided: DecidedAgain) -> None:
        """What came of a decision. One that cannot be made again is taken as it was."""
        verdict, key = decided.verdict, record.run.requester.session_key
        self._note_plan(record, decided)
        if verdict.verdict == "newly-refused":
            self._must_be_room()
            self._removed.setdefault(key, set()).add(record.run.run_id)
            self._never_ran.add(record.run.run_id)
        elif verdict.verdict == "newly-allowed":
            if key not in self._added:
                self._must_be_room()
            count, first = self._added.get(key, (0, record.run.run_id))
            self._added[key] = (count + 1, first)

    def _note_plan(self, record: RecordedDecision, decided: DecidedAgain) -> None:
        """The plan, or the agent, of a child that may spawn now, or could then; what runs as it
        did, also behind a run that would have another, has the recorded one."""
        created, planned = record.created, decided.planned
        if created is None:
            return
        child = _child_key(record, created)
        self._plans.pop(child, None)
        self._agents.pop(child, None)
        verdict = decided.verdict.verdict
        if planned is None or verdict not in _OTHER_PLAN:
            return
        if created.role == "leaf" and not planned.capabilities.can_spawn:
            return
        self._must_be_room()
        if verdict == "different-agent":
            self._agents[child] = planned.agent.id
            return
        # A history has many children, and few plans.
        plan = planned.plan
        self._plans[child] = self._known_plans.setdefault(plan, plan)

    def _must_be_room(self) -> None:
        remembered = sum(map(len, (self._never_ran, self._plans, self._agents, self._added)))
        if remembered >= REMOVED_MAX:
            raise CascadeTooLarge(
                f"more than {REMOVED_MAX} runs would not have run, or by another plan, or sessions"
                " have more children; ask for a shorter range"
            )

    def release(self, requester_key: str, run_id: UUID) -> None:
        """A child is not counted any more."""
        removed = self._removed.get(requester_key)
        if removed is None:
            return
        removed.discard(run_id)
        if not removed:
            del self._removed[requester_key]


def _child_key(record: RecordedDecision, created: SessionCreated | ContinuationPlanned) -> str:
    """The session of the child."""
    if isinstance(created, SessionCreated):
        return created.child_session_key
    assert record.run.child_session_key is not None
    return record.run.child_session_key
