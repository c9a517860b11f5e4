"""The active configuration of the log, for a server that starts without a file."""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.configuration.places import BUILT_IN
from domain.configuration.problems import ConfigurationError
from domain.event_types import ConfigurationActivated
from domain.values.record import CONFIG_STREAM
from infrastructure.contract.errors import UserError
from infrastructure.outbound.configuration.load import LoadedConfiguration, load_recorded
from infrastructure.outbound.log.codec.mapper import EventMapper
from infrastructure.outbound.log.read.events import newest_of_stream
from infrastructure.outbound.log.schema.connections import open_connection
from infrastructure.outbound.log.schema.format import format_of, require_known_format
from spawnlog.core.data_directory import ServerEntry


@dataclass(frozen=True, slots=True)
class ActiveRevision:
    """The active revision of a log.

    `loaded` is its file if the recorded path still has it, else the recorded content.
    """

    revision: int
    loaded: LoadedConfiguration


async def read_active_revision(conninfo: str) -> ActiveRevision | None:
    """Return the active revision of a log, or None for a new log.

    Raises:
        UserError: Its text was erased, or this release cannot read it.
    """
    connection = await open_connection(conninfo, application="server")
    try:
        require_known_format(await format_of(connection))
        newest = await newest_of_stream(
            connection, EventMapper(), CONFIG_STREAM, version_max=None, limit=1
        )
        if not newest:
            return None
        event = newest[0].event
        assert isinstance(event, ConfigurationActivated)
        cursor = await connection.execute(
            "SELECT body FROM contents WHERE content_id = %s", [event.content.id]
        )
        row = await cursor.fetchone()
    finally:
        await connection.close()
    if row is None:
        raise UserError(
            f"the text of configuration revision {event.revision} was erased: start with --config"
        )
    try:
        return ActiveRevision(event.revision, load_recorded(event.revision, event.source, row[0]))
    except ConfigurationError as error:
        raise UserError(
            f"configuration revision {event.revision} cannot be read ({error.problems[0]}):"
            " start with --config"
        ) from error


Recorded = tuple[int, str]
"""Number and source of a revision."""

NEIGHBORS_SHOWN_MAX = 3


def describe_activation(revision: int, source: str, before: Recorded | None) -> str:
    """Return a sentence on the change by a start with a file. `before` was the active revision."""
    text = f"configuration {_named(revision, source)}"
    if before is None or before[0] == revision:
        return f"{text} is active"
    return f"{text} replaces {_named(*before)} for every server of this log"


def describe_kept(before: Recorded | None) -> str:
    """Return a sentence on the configuration in force after a start without a file."""
    if before is None:
        return (
            "a new log without --config begins with the built-in configuration: one agent `main`,"
            " which repeats its prompt"
        )
    return f"configuration {_named(*before)} stays in force; start with --config to replace it"


def describe_neighbors(servers: Sequence[ServerEntry]) -> str:
    """Return the start of a sentence on the other servers of the log. Empty if there are none."""
    if not servers:
        return ""
    shown = ", ".join(
        f"{server.url} (process {server.pid})" for server in servers[:NEIGHBORS_SHOWN_MAX]
    )
    more = len(servers) - NEIGHBORS_SHOWN_MAX
    return f"joins the log of {shown}{f' and {more} more' if more > 0 else ''}: "


def _named(revision: int, source: str) -> str:
    where = f"({BUILT_IN})" if source == BUILT_IN else f"of {source}"
    return f"revision {revision} {where}"
