"""The refusal of a spawn that is being prepared: recorded, told, and its slot given back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from application.context.ingredients import refusal_announcement
from application.log.answers import (
    SpawnRefusal,
    refusal_response,
    refused_session_key,
    refused_task_index,
)
from application.log.event_log import Appended
from application.log.texts import TextStore
from application.log.unit_of_work import RunCommands, UnitOfWork
from application.spawn.outcomes import Erased, NotReady, PreparedRun, Ready
from domain.run.commands import RefuseSpawn, RunCommand
from domain.run.state import Run
from domain.spawn.batch import NONE_STARTED, batch_members, batch_refusal_text
from domain.values import rules
from domain.values.refusals import ERASED


async def refuse(work: UnitOfWork, unready: NotReady) -> PreparedRun:
    """Record what was to be recorded before and the refusal in one append."""
    run, refusal = unready.preparation.run, unready.refusal
    told_as = SpawnRefusal(
        run_id=run.run_id,
        rule=refusal.rule,
        status=refusal.status,
        text=refusal.text,
        child_session_key=refused_session_key(run, unready.step),
    )
    commands = (*unready.before, spawn_refusal_command(unready))
    keeper = unready.preparation.keeper
    appended = await work.record(run, commands, keeper, spawn_answer=refusal_response(told_as))
    return PreparedRun(appended.runs[run.run_id], appended.position)


async def refuse_erased(work: UnitOfWork, run: Run) -> PreparedRun:
    """Refuse a run of whose session nothing may be kept any more: without words on record."""
    told_as = SpawnRefusal(run_id=run.run_id, rule=rules.ERASED.name, status="error", text=ERASED)
    command = erased_refusal(run)
    appended = await work.record(run, (command,), spawn_answer=refusal_response(told_as))
    return PreparedRun(appended.runs[run.run_id], appended.position)


def erased_refusal(run: Run) -> RefuseSpawn:
    """The command that does so."""
    return RefuseSpawn(
        epoch=run.epoch, rule=rules.ERASED.name, status="error", step=rules.ERASED.name
    )


def spawn_refusal_command(unready: NotReady, further: str = "") -> RefuseSpawn:
    """The command that refuses the run. `further` is told of it in the inbox, when no caller is
    there to be told."""
    preparation, refusal = unready.preparation, unready.refusal
    run, keeper = preparation.run, preparation.keeper
    is_told = preparation.caller_is_there()
    text = None if is_told else refusal_announcement(run, refusal.text + further)
    return RefuseSpawn(
        epoch=run.epoch,
        rule=refusal.rule,
        status=refusal.status,
        step=unready.step,
        text=keeper.store("refusal", refusal.text),
        inputs={"agentId": run.agent_id, "requestedAgentId": run.requested_agent_id},
        announcement=keeper.store("announcement", text) if text else None,
        facts=unready.facts,
    )


# The refusal of a whole batch: recorded in one append, and told once.


async def refuse_batch(
    work: UnitOfWork,
    runs: Sequence[Run],
    made: Mapping[UUID, Ready | NotReady | Erased],
    unready: NotReady | Erased,
) -> Appended[None]:
    """Refuse the run that cannot be prepared by its own rule, and the others of its batch because
    of it. `made` are those with something to record before."""
    if isinstance(unready, Erased):
        culprit, told_as = unready.run, _erased_refusal_response(unready.run)
    else:
        culprit, told_as = unready.preparation.run, _refusal_response(unready)
    # The inbox is told of one of them. Where the culprit has no words, another one has.
    is_untold = isinstance(unready, Erased) and not unready.caller_is_there()
    asked = []
    for run in runs:
        if run.run_id == culprit.run_id:
            asked.append(_culprit_commands(unready))
            continue
        beside = await _sibling_refusal(
            work, run, made.get(run.run_id), culprit, told_as.text, is_untold
        )
        is_untold = is_untold and beside.keeper is None
        asked.append(beside)
    return await work.record_all(asked, spawn_answer=refusal_response(told_as))


def _refusal_response(unready: NotReady) -> SpawnRefusal:
    culprit, refusal = unready.preparation.run, unready.refusal
    assert culprit.batch is not None
    return SpawnRefusal(
        run_id=culprit.run_id,
        rule=refusal.rule,
        status=refusal.status,
        text=refusal.text,
        child_session_key=refused_session_key(culprit, unready.step),
        batch_id=culprit.batch.batch_id,
        task=refused_task_index(culprit, unready.step),
    )


def _erased_refusal_response(culprit: Run) -> SpawnRefusal:
    assert culprit.batch is not None
    return SpawnRefusal(
        run_id=culprit.run_id,
        rule=rules.ERASED.name,
        status="error",
        text=ERASED,
        batch_id=culprit.batch.batch_id,
        task=culprit.batch.index,
    )


def _culprit_commands(unready: NotReady | Erased) -> RunCommands:
    if isinstance(unready, Erased):
        return RunCommands(unready.run, (erased_refusal(unready.run),))
    preparation = unready.preparation
    command = spawn_refusal_command(unready, NONE_STARTED)
    return RunCommands(preparation.run, (*unready.before, command), preparation.keeper)


async def _sibling_refusal(
    work: UnitOfWork,
    run: Run,
    made: Ready | NotReady | Erased | None,
    culprit: Run,
    text: str,
    is_untold: bool,
) -> RunCommands:
    """The refusal of another one. Of one that was erased too nothing is kept."""
    keeper = await work.text_store_or_none(run)
    if isinstance(made, Erased) or keeper is None:
        command = batch_refusal_command(culprit, text, None, epoch=run.epoch)
        return RunCommands(
            made.preparation.run if isinstance(made, Ready | NotReady) else run, (command,)
        )
    before: tuple[RunCommand, ...] = ()
    if made is not None:
        run, keeper, before = made.preparation.run, made.preparation.keeper, made.before
    with_it = batch_refusal_command(culprit, text, keeper, epoch=run.epoch)
    if is_untold:
        told = refusal_announcement(run, batch_refusal_text(culprit, text))
        with_it = replace(with_it, announcement=keeper.store("announcement", told))
    return RunCommands(run, (*before, with_it), keeper)


async def sibling_refusals(work: UnitOfWork, culprit: Run, text: str) -> list[RunCommands]:
    """The refusals of all others of its batch, of a run that is refused by somebody else than its
    holder."""
    asked = []
    for run_id in batch_members(culprit):
        if run_id != culprit.run_id:
            run = await work.run(run_id)
            keeper = await work.text_store_or_none(run)
            command = batch_refusal_command(culprit, text, keeper, epoch=None)
            asked.append(RunCommands(run, (command,), keeper))
    return asked


def batch_refusal_command(
    culprit: Run, text: str, keeper: TextStore | None, *, epoch: int | None
) -> RefuseSpawn:
    """The command that refuses a run because another of its batch is refused, with this text;
    without it when there is nobody to keep it."""
    assert culprit.batch is not None
    return RefuseSpawn(
        epoch=epoch,
        rule=rules.BATCH.name,
        status="error",
        step=rules.BATCH.name,
        text=keeper.store("refusal", batch_refusal_text(culprit, text)) if keeper else None,
        inputs={
            "culprit": str(culprit.run_id),
            "index": culprit.batch.index + 1,
            "batchId": str(culprit.batch.batch_id),
        },
    )
