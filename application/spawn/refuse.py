"""The refusal of a spawn that is being prepared: recorded, told, and its slot given back."""

from application.context.ingredients import refusal_announcement
from application.log.answers import SpawnRefusal, refusal_response, refused_session_key
from application.log.unit_of_work import UnitOfWork
from application.ready_run import NotReady
from application.spawn.outcomes import PreparedRun
from domain.run.commands import RefuseSpawn
from domain.run.state import Run
from domain.values.refusals import ERASED, ERASED_RULE


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
    told_as = SpawnRefusal(run_id=run.run_id, rule=ERASED_RULE, status="error", text=ERASED)
    command = erased_refusal(run)
    appended = await work.record(run, (command,), spawn_answer=refusal_response(told_as))
    return PreparedRun(appended.runs[run.run_id], appended.position)


def erased_refusal(run: Run) -> RefuseSpawn:
    """The command that does so."""
    return RefuseSpawn(epoch=run.epoch, rule=ERASED_RULE, status="error", step=ERASED_RULE)


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
