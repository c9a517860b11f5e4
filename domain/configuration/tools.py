"""The `tools` section: tools of sub-agents, and attachments of spawns."""

import math
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from domain.configuration.sections import (
    Flag,
    OwnSection,
    SharedSection,
    Text,
    finite_number,
    section_error,
)

_TWO_ALLOW_LISTS = (
    "tools policy cannot set both allow and alsoAllow in the same scope "
    "(merge alsoAllow into allow, or remove allow and use profile + alsoAllow)"
)


def _rounded_down(value: object) -> int:
    return math.floor(finite_number(value))


SizeLimit = Annotated[int, BeforeValidator(_rounded_down), Field(ge=0, le=1_073_741_824)]


class ConfiguredToolPolicy(OwnSection):
    """Tool names, `group:…` names and patterns with `*`.

    `deny` wins. If `deny` is null, the default deny list applies.
    """

    allow: tuple[Text, ...] | None = None
    """The only tools that children get: names, `group:…`, and patterns with `*`. Example:
    `["group:fs"]`
    """

    also_allow: tuple[Text, ...] | None = None
    """Tools in addition to the default ones. Cannot be combined with `allow`. Example: `["cron"]`
    """

    deny: tuple[Text, ...] | None = None
    """Tools that children do not get; overrides `allow`. Unset: `gateway`, `agents_list`,
    `session_status`, `cron`, and `subagents` for children that may not spawn. In any case, unless
    `allow` or `alsoAllow` names them: `sessions_send`, and for children that may not spawn
    `sessions_list`, `sessions_history` and `sessions_spawn`. Example: `["gateway", "cron"]`
    """

    @model_validator(mode="after")
    def _require_one_allow_list(self) -> "ConfiguredToolPolicy":
        if self.allow and self.also_allow:
            raise section_error("also_allow", _TWO_ALLOW_LISTS, at="alsoAllow")
        return self


class SubagentTools(OwnSection):
    """`tools.subagents`."""

    tools: ConfiguredToolPolicy = Field(default_factory=ConfiguredToolPolicy)
    """Tool policy of sub-agents."""


class Attachments(OwnSection):
    """`tools.sessions_spawn.attachments`. Numbers are rounded down."""

    enabled: Flag = False
    """If true, a spawn may put files into the child's workspace."""

    max_total_bytes: SizeLimit = 5_242_880
    """Maximum bytes of all files of a spawn together; beyond it the spawn is refused."""

    max_files: SizeLimit = 50
    """Maximum number of files of a spawn; beyond it the spawn is refused."""

    max_file_bytes: SizeLimit = 1_048_576
    """Maximum bytes of one file; beyond it the spawn is refused."""

    retain_on_session_keep: Flag = False
    """If true, the files stay after the announcement when `cleanup` is `keep`."""


class SessionsSpawn(OwnSection):
    """`tools.sessions_spawn`."""

    attachments: Attachments = Field(default_factory=Attachments)
    """Files of a spawn."""


class Tools(SharedSection):
    """The `tools` section."""

    subagents: SubagentTools = Field(default_factory=SubagentTools)
    """Tools of sub-agents."""

    sessions_spawn: SessionsSpawn = Field(default_factory=SessionsSpawn, alias="sessions_spawn")
    """Attachments."""
