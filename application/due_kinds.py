"""The kinds of work that become due, and who does them."""

from uuid import UUID

from application.announcing import Announcing
from application.archiving import Archiving
from application.claims import Claims
from application.depending import Depending
from application.due_work import DueWork
from application.rooms import ROOMS_MAX, WANTED_MAX
from application.telling_hooks import TellingHooks
from application.undoing import Undoing

EFFECTS_AT_ONCE_MAX = ROOMS_MAX * WANTED_MAX
"""So many only when all rooms are full: what is undone or told waits for room of its own."""


def announcements(claims: Claims, announcing: Announcing) -> DueWork:
    """Announcements; a hook may say where they go."""
    return DueWork("announce", claims, announcing.announce)


def archives(claims: Claims, archiving: Archiving) -> DueWork:
    """Archives, of which no hook is told here."""
    return DueWork("archive", claims, archiving.archive)


def waits(claims: Claims, depending: Depending) -> DueWork:
    """Runs that wait for others, of which one is done."""
    return DueWork("wait", claims, depending.settle)


def effects(claims: Claims, undoing: Undoing, telling: TellingHooks) -> DueWork:
    """What has to be undone or told outside."""

    async def carry_out(run_id: UUID) -> None:
        await undoing.undo(run_id)
        await telling.tell(run_id)

    return DueWork("effects", claims, carry_out, at_once_max=EFFECTS_AT_ONCE_MAX)
