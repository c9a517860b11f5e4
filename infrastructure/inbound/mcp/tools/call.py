"""Call of a tool: its caller, its session and its answer."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from application.commands.context import CommandContext, CommandResponse
from application.commands.idempotency import stored_answer
from application.commands.services import CommandServices
from application.log.event_log import AlreadyReserved, StoredAnswer
from application.queries.access import Caller
from application.queries.views.view import View

ReportProgress = Callable[[float, str], Awaitable[None]]
"""Reports the progress of a wait: an increasing number and a line for people."""


class ToolInputError(ValueError):
    """Invalid arguments. The message is the answer of the tool."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCall:
    """One call of a tool.

    Attributes:
        session_key: The session of the caller's token, or the one that the request names.
        command: Holds the idempotency key of the call, if there is one.
        follows_tasks: True if the caller accepts a task instead of a result.
    """

    services: CommandServices
    caller: Caller
    session_key: str
    arguments: Mapping[str, object]
    report: ReportProgress
    command: CommandContext
    follows_tasks: bool = False


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """Answer of a tool.

    Attributes:
        values: The structured answer.
        text: The text that a model reads. None means the values as JSON.
        run_id: The run of an accepted spawn or of a wait for one run. A caller that follows tasks
            gets it as a task.
    """

    values: Mapping[str, Any]
    text: str | None = None
    run_id: str | None = field(default=None, kw_only=True)

    @property
    def shown(self) -> str:
        """Return the text that a model reads, or the values as JSON."""
        return self.text if self.text is not None else orjson.dumps(self.values).decode()


async def answered_once(call: McpCall, response: Awaitable[CommandResponse]) -> StoredAnswer:
    """Return the answer of a command, or the first answer if its idempotency key was used."""
    try:
        return (await response).answer
    except AlreadyReserved as repeated:
        assert call.command.reservation is not None
        return stored_answer(repeated.reserved, call.command.reservation)


def answer_of(view: View, text: str | None = None) -> ToolAnswer:
    """Return a view as the answer of a tool."""
    return ToolAnswer(members_of(view), text)


def members_of(view: View) -> dict[str, Any]:
    """Return the members of a view in the JSON of HTTP."""
    members: dict[str, Any] = orjson.loads(view.json_bytes())
    return members
