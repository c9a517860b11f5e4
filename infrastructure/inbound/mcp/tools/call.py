"""A call of a tool: who makes it, for which session, and what it comes to."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from application.commands.context import CommandResponse
from application.commands.once import answer_on_record
from application.commands.services import CommandServices
from application.log.event_log import AlreadyReserved, Reservation, StoredAnswer
from application.queries.access import Caller
from application.queries.errors import QueryError
from application.queries.views.view import View
from application.session.continue_session import SentMessage

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
    it names. `reservation` is there when the call has an idempotency key."""

    services: CommandServices
    caller: Caller
    session_key: str
    arguments: Mapping[str, object]
    report: ReportProgress
    caller_is_there: Callable[[], bool]
    reservation: Reservation | None = None
    traceparent: str | None = None
    follows_tasks: bool = False


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a call comes to: values for programs, and the text that a model reads; without one it
    reads the values as JSON. `run_id` is that of the run which an accepted spawn, or a wait for one
    run, is about: a caller that follows tasks is given it as one."""

    values: Mapping[str, Any]
    text: str | None = None
    is_error: bool = False
    run_id: str | None = field(default=None, kw_only=True)

    @property
    def shown(self) -> str:
        """The text."""
        return self.text if self.text is not None else orjson.dumps(self.values).decode()


async def answered_once(
    call: McpCall, asked: Awaitable[SentMessage | CommandResponse]
) -> StoredAnswer:
    """How a command was answered; one that is repeated under its key, as the first time."""
    try:
        return (await asked).answer
    except AlreadyReserved as repeated:
        assert call.reservation is not None
        return answer_on_record(repeated.reserved, call.reservation)


def answer_of(view: View, text: str | None = None) -> ToolAnswer:
    """A view as it reads over HTTP."""
    return ToolAnswer(orjson.loads(view.json_bytes()), text)


def members_of(view: View) -> dict[str, Any]:
    """The members of a view as they read over HTTP."""
    members: dict[str, Any] = orjson.loads(view.json_bytes())
    return members


# Arguments, read as leniently as models need it: what is of another type counts as left out, save
# where something would be done to the wrong thing.


def text_argument(arguments: Mapping[str, object], name: str) -> str | None:
    """A text without the blanks around it; None for a blank one, and for what is no text."""
    value = arguments.get(name)
    return value.strip() or None if isinstance(value, str) else None


def required_text(arguments: Mapping[str, object], *names: str) -> str:
    """The first of these that is given. `ToolInputError` when none is."""
    for name in names:
        text = text_argument(arguments, name)
        if text is not None:
            return text
    raise ToolInputError(f"{names[0]} required")


def number_argument(
    arguments: Mapping[str, object], name: str, default: float, least: float, most: float
) -> float:
    """A number between its bounds; the default for what is none."""
    value = arguments.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return default
    return float(max(least, min(value, most)))


def count_argument(arguments: Mapping[str, object], name: str, default: int, most: int) -> int:
    """A whole number from 1 on."""
    return int(number_argument(arguments, name, default, 1, most))


def position_argument(arguments: Mapping[str, object], name: str) -> int | None:
    """A position of the log; None for what is none."""
    value = arguments.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        return None
    return value


def flag_argument(arguments: Mapping[str, object], name: str) -> bool:
    """Only true is yes."""
    return arguments.get(name) is True


def names_argument(arguments: Mapping[str, object], name: str, most: int) -> Sequence[str]:
    """A list of texts, or one text; blank ones are none. `ToolInputError` for too many."""
    value = arguments.get(name)
    given = [value] if isinstance(value, str) else value
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise ToolInputError(f"{name} must be a text or a list of texts")
    if len(given) > most:
        raise ToolInputError(f"{name} has {len(given)} texts and may have {most}")
    return tuple(dict.fromkeys(one.strip() for one in given if one.strip()))


def refusal_values(error: QueryError) -> dict[str, Any]:
    """What is answered for a query that is refused."""
    status = "forbidden" if error.code == "not_permitted" else "error"
    details = {name: value for name, value in error.details.items() if value is not None}
    return {"status": status, "error": error.detail, "code": error.code, **details}
