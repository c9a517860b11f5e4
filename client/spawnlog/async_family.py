"""Objects that the client that awaits returns: a run, a session with its runs, a live stream."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack
from uuid import uuid4

from spawnlog.bodies import RequesterBody, SpawnChoices
from spawnlog.core.async_wait import wait_for_message, wait_for_run
from spawnlog.core.errors import InvalidSetting, RefusalProblem, ServerUnreachable, SpawnlogError
from spawnlog.core.feed import Feed
from spawnlog.core.stages import (
    WaitUntil,
    continuing_run_id,
    require_result,
    require_wait_seconds,
)

if TYPE_CHECKING:
    from spawnlog.async_client import AsyncClient
    from spawnlog.models import (
        EventView,
        EventWithTexts,
        FinishedAnswer,
        RunMetadataView,
        RunView,
        SessionStoppedAnswer,
        StoppedAnswer,
        TranscriptEntryView,
    )

T = TypeVar("T")

SPAWNED_MAX = 10_000


class AsyncSpawnedRun:
    """A run that was spawned. `view` is its last state that was read, None until then.

    A run ends by a stop, its time limit or by itself. Dropping this object, or cancelling a wait,
    changes nothing. Two objects are equal if they were made for the same run, also when one of them
    stands for the run in its place by now.
    """

    def __init__(
        self,
        client: AsyncClient,
        run_id: str,
        child_session_key: str | None = None,
        *,
        is_queued: bool = False,
        warnings: Sequence[str] = (),
    ) -> None:
        self.client = client
        self.run_id = run_id
        self._made_for = run_id
        self.child_session_key = child_session_key
        self.view: RunView | RunMetadataView | None = None
        self.warnings = tuple(warnings)
        self._is_queued = is_queued

    def __repr__(self) -> str:
        status = "" if self.view is None else f", status={self.view.status!r}"
        return f"{type(self).__name__}({self.run_id!r}{status})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AsyncSpawnedRun):
            return NotImplemented
        return self._made_for == other._made_for

    def __hash__(self) -> int:
        return hash(self._made_for)

    async def refresh(self) -> RunView | RunMetadataView:
        """Return the run as it is now, and keep it in `view`."""
        return self._seen(await self.client.get_run(self.run_id))

    async def wait(
        self, until: WaitUntil = "announced", *, seconds: float | None = None
    ) -> RunView | RunMetadataView:
        """Return the run when it has reached a stage, or was refused.

        Args:
            until: `started`, `ended`, `announced` (its result is in its requester's inbox) or
                `archived`.
            seconds: How long to wait at most. Default: without limit.

        Raises:
            WaitTimeout: It takes longer. The run continues.
        """
        require_wait_seconds(seconds)
        began = time.monotonic()
        if self._is_queued and self.child_session_key is not None:
            await wait_for_message(self.client, self.run_id, self.child_session_key, seconds)
            self._is_queued = False
        left = _left(seconds, began)
        return self._seen(await wait_for_run(self.client, self.run_id, until, left))

    async def result(self, *, seconds: float | None = None) -> str | None:
        """Return the text of the result when the run is announced.

        If the run yielded or was steered, it is that of the run in its place, which this object
        stands for from then on. None if there is no text, or the token has no scope `content`.

        Raises:
            UnsuccessfulRun: Any end but success.
            WaitTimeout: It takes longer than `seconds`. The run continues.
        """
        require_wait_seconds(seconds)
        began = time.monotonic()
        while True:
            run = await self.wait("announced", seconds=_left(seconds, began))
            following = continuing_run_id(run)
            if following is None:
                return require_result(run)
            self.run_id = following

    async def stop(self, reason: str | None = None) -> StoppedAnswer:
        """Stop the run and its descendants. `wait("ended")` until its processes are gone."""
        return await self.client.stop_run(self.run_id, reason=reason)

    async def send(self, message: str) -> AsyncSpawnedRun:
        """Continue the run's session with a message. Return the run that the message becomes; it
        waits until the one before it is over."""
        sent = await self.client.send_message(self.run_id, message)
        return AsyncSpawnedRun(
            self.client,
            sent.run_id,
            sent.child_session_key,
            is_queued=sent.status == "queued",
            warnings=getattr(sent, "warnings", ()),
        )

    async def steer(self, message: str) -> AsyncSpawnedRun | FinishedAnswer:
        """End the run at work and continue with the message. Return the run in its place, or the
        answer that it was over already."""
        sent: Any = await self.client.send_message(self.run_id, message, mode="steer")
        if sent.status == "done":
            return sent  # type: ignore[no-any-return]
        return AsyncSpawnedRun(self.client, sent.run_id, sent.child_session_key, is_queued=True)

    def transcript(self, *, tools: bool | None = None) -> AsyncIterator[TranscriptEntryView]:
        """Yield the entries of the transcript so far."""
        return self.client.transcript(self.run_id, tools=tools)

    def events(self, *, after: int | None = None) -> AsyncIterator[EventWithTexts | EventView]:
        """Yield the events of the run so far."""
        return self.client.run_events(self.run_id, after=after)

    def _seen(self, run: RunView | RunMetadataView) -> RunView | RunMetadataView:
        self.view = run
        self.child_session_key = run.child_session_key
        return run


class AsyncFamily:
    """A session and the runs that are spawned for it, in `runs`.

    The runs continue when its block is left, and are announced in the session's inbox. With
    `stop_on_error` those that are not over are stopped if an exception leaves the block.
    """

    def __init__(
        self, client: AsyncClient, session: str | RequesterBody, *, stop_on_error: bool = False
    ) -> None:
        self.client = client
        self.requester: RequesterBody = (
            {"sessionKey": session} if isinstance(session, str) else session
        )
        if not self.requester.get("sessionKey"):
            raise InvalidSetting("name the session, such as agent:main:main or current")
        self.stop_on_error = stop_on_error
        self._runs: list[AsyncSpawnedRun] = []
        self._unanswered: dict[str, Mapping[str, Any]] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.key!r})"

    @property
    def key(self) -> str:
        """The session's key, as it was given."""
        return self.requester["sessionKey"]

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
            await self._stop_runs(error)

    async def spawn(self, task: str, **choices: Unpack[SpawnChoices]) -> AsyncSpawnedRun:
        """Spawn a child of the session.

        Args:
            task: What the child is to do.
            choices: Options of `Client.spawn`, each with its name there: label, agent_id, model,
                thinking, run_timeout_seconds, attachments, shared_context, depends_on,
                idempotency_key and so on. `SpawnChoices` lists all of them.

        Raises:
            RefusalProblem: A rule does not permit it.
        """
        (run,) = await self._spawned({**choices, "task": task})
        return run

    async def spawn_all(
        self, tasks: Sequence[str], **choices: Unpack[SpawnChoices]
    ) -> list[AsyncSpawnedRun]:
        """Spawn a child for each task, in parallel: all are accepted, or none is.

        Args:
            tasks: What each child is to do.
            choices: Options of every child, as `spawn` takes them.
        """
        if isinstance(tasks, str):
            raise InvalidSetting("spawn_all takes a list of tasks; spawn takes one")
        return await self._spawned({**choices, "task": list(tasks), "parallel": True})

    async def stop(self, reason: str | None = None) -> SessionStoppedAnswer:
        """Stop the session: its own run, if it has one, and its descendants."""
        return await self.client.stop_session(self.key, reason=reason)

    async def _spawned(self, members: Mapping[str, Any]) -> list[AsyncSpawnedRun]:
        if len(self._runs) + len(self._unanswered) >= SPAWNED_MAX:
            raise InvalidSetting(f"a family has {SPAWNED_MAX} runs at most: open another one")
        key = members.get("idempotency_key")
        key = str(uuid4()) if key is None else key
        spawn = {**members, "requester": self.requester, "idempotency_key": key}
        if self.stop_on_error:
            self._unanswered[key] = spawn
        try:
            accepted = await self.client.spawn(**spawn)
        except (RefusalProblem, InvalidSetting):
            self._unanswered.pop(key, None)
            raise
        self._unanswered.pop(key, None)
        made = [
            AsyncSpawnedRun(self.client, one.run_id, one.child_session_key, warnings=one.warnings)
            for one in accepted.runs
        ]
        self._runs += made
        return made

    async def _stop_runs(self, error: BaseException) -> None:
        """Stop the runs that were spawned here. The reason why one could not be stopped is a note
        on `error`, which is raised in any case."""
        if not await self._stop_each([run.run_id for run in self._runs], error):
            return
        for spawn in self._unanswered.values():
            # The same key is the same run, if there is one; else this one ends where it begins.
            try:
                accepted = await self.client.spawn(**spawn)
            except RefusalProblem:
                continue
            except SpawnlogError as failure:
                error.add_note(
                    "a run whose spawn was not answered could not be stopped, and may go on:"
                    f" {failure.message}"
                )
                if isinstance(failure, ServerUnreachable):
                    return
                continue
            if not await self._stop_each([one.run_id for one in accepted.runs], error):
                return

    async def _stop_each(self, run_ids: Sequence[str], error: BaseException) -> bool:
        """Stop these runs. Return False if the server does not answer."""
        # By the kind alone: its text may hold secrets.
        reason = f"the program that spawned it ended with {type(error).__name__}"
        for number, run_id in enumerate(run_ids, 1):
            try:
                await self.client.stop_run(run_id, reason=reason)
            except ServerUnreachable as failure:
                # The server would not hear of the others either, and each would take as long.
                left = len(run_ids) - number
                others = f" and {left} more" if left else ""
                error.add_note(f"run {run_id}{others} could not be stopped: {failure.message}")
                return False
            except SpawnlogError as failure:
                error.add_note(f"run {run_id} could not be stopped: {failure.message}")
        return True


class AsyncFollowedEvents(Generic[T]):
    """Events as they are recorded, without end. Iterate over it with `async for`; leave its
    `async with` to close the connection."""

    def __init__(self, client: AsyncClient, feed: Feed[T]) -> None:
        self._client = client
        self._feed = feed
        self._is_closed = False
        self._events = client._feed_events(feed)

    @property
    def position(self) -> int | None:
        """Position up to which all events were yielded or filtered: the `after` with which another
        program continues."""
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
                # A step before was interrupted, which ends the connection and not the stream: the
                # feed knows its position.
                self._events = self._client._feed_events(self._feed)

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
        """Close the connection."""
        self._is_closed = True
        await self._events.aclose()


def _left(seconds: float | None, began: float) -> float | None:
    """Return how much is left of a wait; never nothing."""
    return None if seconds is None else max(seconds - (time.monotonic() - began), 0.001)
