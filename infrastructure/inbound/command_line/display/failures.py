"""How a command can fail, and the number each failure leaves behind.

0 fine, 1 a difference or a run that failed, 2 usage or error, 3 refused, 4 not found,
5 unreachable.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any

from infrastructure.inbound.command_line.display.plain_text import printable_line
from spawnlog.core.errors import faults_of, problem_lines

ADVICE_FOR_TOKEN = (
    "give a token in SPAWNLOG_TOKEN, or name the data directory of the server with --data-dir"  # noqa: S105
)
_REFUSAL_STATUSES = (403, 409)
_REFUSAL_CODES = ("spawn_error",)
"""Refusals that have the status of an invalid request."""
_NOT_READY = frozenset({502, 503, 504})
_LINES_SHOWN_MAX = 11
_COMMANDS_OF_TOOLS = {"agents_list": "agent list", "sessions_send(sessionKey=...)": "run send"}
_name_of_value: ContextVar[Callable[[str], str]] = ContextVar("name_of_value", default=str)
"""What names the value at a JSON pointer of a request as the running command has it."""


@contextmanager
def names_of_values(name_of: Callable[[str], str]) -> Iterator[None]:
    """Name values of requests by this function in the failures that are made within."""
    token = _name_of_value.set(name_of)
    try:
        yield
    finally:
        _name_of_value.reset(token)


class CommandFailed(Exception):
    """The command ends here. `problem` is the server's problem document, when it was one."""

    exit_code = 2
    word = "error"

    def __init__(self, message: str, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.problem = problem


class RunFailed(CommandFailed):
    """The run that was waited for did not end well, or two things differ."""

    exit_code = 1


class Interrupted(CommandFailed):
    """Ctrl-C ended a wait; the run that was waited for continues."""

    exit_code = 130
    word = "interrupted"


class RequestRefused(CommandFailed):
    """The server understood and said no: a spawn that is not permitted, a missing right, or a run
    or session whose state does not allow it."""

    exit_code = 3
    word = "refused"


class NotFound(CommandFailed):
    """Nothing has that name."""

    exit_code = 4


class Unreachable(CommandFailed):
    """No server answered, or it is not ready to. `is_sent` is False if no request was sent."""

    exit_code = 5

    def __init__(
        self,
        message: str,
        problem: Mapping[str, Any] | None = None,
        *,
        is_sent: bool = True,
    ) -> None:
        super().__init__(message, problem)
        self.is_sent = is_sent


def failure_from_problem(status: int, problem: Mapping[str, Any]) -> CommandFailed:
    """The failure for an answer with `status` and this problem document."""
    message = _message(status, problem)
    code = problem.get("code")
    if status in _REFUSAL_STATUSES or code in _REFUSAL_CODES:
        return RequestRefused(message, problem)
    if status == 401:
        return CommandFailed(f"{message}; {ADVICE_FOR_TOKEN}", problem)
    if status == 404:
        return NotFound(message, problem)
    if status in _NOT_READY:
        return Unreachable(message, problem)
    return CommandFailed(message, problem)


def in_words_of_commands(text: str) -> str:
    """Return a text of a rule with commands in the place of the tools that it advises."""
    for tool, command in _COMMANDS_OF_TOOLS.items():
        text = text.replace(tool, f"`spawnlog {command}`")
    return text


def _message(status: int, problem: Mapping[str, Any]) -> str:
    text = str(problem.get("detail") or problem.get("title") or f"the server answered {status}")
    if status == 401 and "Authorization" in text:
        text = "the server needs a token"
    text = in_words_of_commands(text)
    lines = problem_lines(text, faults_of(problem.get("errors")), _name_of_value.get())
    parts = list(islice(lines, _LINES_SHOWN_MAX))
    if rule := problem.get("rule"):
        parts.append(f"rule: {rule}")
        # A refusal is on record; other problems name the run that they are about.
        if run_id := problem.get("runId"):
            parts.append(f"recorded as run {run_id}")
    return "\n  ".join(printable_line(part, characters_max=2000) for part in parts)
