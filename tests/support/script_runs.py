"""Requests to run a context script."""

from typing import Any

from application.ports.scripts import ScriptRun
from domain.configuration.context_scripts import ContextScript
from domain.script_arguments import SpawnVariables

VARIABLES: dict[str, Any] = {
    "target_agent_id": "steward",
    "task": "Review it.",
    "requester_agent_id": "main",
}


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
        facts=facts or {},
        timeout_seconds=timeout_seconds,
        output_bytes_max=output_bytes_max,
    )
