"""Preparers of spawns with everything real that a preparation needs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from psycopg_pool import AsyncConnectionPool

from application.context.scripts import ContextGatherer
from application.coordination.lane import QueuedChild
from application.log.unit_of_work import UnitOfWork
from application.ports.configurations import PinnedConfiguration
from application.ports.files import Workspaces
from application.spawn.child import ChildPreparer
from application.spawn.prepare import SpawnPreparer
from application.steps.attachments import AttachmentsStep
from application.steps.run_steps import StepRunner
from application.steps.step import StepMaker
from application.steps.workspace import WorkspaceStep
from domain.configuration.configuration import EffectiveAgent
from domain.plan.credentials import NOTHING_FOUND, FoundCredentials
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.files.attachments import WorkspaceAttachments
from infrastructure.outbound.files.bootstrap_files import DiskBootstrapFiles
from infrastructure.outbound.files.workspaces import LocalWorkspaceFolders
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.read_model.staged_files import PostgresStagedFiles
from infrastructure.outbound.scripts.local import LocalFileScripts
from tests.support.builders.scripts import source_in
from tests.support.faults.interruption import uninterrupted

# Credentials of agents that have none.


class NoCredentials:
    """Implements the credentials of agents that have none and need none."""

    async def found(self, pinned: PinnedConfiguration, agent: EffectiveAgent) -> FoundCredentials:
        return NOTHING_FOUND

    async def environment(self, pinned: PinnedConfiguration, agent_id: str) -> Mapping[str, str]:
        return {}


# Lanes without free slots, for spawns that are never executed.


class NoPlaces:
    """Implements `LanePlaces`: every queued run waits."""

    async def room(self, lane: str, depth: int, children: Sequence[QueuedChild] = ()) -> None:
        """Return None."""


def preparing_on(
    work: UnitOfWork,
    workspaces: Workspaces,
    pool: AsyncConnectionPool[LogConnection],
    folder: Path,
    kind: type[SpawnPreparer] = SpawnPreparer,
    makers: Sequence[StepMaker] = (),
) -> SpawnPreparer:
    """Return the preparer of a server whose configuration is in `folder`, with its steps or
    others.
    """
    gathering = ContextGatherer(LocalFileScripts(ProcessLauncher(), source_in(folder), server={}))
    staged = PostgresStagedFiles(pool)
    makers = makers or (
        WorkspaceStep(LocalWorkspaceFolders()),
        AttachmentsStep(WorkspaceAttachments(), staged, work.contents, uninterrupted),
    )
    stepping = StepRunner(work, makers, staged, uninterrupted)
    bootstrap, credentials = DiskBootstrapFiles(), NoCredentials()
    children = ChildPreparer(work, gathering, stepping, bootstrap, credentials, workspaces)
    return kind(work, stepping, children)
