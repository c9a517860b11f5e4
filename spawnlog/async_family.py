"""What a client that awaits gives out: a run, a session whose family is spawned, a live stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack

from spawnlog.core.feed import Feed
from spawnlog.core.handle import FamilyHandle, RunHandle
from spawnlog.core.wait import WaitUntil
from spawnlog.operations import runs
from spawnlog.operations.bodies import SpawnChoices

if TYPE_CHECKING:
    from application.queries.views.event import EventView, EventWithTexts
    from application.queries.views.run import RunMetadataView, RunView
    from application.queries.views.run_records import TranscriptEntryView
    from infrastructure.inbound.http.schemas.answers import (
        FinishedAnswer,
        SessionStoppedAnswer,
        StoppedAnswer,
    )
    from spawnlog.async_client import AsyncClient

T = TypeVar("T")


class AsyncSpawnedRun(RunHandle):
    __doc__ = RunHandle.__doc__

    client: AsyncClient

    async def refresh(self) -> RunView | RunMetadataView:
        """How the run reads now; kept in `view`."""
        return await self.client.perform(self._refresh())

    async def wait(
        self, until: WaitUntil = "announced", *, seconds: float | None = None
    ) -> RunView | RunMetadataView:
        """The run once it is `started`, `ended`, `announced` or `archived`, or was refused.
        WaitTimeout when it takes longer than `seconds`; the run goes on."""
        return await self.client.perform(self._wait(until, seconds=seconds))

    async def result(self, *, seconds: float | None = None) -> str | None:
        """The text that the run came to, waited for; None when there is none, or when the token has
        no scope `content`. Of a run that yielded or was steered it is that of the run in its place.
        UnsuccessfulRun for any end but success."""
        return await self.client.perform(self._result(seconds=seconds))

    async def stop(self, reason: str | None = None) -> StoppedAnswer:
        """Stop the run and all below it; `wait("ended")` until its processes are gone."""
        return await self.client.perform(self._stop(reason))

    async def send(self, message: str) -> AsyncSpawnedRun:
        """Go on with the run's session: the run that the message becomes."""
        return await self.client.perform(self._send(message))

    async def steer(self, message: str) -> AsyncSpawnedRun | FinishedAnswer:
        """End the run and go on with the message: the run in its place. One that was over stays as
        it is, and the answer says so."""
        return await self.client.perform(self._steer(message))

    def transcript(self, *, tools: bool | None = None) -> AsyncIterator[TranscriptEntryView]:
        """What the child said so far."""
        return self.client.items(runs.get_run_transcript(self.run_id, tools=tools))

    def events(self, *, after: int | None = None) -> AsyncIterator[EventWithTexts | EventView]:
        """What is on record of the run so far."""
        return self.client.items(runs.list_run_events(self.run_id, after=after))


class AsyncFamily(FamilyHandle):
    __doc__ = FamilyHandle.__doc__

    client: AsyncClient

    @property
    def runs(self) -> tuple[AsyncSpawnedRun, ...]:
        """The runs that were spawned here, in order."""
        return tuple(self._runs)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None and self.stop_on_error:
            await self.client.perform(self._stop_runs(error))

    async def spawn(self, task: str, **choices: Unpack[SpawnChoices]) -> AsyncSpawnedRun:
        """Spawn a child of the session. RefusalProblem with its rule when that is not permitted."""
        (run,) = await self.client.perform(
            self._spawned(AsyncSpawnedRun, {**choices, "task": task})
        )
        return run  # type: ignore[no-any-return]

    async def spawn_all(
        self, tasks: Sequence[str], **choices: Unpack[SpawnChoices]
    ) -> list[AsyncSpawnedRun]:
        """Spawn a child for each task, side by side: all are accepted, or none is."""
        members: dict[str, Any] = {**choices, "task": list(tasks), "parallel": True}
        return await self.client.perform(self._spawned(AsyncSpawnedRun, members))

    async def stop(self, reason: str | None = None) -> SessionStoppedAnswer:
        """Stop the session: its own run, if it has one, and all below it."""
        return await self.client.perform(self._stop(reason))


class AsyncFollowedEvents(Generic[T]):
    """Events as they are recorded, without end: iterate over it with `async for`, and leave its
    `async with` to let go."""

    def __init__(self, client: AsyncClient, feed: Feed[T]) -> None:
        self._client = client
        self._feed = feed
        self._is_closed = False
        self._events = client.feed_events(feed)

    @property
    def position(self) -> int | None:
        """Up to where everything was given, also what was filtered: the `after` with which another
        program goes on."""
        return self._feed.position

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        while True:
            try:
                return await anext(self._events)
            except StopAsyncIteration:
                if self._is_closed:
                    raise
                # A step before was cancelled, which ends the connection and not the stream: the
                # feed knows how far it is.
                self._events = self._client.feed_events(self._feed)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connection."""
        self._is_closed = True
        await self._events.aclose()
