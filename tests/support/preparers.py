"""Whoever prepares spawns, with everything real that a preparation needs."""

from pathlib import Path

from psycopg_pool import AsyncConnectionPool

from application.context_gathering import ContextGathering
from application.preparing import Preparing
from application.stepping import Stepping
from application.steps.attachments import AttachmentsStep
from application.steps.workspace import WorkspaceStep
from application.work import Work
from infrastructure.outbound.attachments.attachment_files import WorkspaceAttachments
from infrastructure.outbound.bootstrap_files import DiskBootstrapFiles
from infrastructure.outbound.log.connections import Connection
from infrastructure.outbound.processes.gatehouse import Gatehouse
from infrastructure.outbound.scripts.local_file import LocalFileScripts
from infrastructure.outbound.tables.staged_files import PostgresStagedFiles
from infrastructure.outbound.workspace_folders import LocalWorkspaceFolders
from tests.support.interruption import uninterrupted
from tests.support.no_credentials import NoCredentials
from tests.support.script_runs import source_in


def preparing_on(
    work: Work,
    pool: AsyncConnectionPool[Connection],
    folder: Path,
    kind: type[Preparing] = Preparing,
) -> Preparing:
    """Prepares as a server does whose configuration lies in `folder`."""
    gathering = ContextGathering(LocalFileScripts(Gatehouse(), source_in(folder), server={}))
    staged = PostgresStagedFiles(pool)
    makers = (
        WorkspaceStep(LocalWorkspaceFolders()),
        AttachmentsStep(WorkspaceAttachments(), staged, work.contents, uninterrupted),
    )
    stepping = Stepping(work, makers, staged, uninterrupted)
    return kind(work, gathering, stepping, DiskBootstrapFiles(), NoCredentials())
