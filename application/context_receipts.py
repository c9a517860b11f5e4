"""What is recorded of each context script that ran, or did not."""

from collections.abc import Collection, Sequence
from typing import Literal

from application.log.texts import TextStore
from application.ports.scripts import Mask, ScriptFinished
from domain.configuration.context_scripts import ContextScript
from domain.configuration.secrets import without_url_secrets
from domain.context.agent_override import OverrideChoice
from domain.context.script_output import ScriptReading, encode_output, read_script_output
from domain.run.facts import Candidate, ScriptReceipt


def read_finished(script: ContextScript, finished: ScriptFinished) -> ScriptReading:
    """What the output says; the failure of a script that did not end well."""
    if finished.error is not None:
        return ScriptReading(error=finished.error)
    return read_script_output(
        script_id=script.id,
        text=finished.output,
        return_key=script.return_key,
        error_key=script.error_key,
        agent_id_override_key=script.agent_id_override_key,
    )


def script_receipt(
    script: ContextScript, finished: ScriptFinished, reading: ScriptReading, keeper: TextStore
) -> ScriptReceipt:
    """The receipt of a script that ran. Its output is kept byte by byte."""
    outcome: Literal["injected", "empty", "failed"] = "empty"
    if reading.error is not None:
        outcome = "failed"
    elif reading.content:
        outcome = "injected"
    raw = finished.raw
    text, encoding = encode_output(raw)
    return ScriptReceipt(
        id=script.id,
        uri=without_url_secrets(script.uri),
        format=script.format,
        priority=script.priority,
        position=script.position,
        outcome=outcome,
        duration_ms=finished.duration_ms,
        exit_code=finished.exit_code,
        status_code=finished.status_code,
        output_bytes=len(raw),
        output=keeper.store("scriptOutput", text) if raw else None,
        output_encoding=encoding if raw else None,
        output_hmac=keeper.hash(raw) if raw else None,
        injected=keeper.store("injected", reading.content) if reading.content else None,
        error=keeper.store("scriptError", reading.error) if reading.error else None,
        candidate=_identifier(reading.override),
    )


def skipped_script_receipt(script: ContextScript, why: str, keeper: TextStore) -> ScriptReceipt:
    """The receipt of a script that was not run."""
    return ScriptReceipt(
        id=script.id,
        uri=without_url_secrets(script.uri),
        format=script.format,
        priority=script.priority,
        position=script.position,
        outcome="skipped",
        duration_ms=0,
        error=keeper.store("scriptError", why),
    )


def scripts_proposing_secrets(choice: OverrideChoice, mask: Mask) -> frozenset[str]:
    """The ids of the scripts that proposed what holds a secret, and is no agent."""
    return frozenset(
        one.script_id
        for one in choice.candidates
        if one.reason in ("not_configured", "invalid_agent_id")
        and mask(one.proposed) != one.proposed
    )


def evaluated_candidates(
    choice: OverrideChoice, unnamed: Collection[str] = frozenset()
) -> tuple[Candidate, ...]:
    """The candidates with their verdicts, as they are recorded; without what the scripts `unnamed`
    proposed."""
    return tuple(
        Candidate(
            script_id=one.script_id,
            priority=one.priority,
            agent_id=None if one.script_id in unnamed else one.agent_id,
            verdict=one.reason if one.verdict != "winner" else "winner",
        )
        for one in choice.candidates
    )


def remove_proposals(
    receipts: Sequence[ScriptReceipt], unnamed: Collection[str]
) -> tuple[ScriptReceipt, ...]:
    """The receipts; those of the scripts `unnamed` do not say what was proposed."""
    return tuple(
        one.model_copy(update={"candidate": None}) if one.id in unnamed else one for one in receipts
    )


def injected_receipts(receipts: Sequence[ScriptReceipt]) -> tuple[ScriptReceipt, ...]:
    """The receipts whose content goes into the message, in the order they ran."""
    return tuple(one for one in receipts if one.injected is not None)


def _identifier(proposed: str | None) -> str | None:
    """A proposal that could be an agent id; other texts stay in the script's output."""
    if proposed is None or len(proposed) > 64 or not proposed.isascii():
        return None
    return proposed if proposed.replace("-", "").replace("_", "").isalnum() else None
