"""Cascading what-if: decide in log order, each time with the effects of earlier verdicts.

A newly refused run frees the place that it held on record. A newly allowed run takes a place for an
unknown time. A run that cannot be replayed may or may not have held its place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple
from uuid import UUID

from domain.run.events import SessionCreated, SpawnRequested
from domain.run.facts import Dependency, RespawnFacts
from domain.run.state import Run
from domain.spawn.dependencies import request_field
from domain.values import rules
from domain.values.refusals import Refusal
from domain.what_if.decide_again import (
    AS_NAMED,
    AS_RECORDED,
    DecidedAgain,
    HypotheticalSession,
    ReplayCase,
    ResolvedNames,
    decide_again,
)
from domain.what_if.record import RecordedDecision
from domain.what_if.verdict import SAME, Verdict, VerdictName, not_replayable

REMOVED_MAX = 1_000_000
"""How many changed runs and sessions are remembered."""
LABELS_COMPARED_MAX = 1_000
"""If a session has more labels of newly allowed runs, any reference counts as a possible match."""
_NAMES_NOTHING = frozenset({rules.DEPENDENCY_UNKNOWN.name, rules.REFERENCE_UNKNOWN.name})
_TOO_MANY = frozenset(
    {rules.DEPENDENCY_AMBIGUOUS.name, rules.REFERENCE_AMBIGUOUS.name, rules.SHARED_CONTEXT.name}
)


class CascadeTooLargeError(Exception):
    """More runs and sessions would change than can be remembered."""


Fate = Literal["never-ran", "may-run", "undecided"]
_FATES: Mapping[VerdictName, Fate] = {"newly-refused": "never-ran", "newly-allowed": "may-run"}


class ChangedRun(NamedTuple):
    """Run whose existence differs from the record.

    `rule` is the rule that refuses it now; None if it would not have been requested.
    """

    run_id: UUID
    fate: Fate
    rule: str | None
    is_message: bool

    @property
    def doubt(self) -> str:
        """Return a phrase for the missing fact about this run."""
        if self.fate == "may-run":
            return f"how long run {self.run_id}, newly allowed, would have run"
        return f"whether run {self.run_id}, which cannot be decided again, would have run"


class CountRange(NamedTuple):
    """Count between `least` and `most`, inclusive, and the facts missing to know it exactly."""

    least: int
    most: int
    missing: tuple[str, ...] = ()


@dataclass(slots=True)
class _AddedRuns:
    """Runs of one session or tree that were refused and may exist now.

    Keeps the first run of each fate and label, and the first that shares with its family.
    """

    count: int = 0
    first: dict[Fate, ChangedRun] = field(default_factory=dict)
    labels: dict[str, UUID] = field(default_factory=dict)
    sharing: UUID | None = None

    def add(self, other: ChangedRun, record: RecordedDecision) -> None:
        """Add a run."""
        self.count += 1
        self.first.setdefault(other.fate, other)
        if record.run.label is not None:
            self.labels.setdefault(record.run.label, other.run_id)
        request = record.request
        shared = request.shared if isinstance(request, SpawnRequested) else None
        if self.sharing is None and shared is not None and shared.scope == "family" and shared.keys:
            self.sharing = other.run_id


_NONE_ADDED = _AddedRuns()
_NO_NAMESAKES: Mapping[str, Sequence[UUID]] = {}
_ALIKE = (AS_RECORDED, AS_RECORDED, AS_NAMED)


@dataclass(slots=True)
class Cascade:
    """Differences from the record after the decisions so far.

    By requester, `_held` has the changed runs that hold a place on record, and `_added` the refused
    runs that may exist now. By tree, `_lost_in` has the first run that may not exist now, and
    `_added_in` the refused runs that may exist.
    """

    _runs: dict[UUID, ChangedRun] = field(default_factory=dict)
    _held: dict[str, dict[UUID, ChangedRun]] = field(default_factory=dict)
    _added: dict[str, _AddedRuns] = field(default_factory=dict)
    _lost_in: dict[str, UUID] = field(default_factory=dict)
    _added_in: dict[str, _AddedRuns] = field(default_factory=dict)
    _sessions: dict[str, HypotheticalSession] = field(default_factory=dict)
    _known_sessions: dict[HypotheticalSession, HypotheticalSession] = field(default_factory=dict)

    def decide(
        self,
        question: ReplayCase,
        texts: Mapping[UUID, str],
        namesakes: Mapping[str, Sequence[UUID]] = _NO_NAMESAKES,
    ) -> DecidedAgain:
        """Decide again, given the differences so far.

        Args:
            question: The decision.
            texts: Texts needed for it, by content id; erased ones are absent.
            namesakes: For each name in the request, the first runs of all sessions with that label.
        """
        record, run = question.record, question.record.run
        needed = (run.requester.run_id, run.opened_by if run.continues is not None else None)
        others = [
            self._runs[run_id] for run_id in needed if run_id is not None and run_id in self._runs
        ]
        never_ran = next((other for other in others if other.fate == "never-ran"), None)
        if never_ran is not None:
            return DecidedAgain(_never_requested(record, never_ran))
        changed = question.changed(
            {
                "requester_now": self.session(run.requester.session_key),
                "session_now": self.session(run.child_session_key if run.continues else None),
                "names": self.names(record, namesakes),
            }
        )
        decided = self._decide_in_range(changed, texts)
        if not others or (record.refused is not None and decided.verdict.verdict == "same"):
            return decided
        return DecidedAgain(not_replayable(others[0].doubt))

    def _decide_in_range(self, question: ReplayCase, texts: Mapping[UUID, str]) -> DecidedAgain:
        """Decide with the smallest and the largest number of children the requester may have.

        If the verdicts differ, the decision is not replayable.
        """
        record, asks = question.record, question.requester_now
        if asks.agent_id is not None:
            agent = f'agent "{asks.agent_id}", instead of its requester,'
            return DecidedAgain(not_replayable(f"whether {agent} would request it"))
        recorded = record.request.facts.active_children
        least, most, missing = self.active_children(record.run.requester.session_key, recorded)
        is_alike = (asks, question.session_now, question.names) == _ALIKE
        is_unaffected = question.is_unaffected and is_alike and least == most == recorded
        changes = {"is_unaffected": is_unaffected, "active_children": least}
        decided = decide_again(question.changed(changes), texts)
        if least == most:
            return decided
        other = decide_again(question.changed({**changes, "active_children": most}), texts)
        if decided.verdict == other.verdict:
            return decided
        # The text of a refusal contains the number; drop the text if only the number differs.
        unnumbered, others = (
            verdict.verdict.changed({"text": None}) for verdict in (decided, other)
        )
        if unnumbered != others:
            return DecidedAgain(not_replayable(*missing))
        return replace(decided, verdict=unnumbered)

    def active_children(self, requester_key: str, recorded: int) -> CountRange:
        """Return the hypothetical number of active children, given the `recorded` number."""
        held = self._held.get(requester_key, {})
        added = self._added.get(requester_key, _NONE_ADDED)
        undecided = [run for run in held.values() if run.fate == "undecided"]
        most = max(0, recorded - len(held) + len(undecided))
        doubtful = next(iter(undecided), added.first.get("undecided"))
        missing = [run.doubt for run in (added.first.get("may-run"), doubtful) if run is not None]
        least = max(0, most - len(undecided))
        return CountRange(least, most + added.count, tuple(missing))

    def release(self, requester_key: str, run_id: UUID) -> None:
        """Forget the place of this child, which is released on record."""
        held = self._held.get(requester_key, {})
        held.pop(run_id, None)
        if not held:
            self._held.pop(requester_key, None)

    def session(self, key: str | None) -> HypotheticalSession:
        """Return the hypothetical changes to a session."""
        return self._sessions.get(key, AS_RECORDED) if key is not None else AS_RECORDED

    def names(
        self, record: RecordedDecision, namesakes: Mapping[str, Sequence[UUID]]
    ) -> ResolvedNames:
        """Resolve the run names in a request against the hypothetical runs.

        Args:
            record: The decision.
            namesakes: For each name, the first runs of all sessions with that label.
        """
        request = record.request
        if not isinstance(request, SpawnRequested):
            return AS_NAMED
        unknown = [*self._doubts_of_refusal(record, request)]
        for name in request.dependencies:
            unknown += self._doubts_of_name(record.run, name, namesakes.get(name.name, ()))
        lost = next((name for name in request.dependencies if self._never_ran(name.run_id)), None)
        again = request.respawn
        if again is not None and self._never_ran(again.run_id) and _takes_over(again):
            unknown.append(f"the output of run {again.run_id}, from which it was respawned")
        return ResolvedNames(self._refusal_of(lost) if lost is not None else None, tuple(unknown))

    def _never_ran(self, run_id: UUID) -> bool:
        other = self._runs.get(run_id)
        return other is not None and other.fate == "never-ran"

    def _doubts_of_refusal(
        self, record: RecordedDecision, request: SpawnRequested
    ) -> Iterator[str]:
        """Yield doubts about a refusal that depended on which runs existed."""
        refused, root = record.refused, record.run.requester.root_session_key
        if refused is None or refused.step != "admission":
            return
        is_unbound = bool(request.dependencies_argument)
        added, lost = self._added_in.get(root), self._lost_in.get(root)
        if (is_unbound or refused.rule in _NAMES_NOTHING) and added is not None:
            first = next(iter(added.first.values())).run_id
            yield f"whether it names run {first}, which may exist now"
        if (is_unbound or refused.rule in _TOO_MANY) and lost is not None:
            yield f"whether it is refused without run {lost}, which may not exist now"

    def _doubts_of_name(
        self, run: Run, name: Dependency, namesakes: Sequence[UUID]
    ) -> Iterator[str]:
        doubt, other = f"which run {request_field(name)} names", self._runs.get(name.run_id)
        if other is not None and other.fate != "never-ran":
            yield other.doubt
            return
        meant = self._added_by_name(run, name)
        if meant is not None:
            yield f"{doubt}: run {meant} may exist now"
        elif other is not None and not _is_id(name):
            left = [
                run_id
                for run_id in namesakes
                if run_id != name.run_id and not self._never_ran(run_id)
            ]
            if left or other.is_message:
                yield f"{doubt} instead of run {name.run_id}, which would not exist"

    def _added_by_name(self, run: Run, name: Dependency) -> UUID | None:
        """Return a newly allowed run that the name could mean now, or None."""
        if name.via != "reference":
            tree = self._added_in.get(run.requester.root_session_key, _NONE_ADDED)
            return tree.labels.get(name.name)
        labels = self._added.get(run.requester.session_key, _NONE_ADDED).labels
        if len(labels) > LABELS_COMPARED_MAX:
            return next(iter(labels.values()))
        return next(
            (run_id for label, run_id in labels.items() if label.startswith(name.name)), None
        )

    def _refusal_of(self, name: Dependency) -> Refusal:
        """Return the refusal for the name of a run that would not exist."""
        field_name, rule = request_field(name), self._runs[name.run_id].rule
        if _is_id(name) and rule is not None:
            text = f"{field_name} names run {name.run_id}, which would be refused"
            return rules.DEPENDENCY_FAILED.refusal(text)
        named = rules.REFERENCE_UNKNOWN if name.via == "reference" else rules.DEPENDENCY_UNKNOWN
        text = f"{field_name} names run {name.run_id}, which would not exist"
        return named.refusal(text)

    def unshared(self, record: RecordedDecision) -> tuple[str, ...]:
        """Return the unknowns about the shared context that a run received."""
        found: list[str] = []
        for shared in record.started.shared_context if record.started is not None else ():
            other = self._runs.get(shared.run_id) if shared.run_id is not None else None
            if other is not None and other.fate == "never-ran":
                found.append(
                    f"its key {shared.key!r} is of run {shared.run_id}, which would not exist"
                )
            elif other is not None:
                found.append(other.doubt)
        added = self._added_in.get(record.run.requester.root_session_key, _NONE_ADDED)
        if added.sharing is not None:
            found.append(f"the context shared by run {added.sharing}, which may exist now")
        return tuple(f"the shared context: {doubt}" for doubt in dict.fromkeys(found))

    def note(self, record: RecordedDecision, decided: DecidedAgain) -> None:
        """Remember the result of a decision.

        Raises:
            CascadeTooLargeError: More runs and sessions would change than can be remembered.
        """
        name, run, other = decided.verdict.verdict, record.run, None
        fate = _FATES.get(name)
        if name == "not-replayable" and decided.planned is None:
            fate = "undecided"
        if fate is not None:
            is_message = run.continues is not None
            other = ChangedRun(run.run_id, fate, decided.verdict.rule, is_message)
            self._note_run(record, other)
        self._note_session(record, decided, is_created=fate not in ("never-ran", "undecided"))
        if len(self._runs) + len(self._sessions) > REMOVED_MAX:
            raise CascadeTooLargeError(
                f"more than {REMOVED_MAX} runs or sessions would differ (not run, another plan,"
                " or more children); request a shorter range"
            )

    def _note_run(self, record: RecordedDecision, other: ChangedRun) -> None:
        requester = record.run.requester
        key, root = requester.session_key, requester.root_session_key
        self._runs[other.run_id] = other
        if record.refused is None:
            self._held.setdefault(key, {})[other.run_id] = other
            self._lost_in.setdefault(root, other.run_id)
        else:
            self._added.setdefault(key, _AddedRuns()).add(other, record)
            self._added_in.setdefault(root, _AddedRuns()).add(other, record)

    def _note_session(
        self, record: RecordedDecision, decided: DecidedAgain, *, is_created: bool
    ) -> None:
        """Remember the changes to a child's session, for its later spawns and messages.

        A refused message changes nothing.
        """
        created, is_message = record.created, record.run.continues is not None
        if created is None or (is_message and not is_created):
            return
        child = record.run.child_session_key
        if isinstance(created, SessionCreated):
            child = created.child_session_key
        assert child is not None
        self._sessions.pop(child, None)
        session, planned = decided.session, decided.planned
        if planned is not None and created.role == "leaf" and not planned.capabilities.can_spawn:
            # If a session cannot spawn, no child inherits its plan.
            session = replace(session, plan=None)
        if is_created and session != AS_RECORDED:
            # Share equal values: a history has many children but few plans.
            self._sessions[child] = self._known_sessions.setdefault(session, session)


def _never_requested(record: RecordedDecision, other: ChangedRun) -> Verdict:
    if record.refused is not None:
        return SAME
    text = f"run {other.run_id}, from which it originates, would be refused"
    return Verdict(verdict="newly-refused", text=f"it would not have been requested: {text}")


def _takes_over(respawn: RespawnFacts) -> bool:
    return respawn.scripts == "recorded" or respawn.transcript_up_to is not None


def _is_id(name: Dependency) -> bool:
    """Return True if the request named the run by its id."""
    return name.name.replace("-", "").lower() == name.run_id.hex
