"""Everything that runs context scripts, put together."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

from infrastructure.outbound.processes.gatehouse import Gatehouse
from infrastructure.outbound.scripts.http_scripts import HttpScripts
from infrastructure.outbound.scripts.local_file import LocalFileScripts
from infrastructure.outbound.scripts.script_secrets import FileOf
from infrastructure.outbound.scripts.served_scripts import ServedScripts


@contextmanager
def running_scripts(gatehouse: Gatehouse, file_of: FileOf) -> Iterator[ServedScripts]:
    """Runs files and calls URLs; `file_of` gives the file of a revision."""
    with closing(HttpScripts(file_of)) as urls:
        yield ServedScripts(LocalFileScripts(gatehouse, file_of, server=os.environ), urls)
