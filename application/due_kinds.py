"""The kinds of work that become due, and who does them."""

from uuid import UUID

from application.concurrency.bulkhead import COMPARTMENTS_MAX, WANTED_MAX
from application.coordination.claims import Claims
from application.delivery.announce import Announcer
from application.delivery.archive import Archiver
from application.delivery.hooks import HookNotifier
from application.spawn.dependencies import DependencyWaits
from application.steps.undo import StepUndoer
from application.workers.due import DueWork

EFFECTS_AT_ONCE_MAX = COMPARTMENTS_MAX * WANTED_MAX
"""So many only when all rooms are full: what is undone or told waits for room of its own."""


def announcement_work(claims: Claims, announcing: Announcer) -> DueWork:
    """Announcements; a hook may say where they go."""
    return DueWork("announce", claims, announcing.announce)


def archive_work(claims: Claims, archiving: Archiver) -> DueWork:
    """Archives, of which no hook is told here."""
    return DueWork("archive", claims, archiving.archive)


def wait_work(claims: Claims, depending: DependencyWaits) -> DueWork:
    """Runs that wait for others, of which one is done."""
    return DueWork("wait", claims, depending.reevaluate)


def effect_work(claims: Claims, undoing: StepUndoer, telling: HookNotifier) -> DueWork:
    """What has to be undone or told outside."""

    async def carry_out(run_id: UUID) -> None:
        await undoing.undo(run_id)
        await telling.tell(run_id)

    return DueWork("effects", claims, carry_out, at_once_max=EFFECTS_AT_ONCE_MAX)
