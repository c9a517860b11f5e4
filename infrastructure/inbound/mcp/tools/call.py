"""A call of a tool: who makes it, for which session, and what it comes to."""

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
"""Tells the caller how far a wait is: a number that only grows, and a line for people."""


class ToolInputError(ValueError):
    """The call cannot be read; the message is what the tool answers."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCall:
    """One call. `session_key` is the session that the caller is: that of its token, or the one that
    it names. `command` has its idempotency key, if it has one."""

    services: CommandServices
    caller: Caller
    session_key: str
    arguments: Mapping[str, object]
    report: ReportProgress
    command: CommandContext
    follows_tasks: bool = False


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a call comes to: values for programs, and the text that a model reads; without one it
    reads the values as JSON. `run_id` is that of the run which an accepted spawn, or a wait for one
    run, is about: a caller that follows tasks is given it as one."""

    values: Mapping[str, Any]
    text: str | None = None
    run_id: str | None = field(default=None, kw_only=True)

    @property
    def shown(self) -> str:
        """The text."""
        return self.text if self.text is not None else orjson.dumps(self.values).decode()


async def answered_once(call: McpCall, asked: Awaitable[CommandResponse]) -> StoredAnswer:
    """Return the answer of a command; if it is repeated under its key, the first one."""
    try:
        return (await asked).answer
    except AlreadyReserved as repeated:
        assert call.command.reservation is not None
        return answer_on_record(repeated.reserved, call.command.reservation)


def answer_of(view: View, text: str | None = None) -> ToolAnswer:
    """A view as it reads over HTTP."""
    return ToolAnswer(members_of(view), text)


def members_of(view: View) -> dict[str, Any]:
    """The members of a view as they read over HTTP."""
    members: dict[str, Any] = orjson.loads(view.json_bytes())
    return members
