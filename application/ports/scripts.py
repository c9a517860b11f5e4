"""Context scripts: running one of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from application.ports.configurations import PinnedConfiguration
from domain.configuration.context_scripts import ContextScript
from domain.context.script_output import decode_printed_text
from domain.context.script_request import SpawnVariables

Mask = Callable[[str], str]
"""Gives a text without the secrets that are in it."""

ScriptCall = tuple[str, str | tuple[str, ...]]
"""A word, and what was called or what it was given: as it is, or item by item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRun:
    """One script to run, as the revision `pinned` lists it: its relative paths start in the folder
    of that revision's file. `facts` become `SPAWNLOG_*` environment variables."""

    script: ContextScript
    variables: SpawnVariables
    pinned: PinnedConfiguration
    facts: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float
    output_bytes_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptFinished:
    """What came of it. `raw` is what it printed or answered, at most `output_bytes_max` bytes;
    `error` says why it failed, in words for people, and is None when it did not. `status_code` is
    that of a script at a URL, `exit_code` that of a program. `called` says what was called
    with what; it may hold secrets, and is empty unless the script asks for a verbose log."""

    raw: bytes = b""
    exit_code: int | None = None
    status_code: int | None = None
    error: str | None = None
    duration_ms: int = 0
    called: tuple[ScriptCall, ...] = field(default=(), repr=False)

    @property
    def output(self) -> str:
        """The text of it, trimmed, undecodable bytes replaced."""
        return decode_printed_text(self.raw)


class ScriptRunner(Protocol):
    """Runs context scripts. Never raises for what a script does."""

    async def run(self, request: ScriptRun) -> ScriptFinished:
        """Run it within its limits; no process and no connection of it is left afterwards."""
        ...


class ScriptSecrets(Protocol):
    """What the log of scripts must not show."""

    def mask_for(self, pinned: PinnedConfiguration) -> Mask:
        """Takes out of a text the secrets of a revision that can be had here."""
        ...
