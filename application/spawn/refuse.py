"""The refusal of a spawn that is being prepared: recorded, told, and its slots given back."""

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
    """Refuse the run that cannot be prepared by its own rule, and the others of its batch because
    of it: in one append, with what was to be recorded before, and told once."""
    # The inbox is told of one of them. Where the culprit has no words, another one has.
    is_untold = refused.text_store is None and not refused.caller_is_there()
    commands = []
    for run in runs:
        if run.run_id == refused.run.run_id:
            command = await _with_webhooks(work, run, _refusal_command(refused))
            own = (*refused.before, command)
            commands.append(RunCommands(refused.run, own, refused.text_store))
            continue
        outcome = outcomes.get(run.run_id)
        sibling = await _sibling_refusal(work, run, outcome, refused, is_untold=is_untold)
        is_untold = is_untold and sibling.text_store is None
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
    """The key of the child, also where it is recorded with the refusal alone."""
    started = (one for one in refused.before if isinstance(one, StartPreparation))
    minted = next(started, None)
    return minted.child_session_key if minted is not None else refused.run.child_session_key


def _refusal_command(refused: Refused) -> RefuseSpawn:
    """The command that refuses the run, told in the inbox when no caller is there to be told; of
    one whose texts were erased without words on record."""
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
    """A refusal that is told in the inbox is sent to whom other announcements are."""
    if command.announcement is None:
        return command
    return command.changed({"webhooks": await webhooks_of(work, run)})


async def _sibling_refusal(
    work: UnitOfWork, run: Run, outcome: Outcome | None, refused: Refused, *, is_untold: bool
) -> RunCommands:
    """The refusal of another one, told in the inbox when the culprit's is not. Of one that was
    erased too nothing is kept."""
    culprit, text = refused.run, refused.refusal.text
    at = outcome.preparation if isinstance(outcome, Ready) else outcome
    text_store = await work.text_store_or_none(run)
    if at is not None:
        run, text_store = at.run, at.text_store if text_store is not None else None
    command = batch_refusal_command(culprit, text, text_store, epoch=run.epoch)
    if text_store is None:
        return RunCommands(run, (command,))
    if is_untold:
        announcement = refusal_announcement(run, batch_refusal_text(culprit, text))
        kept = text_store.store("announcement", announcement)
        command = command.changed({"announcement": kept})
        command = await _with_webhooks(work, run, command)
    return RunCommands(run, (*(at.before if at is not None else ()), command), text_store)


async def sibling_refusals(work: UnitOfWork, culprit: Run, text: str) -> list[RunCommands]:
    """The refusals of all others of its batch, of a run that is refused by somebody else than its
    holder."""
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
    """The command that refuses a run because another of its batch is refused, with this text;
    without it when there is nobody to keep it."""
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
