"""Requests to run a context script."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from application.ports.configurations import PinnedConfiguration
from application.ports.scripts import ScriptRun
from domain.configuration.configuration import Configuration
from domain.configuration.context_scripts import ContextScript
from domain.context.script_request import SpawnVariables
from infrastructure.outbound.scripts.secrets import SourceOf

VARIABLES: dict[str, Any] = {
    "target_agent_id": "steward",
    "task": "Review it.",
    "requester_agent_id": "main",
}
PINNED = PinnedConfiguration(1, Configuration(), {})


@dataclass(frozen=True)
class Source:
    """A file in this folder, in which `replace` replaces variables."""

    folder: Path
    replace: Callable[[str], str] = str

    def resolve(self, value: str, /) -> str:
        """What is meant."""
        return self.replace(value)


def source_in(folder: Path, replace: Callable[[str], str] = str) -> SourceOf:
    """The file of every revision."""
    return lambda _: Source(folder, replace)


def script_run(
    uri: str,
    *,
    timeout_seconds: float = 20,
    output_bytes_max: int = 1_048_576,
    facts: dict[str, str] | None = None,
    variables: dict[str, Any] | None = None,
    **entry: Any,
) -> ScriptRun:
    """A run of the script that `entry` configures (names as in the file)."""
    return ScriptRun(
        script=ContextScript.model_validate({"id": "s", "uri": uri, **entry}),
        variables=SpawnVariables(**{**VARIABLES, **(variables or {})}),
        pinned=PINNED,
        facts=facts or {},
        timeout_seconds=timeout_seconds,
        output_bytes_max=output_bytes_max,
    )
