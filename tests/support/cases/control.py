"""A family of a case behind the ports of a use case: its record is log and registry."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from application.delivery.announce import Announcer
from application.log.envelope import Actor
from application.log.event_log import Appended, DecisionContext, EventLog, Submission
from application.log.texts import Contents
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import Configurations, PinnedConfiguration
from application.ports.hooks import HookClient
from application.ports.registry import Registry
from application.ports.transcripts import Transcripts
from application.queries.access import Access, Caller
from application.session.stop import StopService
from application.spawn.prepare import SpawnPreparer
from domain.configuration.configuration import Configuration
from domain.run.lifecycle import OVER
from domain.run.state import Run
from domain.session.state import Session
from domain.values.record import ContentRef
from infrastructure.outbound.identity.identifiers import RandomIdentities
from tests.support.cases.families import CaseFamily

OPERATOR = Actor(kind="token", token="operator")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class FamilyStore:
    """The log, the registry and the texts of one family."""

    family: CaseFamily
    texts_kept: dict[UUID, str] = field(default_factory=dict)

    async def run(self, run_id: UUID) -> Run | None:
        return self.family.fold.runs.get(run_id)

    async def session(self, key: str) -> Session | None:
        return self.family.fold.sessions.get(key)

    async def runs_below(self, key: str) -> Sequence[Run]:
        own = [run for run in self._runs() if run.requester.session_key == key]
        # A child may have had many runs.
        keys = dict.fromkeys(run.child_session_key for run in own if run.child_session_key)
        return [*own, *[deeper for key in keys for deeper in await self.runs_below(key)]]

    def _runs(self) -> Iterable[Run]:
        return self.family.fold.runs.values()

    async def submit(self, submission: Submission[Any]) -> Appended[Any]:
        fold = self.family.fold
        decision = submission.decide(DecisionContext(fold.runs, fold.sessions, NOON))
        self.family.record(decision.changes)
        self.texts_kept |= {content.ref.id: content.text for content in decision.contents}
        at = len(self.family.recorded)
        return Appended(decision.result, at, fold.runs, fold.sessions)

    async def key(self, session_id: UUID) -> bytes:
        return session_id.bytes * 2

    async def texts(
        self, refs: Iterable[ContentRef], *, recent: bool = False
    ) -> Mapping[UUID, str]:
        return {
            reference.id: self.texts_kept[reference.id]
            for reference in refs
            if reference.id in self.texts_kept
        }

    previews = texts

    async def text(self, ref: ContentRef) -> str | None:
        return self.texts_kept.get(ref.id)

    async def at(self, revision: int) -> PinnedConfiguration:
        return PinnedConfiguration(revision, Configuration(), {})

    def current(self) -> PinnedConfiguration:
        return PinnedConfiguration(1, Configuration(), {})

    def has_waiting_caller(self, run_id: UUID) -> bool:
        return True

    @property
    def work(self) -> UnitOfWork:
        return UnitOfWork(
            cast("EventLog", self),
            RandomIdentities(),
            cast("Registry", self),
            cast("Contents", self),
            cast("Configurations", self),
        )


async def stop_run(family: CaseFamily, name: str) -> str:
    """Stop a run and everything below it. Return the kind of the answer."""
    store = FamilyStore(family)
    stopping = StopService(store.work, cast("SpawnPreparer", store))
    return (await stopping.stop(family.run(name), OPERATOR, None)).kind


async def stop_session(family: CaseFamily, name: str) -> str:
    """Stop a session's own run and everything below it. Return the kind of the answer."""
    store = FamilyStore(family)
    stopping = StopService(store.work, cast("SpawnPreparer", store))
    return (await stopping.stop_session(family.session(name), OPERATOR, None)).kind


def stopped(family: CaseFamily) -> list[Run]:
    """Return the runs with a requested stop, in order of their requests."""
    runs = family.fold.runs.values()
    return [run for run in runs if run.stop_requested_by or run.outcome == "stopped"]


async def announced_text(family: CaseFamily, name: str) -> str:
    """Return the announcement of an ended run."""
    store = FamilyStore(family)
    announcer = Announcer(store.work, cast("HookClient", store), cast("Transcripts", store))
    await announcer.announce(family.run(name).run_id)
    entry = family.run(name).inbox
    assert entry is not None
    assert entry.text is not None
    return store.texts_kept[entry.text.id]


async def may_send(family: CaseFamily, by: str, to: str) -> bool:
    """Return True if the record lets a child send a message to a run."""
    own = family.run(by)
    assert own.child_session_key is not None
    assert own.stage not in OVER
    caller = Caller(
        actor=Actor(kind="child", token="child", session=own.child_session_key),
        scopes=frozenset({"control"}),
        patterns=(own.child_session_key,),
        run_id=own.run_id,
    )
    return await Access(cast("Registry", FamilyStore(family))).covers_run(caller, family.run(to))
