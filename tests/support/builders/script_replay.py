"""What a script said, read again from its receipt and the texts that were kept."""

import base64
from collections.abc import Callable
from dataclasses import replace

from domain.configuration.context_scripts import ContextScript
from domain.context.script_output import ScriptReading, decode_printed_text, read_script_output
from domain.run.facts import OutputEncoding, ScriptReceipt


def raw_output(text: str, encoding: OutputEncoding | None) -> bytes:
    """The bytes of an output that was kept so. Without an encoding it is of an older release,
    which kept the text alone."""
    return base64.b64decode(text) if encoding == "base64" else text.encode()


def reading_again(
    receipt: ScriptReceipt,
    script: ContextScript,
    output: str,
    error: str | None = None,
    mask: Callable[[str], str] = str,
) -> ScriptReading | None:
    """What the output says, read as it was then; `error` is the text of the receipt's error, and
    `mask` takes out of an error what was taken out then. None where it was never read, because the
    script failed for what it did and not for what it said."""
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
    # What was cut short may report an error of its own, which is not why it failed.
    return None if receipt.outcome == "failed" and reading.error != error else reading
