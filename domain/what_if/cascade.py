"""What later decisions would have found, had what is newly refused never run: how many children a
session has, who asks, and which runs there are to wait for and to share with.

What is newly refused is taken out of the counts for as long as it was counted. What is newly
allowed was never there, so nobody knows for how long it would have been, and what cannot be decided
again may have been there or not: the count is between two numbers from then on.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from domain.run.events import ContinuationPlanned, SessionCreated, SpawnRequested
from domain.run.facts import Dependency
from domain.run.state import Run
from domain.spawn.dependencies import request_field
from domain.values import rules
from domain.values.refusals import Refusal
from domain.what_if.decide_again import AS_RECORDED, DecidedAgain, NamesNow, OtherSession
from domain.what_if.record import RecordedDecision

REMOVED_MAX = 1_000_000
"""So many are remembered at all: runs that would not have run, or maybe, or by another plan, since
what they spawned would not have been requested, or by somebody else; and sessions that would have
had more children."""
_NAMES_NOTHING = frozenset({rules.DEPENDENCY_UNKNOWN.name, rules.REFERENCE_UNKNOWN.name})
_TOO_MANY = frozenset(
    {rules.DEPENDENCY_AMBIGUOUS.name, rules.REFERENCE_AMBIGUOUS.name, rules.SHARED_CONTEXT.name}
)


class CascadeTooLarge(Exception):
    """More would be otherwise than can be remembered."""


@dataclass(frozen=True, slots=True)
class CountRange:
    """A count that lies between two numbers, both included. `unknown` is a run of which nobody
    knows for how long it would have been counted, `undecided` one of which nobody knows whether it
    would have been; None when there is none."""

    least: int
    most: int
    unknown: UUID | None = None
    undecided: UUID | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """What is not on record of it."""
        found = []
        if self.unknown is not None:
            found.append(f"for how long run {self.unknown}, newly allowed, would have run")
        if self.undecided is not None:
            found.append(_undecided(self.undecided))
        return tuple(found)


@dataclass(slots=True)
class _AddedRuns:
    """The runs of a tree that were refused, and may be there now, by what another may find of them:
    its `first`, one of each label and of each that a requester gave, in their order; and two that
    share with the family, of which one may be the run that is looked at."""

    first: UUID
    by_label: dict[tuple[str | None, str], UUID] = field(default_factory=dict)
    labels_of: dict[str, list[str]] = field(default_factory=dict)
    sharing: list[UUID] = field(default_factory=list)

    def add(self, run_id: UUID, requester_key: str, label: str | None, *, shares: bool) -> int:
        """Remember a run; how many more places that takes."""
        taken = 0
        if label is not None:
            taken += (None, label) not in self.by_label
            self.by_label.setdefault((None, label), run_id)
            self.by_label.setdefault((requester_key, label), run_id)
            labels = self.labels_of.setdefault(requester_key, [])
            place = bisect_left(labels, label)
            if labels[place : place + 1] != [label]:
                labels.insert(place, label)
                taken += 1
        if shares and len(self.sharing) < 2:
            self.sharing.append(run_id)
            taken += 1
        return taken

    def named(self, name: Dependency, requester_key: str) -> UUID | None:
        """A run that a name in a request of this session could stand for."""
        if name.via != "reference":
            return self.by_label.get((None, name.name))
        labels = self.labels_of.get(requester_key, [])
        place = bisect_left(labels, name.name)
        found = labels[place : place + 1]
        if not found or not found[0].startswith(name.name):
            return None
        return self.by_label[requester_key, found[0]]

    def sharing_beside(self, run_id: UUID) -> UUID | None:
        """Another one that shares with the family."""
        return next((one for one in self.sharing if one != run_id), None)


@dataclass(slots=True)
class CascadeCounts:
    """Follows decisions and releases in the order of the log.

    Of what is newly refused `_never_ran` has the rule, None for what would not have been requested,
    and `_unsent` are the messages among it. `_undecided` is what cannot be decided again: what has
    a place by the record is in `_unsure` for as long, what was refused in `_perhaps`.
    """

    _removed: dict[str, dict[UUID, None]] = field(default_factory=dict)
    _added: dict[str, tuple[int, UUID]] = field(default_factory=dict)
    _unsure: dict[str, dict[UUID, None]] = field(default_factory=dict)
    _perhaps: dict[str, tuple[int, UUID]] = field(default_factory=dict)
    _never_ran: dict[UUID, str | None] = field(default_factory=dict)
    _unsent: set[UUID] = field(default_factory=set)
    _undecided: set[UUID] = field(default_factory=set)
    _sessions: dict[str, OtherSession] = field(default_factory=dict)
    _known_sessions: dict[OtherSession, OtherSession] = field(default_factory=dict)
    _removed_in: dict[str, UUID] = field(default_factory=dict)
    _added_in: dict[str, _AddedRuns] = field(default_factory=dict)
    _added_count: int = 0

    # How many children there are.

    def active_children(self, requester_key: str, recorded: int) -> CountRange:
        """The children of a session that would be counted, of which so many were."""
        most = max(0, recorded - len(self._removed.get(requester_key, ())))
        unsure = self._unsure.get(requester_key, {})
        least = max(0, most - len(unsure))
        added, perhaps = self._added.get(requester_key), self._perhaps.get(requester_key)
        undecided = next(iter(unsure), None) or (perhaps[1] if perhaps else None)
        most += sum(one[0] for one in (added, perhaps) if one)
        return CountRange(least, most, added[1] if added else None, undecided)

    def release(self, requester_key: str, run_id: UUID) -> None:
        """A child is not counted any more."""
        for counted in (self._removed, self._unsure):
            runs = counted.get(requester_key)
            if runs is None:
                continue
            runs.pop(run_id, None)
            if not runs:
                del counted[requester_key]

    # Who asks, and for whom.

    def never_ran(self, run: Run) -> UUID | None:
        """The run but for which this one would not have been requested, and which would not have
        run: that of its requester, or the one that opened the session a message goes to; None when
        there is none."""
        return next((one for one in _needed(run) if one in self._never_ran), None)

    def undecided(self, run: Run) -> str | None:
        """What is not known of the runs but for which this one would not have been requested."""
        found = next((one for one in _needed(run) if one in self._undecided), None)
        return _undecided(found) if found is not None else None

    def session(self, key: str | None) -> OtherSession:
        """What of a session would be otherwise."""
        return self._sessions.get(key, AS_RECORDED) if key is not None else AS_RECORDED

    # Which runs there are.

    def names(self, record: RecordedDecision, namesakes: Mapping[str, Sequence[UUID]]) -> NamesNow:
        """What the names in a request stand for now. `namesakes` are, for each, the runs that other
        sessions of that name began with."""
        request = record.request
        if not isinstance(request, SpawnRequested):
            return NamesNow()
        unknown = [*self._unknown_of_refusal(record)]
        refusal = None
        for one in request.dependencies:
            unknown += self._unknown_of_name(record.run, one, namesakes.get(one.name, ()))
            if refusal is None and one.run_id in self._never_ran:
                refusal = self._lost(one)
        respawn = request.respawn
        if respawn is not None and respawn.run_id in self._never_ran:
            is_needed = respawn.scripts == "recorded" or respawn.transcript_up_to is not None
            if is_needed:
                unknown.append(f"what run {respawn.run_id}, which it was respawned from, had said")
        return NamesNow(refusal, tuple(unknown))

    def _unknown_of_refusal(self, record: RecordedDecision) -> Iterator[str]:
        """Of a spawn that was refused for the runs that there were."""
        refused, root = record.refused, record.run.requester.root_session_key
        if refused is None or refused.step != "admission":
            return
        request, added = record.request, self._added_in.get(root)
        is_unbound = isinstance(request, SpawnRequested) and bool(request.dependencies_argument)
        if (is_unbound or refused.rule in _NAMES_NOTHING) and added is not None:
            yield f"whether it names run {added.first}, which may be there now"
        removed = self._removed_in.get(root)
        if (is_unbound or refused.rule in _TOO_MANY) and removed is not None:
            yield f"whether it is refused without run {removed}, which may not be there now"

    def _unknown_of_name(
        self, run: Run, name: Dependency, namesakes: Sequence[UUID]
    ) -> Iterator[str]:
        said = f"which run {request_field(name)} names"
        if name.run_id in self._undecided:
            yield _undecided(name.run_id)
            return
        added = self._added_in.get(run.requester.root_session_key)
        meant = added.named(name, run.requester.session_key) if added is not None else None
        if meant is not None:
            yield f"{said}: run {meant} may be there now"
            return
        if name.run_id not in self._never_ran or _is_id(name):
            return
        others = [one for one in namesakes if one != name.run_id and one not in self._never_ran]
        if others or name.run_id in self._unsent:
            yield f"{said} in the place of run {name.run_id}, which would not be there"

    def _lost(self, name: Dependency) -> Refusal:
        """What is said of the name of a run that would not be there."""
        field_name, rule = request_field(name), self._never_ran[name.run_id]
        if _is_id(name) and rule is not None:
            text = f"{field_name} names run {name.run_id}, which would be refused"
            return rules.DEPENDENCY_FAILED.refusal(text)
        named = rules.REFERENCE_UNKNOWN if name.via == "reference" else rules.DEPENDENCY_UNKNOWN
        text = f"{field_name} names run {name.run_id}, which would not be there"
        return named.refusal(text)

    def shared(self, record: RecordedDecision) -> tuple[str, ...]:
        """What is not known of the context that a run was given, since others would have shared
        less with it, or more."""
        found: dict[str, None] = {}
        for one in record.started.shared_context if record.started is not None else ():
            if one.run_id in self._never_ran:
                text = f"its key {one.key!r} is of run {one.run_id}, which would not be there"
                found[f"the shared context: {text}"] = None
            elif one.run_id is not None and one.run_id in self._undecided:
                found[f"the shared context: {_undecided(one.run_id)}"] = None
        added = self._added_in.get(record.run.requester.root_session_key)
        sharing = added.sharing_beside(record.run.run_id) if added is not None else None
        if sharing is not None:
            text = f"run {sharing}, which may be there now, shares with its family"
            found[f"the shared context: {text}"] = None
        return tuple(found)

    # What came of decisions.

    def note(self, record: RecordedDecision, decided: DecidedAgain) -> None:
        """What came of a decision."""
        verdict, run = decided.verdict, record.run
        key, root = run.requester.session_key, run.requester.root_session_key
        is_undecided = verdict.verdict == "not-replayable" and decided.planned is None
        self._note_session(record, decided, is_undecided=is_undecided)
        if verdict.verdict == "newly-refused":
            self._must_be_room()
            self._removed.setdefault(key, {})[run.run_id] = None
            self._never_ran[run.run_id] = verdict.rule
            if run.continues is not None:
                self._unsent.add(run.run_id)
        elif verdict.verdict == "newly-allowed":
            self._add(self._added, record)
        elif is_undecided:
            self._must_be_room()
            self._undecided.add(run.run_id)
            if record.refused is None:
                self._unsure.setdefault(key, {})[run.run_id] = None
            else:
                self._add(self._perhaps, record)
        else:
            return
        if record.refused is None:
            self._removed_in.setdefault(root, run.run_id)

    def _add(self, counted: dict[str, tuple[int, UUID]], record: RecordedDecision) -> None:
        """A run that was refused may be there from now on."""
        run, request = record.run, record.request
        key = run.requester.session_key
        if key not in counted:
            self._must_be_room()
        count, first = counted.get(key, (0, run.run_id))
        counted[key] = (count + 1, first)
        shared = request.shared if isinstance(request, SpawnRequested) else None
        shares = shared is not None and shared.scope == "family" and bool(shared.keys)
        root = run.requester.root_session_key
        if root not in self._added_in:
            self._added_in[root] = _AddedRuns(run.run_id)
            self._added_count += 1
        self._added_count += self._added_in[root].add(run.run_id, key, run.label, shares=shares)
        self._must_be_room()

    def _note_session(
        self, record: RecordedDecision, decided: DecidedAgain, *, is_undecided: bool
    ) -> None:
        """What the session of a child is, that may spawn or be sent messages. A message that is
        refused leaves it as it was."""
        created = record.created
        if created is None:
            return
        child = _child_key(record, created)
        is_kept = is_undecided or decided.verdict.verdict == "newly-refused"
        if is_kept and record.run.continues is not None:
            return
        self._sessions.pop(child, None)
        found = decided.session
        planned = decided.planned
        if planned is not None and created.role == "leaf" and not planned.capabilities.can_spawn:
            # Whoever asks for nothing passes no plan on.
            found = OtherSession(found.agent_id, None, found.named_model, found.workspace)
        if is_kept or found == AS_RECORDED:
            return
        self._must_be_room()
        # A history has many children, and few plans.
        self._sessions[child] = self._known_sessions.setdefault(found, found)

    def _must_be_room(self) -> None:
        found = (self._never_ran, self._undecided, self._sessions, self._added, self._perhaps)
        if sum(map(len, found)) + self._added_count >= REMOVED_MAX:
            raise CascadeTooLarge(
                f"more than {REMOVED_MAX} runs would not have run, or by another plan, or sessions"
                " have more children; ask for a shorter range"
            )


def _needed(run: Run) -> Iterator[UUID]:
    """The runs but for which this one would not have been requested."""
    needed = (run.requester.run_id, run.opened_by if run.continues is not None else None)
    return (one for one in needed if one is not None)


def _undecided(run_id: UUID) -> str:
    return f"whether run {run_id}, which cannot be decided again, would have run"


def _is_id(name: Dependency) -> bool:
    """Whether the run was named by its id."""
    return name.name.replace("-", "").lower() == name.run_id.hex


def _child_key(record: RecordedDecision, created: SessionCreated | ContinuationPlanned) -> str:
    """The session of the child."""
    if isinstance(created, SessionCreated):
        return created.child_session_key
    assert record.run.child_session_key is not None
    return record.run.child_session_key
