"""Failures of commands, each with its exit status.

0 success, 1 difference found or run failed, 2 usage or error, 3 refused, 4 not found, 5
unreachable.
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
"""Codes of refusals that have the status of an invalid request."""
_NOT_READY = frozenset({502, 503, 504})
_LINES_SHOWN_MAX = 11
_COMMANDS_OF_TOOLS = {"agents_list": "agent list", "sessions_send(sessionKey=...)": "run send"}
_name_of_value: ContextVar[Callable[[str], str]] = ContextVar("name_of_value", default=str)
"""Returns the running command's name for the value at a JSON pointer of a request."""


@contextmanager
def names_of_values(name_of: Callable[[str], str]) -> Iterator[None]:
    """Name request values in failures by this function, within the block."""
    token = _name_of_value.set(name_of)
    try:
        yield
    finally:
        _name_of_value.reset(token)


class CommandError(Exception):
    """Failure that ends the command. `problem` is the server's problem document, if it sent one."""

    exit_code = 2
    word = "error"

    def __init__(self, message: str, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.problem = problem


class FailedRunError(CommandError):
    """The awaited run did not succeed, or a difference was found."""

    exit_code = 1


class CommandInterruptedError(CommandError):
    """Ctrl-C ended a wait; the awaited run continues."""

    exit_code = 130
    word = "interrupted"


class RequestRefusedError(CommandError):
    """The server refused.

    A spawn is not permitted, a scope is missing, or the state of a run or session does not allow
    it.
    """

    exit_code = 3
    word = "refused"


class ResourceNotFoundError(CommandError):
    """Nothing has that name."""

    exit_code = 4


class UnreachableError(CommandError):
    """No server answered, or it is not ready. `is_sent` is False if no request was sent."""

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


def failure_from_problem(status: int, problem: Mapping[str, Any]) -> CommandError:
    """Return the failure for a problem document with this status."""
    message = _message(status, problem)
    code = problem.get("code")
    if status in _REFUSAL_STATUSES or code in _REFUSAL_CODES:
        return RequestRefusedError(message, problem)
    if status == 401:
        return CommandError(f"{message}; {ADVICE_FOR_TOKEN}", problem)
    if status == 404:
        return ResourceNotFoundError(message, problem)
    if status in _NOT_READY:
        return UnreachableError(message, problem)
    return CommandError(message, problem)


def in_words_of_commands(text: str) -> str:
    """Replace tools in the text of a rule by the corresponding commands."""
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
        # A refusal is recorded as a run; other problems name the run that they concern.
        if run_id := problem.get("runId"):
            parts.append(f"recorded as run {run_id}")
    return "\n  ".join(printable_line(part, characters_max=2000) for part in parts)
