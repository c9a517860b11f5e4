"""A server that dies by kill -9 at an exact place in the log, and is started again."""

import contextlib
import signal
from pathlib import Path
from typing import Any

import httpx2

from infrastructure.outbound.log.fail_point import VARIABLE
from tests.support.running_server import wait_for
from tests.support.spawning_server import Stories


class Mortal(Stories):
    """Dies when it is told where."""

    def __init__(self, data_dir: Path, folder: Path) -> None:
        self._order = data_dir.with_name("fail-point")
        super().__init__(data_dir, folder, environment={VARIABLE: str(self._order)})

    def alive(self) -> None:
        """Running, and ordered to stay so: whatever the test before has left."""
        self._order.unlink(missing_ok=True)
        if self.process is None or self.process.poll() is not None:
            self.start()

    def is_to_die(self, moment: str) -> None:
        """`after RunClaimed`, `before RunArchived`: the next such event is the end."""
        part = self._order.with_name("fail-point.part")
        part.write_text(moment, "utf-8")
        part.rename(self._order)

    def has_died(self) -> None:
        """Wait until it has killed itself, as it was told to."""
        assert self.ended() == -signal.SIGKILL, self.log()
        assert not self._order.exists()

    def asked_in_vain(self, key: str, **body: Any) -> None:
        """Ask for a spawn of a server that dies meanwhile or right after its answer."""
        with contextlib.suppress(httpx2.TransportError):
            self.spawn(key=key, **body)

    def answer_again(self, key: str, **body: Any) -> httpx2.Response:
        """The first answer to the same request, once there is one."""

        def ask() -> httpx2.Response | None:
            answer = self.spawn(key=key, **body)
            return answer if answer.status_code != 409 else None

        return wait_for("an answer to the same request", ask)

    def whole_log(self) -> list[dict[str, Any]]:
        """Every event, in order."""
        events: list[dict[str, Any]] = []
        while True:
            after = events[-1]["position"] if events else 0
            page = self.http.get("/v1/events", params={"after": after, "limit": 500}).json()
            events += page["items"]
            if not page["items"]:
                return events
