"""Refusal of a spawn during its preparation: record it, report it, and free its slots."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from application.context.prompt_inputs import refusal_announcement
from application.log.answers import (
    SpawnRefusal,
    refusal_response,
    refused_session_key,
    refused_task_index,
)
from application.log.event_log import Appended
from application.log.texts import TextStore
from application.log.unit_of_work import RunCommands, UnitOfWork
from application.spawn.outcomes import Outcome, Ready
from application.steps.preparation import Refused
from application.steps.thread_binding import webhooks_of
from domain.run.commands import RefuseSpawn, StartPreparation
from domain.run.state import Run
from domain.spawn.batch import NONE_STARTED, batch_members, batch_refusal_text
from domain.values import rules


async def refuse_spawn(
    work: UnitOfWork, runs: Sequence[Run], outcomes: Mapping[UUID, Outcome], refused: Refused
) -> Appended[None]:
    """Refuse the failed run by its own rule and the other runs of its batch because of it, in one
    append.

    The append includes the commands that were to be recorded before. Only one refusal is announced.
    """
    # The inbox gets one announcement. If the failed run's texts were erased, a sibling announces
    # it.
    needs_announcement = refused.text_store is None and not refused.caller_is_there()
    commands = []
    for run in runs:
        if run.run_id == refused.run.run_id:
            command = await _with_webhooks(work, run, _refusal_command(refused))
            own = (*refused.before, command)
            commands.append(RunCommands(refused.run, own, refused.text_store))
            continue
        outcome = outcomes.get(run.run_id)
        sibling = await _sibling_refusal(
            work, run, outcome, refused, needs_announcement=needs_announcement
        )
        needs_announcement = needs_announcement and sibling.text_store is None
        commands.append(sibling)
    return await work.record_all(commands, spawn_answer=refusal_response(_response(refused)))


def _response(refused: Refused) -> SpawnRefusal:
    run, refusal = refused.run, refused.refusal
    return SpawnRefusal(
        run_id=run.run_id,
        rule=refusal.rule,
        status=refusal.status,
        text=refusal.text,
        child_session_key=refused_session_key(_minted_key(refused), refused.step),
        batch_id=run.batch.batch_id if run.batch else None,
        task=refused_task_index(run, refused.step),
    )


def _minted_key(refused: Refused) -> str | None:
    """Return the child's session key, even if it is recorded only with the refusal."""
    started = (command for command in refused.before if isinstance(command, StartPreparation))
    minted = next(started, None)
    return minted.child_session_key if minted is not None else refused.run.child_session_key


def _refusal_command(refused: Refused) -> RefuseSpawn:
    """Return the command that refuses the run.

    It is announced in the inbox if no caller is waiting. Without texts, nothing is stored.
    """
    run, refusal, text_store = refused.run, refused.refusal, refused.text_store
    command = RefuseSpawn(
        epoch=run.epoch, rule=refusal.rule, status=refusal.status, step=refused.step
    )
    if text_store is None:
        return command
    announced = None
    if not refused.caller_is_there():
        announced = refusal_announcement(run, refusal.text + (NONE_STARTED if run.batch else ""))
    return command.changed(
        {
            "text": text_store.store("refusal", refusal.text),
            "inputs": {"agentId": run.agent_id, "requestedAgentId": run.requested_agent_id},
            "announcement": text_store.store("announcement", announced) if announced else None,
            "facts": refused.facts,
        }
    )


async def _with_webhooks(work: UnitOfWork, run: Run, command: RefuseSpawn) -> RefuseSpawn:
    """Add the webhooks to a refusal that is announced."""
    if command.announcement is None:
        return command
    return command.changed({"webhooks": await webhooks_of(work, run)})


async def _sibling_refusal(
    work: UnitOfWork,
    run: Run,
    outcome: Outcome | None,
    refused: Refused,
    *,
    needs_announcement: bool,
) -> RunCommands:
    """Return the refusal of another run of the batch, announced if `needs_announcement`.

    Nothing is stored if its own texts were erased.
    """
    culprit, text = refused.run, refused.refusal.text
    at = outcome.preparation if isinstance(outcome, Ready) else outcome
    text_store = await work.text_store_or_none(run)
    if at is not None:
        run, text_store = at.run, at.text_store if text_store is not None else None
    command = batch_refusal_command(culprit, text, text_store, epoch=run.epoch)
    if text_store is None:
        return RunCommands(run, (command,))
    if needs_announcement:
        announcement = refusal_announcement(run, batch_refusal_text(culprit, text))
        kept = text_store.store("announcement", announcement)
        command = command.changed({"announcement": kept})
        command = await _with_webhooks(work, run, command)
    return RunCommands(run, (*(at.before if at is not None else ()), command), text_store)


async def sibling_refusals(work: UnitOfWork, culprit: Run, text: str) -> list[RunCommands]:
    """Return the refusals of the other runs of the batch when another process than the holder
    refuses `culprit`."""
    commands = []
    for run_id in batch_members(culprit):
        if run_id != culprit.run_id:
            run = await work.run(run_id)
            text_store = await work.text_store_or_none(run)
            command = batch_refusal_command(culprit, text, text_store, epoch=None)
            commands.append(RunCommands(run, (command,), text_store))
    return commands


def batch_refusal_command(
    culprit: Run, text: str, text_store: TextStore | None, *, epoch: int | None
) -> RefuseSpawn:
    """Return the command that refuses a run because its sibling `culprit` is refused.

    The text is left out if there is no text store.
    """
    assert culprit.batch is not None
    return RefuseSpawn(
        epoch=epoch,
        rule=rules.BATCH.name,
        status="error",
        step=rules.BATCH.name,
        text=text_store.store("refusal", batch_refusal_text(culprit, text)) if text_store else None,
        inputs={
            "culprit": str(culprit.run_id),
            "index": culprit.batch.index + 1,
            "batchId": str(culprit.batch.batch_id),
        },
    )
