"""Steps before a child's folder, made in memory for the spawn of a case."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration
from application.ports.hooks import HookAnswer, HookError
from application.ports.runtimes import TranscriptEntry
from application.ports.transcripts import Transcripts
from application.steps.context_engine import ContextEngineStep
from application.steps.context_fork import ContextForkStep
from application.steps.step import StepMaker
from application.steps.thread_binding import ThreadBindingStep
from domain.configuration.configuration import Configuration
from domain.delivery.hook_payloads import HookCall
from domain.delivery.provided_transcript import ProvidedEntry, line_of, text_of_entries
from domain.session.events import TranscriptProvided
from domain.session.state import Session
from domain.values.record import ContentRef
from tests.support.builders.storytelling import observed, ref, session_of

CONVERSATION = text_of_entries([line_of(ProvidedEntry("text", {"text": "hello"}))])


@dataclass
class Beyond:
    """Everything that the steps use: the requester's record, its texts, the configuration,
    transcripts and hooks.
    """

    requester: Session
    texts_kept: Mapping[UUID, str]
    forked: tuple[TranscriptEntry, ...] | None = None
    asked: list[HookCall] = field(default_factory=list)

    async def session(self, key: str, *, at: int | None = None) -> Session | None:
        assert at is not None
        return self.requester if key == self.requester.session_key else None

    async def text(self, content: ContentRef) -> str | None:
        return self.texts_kept.get(content.id)

    async def previews(self, refs: Iterable[ContentRef]) -> Mapping[UUID, str]:
        return {
            reference.id: self.texts_kept[reference.id]
            for reference in refs
            if reference.id in self.texts_kept
        }

    async def at(self, revision: int) -> PinnedConfiguration:
        return PinnedConfiguration(revision, Configuration(), {})

    async def ask(self, pinned: PinnedConfiguration, call: HookCall) -> HookAnswer:
        self.asked.append(call)
        return HookAnswer(200)

    def fork_snapshot_place(self, session_id: UUID, agent_id: str) -> tuple[str, str]:
        return "/srv", f"{agent_id}/{session_id}"

    async def drop_fork_snapshot(self, session_id: UUID, agent_id: str) -> bool:
        return False

    async def fork(self, run_id: UUID, epoch: int, entries: tuple[TranscriptEntry, ...]) -> bool:
        self.forked = entries
        return True

    async def write_fork_snapshot(self, run_id: UUID, **_: Any) -> str:
        return "/srv"


@dataclass(frozen=True)
class _Work:
    registry: Beyond
    contents: Beyond
    configurations: Beyond


def beyond(parent: Mapping[str, Any], origin: str) -> Beyond:
    """Return the surroundings, with a transcript of the requester if the case has one."""
    result = ref("transcript")
    provided = TranscriptProvided(
        entries=1, tokens=parent.get("totalTokens"), content=result, by="admin"
    )
    session = session_of(observed(), *([provided] if "sessionId" in parent else []))
    return Beyond(session, {result.id: CONVERSATION, ref("origin").id: origin})


class Failing(Beyond):
    """Hooks fail with this text."""

    def __init__(self, text: str) -> None:
        super().__init__(session_of(observed()), {})
        self.text_said = text

    async def session(self, key: str, *, at: int | None = None) -> Session | None:
        return self.requester

    async def ask(self, pinned: PinnedConfiguration, call: HookCall) -> HookAnswer:
        raise HookError(self.text_said)


def context_engine(outside: Beyond) -> ContextEngineStep:
    """Return the last step alone."""
    return ContextEngineStep(cast("UnitOfWork", _Work(outside, outside, outside)), outside)


def makers(outside: Beyond) -> tuple[StepMaker, ...]:
    """Return the steps before and after the fork, in order."""
    work = cast("UnitOfWork", _Work(outside, outside, outside))
    return (
        ThreadBindingStep(work, outside),
        ContextForkStep(work, cast("Transcripts", outside)),
        ContextEngineStep(work, outside),
    )
