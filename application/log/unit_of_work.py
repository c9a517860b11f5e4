"""What every use case works with, put together once by the composition root."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from application.log.envelope import SYSTEM, Actor, Provenance
from application.log.event_log import (
    Appended,
    Content,
    ContentKey,
    Decision,
    EventLog,
    Reservation,
    StoredAnswer,
    Submission,
    World,
)
from application.log.texts import Contents, TextStore
from application.ports.configurations import Configurations
from application.ports.identifiers import Identities
from application.ports.registry import Registry
from domain.run.commands import RunCommand
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn.batch import batch_members, decide_for_all
from domain.spawn.cascade import CascadeState, streams_of
from domain.values.refusals import Rejected


class ContentsErased(Rejected):
    """The session's key was destroyed, so nothing can be recorded about its texts any more."""


class RequesterTexts(Protocol):
    """Texts of a requester's session that are recorded with one of its children."""

    @property
    def kept(self) -> Sequence[Content]:
        """What was collected."""
        ...

    @property
    def keys(self) -> Sequence[ContentKey]:
        """The session's key, when it has to be recorded too."""
        ...

    def must_fit(self, session: Session | None) -> None:
        """Raises `ReadAgain` when the session is not as it was read."""
        ...


@dataclass(frozen=True, slots=True)
class RunCommands:
    """Commands to a run, to be decided one after the other, and who keeps their texts."""

    run: Run
    commands: Sequence[RunCommand]
    keeper: TextStore | None = None


@dataclass(frozen=True, slots=True)
class UnitOfWork:
    """The log, what is read from it, and what is minted."""

    log: EventLog
    registry: Registry
    contents: Contents
    identities: Identities
    configurations: Configurations

    async def text_store(self, run: Run) -> TextStore:
        """A keeper of texts for the run's own session."""
        key = await self.contents.key(run.session_id)
        if key is None:
            raise ContentsErased(f"the texts of session {run.session_id} were erased")
        return TextStore(run.session_id, key, self.identities.event_id)

    async def text_store_or_none(self, run: Run) -> TextStore | None:
        """The same; None when the session's texts were erased."""
        try:
            return await self.text_store(run)
        except ContentsErased:
            return None

    async def record(
        self,
        run: Run,
        commands: Sequence[RunCommand],
        keeper: TextStore | None = None,
        *,
        actor: Actor = SYSTEM,
        spawn_answer: StoredAnswer | None = None,
        reservation: Reservation | None = None,
        answer: StoredAnswer | None = None,
        above: RequesterTexts | None = None,
    ) -> Appended[None]:
        """Decide commands to a run, one after the other, and record what follows in one append.

        `spawn_answer` is what the spawn's own caller is told, `answer` this command's caller.
        `above` are texts that go to the session of the run's requester.
        """
        asked = RunCommands(run, commands, keeper)
        return await self.record_all(
            (asked,),
            actor=actor,
            spawn_answer=spawn_answer,
            reservation=reservation,
            answer=answer,
            above=above,
        )

    async def record_all(
        self,
        asked: Sequence[RunCommands],
        *,
        actor: Actor = SYSTEM,
        spawn_answer: StoredAnswer | None = None,
        reservation: Reservation | None = None,
        answer: StoredAnswer | None = None,
        above: RequesterTexts | None = None,
        must_fit: Callable[[CascadeState], None] | None = None,
    ) -> Appended[None]:
        """The same for several runs of one requester, decided in their order and recorded in one
        append. `must_fit` may raise `Rejected` before anything is decided."""
        first = asked[0].run

        def decide(world: World) -> Decision[None]:
            family = CascadeState(world.runs, world.sessions)
            if must_fit is not None:
                must_fit(family)
            if above is not None:
                above.must_fit(world.sessions.get(first.requester.session_key))
            changes = decide_for_all(family, [(one.run.run_id, one.commands) for one in asked])
            told = spawn_answer if changes else None
            kept = [text for one in asked if one.keeper and changes for text in one.keeper.kept]
            return Decision(
                None,
                changes,
                (*kept, *(above.kept if above else ())),
                above.keys if above else (),
                answer=answer,
                run_answer=(batch_members(first)[0], told) if told else None,
            )

        return await self.log.submit(
            Submission(
                command_id=self.identities.event_id(),
                streams=tuple(dict.fromkeys(one for each in asked for one in streams_of(each.run))),
                decide=decide,
                provenance=provenance_of(first, actor),
                reservation=reservation,
                about=frozenset(one.run.run_id for one in asked),
            )
        )

    async def run(self, run_id: UUID) -> Run:
        """A run that is known to be on record."""
        run = await self.registry.run(run_id)
        assert run is not None
        return run


def provenance_of(run: Run, actor: Actor = SYSTEM) -> Provenance:
    """Where an append about a run comes from."""
    return Provenance(
        actor=actor,
        correlation=run.requester.root_session_key,
        run_id=run.run_id,
        config_revision=run.config_revision,
    )
