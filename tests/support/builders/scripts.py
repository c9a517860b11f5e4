"""Context scripts that run, and that are replayed."""

import base64
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from application.ports.configurations import PinnedConfiguration
from application.ports.scripts import ScriptRun
from domain.configuration.configuration import Configuration
from domain.configuration.context_scripts import ContextScript
from domain.context.script_output import ScriptReading, decode_printed_text, read_script_output
from domain.context.script_request import SpawnVariables
from domain.run.facts import OutputEncoding, ScriptReceipt
from infrastructure.outbound.scripts.secrets import SourceOf

# Requests to run a context script.

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
        return self.replace(value)


def source_in(folder: Path, replace: Callable[[str], str] = str) -> SourceOf:
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
    """Return a run of the script that `entry` configures (keys as in the file)."""
    return ScriptRun(
        script=ContextScript.model_validate({"id": "s", "uri": uri, **entry}),
        variables=SpawnVariables(**{**VARIABLES, **(variables or {})}),
        pinned=PINNED,
        facts=facts or {},
        timeout_seconds=timeout_seconds,
        output_bytes_max=output_bytes_max,
    )


# A script's result, read again from its receipt and the stored texts.


def raw_output(text: str, encoding: OutputEncoding | None) -> bytes:
    """Return the bytes of a recorded output. Without an encoding it is from an older release, which
    stored text only.
    """
    return base64.b64decode(text) if encoding == "base64" else text.encode()


def reading_again(
    receipt: ScriptReceipt,
    script: ContextScript,
    output: str,
    error: str | None = None,
    mask: Callable[[str], str] = str,
) -> ScriptReading | None:
    """Return the reading of a recorded output.

    Args:
        error: Text of the receipt's error.
        mask: Removes from an error what was masked at the time.

    Returns:
        None if the output was never read, because the script itself had failed.
    """
    is_of_a_failure = receipt.exit_code not in (None, 0)
    if receipt.status_code is not None:
        is_of_a_failure = not 200 <= receipt.status_code < 300
    if is_of_a_failure:
        return None
    reading = read_script_output(
        script_id=script.id,
        text=decode_printed_text(raw_output(output, receipt.output_encoding)),
        return_key=script.return_key,
        error_key=script.error_key,
        agent_id_override_key=script.agent_id_override_key,
    )
    if reading.error is not None:
        reading = replace(reading, error=mask(reading.error))
    # A script that was cut short may report another error, which is not the cause.
    return None if receipt.outcome == "failed" and reading.error != error else reading
