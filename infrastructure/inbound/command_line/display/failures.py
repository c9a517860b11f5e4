"""How a command can fail, and the number each failure leaves behind.

0 fine, 1 a difference or a run that failed, 2 usage or error, 3 refused, 4 not found,
5 unreachable.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from infrastructure.inbound.command_line.display.plain_text import printable_line

ADVICE_FOR_TOKEN = (
    "give a token in SPAWNLOG_TOKEN, or name the data directory of the server with --data-dir"  # noqa: S105
)
_REFUSAL_CODES = frozenset(
    {
        "spawn_forbidden",
        "spawn_error",
        "run_active",
        "session_closed",
        "no_session",
        "cannot_respawn",
    }
)
_NOT_READY = frozenset({502, 503, 504})
_ERRORS_SHOWN_MAX = 10


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
    """The server understood and said no: a spawn that is not permitted, a session that takes no
    message, or a missing right."""

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
    if code in _REFUSAL_CODES or status == 403:
        return RequestRefused(message, problem)
    if status == 401:
        return CommandFailed(f"{message}; {ADVICE_FOR_TOKEN}", problem)
    if status == 404:
        return NotFound(message, problem)
    if status in _NOT_READY:
        return Unreachable(message, problem)
    return CommandFailed(message, problem)


def _message(status: int, problem: Mapping[str, Any]) -> str:
    text = problem.get("detail") or problem.get("title") or f"the server answered {status}"
    pointed = _format_errors(problem.get("errors"))
    parts = [str(text), *(line for line in pointed if line not in str(text))]
    if rule := problem.get("rule"):
        parts.append(f"rule: {rule}")
        # A refusal is on record; other problems name the run that they are about.
        if run_id := problem.get("runId"):
            parts.append(f"recorded as run {run_id}")
    return "\n  ".join(printable_line(part, characters_max=2000) for part in parts)


def _format_errors(errors: object) -> list[str]:
    if not isinstance(errors, Sequence) or isinstance(errors, str):
        return []
    lines = []
    for error in errors[:_ERRORS_SHOWN_MAX]:
        if isinstance(error, Mapping):
            text = error.get("detail") or error.get("message") or error.get("msg") or "invalid"
            lines.append(f"{error.get('pointer') or '/'}: {text}")
    return lines
