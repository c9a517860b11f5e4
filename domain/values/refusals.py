"""Refusals and rejections of commands, by who must act on them."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Permitted:
    """Verdict that no rule refused the command."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A recorded refusal: the rule that refused, and the message for the caller.

    Built by `Rule.refusal`. `current` and `limit` are the compared numbers, if the rule compares
    any.
    """

    rule: str
    status: Literal["forbidden", "error"]
    text: str
    current: int | None = None
    limit: int | None = None


class Rejected(Exception):
    """The command does not fit the recorded state. Nothing was recorded for it."""


class WrongStage(Rejected):
    """The run is at a stage at which the command is not allowed."""

    def __init__(self, action: str, stage: str) -> None:
        super().__init__(f"cannot {action}: the run is {stage}")
        self.stage = stage


class LostClaim(Rejected):
    """Another holder claimed the run. The old holder must stop working on it."""

    def __init__(self, held: int, given: int) -> None:
        super().__init__(f"claim {given} was replaced by claim {held}")


class AgentOnRecord(Rejected):
    """The request names an agent other than the recorded agent of the requester's session."""

    def __init__(self, agent_id: str) -> None:
        super().__init__(f"the requester's session belongs to agent {agent_id}")
        self.agent_id = agent_id


class ConfigurationMoved(Rejected):
    """The command was made under a configuration revision that is no longer active."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"the configuration is now at revision {revision}; retry")
        self.revision = revision


class ReadAgain(Rejected):
    """The command was decided on a stale state of the run; read it again and retry."""


class TranscriptGrew(Rejected):
    """The transcript has entries that the seal does not cover; seal it again."""


class NotYet(Rejected):
    """The condition that the command waits for is not met yet; retry later."""


class StopWanted(Rejected):
    """A stop was requested before the run started; its holder must end it as stopped."""


class ToolDenied(Rejected):
    """The tool policy of the session denies the tool."""

    def __init__(self, tool: str) -> None:
        super().__init__(f"{tool} is not allowed by the tool policy of this session")
        self.tool = tool


class CannotDeliver(Rejected):
    """The run has no announcement to acknowledge."""


class SessionIsClosed(Rejected):
    """The session is closed, or its run is over or stopping, so it does not accept the command."""


class CorruptHistoryError(Exception):
    """A recorded event does not fit: the log is damaged, or was written by a newer version."""


ERASED = "its texts were erased while it was prepared; spawn it again"
"""Refusal text for a spawn whose texts were erased during its preparation."""
