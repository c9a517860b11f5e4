"""Everything that runs context scripts, put together."""

import os

from infrastructure.outbound.processes.gatehouse import Gatehouse
from infrastructure.outbound.scripts.http_scripts import HttpScripts
from infrastructure.outbound.scripts.local_file import LocalFileScripts
from infrastructure.outbound.scripts.script_secrets import FileOf
from infrastructure.outbound.scripts.served_scripts import ServedScripts


def running_scripts(gatehouse: Gatehouse, file_of: FileOf) -> ServedScripts:
    """Runs files and calls URLs; `file_of` gives the file of a revision."""
    files = LocalFileScripts(gatehouse, file_of, server=os.environ)
    return ServedScripts(files, HttpScripts(file_of))
