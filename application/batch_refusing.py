"""The refusal of a whole batch: recorded in one append, and told once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from application.answers import SpawnRefusal, key_told, refused, task_refused
from application.ingredients import refusal_announcement
from application.keeping import Keeper
from application.ports.event_log import Appended
from application.ready_run import Erased, Ready, Unready
from application.refusing import refusal_of_erased, refusal_of_run
from application.work import Asked, Work
from domain.batch_decisions import NONE_STARTED, RULE, members_of, refused_with
from domain.erasure import ERASED, ERASED_RULE
from domain.run.commands import RefuseSpawn, RunCommand
from domain.run.state import Run


async def refuse_all(
    work: Work,
    runs: Sequence[Run],
    made: Mapping[UUID, Ready | Unready | Erased],
    unready: Unready | Erased,
) -> Appended[None]:
    """Refuse the run that cannot be prepared by its own rule, and the others of its batch because
    of it. `made` are those with something to record before."""
    if isinstance(unready, Erased):
        culprit, told_as = unready.run, _told_of_erased(unready.run)
    else:
        culprit, told_as = unready.preparation.run, _told_of(unready)
    # The inbox is told of one of them. Where the culprit has no words, another one has.
    is_untold = isinstance(unready, Erased) and not unready.caller_is_there()
    asked = []
    for run in runs:
        if run.run_id == culprit.run_id:
            asked.append(_culprits(unready))
            continue
        beside = await _beside(work, run, made.get(run.run_id), culprit, told_as.text, is_untold)
        is_untold = is_untold and beside.keeper is None
        asked.append(beside)
    return await work.record_all(asked, spawn_answer=refused(told_as))


def _told_of(unready: Unready) -> SpawnRefusal:
    culprit, refusal = unready.preparation.run, unready.refusal
    assert culprit.batch is not None
    return SpawnRefusal(
        run_id=culprit.run_id,
        rule=refusal.rule,
        status=refusal.status,
        text=refusal.text,
        child_session_key=key_told(culprit, unready.step),
        batch_id=culprit.batch.batch_id,
        task=task_refused(culprit, unready.step),
    )


def _told_of_erased(culprit: Run) -> SpawnRefusal:
    assert culprit.batch is not None
    return SpawnRefusal(
        run_id=culprit.run_id,
        rule=ERASED_RULE,
        status="error",
        text=ERASED,
        batch_id=culprit.batch.batch_id,
        task=culprit.batch.index,
    )


def _culprits(unready: Unready | Erased) -> Asked:
    if isinstance(unready, Erased):
        return Asked(unready.run, (refusal_of_erased(unready.run),))
    preparation = unready.preparation
    command = refusal_of_run(unready, NONE_STARTED)
    return Asked(preparation.run, (*unready.before, command), preparation.keeper)


async def _beside(
    work: Work,
    run: Run,
    made: Ready | Unready | Erased | None,
    culprit: Run,
    text: str,
    is_untold: bool,
) -> Asked:
    """The refusal of another one. Of one that was erased too nothing is kept."""
    keeper = await work.keeper_if_kept(run)
    if isinstance(made, Erased) or keeper is None:
        command = refusal_with(culprit, text, None, epoch=run.epoch)
        return Asked(made.preparation.run if isinstance(made, Ready | Unready) else run, (command,))
    before: tuple[RunCommand, ...] = ()
    if made is not None:
        run, keeper, before = made.preparation.run, made.preparation.keeper, made.before
    with_it = refusal_with(culprit, text, keeper, epoch=run.epoch)
    if is_untold:
        told = refusal_announcement(run, refused_with(culprit, text))
        with_it = replace(with_it, announcement=keeper.keep("announcement", told))
    return Asked(run, (*before, with_it), keeper)


async def refused_beside(work: Work, culprit: Run, text: str) -> list[Asked]:
    """The refusals of all others of its batch, of a run that is refused by somebody else than its
    holder."""
    asked = []
    for run_id in members_of(culprit):
        if run_id != culprit.run_id:
            run = await work.run(run_id)
            keeper = await work.keeper_if_kept(run)
            command = refusal_with(culprit, text, keeper, epoch=None)
            asked.append(Asked(run, (command,), keeper))
    return asked


def refusal_with(
    culprit: Run, text: str, keeper: Keeper | None, *, epoch: int | None
) -> RefuseSpawn:
    """The command that refuses a run because another of its batch is refused, with this text;
    without it when there is nobody to keep it."""
    assert culprit.batch is not None
    return RefuseSpawn(
        epoch=epoch,
        rule=RULE,
        status="error",
        step=RULE,
        text=keeper.keep("refusal", refused_with(culprit, text)) if keeper else None,
        inputs={
            "culprit": str(culprit.run_id),
            "index": culprit.batch.index + 1,
            "batchId": str(culprit.batch.batch_id),
        },
    )
