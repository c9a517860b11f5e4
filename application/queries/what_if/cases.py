"""The recorded decisions of a page, each with the facts needed to decide it again."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from uuid import UUID

from application.log.envelope import RecordedEvent
from application.ports.configurations import NoActiveConfigurationError, RevisionErasedError
from application.queries.errors import QueryError
from application.queries.services import QueryServices
from application.queries.what_if.candidates import REVISIONS_REMEMBERED_MAX, Candidates
from domain.configuration.configuration import Configuration
from domain.configuration.problems import ConfigurationError
from domain.run.events import MessageReceived, RunStarted, SpawnRequested
from domain.run.facts import BatchFacts
from domain.run.state import Run
from domain.states import states
from domain.values.record import ContentRef, run_stream
from domain.what_if.decide_again import (
    ReplayCase,
    is_session_needed,
    texts_needed,
    waits_for_needed,
)
from domain.what_if.prompt import prompt_texts_needed
from domain.what_if.record import DECIDED_BY, RecordedDecision, recorded_decision
from domain.what_if.unaffected import differ_in_limits_alone, is_admitted_alike
from domain.what_if.verdict import SAME, Verdict, not_replayable

NAMED_RUNS_MAX = 200

_DECIDED_BY = tuple(event_type.__name__ for event_type in DECIDED_BY)
_Streams = Mapping[str, Sequence[RecordedEvent]]


@dataclass(frozen=True)
class WhatIfCase:
    """A recorded decision. Without `question`, its `verdict` is known already.

    To compare prompts, `started_run` is the run before it started, and `opened` the run that its
    session began with. `namesakes` maps each name in the request to the first runs of the sessions
    with that name.
    """

    position: int
    record: RecordedDecision
    question: ReplayCase | None = None
    verdict: Verdict = SAME
    started_run: Run | None = None
    opened: Run | None = None
    namesakes: Mapping[str, Sequence[UUID]] = field(default_factory=dict)

    @cached_property
    def refs(self) -> list[ContentRef]:
        """Return references to the texts that the decision depends on."""
        if self.question is None:
            return []
        prompt = prompt_texts_needed(self.record, self.started_run) if self.started_run else []
        return [*texts_needed(self.question), *prompt]


class CaseReader:
    """Reader of the decisions of a page. `until` is the last position that is read."""

    def __init__(
        self,
        services: QueryServices,
        candidates: Candidates,
        until: int,
        *,
        is_cascade: bool,
        is_with_prompts: bool,
    ) -> None:
        self._work = services.work
        self._candidates = candidates
        self._until = until
        self.is_cascade = is_cascade
        self._is_with_prompts = is_with_prompts
        self._differ_in_limits: dict[int, bool] = {}

    async def read(self, requests: Sequence[RecordedEvent]) -> dict[int, WhatIfCase]:
        """Return the decisions that these requests began, by position."""
        is_looked_at = self.is_cascade or self._is_with_prompts
        known = set[int]() if is_looked_at else await self._unaffected_in(requests)
        needed = [request for request in requests if request.envelope.position not in known]
        # A prompt is composed from the run's state, which requires all of its events.
        types = () if self._is_with_prompts else _DECIDED_BY
        own = await self._of_streams([request.stream for request in needed], types)
        others = await self._of_streams(self._other_runs(needed))
        cases: dict[int, WhatIfCase] = {}
        for request in requests:
            position = request.envelope.position
            if position in known:
                cases[position] = WhatIfCase(position, recorded_decision([request]))
                continue
            # The request is the first event of its run, and already loaded.
            later = (event for event in own.get(request.stream, ()) if event.envelope.version > 1)
            cases[position] = await self._case([request, *later], others)
        return cases

    async def texts(self, cases: Iterable[WhatIfCase]) -> Mapping[UUID, str]:
        """Return the texts that these decisions depend on, without those that were erased."""
        refs = {ref.id: ref for case in cases for ref in case.refs}
        return await self._work.contents.texts(list(refs.values())) if refs else {}

    async def _of_streams(
        self, streams: Collection[str], types: Sequence[str] = ()
    ) -> dict[str, list[RecordedEvent]]:
        found: dict[str, list[RecordedEvent]] = {}
        if streams:
            log = self._work.log
            for recorded in await log.read_streams(list(streams), types=types, until=self._until):
                found.setdefault(recorded.stream, []).append(recorded)
        return found

    def _other_runs(self, requests: Iterable[RecordedEvent]) -> set[str]:
        """Return the streams of other runs that the decisions depend on.

        These are the runs that messages continue, the first runs of their sessions if prompts are
        composed, and the runs that refused spawns name.
        """
        found: set[UUID] = set()
        for request in requests:
            if isinstance(request.event, MessageReceived):
                found.add(request.event.continues)
                if self._is_with_prompts:
                    found.add(request.event.opened_by)
            elif isinstance(request.event, SpawnRequested):
                found.update(waits_for_needed(request.event))
        return {run_stream(run_id) for run_id in found}

    async def _case(self, events: Sequence[RecordedEvent], others: _Streams) -> WhatIfCase:
        position, request = events[0].envelope.position, events[0].event
        before = started_run = opened = None
        starts = (
            recorded.envelope.position
            for recorded in events
            if isinstance(recorded.event, RunStarted)
        )
        started_at = next(starts, None) if self._is_with_prompts else None
        if started_at is not None:
            started_run = _run_at(events, started_at - 1)
        if isinstance(request, MessageReceived):
            before = _run_at(others.get(run_stream(request.continues), ()), position - 1)
            if started_at is not None:
                # As of the start: attachments are removed once the session is archived.
                opened = _run_at(others.get(run_stream(request.opened_by), ()), started_at - 1)
        record = recorded_decision(events, before=before)
        try:
            question = await self._question(record)
        except (RevisionErasedError, ConfigurationError, QueryError) as error:
            return WhatIfCase(position, record, verdict=not_replayable(_why(error, record)))
        if not record.is_decided:
            is_unaffected = await self._is_unaffected(events[0])
            question = question.changed({"is_unaffected": is_unaffected})
        if is_session_needed(question):
            key = record.run.requester.session_key
            session = await self._work.registry.session(key, at=position)
            question = question.changed({"requester": session})
        if isinstance(request, SpawnRequested) and (needed := waits_for_needed(request)):
            named = {
                run_id: _run_at(others.get(run_stream(run_id), ()), position - 1)
                for run_id in needed
            }
            waits_for = {run_id: run for run_id, run in named.items() if run is not None}
            question = question.changed({"waits_for": waits_for})
        namesakes = await self._namesakes(record) if self.is_cascade else {}
        return WhatIfCase(position, record, question, SAME, started_run, opened, namesakes)

    async def _question(self, record: RecordedDecision) -> ReplayCase:
        change, announced = await self._candidates.change(record.config_revision), None
        if record.announced is not None:
            # Recipients are read from the configuration at announcement, not at request.
            try:
                pinned = await self._work.configurations.in_force(record.announced_position)
                announced = await self._candidates.change(pinned.revision)
            except NoActiveConfigurationError:
                announced = change
        return ReplayCase(record=record, change=change, announced=announced)

    async def _namesakes(self, record: RecordedDecision) -> Mapping[str, Sequence[UUID]]:
        request = record.request
        if not isinstance(request, SpawnRequested):
            return {}
        registry, asks, limit = self._work.registry, request.requester, NAMED_RUNS_MAX
        found: dict[str, Sequence[UUID]] = {}
        for dependency in request.dependencies:
            if dependency.via == "reference":
                key = asks.session_key
                runs = await registry.runs_by_label_prefix(key, dependency.name, limit=limit)
            else:
                root = asks.root_session_key
                runs = await registry.runs_by_label(root, [dependency.name], limit=limit)
            found[dependency.name] = [
                run.opened_by or run.run_id
                for run in runs
                if run.continues is not None or run.created_position < record.run.created_position
            ]
        return found

    async def _unaffected_in(self, requests: Sequence[RecordedEvent]) -> set[int]:
        """Return the positions of decisions that their requests alone show to be unaffected."""
        affected: set[int | UUID] = set()
        for request in requests:
            if not await self._is_unaffected(request):
                affected.add(_group_of(request))
        return {
            request.envelope.position for request in requests if _group_of(request) not in affected
        }

    async def _is_unaffected(self, recorded: RecordedEvent) -> bool:
        """Return True if the configurations differ only in limits that admit this request alike."""
        event = recorded.event
        assert isinstance(event, SpawnRequested | MessageReceived)
        revision, known = event.config_revision, self._differ_in_limits
        try:
            if revision not in known:
                known[revision] = False
                change, announcing = (
                    await self._candidates.change(revision),
                    await self._announcing(),
                )
                known[revision] = differ_in_limits_alone(change, announcing)
            return known[revision] and is_admitted_alike(
                await self._candidates.change(revision), event
            )
        except (RevisionErasedError, ConfigurationError, QueryError):
            return False

    async def _announcing(self) -> tuple[Configuration, ...]:
        """Return every configuration that a run may have been announced under."""
        current = (await self._work.configurations.in_force(self._until)).revision
        if current > REVISIONS_REMEMBERED_MAX:
            raise RevisionErasedError("too many revisions to compare them all")
        found = [await self._candidates.then(revision) for revision in range(1, current + 1)]
        return tuple(configuration.configuration for configuration in found)


def batch_of(recorded: RecordedEvent) -> BatchFacts | None:
    """Return the batch of a request, or None if it is by itself."""
    event = recorded.event
    return event.batch if isinstance(event, SpawnRequested) else None


def _group_of(recorded: RecordedEvent) -> int | UUID:
    """Return a key that is equal for requests that are decided together."""
    batch = batch_of(recorded)
    return batch.batch_id if batch is not None else recorded.envelope.position


def _why(error: Exception, record: RecordedDecision) -> str:
    """Return the reason why a decision cannot be decided again: its configuration is missing.

    An earlier revision may lack the value to patch.
    """
    if isinstance(error, ConfigurationError):
        return f"configuration revision {record.config_revision}: this program cannot read it"
    return error.detail if isinstance(error, QueryError) else str(error)


def _run_at(events: Iterable[RecordedEvent], position: int) -> Run | None:
    """Return a run as of a position from its events, or None if it did not exist."""
    run: Run | None = None
    for step in states(takewhile(lambda recorded: recorded.envelope.position <= position, events)):
        run = step.run
    return run
