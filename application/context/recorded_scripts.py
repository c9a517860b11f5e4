"""Recorded output of context scripts, reused for a respawn of the run.

The output is reused only if the script still has the same call and the same reading of its output.
Script order, position of the texts and error handling follow the new spawn's configuration.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import RevisionErasedError
from domain.configuration.context_scripts import ContextScript
from domain.configuration.problems import ConfigurationError
from domain.context.script_output import output_bytes
from domain.run.events import ScriptsResolved
from domain.run.facts import ScriptReceipt
from domain.run.state import Run
from domain.values.refusals import Rejected
from domain.values.text import quote_name

_SAME = ("uri", "format", "method", "arg_map", "return_key", "error_key", "agent_id_override_key")
"""Settings that must be equal for a script's recorded output to be reused."""


class NothingRecorded(Rejected):
    """There is no recorded output to reuse for a script."""


class RecordErased(NothingRecorded):
    """The recorded output was erased."""


@dataclass(frozen=True, slots=True)
class RecordedOutput:
    """The recorded output of a script: its receipt, its raw output, and its error if it failed."""

    receipt: ScriptReceipt
    raw: bytes
    error: str | None


@dataclass(frozen=True, slots=True)
class RecordedScripts:
    """The record of a run's context scripts, by script id. `definitions` are the scripts as
    configured then."""

    run_id: UUID
    config_revision: int
    definitions: Mapping[str, ContextScript]
    receipts: Mapping[str, ScriptReceipt]

    def require_scripts(self, listed: Sequence[ContextScript]) -> tuple[ScriptReceipt, ...]:
        """Return the receipts to reuse, in order, up to a failure that stops the rest.

        Raises:
            NothingRecorded: If one of them is missing.
        """
        found: list[ScriptReceipt] = []
        for script in listed:
            receipt = self._receipt_of(script)
            found.append(receipt)
            if receipt.outcome == "failed" and script.error_handling == "stop":
                break
        return tuple(found)

    def _receipt_of(self, script: ContextScript) -> ScriptReceipt:
        then, receipt = self.definitions.get(script.id), self.receipts.get(script.id)
        if then is None or receipt is None:
            raise NothingRecorded(self._text(script, "did not run in that run"))
        if any(getattr(then, name) != getattr(script, name) for name in _SAME):
            why = f"has changed since configuration revision {self.config_revision} of that run"
            raise NothingRecorded(self._text(script, why))
        if receipt.outcome == "skipped":
            raise NothingRecorded(self._text(script, "was skipped in that run"))
        return receipt

    def _text(self, script: ContextScript, why: str) -> str:
        return (
            f"the recorded script outputs of run {self.run_id} cannot be reused: context script"
            f' {quote_name(script.id)} {why}; respawn with scripts "again"'
        )


async def read_recorded_scripts(work: UnitOfWork, run: Run) -> RecordedScripts:
    """Read the record of a run's scripts.

    Raises:
        NothingRecorded: If the run never resolved its scripts, or its configuration is unreadable.
        RecordErased: If its configuration was erased.
    """
    events = await work.log.read(run_id=run.run_id, types=(ScriptsResolved.__name__,), limit=1)
    if not events:
        raise NothingRecorded(
            f"run {run.run_id} ended before its context scripts, so no output is recorded;"
            ' respawn with scripts "again"'
        )
    resolved = events[0].event
    assert isinstance(resolved, ScriptsResolved)
    try:
        pinned = await work.configurations.at(run.config_revision)
    except RevisionErasedError:
        raise RecordErased(_unreadable(run, "was erased")) from None
    except ConfigurationError:
        raise NothingRecorded(_unreadable(run, "is not readable by this release")) from None
    definitions: tuple[ContextScript, ...] = ()
    if run.requested_agent_id is not None:
        agent = pinned.configuration.effective_agent(run.requested_agent_id)
        definitions = agent.context_scripts
    return RecordedScripts(
        run.run_id,
        run.config_revision,
        {script.id: script for script in definitions},
        {receipt.id: receipt for receipt in resolved.receipts},
    )


async def read_recorded_outputs(
    work: UnitOfWork, run: Run, listed: Sequence[ContextScript]
) -> Mapping[str, RecordedOutput]:
    """Return the recorded outputs of these scripts for a run, by id.

    Scripts after a failure that stops the rest are absent.

    Raises:
        NothingRecorded: If an output is missing.
        RecordErased: If it was erased.
    """
    if not listed:
        return {}
    receipts = (await read_recorded_scripts(work, run)).require_scripts(listed)
    refs = [
        ref for receipt in receipts for ref in (receipt.output, receipt.error) if ref is not None
    ]
    texts = await work.contents.texts(refs)
    if any(ref.id not in texts for ref in refs):
        raise RecordErased(
            f"the recorded script outputs of run {run.run_id} were erased; respawn with scripts"
            ' "again"'
        )

    def outputs() -> dict[str, RecordedOutput]:
        return {
            receipt.id: RecordedOutput(
                receipt,
                output_bytes(texts[receipt.output.id], receipt.output_encoding)
                if receipt.output
                else b"",
                texts[receipt.error.id] if receipt.error is not None else None,
            )
            for receipt in receipts
        }

    # Decoding megabytes of base64 would block the event loop.
    return await asyncio.to_thread(outputs)


def _unreadable(run: Run, why: str) -> str:
    return (
        f"the context scripts of run {run.run_id} are unknown: configuration revision"
        f' {run.config_revision} {why}; respawn with scripts "again"'
    )
