"""The kinds of work that become due, and who does them under which claims."""

from uuid import UUID

from application.announcing import Announcing
from application.archiving import Archiving
from application.claim_times import ClaimTimes
from application.due_work import DueWork
from application.holder import Holder
from application.ports.coordination import Coordination
from application.telling_hooks import TellingHooks
from application.undoing import Undoing
from domain.configuration.hooks import Hooks


class DueKinds:
    """One of each for a process. Where a hook is asked a run is claimed for as long as that may
    take, so that nobody else asks meanwhile."""

    def __init__(
        self,
        coordination: Coordination,
        telling: TellingHooks,
        *,
        holder: Holder,
        lease_seconds: float,
    ) -> None:
        self._coordination = coordination
        self._telling = telling
        self._holder = holder
        self._lease_seconds = lease_seconds

    def announcements(self, announcing: Announcing) -> DueWork:
        """Announcements; a hook may say where they go."""
        coordination = self._coordination
        times = ClaimTimes(
            lambda limit, seconds: coordination.claim_due(
                "announce", self._holder.name, limit=limit, lease_seconds=seconds
            ),
            lease_seconds=self._lease_seconds,
            now=lambda: self._telling.configured,
            of=self._telling.configured_for,
            measure=_target_seconds,
        )

        async def announce(run_id: UUID) -> None:
            if await times.suffices(run_id):
                await announcing.announce(run_id)

        return DueWork(
            "announce",
            claim=times.claim,
            do=announce,
            release=lambda run_ids: coordination.release("announce", run_ids),
        )

    def archives(self, archiving: Archiving) -> DueWork:
        """Archives, of which no hook is told here."""
        coordination = self._coordination
        return DueWork(
            "archive",
            claim=lambda limit: coordination.claim_due(
                "archive", self._holder.name, limit=limit, lease_seconds=self._lease_seconds
            ),
            do=archiving.archive,
            release=lambda run_ids: coordination.release("archive", run_ids),
        )

    def effects(self, undoing: Undoing) -> DueWork:
        """What has to be undone or told outside."""
        coordination = self._coordination
        times = ClaimTimes(
            lambda limit, seconds: coordination.claim_effects(
                self._holder.name, limit=limit, lease_seconds=seconds
            ),
            lease_seconds=self._lease_seconds,
            now=lambda: self._telling.configured,
            of=self._telling.configured_for,
            measure=lambda hooks: hooks.seconds_max,
        )

        async def carry_out(run_id: UUID) -> None:
            if await times.suffices(run_id):
                await undoing.undo(run_id)
                await self._telling.tell(run_id)

        return DueWork(
            "effects", claim=times.claim, do=carry_out, release=coordination.release_effects
        )


def _target_seconds(hooks: Hooks) -> float:
    target = hooks.subagent_delivery_target
    return float(target.timeout_seconds) if target is not None else 0.0
