"""Everything that runs context scripts, put together."""

import os

from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from infrastructure.outbound.scripts.by_uri import ScriptsByUri
from infrastructure.outbound.scripts.http import HttpScripts
from infrastructure.outbound.scripts.local import LocalFileScripts
from infrastructure.outbound.scripts.secrets import FileOf


def build_script_runner(gatehouse: ProcessLauncher, file_of: FileOf) -> ScriptsByUri:
    """Runs files and calls URLs; `file_of` gives the file of a revision."""
    files = LocalFileScripts(gatehouse, file_of, server=os.environ)
    return ScriptsByUri(files, HttpScripts(file_of))
