"""The call of a tool: its caller, its session and its answer."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from application.commands.context import CommandContext, CommandResponse
from application.commands.once import answer_on_record
from application.commands.services import CommandServices
from application.log.event_log import AlreadyReserved, StoredAnswer
from application.queries.access import Caller
from application.queries.views.view import View

ReportProgress = Callable[[float, str], Awaitable[None]]
"""Reports the progress of a wait: a growing number, and a line for people."""


class ToolInputError(ValueError):
    """Invalid arguments; the message is the answer of the tool."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCall:
    """One call. `session_key` is the session of its token, or the one that it names. `command` has
    its idempotency key, if it has one."""

    services: CommandServices
    caller: Caller
    session_key: str
    arguments: Mapping[str, object]
    report: ReportProgress
    command: CommandContext
    follows_tasks: bool = False


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """Values for programs, and the text that a model reads; without a text it reads the values as
    JSON. `run_id` is the run of an accepted spawn, or of a wait for one run: a caller that follows
    tasks gets it as a task."""

    values: Mapping[str, Any]
    text: str | None = None
    run_id: str | None = field(default=None, kw_only=True)

    @property
    def shown(self) -> str:
        """The text that a model reads."""
        return self.text if self.text is not None else orjson.dumps(self.values).decode()


async def answered_once(call: McpCall, asked: Awaitable[CommandResponse]) -> StoredAnswer:
    """Return the answer of a command; if it is repeated under its key, the first one."""
    try:
        return (await asked).answer
    except AlreadyReserved as repeated:
        assert call.command.reservation is not None
        return answer_on_record(repeated.reserved, call.command.reservation)


def answer_of(view: View, text: str | None = None) -> ToolAnswer:
    """Return the answer that HTTP gives."""
    return ToolAnswer(members_of(view), text)


def members_of(view: View) -> dict[str, Any]:
    """Return the members of a view in the JSON of HTTP."""
    members: dict[str, Any] = orjson.loads(view.json_bytes())
    return members
