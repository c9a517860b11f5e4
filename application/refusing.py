"""The refusal of a spawn that is being prepared: recorded, told, and its slot given back."""

from application.answers import SpawnRefusal, key_told, refused
from application.ingredients import refusal_announcement
from application.preparation import Preparation
from application.prepared_run import PreparedRun
from application.work import Work
from domain.admission import Refusal
from domain.run.commands import RefuseSpawn, RunCommand
from domain.run.plan_facts import PlanFacts


async def refuse(
    work: Work,
    preparation: Preparation,
    refusal: Refusal,
    facts: PlanFacts | None,
    before: tuple[RunCommand, ...],
    *,
    step: str = "preparation",
) -> PreparedRun:
    """Record `before` and the refusal in one append. `step` is where the preparation failed."""
    run, keeper = preparation.run, preparation.keeper
    text = None if preparation.caller_is_there() else refusal_announcement(run, refusal.text)
    command = RefuseSpawn(
        epoch=run.epoch,
        rule=refusal.rule,
        status=refusal.status,
        step=step,
        text=keeper.keep("refusal", refusal.text),
        inputs={"agentId": run.agent_id, "requestedAgentId": run.requested_agent_id},
        announcement=keeper.keep("announcement", text) if text else None,
        facts=facts,
    )
    told_as = SpawnRefusal(
        run_id=run.run_id,
        rule=refusal.rule,
        status=refusal.status,
        text=refusal.text,
        child_session_key=key_told(run, step),
    )
    appended = await work.record(run, (*before, command), keeper, spawn_answer=refused(told_as))
    return PreparedRun(appended.runs[run.run_id], appended.position)
