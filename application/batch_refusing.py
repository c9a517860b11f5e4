"""The refusal of a whole batch: recorded in one append, and told once."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from application.answers import SpawnRefusal, key_told, refused, task_refused
from application.keeping import Keeper
from application.ports.event_log import Appended
from application.ready_run import Ready, Unready
from application.refusing import refusal_of_run
from application.work import Asked, Work
from domain.batch_decisions import NONE_STARTED, RULE, members_of, refused_with
from domain.run.commands import RefuseSpawn, RunCommand
from domain.run.state import Run


async def refuse_all(
    work: Work,
    runs: Sequence[Run],
    made: Mapping[UUID, Ready | Unready],
    unready: Unready,
) -> Appended[None]:
    """Refuse the run that cannot be prepared by its own rule, and the others of its batch because
    of it. `made` are those with something to record before."""
    culprit, refusal = unready.preparation.run, unready.refusal
    asked = []
    for run in runs:
        if run.run_id == culprit.run_id:
            command = refusal_of_run(unready, NONE_STARTED)
            asked.append(Asked(culprit, (*unready.before, command), unready.preparation.keeper))
            continue
        one = made.get(run.run_id)
        keeper = one.preparation.keeper if one is not None else await work.keeper(run)
        before: tuple[RunCommand, ...] = one.before if one is not None else ()
        now = one.preparation.run if one is not None else run
        with_it = refusal_with(culprit, refusal.text, keeper, epoch=run.epoch)
        asked.append(Asked(now, (*before, with_it), keeper))
    assert culprit.batch is not None
    told_as = SpawnRefusal(
        run_id=culprit.run_id,
        rule=refusal.rule,
        status=refusal.status,
        text=refusal.text,
        child_session_key=key_told(culprit, unready.step),
        batch_id=culprit.batch.batch_id,
        task=task_refused(culprit, unready.step),
    )
    return await work.record_all(asked, spawn_answer=refused(told_as))


async def refused_beside(work: Work, culprit: Run, text: str) -> list[Asked]:
    """The refusals of all others of its batch, of a run that is refused by somebody else than its
    holder."""
    asked = []
    for run_id in members_of(culprit):
        if run_id != culprit.run_id:
            run = await work.run(run_id)
            keeper = await work.keeper(run)
            command = refusal_with(culprit, text, keeper, epoch=None)
            asked.append(Asked(run, (command,), keeper))
    return asked


def refusal_with(culprit: Run, text: str, keeper: Keeper, *, epoch: int | None) -> RefuseSpawn:
    """The command that refuses a run because another of its batch is refused, with this text."""
    assert culprit.batch is not None
    return RefuseSpawn(
        epoch=epoch,
        rule=RULE,
        status="error",
        step=RULE,
        text=keeper.keep("refusal", refused_with(culprit, text)),
        inputs={
            "culprit": str(culprit.run_id),
            "index": culprit.batch.index + 1,
            "batchId": str(culprit.batch.batch_id),
        },
    )
