"""Context scripts: running one of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from domain.configuration.context_scripts import ContextScript
from domain.script_arguments import SpawnVariables


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRun:
    """One script to run. `facts` become `SPAWNLOG_*` environment variables."""

    script: ContextScript
    variables: SpawnVariables
    facts: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float
    output_bytes_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptFinished:
    """What came of it. `output` is the text it printed (trimmed, undecodable bytes replaced);
    `error` says why it failed, in words for people, and is None when it did not."""

    output: str
    output_bytes: int
    exit_code: int | None
    error: str | None
    duration_ms: int


class ScriptRunner(Protocol):
    """Runs context scripts. Never raises for what a script does."""

    def serves(self, script: ContextScript) -> bool:
        """Whether a script of this kind (file or URL) can be run here."""
        ...

    async def run(self, request: ScriptRun) -> ScriptFinished:
        """Run it within its limits; no process of it is left afterwards."""
        ...
