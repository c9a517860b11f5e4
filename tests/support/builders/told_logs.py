"""Logs with every type of event, recorded once per test process; a test marked `told` gets a
copy.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.builders.damaged_log import tell_all
from tests.support.builders.whole_story import tell_everything
from tests.support.servers.databases import Databases
from tests.support.servers.running_log import RunningLog, running_on

_TELL: dict[str, Callable[[RunningLog, Path], Awaitable[object]]] = {
    "everything": lambda running, _: tell_everything(running),
    "all": tell_all,
}


class ToldLogs:
    """Template databases, which are only copied."""

    def __init__(self, databases: Databases, folder: Path) -> None:
        self._databases = databases
        self._folder = folder
        self._urls: dict[str, str] = {}

    def copy(self, name: str) -> str:
        """Return the URL of a copy of the log with this name; record the log if it is the first."""
        if name not in self._urls:
            url = self._databases.create()
            # In a thread, as this one may have an event loop.
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, self._tell(name, url)).result()
            self._urls[name] = url
        return self._databases.copy(self._urls[name])

    async def _tell(self, name: str, url: str) -> None:
        async with running_on(url) as running:
            await _TELL[name](running, self._folder)

    def drop(self) -> None:
        """Drop all of them."""
        for url in self._urls.values():
            self._databases.drop(url)
