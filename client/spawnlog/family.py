# Written by `make client` from `async_family.py`.
"""Objects that the blocking client returns: a run, a session with its runs, a live stream."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack
from uuid import uuid4

from spawnlog.bodies import RequesterBody, SpawnChoices
from spawnlog.core.errors import (
    InvalidSettingError,
    ServerUnreachableError,
    SpawnlogError,
    SpawnRefusedError,
)
from spawnlog.core.event_stream import EventStream
from spawnlog.core.stages import (
    WaitUntil,
    continuing_run_id,
    require_result,
    require_wait_seconds,
)
from spawnlog.core.wait import wait_for_message, wait_for_run

if TYPE_CHECKING:
    from spawnlog.client import Client
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


class SpawnedRun:
    """A run and its operations: wait, read the result, stop, send a message.

    The run belongs to the server. It ends by itself, by a stop or by its time limit; dropping this
    object or cancelling a wait does not affect it.

    Two objects are equal if they were created for the same run id. This also holds if `run_id`
    changed because another run took the place of a run that yielded or was steered.

    Attributes:
        run_id: Id of the run that this object now represents.
        child_session_key: Session key of the child; None until the first read if the run came from
            `client.run`.
        view: The last state that was read; None before the first read.
        warnings: Warnings of the spawn.
    """

    def __init__(
        self,
        client: Client,
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
        if not isinstance(other, SpawnedRun):
            return NotImplemented
        return self._made_for == other._made_for

    def __hash__(self) -> int:
        return hash(self._made_for)

    def refresh(self) -> RunView | RunMetadataView:
        """Read the current state of the run, store it in `view` and return it."""
        return self._seen(self.client.get_run(self.run_id))

    def wait(
        self, until: WaitUntil = "announced", *, seconds: float | None = None
    ) -> RunView | RunMetadataView:
        """Wait until the run has reached a stage, then return its state.

        A refused run reaches every stage. The wait survives a restart of the server.

        Args:
            until: `started`, `ended`, `announced` (the result is in the requester's inbox) or
                `archived`.
            seconds: Timeout in seconds. Default: none.

        Raises:
            WaitTimeoutError: The run did not reach the stage in time. It continues.
            RunFailedError: The message was dropped before it became a run.
            ServerUnreachableError: The server is away for more than a minute.
            InvalidSettingError: `seconds` is negative.
        """
        require_wait_seconds(seconds)
        began = time.monotonic()
        if self._is_queued and self.child_session_key is not None:
            wait_for_message(self.client, self.run_id, self.child_session_key, seconds)
            self._is_queued = False
        left = _left(seconds, began)
        return self._seen(wait_for_run(self.client, self.run_id, until, left))

    def result(self, *, seconds: float | None = None) -> str | None:
        """Wait until the run is announced, then return the text of its result.

        If the run yielded or was steered, wait for the run that took its place. From then on this
        object represents that run.

        Args:
            seconds: Timeout in seconds over all waits. Default: none.

        Returns:
            The text. None if the run has no text, or if the token lacks the scope `content`.

        Raises:
            RunFailedError: The run ended without success, or was refused.
            WaitTimeoutError: The run was not announced in time. It continues.
            ServerUnreachableError: The server is away for more than a minute.

        Example:
            try:
                text = run.result(seconds=60)
            except UnsuccessfulRun as failure:
                print(failure)
        """
        require_wait_seconds(seconds)
        began = time.monotonic()
        while True:
            run = self.wait("announced", seconds=_left(seconds, began))
            following = continuing_run_id(run)
            if following is None:
                return require_result(run)
            self.run_id = following

    def stop(self, reason: str | None = None) -> StoppedAnswer:
        """Stop the run and its descendants.

        The answer may come before their processes are gone. To wait for that, call `wait("ended")`.

        Args:
            reason: Text that is recorded with the stop.
        """
        return self.client.stop_run(self.run_id, reason=reason)

    def send(self, message: str) -> SpawnedRun:
        """Send a message to the run's session and return the run that the message becomes.

        If the run before it is not over, the message waits in the session's queue. `wait` and
        `result` of the returned run wait for that too.

        Raises:
            SpawnRefusedError: A rule refused the message.
        """
        sent = self.client.send_message(self.run_id, message)
        return SpawnedRun(
            self.client,
            sent.run_id,
            sent.child_session_key,
            is_queued=sent.status == "queued",
            warnings=getattr(sent, "warnings", ()),
        )

    def steer(self, message: str) -> SpawnedRun | FinishedAnswer:
        """End the current turn and continue the session with a message.

        Returns:
            The run that takes its place. If the run was already over, the answer that says so; then
            nothing happened.
        """
        sent: Any = self.client.send_message(self.run_id, message, mode="steer")
        if sent.status == "done":
            return sent  # type: ignore[no-any-return]
        return SpawnedRun(self.client, sent.run_id, sent.child_session_key, is_queued=True)

    def transcript(self, *, tools: bool | None = None) -> Iterator[TranscriptEntryView]:
        """Yield the transcript entries recorded so far.

        Args:
            tools: Include calls of tools and their results.
        """
        return self.client.transcript(self.run_id, tools=tools)

    def events(self, *, after: int | None = None) -> Iterator[EventWithTexts | EventView]:
        """Yield the events of the run recorded so far.

        Args:
            after: Position after which to begin. Default: the first event.
        """
        return self.client.run_events(self.run_id, after=after)

    def _seen(self, run: RunView | RunMetadataView) -> RunView | RunMetadataView:
        self.view = run
        self.child_session_key = run.child_session_key
        return run


class Family:
    """A session and the runs that this object spawned for it.

    When the block is left, the runs continue and are announced in the session's inbox. With
    `stop_on_error`, an exception that leaves the block first stops the runs that are not over.

    Attributes:
        requester: The requester that each spawn sends.
    """

    def __init__(
        self, client: Client, session: str | RequesterBody, *, stop_on_error: bool = False
    ) -> None:
        self.client = client
        self.requester: RequesterBody = (
            {"sessionKey": session} if isinstance(session, str) else session
        )
        if not self.requester.get("sessionKey"):
            raise InvalidSettingError("name the session, such as agent:main:main or current")
        self.stop_on_error = stop_on_error
        self._runs: list[SpawnedRun] = []
        self._unanswered: dict[str, Mapping[str, Any]] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.key!r})"

    @property
    def key(self) -> str:
        """Return the session key, as given."""
        return self.requester["sessionKey"]

    @property
    def runs(self) -> tuple[SpawnedRun, ...]:
        """Return the spawned runs, in order."""
        return tuple(self._runs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None and self.stop_on_error:
            self._stop_runs(error)

    def spawn(self, task: str, **choices: Unpack[SpawnChoices]) -> SpawnedRun:
        """Spawn a child of the session and return its run.

        Args:
            task: Task of the child.
            choices: Options of `Client.spawn` by the same names: label, agent_id, model, thinking,
                run_timeout_seconds, attachments, shared_context, depends_on, idempotency_key and so
                on. `SpawnChoices` lists all of them.

        Raises:
            SpawnRefusedError: A rule refused the spawn. The refusal is recorded.

        Example:
            run = family.spawn("Summarize the report", run_timeout_seconds=600)
        """
        (run,) = self._spawned({**choices, "task": task})
        return run

    def spawn_all(self, tasks: Sequence[str], **choices: Unpack[SpawnChoices]) -> list[SpawnedRun]:
        """Spawn one child for each task, in parallel. Either all are accepted, or none is.

        Args:
            tasks: Task of each child.
            choices: Options of every child, as `spawn` takes them.

        Returns:
            The runs, in the order of the tasks.

        Raises:
            SpawnRefusedError: A rule refused one of the spawns, and so all of them.
            InvalidSettingError: `tasks` is a single text, or the family has too many runs.
        """
        if isinstance(tasks, str):
            raise InvalidSettingError("spawn_all takes a list of tasks; spawn takes one")
        return self._spawned({**choices, "task": list(tasks), "parallel": True})

    def stop(self, reason: str | None = None) -> SessionStoppedAnswer:
        """Stop the session: its own run, if it has one, and its descendants."""
        return self.client.stop_session(self.key, reason=reason)

    def _spawned(self, members: Mapping[str, Any]) -> list[SpawnedRun]:
        if len(self._runs) + len(self._unanswered) >= SPAWNED_MAX:
            raise InvalidSettingError(
                f"a family has {SPAWNED_MAX} runs at most: open another family"
            )
        key = members.get("idempotency_key")
        key = str(uuid4()) if key is None else key
        spawn = {**members, "requester": self.requester, "idempotency_key": key}
        if self.stop_on_error:
            self._unanswered[key] = spawn
        try:
            accepted = self.client.spawn(**spawn)
        except (SpawnRefusedError, InvalidSettingError):
            self._unanswered.pop(key, None)
            raise
        self._unanswered.pop(key, None)
        made = [
            SpawnedRun(
                self.client, spawned.run_id, spawned.child_session_key, warnings=spawned.warnings
            )
            for spawned in accepted.runs
        ]
        self._runs += made
        return made

    def _stop_runs(self, error: BaseException) -> None:
        """Stop the spawned runs. Add the reason why a run could not be stopped to `error` as a
        note."""
        if not self._stop_each([run.run_id for run in self._runs], error):
            return
        for spawn in self._unanswered.values():
            # If the lost spawn was accepted, the same key returns its run. If not, this spawns a
            # run that is stopped at once.
            try:
                accepted = self.client.spawn(**spawn)
            except SpawnRefusedError:
                continue
            except SpawnlogError as failure:
                error.add_note(
                    "a run whose spawn was not answered could not be stopped and may continue:"
                    f" {failure.message}"
                )
                if isinstance(failure, ServerUnreachableError):
                    return
                continue
            if not self._stop_each([spawned.run_id for spawned in accepted.runs], error):
                return

    def _stop_each(self, run_ids: Sequence[str], error: BaseException) -> bool:
        """Stop these runs. Return False if the server does not answer."""
        # Only the type of the error: its text may contain secrets.
        reason = f"the program that spawned it ended with {type(error).__name__}"
        for number, run_id in enumerate(run_ids, 1):
            try:
                self.client.stop_run(run_id, reason=reason)
            except ServerUnreachableError as failure:
                # The other stops would fail too, and each would take as long.
                left = len(run_ids) - number
                others = f" and {left} more" if left else ""
                error.add_note(f"run {run_id}{others} could not be stopped: {failure.message}")
                return False
            except SpawnlogError as failure:
                error.add_note(f"run {run_id} could not be stopped: {failure.message}")
        return True


class FollowedEvents(Generic[T]):
    """Live stream of events, without end.

    Iterate over it with `for`. Leave its `with`, or call `close`, to close the
    connection.
    """

    def __init__(self, client: Client, stream: EventStream[T]) -> None:
        self._client = client
        self._stream = stream
        self._is_closed = False
        self._events = client._stream_events(stream)

    @property
    def position(self) -> int | None:
        """Position up to which every event was yielded or filtered out; None before the first
        answer.

        Pass it as `after` to continue the stream in another program.
        """
        return self._stream.position

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        while True:
            try:
                return next(self._events)
            except StopIteration:
                if self._is_closed:
                    raise
                # A cancelled step ended the connection, not the stream: resume from the position
                # of the stream.
                self._events = self._client._stream_events(self._stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. The iteration ends."""
        self._is_closed = True
        self._events.close()


def _left(seconds: float | None, began: float) -> float | None:
    """Return the seconds left of a wait: at least one millisecond, or None without a limit."""
    return None if seconds is None else max(seconds - (time.monotonic() - began), 0.001)
