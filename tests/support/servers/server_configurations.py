"""Configurations of a server process on a log, and the files that it has read."""

from pathlib import Path

from application.configuration.activate import ActiveConfigurations
from application.log.unit_of_work import CommandLog
from infrastructure.outbound.configuration.files import LoadedFiles
from infrastructure.outbound.configuration.load import LoadedConfiguration
from infrastructure.outbound.configuration.workspaces import ConfiguredWorkspaces
from infrastructure.outbound.identity.identifiers import RandomIdentities
from infrastructure.outbound.read_model.contents import PostgresContents
from tests.support.servers.running_log import RunningLog


class ServerConfigurations(ActiveConfigurations[LoadedConfiguration]):
    """Configurations as a server composes them. Agents without a workspace work below
    `workspaces`.
    """

    def __init__(self, running: RunningLog, workspaces: Path) -> None:
        self.files = LoadedFiles()
        self.workspaces = ConfiguredWorkspaces(self.files, workspaces)
        commands = CommandLog(running.log, RandomIdentities())
        super().__init__(commands, PostgresContents(running.pool), self.files)
