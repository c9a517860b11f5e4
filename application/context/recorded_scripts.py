"""What context scripts said for an earlier run, read once more for a spawn made from it.

What was called then, and how its output was read, has to be what is configured for the new spawn:
an output says nothing about a script that is another one by now. The order of the scripts, where
their texts stand and whether a failure stops the rest are as they are configured for the new spawn.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import RevisionErased
from domain.configuration.context_scripts import ContextScript
from domain.configuration.problems import ConfigurationError
from domain.context.script_output import output_bytes
from domain.run.events import ScriptsResolved
from domain.run.facts import ScriptReceipt
from domain.run.state import Run
from domain.values.refusals import Rejected
from domain.values.text import quote_name

_SAME = ("uri", "format", "method", "arg_map", "return_key", "error_key", "agent_id_override_key")
"""What makes two scripts with one id the same one: what is called, with what, and how its answer is
read."""


class NothingRecorded(Rejected):
    """There is no output on record that could be read again, or not of that script."""


class RecordErased(NothingRecorded):
    """What would be read again was erased."""


@dataclass(frozen=True, slots=True)
class RecordedOutput:
    """What one script left: its receipt, what it printed, byte by byte, and why it failed, if it
    did. With `error` the script failed."""

    receipt: ScriptReceipt
    raw: bytes
    error: str | None


@dataclass(frozen=True, slots=True)
class RecordedScripts:
    """What is on record of the scripts of a run, by their ids. `definitions` are the scripts as
    they were configured then."""

    run_id: UUID
    config_revision: int
    definitions: Mapping[str, ContextScript]
    receipts: Mapping[str, ScriptReceipt]

    def must_have(self, listed: Sequence[ContextScript]) -> tuple[ScriptReceipt, ...]:
        """The receipts of those of the scripts that will be read again, in their order: a failure
        may stop the rest. Raises `NothingRecorded` when one of them is missing."""
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
            raise NothingRecorded(self._text(script, "did not run for it"))
        if any(getattr(then, name) != getattr(script, name) for name in _SAME):
            why = f"is another one now than under its configuration revision {self.config_revision}"
            raise NothingRecorded(self._text(script, why))
        if receipt.outcome == "skipped":
            raise NothingRecorded(self._text(script, "was skipped there"))
        return receipt

    def _text(self, script: ContextScript, why: str) -> str:
        return (
            f"nothing that run {self.run_id} has on record can be used again: context script"
            f' {quote_name(script.id)} {why}; respawn with scripts "again"'
        )


async def read_recorded_scripts(work: UnitOfWork, run: Run) -> RecordedScripts:
    """What is on record of the scripts of a run. Raises `NothingRecorded` when it never came so
    far, `RecordErased` when what was configured then is not to be had any more."""
    events = await work.log.read(run_id=run.run_id, types=(ScriptsResolved.__name__,), limit=1)
    if not events:
        raise NothingRecorded(
            f"run {run.run_id} never came to its context scripts, so nothing that they said is on"
            ' record; respawn with scripts "again"'
        )
    resolved = events[0].event
    assert isinstance(resolved, ScriptsResolved)
    try:
        pinned = await work.configurations.at(run.config_revision)
    except RevisionErased:
        raise RecordErased(_unreadable(run, "was erased")) from None
    except ConfigurationError:
        raise NothingRecorded(_unreadable(run, "cannot be read by this program")) from None
    definitions: tuple[ContextScript, ...] = ()
    if run.requested_agent_id is not None:
        agent = pinned.configuration.effective_agent(run.requested_agent_id)
        definitions = agent.context_scripts
    return RecordedScripts(
        run.run_id,
        run.config_revision,
        {one.id: one for one in definitions},
        {one.id: one for one in resolved.receipts},
    )


async def read_recorded_outputs(
    work: UnitOfWork, run: Run, listed: Sequence[ContextScript]
) -> Mapping[str, RecordedOutput]:
    """What these scripts left when they ran for a run, by their ids; those behind one that stops
    the rest are absent. Raises `NothingRecorded`, `RecordErased`."""
    if not listed:
        return {}
    receipts = (await read_recorded_scripts(work, run)).must_have(listed)
    refs = [ref for one in receipts for ref in (one.output, one.error) if ref is not None]
    texts = await work.contents.texts(refs)
    if any(ref.id not in texts for ref in refs):
        raise RecordErased(
            f"what context scripts said for run {run.run_id} was erased; respawn with scripts"
            ' "again"'
        )

    def outputs() -> dict[str, RecordedOutput]:
        return {
            one.id: RecordedOutput(
                one,
                output_bytes(texts[one.output.id], one.output_encoding) if one.output else b"",
                texts[one.error.id] if one.error is not None else None,
            )
            for one in receipts
        }

    # Megabytes of base64 would hold up everybody else.
    return await asyncio.to_thread(outputs)


def _unreadable(run: Run, why: str) -> str:
    return (
        f"which context scripts run {run.run_id} had is not known: configuration revision"
        f' {run.config_revision} {why}; respawn with scripts "again"'
    )
