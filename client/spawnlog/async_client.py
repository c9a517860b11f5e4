"""Asynchronous client of one server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spawnlog.async_family import AsyncFamily, AsyncFollowedEvents, AsyncSpawnedRun
from spawnlog.async_methods import AsyncMethods
from spawnlog.bodies import RequesterBody
from spawnlog.core.event_stream import ABSENT_SECONDS_MAX, EventStream, event_stream_request

if TYPE_CHECKING:
    from spawnlog.models import EventView


class AsyncClient(AsyncMethods):
    """Asynchronous client of one server.

    Use it in an `async with`, or call `close`. It may be shared by the tasks of one event loop. If
    a method gets no answer, it raises a `SpawnlogError`.

    Every operation of the server is a method. `session` spawns runs and waits for them, `run`
    continues with an existing run, and `follow_events` is the live stream.

    Args:
        url: Address of the server. Default: SPAWNLOG_URL, else the server that runs on the data
            directory, else port 8700 of this machine.
        token: Token to send. Default: SPAWNLOG_TOKEN, else the admin token of the data directory.
            That one is sent only to servers of the directory and to this machine.
        data_dir: Data directory in which to look for a server and its token. Default:
            SPAWNLOG_DATA_DIR, else the data directory of this user.
        address: Address and token together; replaces the three arguments above.
        retries: Limits of the retries of each request.
        answer_seconds: Timeout of an answer in seconds. A request with `wait` gets that much
            longer.
        agent: Value of the `User-Agent` header.

    Raises:
        InvalidSettingError: The address, the token or a file is invalid.

    Example:
        async with AsyncClient() as client:
            async with client.session("agent:main:main") as family:
                run = await family.spawn("Summarize the report", label="summary")
                print(await run.result(seconds=60))
    """

    def follow_events(
        self,
        *,
        after: int | None = None,
        types: Sequence[str] = (),
        run_id: str | None = None,
        tree: str | None = None,
        actor: str | None = None,
        absent_seconds_max: float = ABSENT_SECONDS_MAX,
    ) -> AsyncFollowedEvents[EventView]:
        """Return a live stream of events: each once, in order, without end.

        If the connection is lost, the stream resumes after the last event.

        Args:
            after: Position after which to begin. Default: only events recorded from now on.
            types: Only events of these types. Default: all.
            run_id: Only events of this run.
            tree: Only events of the tree below this root session.
            actor: Only events of this actor.
            absent_seconds_max: Maximum time in seconds that the server may be away, as in a
                restart. After that the last failure is raised.

        Returns:
            An iterator for `async for`. Its `position` is the `after` with which to continue later.

        Raises:
            ServerUnreachableError: While iterating: there was no connection yet, or the server is
                away for too long.
            Problem: While iterating: the server refused the request.

        Example:
            async with client.follow_events(types=["RunEnded"]) as events:
                async for event in events:
                    print(event.position, event.run_id)
        """
        request = event_stream_request(
            after=after, types=types, run_id=run_id, tree=tree, actor=actor
        )
        return AsyncFollowedEvents(
            self, EventStream(request, absent_seconds_max=absent_seconds_max)
        )

    def session(self, session: str | RequesterBody, *, stop_on_error: bool = False) -> AsyncFamily:
        """Return a session in which to spawn runs.

        The server is not asked; the first spawn registers the session if it is new. When the block
        is left, the runs continue.

        Args:
            session: Session key such as `agent:main:main`, `current` for the session of a child's
                token, or a whole requester.
            stop_on_error: If an exception leaves the block, stop the runs that are not over.

        Raises:
            InvalidSettingError: The requester has no session key.

        Example:
            async with client.session("agent:main:main", stop_on_error=True) as family:
                runs = await family.spawn_all(["Read the tides", "Read the log"])
        """
        return AsyncFamily(self, session, stop_on_error=stop_on_error)

    def run(self, run_id: str) -> AsyncSpawnedRun:
        """Return an existing run, to wait for it or to send it messages.

        The server is not asked: an unknown id raises `NotFoundError` at the first call.
        """
        return AsyncSpawnedRun(self, run_id)
