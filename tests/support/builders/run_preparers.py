"""Whoever prepares spawns, with everything real that a preparation needs."""

from pathlib import Path

from psycopg_pool import AsyncConnectionPool

from application.context.scripts import ContextGatherer
from application.log.unit_of_work import UnitOfWork
from application.ports.files import Workspaces
from application.spawn.child import ChildPreparer
from application.spawn.prepare import RunPreparer
from application.steps.attachments import AttachmentsStep
from application.steps.run_steps import StepRunner
from application.steps.workspace import WorkspaceStep
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.files.attachments import WorkspaceAttachments
from infrastructure.outbound.files.bootstrap_files import DiskBootstrapFiles
from infrastructure.outbound.files.workspaces import LocalWorkspaceFolders
from infrastructure.outbound.log.schema.connections import LogConnection
from infrastructure.outbound.read_model.staged_files import PostgresStagedFiles
from infrastructure.outbound.scripts.local import LocalFileScripts
from tests.support.builders.no_credentials import NoCredentials
from tests.support.builders.scripts import source_in
from tests.support.faults.interruption import uninterrupted


def preparing_on(
    work: UnitOfWork,
    workspaces: Workspaces,
    pool: AsyncConnectionPool[LogConnection],
    folder: Path,
    kind: type[RunPreparer] = RunPreparer,
) -> RunPreparer:
    """Prepares as a server does whose configuration lies in `folder`."""
    gathering = ContextGatherer(LocalFileScripts(ProcessLauncher(), source_in(folder), server={}))
    staged = PostgresStagedFiles(pool)
    makers = (
        WorkspaceStep(LocalWorkspaceFolders()),
        AttachmentsStep(WorkspaceAttachments(), staged, work.contents, uninterrupted),
    )
    stepping = StepRunner(work, makers, staged, uninterrupted)
    bootstrap, credentials = DiskBootstrapFiles(), NoCredentials()
    children = ChildPreparer(work, gathering, stepping, bootstrap, credentials, workspaces)
    return kind(work, stepping, children)
