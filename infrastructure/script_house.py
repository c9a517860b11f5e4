"""Everything that runs context scripts, put together."""

import os

from infrastructure.outbound.processes.gatehouse import ProcessLauncher
from infrastructure.outbound.scripts.http_scripts import HttpScripts
from infrastructure.outbound.scripts.local_file import LocalFileScripts
from infrastructure.outbound.scripts.script_secrets import FileOf
from infrastructure.outbound.scripts.served_scripts import ScriptsByUri


def build_script_runner(gatehouse: ProcessLauncher, file_of: FileOf) -> ScriptsByUri:
    """Runs files and calls URLs; `file_of` gives the file of a revision."""
    files = LocalFileScripts(gatehouse, file_of, server=os.environ)
    return ScriptsByUri(files, HttpScripts(file_of))
