"""Running a context script."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from application.ports.configurations import PinnedConfiguration
from domain.configuration.context_scripts import ContextScript
from domain.context.script_output import decode_printed_text
from domain.context.script_request import SpawnVariables

Mask = Callable[[str], str]
"""Returns a text with its secrets removed."""

ScriptCall = tuple[str, str | tuple[str, ...]]
"""A label, and the value it describes: a text or a list of items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRun:
    """One context script to run, with its limits.

    Relative paths start in the folder of the configuration file of revision `pinned`. `facts`
    become `SPAWNLOG_*` environment variables.
    """

    script: ContextScript
    variables: SpawnVariables
    pinned: PinnedConfiguration
    facts: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float
    output_bytes_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptFinished:
    """The result of a context script.

    Attributes:
        raw: Its output, at most `output_bytes_max` bytes.
        exit_code: Exit code of a program.
        status_code: HTTP status of a script at a URL.
        error: Why it failed, for people; None on success.
        called: The call and its input. Empty unless the script has a verbose log. May contain
            secrets.
    """

    raw: bytes = b""
    exit_code: int | None = None
    status_code: int | None = None
    error: str | None = None
    duration_ms: int = 0
    called: tuple[ScriptCall, ...] = field(default=(), repr=False)

    @property
    def output(self) -> str:
        """Return the output as text, trimmed; undecodable bytes are replaced."""
        return decode_printed_text(self.raw)


class ScriptRunner(Protocol):
    """Runner of context scripts. Never raises because of a script."""

    async def run(self, request: ScriptRun) -> ScriptFinished:
        """Run a script within its limits. No process or connection of it is left afterwards."""
        ...


class ScriptSecrets(Protocol):
    """Secrets that must not appear in the script log."""

    def mask_for(self, pinned: PinnedConfiguration) -> Mask:
        """Return a mask for the secrets of a revision that can be resolved here."""
        ...
