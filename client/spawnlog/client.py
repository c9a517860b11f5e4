# Written by `make client` from `async_client.py`.
"""The client that blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spawnlog.bodies import RequesterBody
from spawnlog.core.feed import ABSENT_SECONDS_MAX, Feed, event_stream_request
from spawnlog.family import Family, FollowedEvents, SpawnedRun
from spawnlog.methods import Methods

if TYPE_CHECKING:
    from spawnlog.models import EventView


class Client(Methods):
    """Client of one server that blocks. Use it in a `with`, or `close` it.

    The server is that of `url`, else SPAWNLOG_URL, else the one that runs on the data directory
    (`data_dir`, else SPAWNLOG_DATA_DIR, else this user's), else port 8700 of this machine. The
    token is SPAWNLOG_TOKEN, else that of the data directory, which is sent only to its servers and
    to this machine. An `address` replaces both. Every method raises a SpawnlogError if it has no
    answer.

    It may be shared by threads.
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
    ) -> FollowedEvents[EventView]:
        """Follow the events as they are recorded, each once and in order, without end.

        A lost connection is resumed where it was lost.

        Args:
            after: Position after which to begin. Default: now.
            types: Only events of these types.
            run_id: Only events of this run.
            tree: Only events of the tree below this root session.
            actor: Only events of this actor.
            absent_seconds_max: How long the server may be away before its failure is raised.
        """
        request = event_stream_request(
            after=after, types=types, run_id=run_id, tree=tree, actor=actor
        )
        return FollowedEvents(self, Feed(request, absent_seconds_max=absent_seconds_max))

    def session(self, session: str | RequesterBody, *, stop_on_error: bool = False) -> Family:
        """Return a session, to spawn its family in a `with`.

        Its runs continue when the block is left.

        Args:
            session: Key of the session, or a whole requester.
            stop_on_error: Stop the runs that are not over if an exception leaves the block.
        """
        return Family(self, session, stop_on_error=stop_on_error)

    def run(self, run_id: str) -> SpawnedRun:
        """Return a run that exists already, to wait for it or to send it messages."""
        return SpawnedRun(self, run_id)
