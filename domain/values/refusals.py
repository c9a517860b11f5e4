"""Ways in which a command can be turned down, by who must act on it."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Permitted:
    """Nothing speaks against it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The rule that refused and what the caller is told.

    `rule` is the name of a rule, whose `refusal` makes this. `current` and `limit` are the numbers
    compared, where the rule compares any.
    """

    rule: str
    status: Literal["forbidden", "error"]
    text: str
    current: int | None = None
    limit: int | None = None


class Rejected(Exception):
    """The command does not fit what is on record; nothing was recorded for it."""


class WrongStage(Rejected):
    """The run is past, or not yet at, the point where the command makes sense."""

    def __init__(self, action: str, stage: str) -> None:
        super().__init__(f"cannot {action}: the run is {stage}")
        self.stage = stage


class LostClaim(Rejected):
    """Somebody else holds the run now; the old holder must stop what it does for it."""

    def __init__(self, held: int, given: int) -> None:
        super().__init__(f"claim {given} was replaced by claim {held}")


class AgentOnRecord(Rejected):
    """The requester's session belongs to another agent than the request says; the record counts."""

    def __init__(self, agent_id: str) -> None:
        super().__init__(f"the requester's session belongs to agent {agent_id}")
        self.agent_id = agent_id


class ConfigurationMoved(Rejected):
    """The command was made under a revision of the configuration that is not the last any more."""

    def __init__(self, revision: int) -> None:
        super().__init__(f"the configuration is at revision {revision} by now")
        self.revision = revision


class ReadAgain(Rejected):
    """The command was made from an older state of the run than the one on record."""


class TranscriptGrew(Rejected):
    """The transcript has other entries than the seal was made of: it is to be sealed again."""


class NotYet(Rejected):
    """What the command waits for has not happened; it may be asked again later."""


class StopWanted(Rejected):
    """Somebody asked the run to stop before it started: its holder must end it as stopped."""


class ToolDenied(Rejected):
    """The tool policy of the session denies what is asked for."""

    def __init__(self, tool: str) -> None:
        super().__init__(f"{tool} is not allowed by the tool policy of this session")
        self.tool = tool


class CannotDeliver(Rejected):
    """There is no announcement that could be acknowledged."""


class SessionIsClosed(Rejected):
    """The session is closed, or its run is over or being stopped: it takes no more of this."""


class CorruptHistory(Exception):
    """A recorded event does not fit: the log was damaged, or is from a newer version."""


ERASED = "its texts were erased while it was prepared; spawn it again"
"""What is told of a spawn that has no words of its own any more."""
