"""The refusal of a spawn that is being prepared: recorded, told, and its slot given back."""

from application.answers import SpawnRefusal, key_told, refused
from application.ingredients import refusal_announcement
from application.prepared_run import PreparedRun
from application.ready_run import Unready
from application.work import Work
from domain.erasure import ERASED, ERASED_RULE
from domain.run.commands import RefuseSpawn
from domain.run.state import Run


async def refuse(work: Work, unready: Unready) -> PreparedRun:
    """Record what was to be recorded before and the refusal in one append."""
    run, refusal = unready.preparation.run, unready.refusal
    told_as = SpawnRefusal(
        run_id=run.run_id,
        rule=refusal.rule,
        status=refusal.status,
        text=refusal.text,
        child_session_key=key_told(run, unready.step),
    )
    commands = (*unready.before, refusal_of_run(unready))
    keeper = unready.preparation.keeper
    appended = await work.record(run, commands, keeper, spawn_answer=refused(told_as))
    return PreparedRun(appended.runs[run.run_id], appended.position)


async def refuse_erased(work: Work, run: Run) -> PreparedRun:
    """Refuse a run of whose session nothing may be kept any more: without words on record."""
    told_as = SpawnRefusal(run_id=run.run_id, rule=ERASED_RULE, status="error", text=ERASED)
    command = refusal_of_erased(run)
    appended = await work.record(run, (command,), spawn_answer=refused(told_as))
    return PreparedRun(appended.runs[run.run_id], appended.position)


def refusal_of_erased(run: Run) -> RefuseSpawn:
    """The command that does so."""
    return RefuseSpawn(epoch=run.epoch, rule=ERASED_RULE, status="error", step=ERASED_RULE)


def refusal_of_run(unready: Unready, further: str = "") -> RefuseSpawn:
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
        text=keeper.keep("refusal", refusal.text),
        inputs={"agentId": run.agent_id, "requestedAgentId": run.requested_agent_id},
        announcement=keeper.keep("announcement", text) if text else None,
        facts=unready.facts,
    )
