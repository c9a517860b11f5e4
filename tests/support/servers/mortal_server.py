"""A server that dies by kill -9 at an exact place in the log, and is started again."""

import contextlib
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2

from infrastructure.outbound.log.append.fault_point import VARIABLE
from tests.support.faults.turnstiles import Turnstile
from tests.support.servers.running_server import wait_for
from tests.support.servers.spawning_server import Stories

QUICK_LEASE_SECONDS = 2.0


class Aside:
    """A request that somebody else waits for."""

    def __init__(self, ask: Callable[[], httpx2.Response]) -> None:
        self._ask = ask
        self._answers: list[httpx2.Response] = []
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()

    def _wait(self) -> None:
        with contextlib.suppress(httpx2.TransportError):
            self._answers.append(self._ask())

    def answer(self) -> httpx2.Response | None:
        """The answer, once it is here; None when the connection was lost."""
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self._answers[0] if self._answers else None


class Mortal(Stories):
    """Dies when it is told where. `order` is the name of the file that tells it."""

    def __init__(
        self,
        data_dir: Path,
        folder: Path,
        *,
        order: str = "fail-point",
        environment: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        self._order = data_dir.with_name(order)
        super().__init__(
            data_dir,
            folder,
            lease_seconds=QUICK_LEASE_SECONDS,
            environment={**(environment or {}), VARIABLE: str(self._order)},
            **more,
        )

    def alive(self) -> None:
        """Running, and ordered to stay so: whatever the test before has left."""
        self._order.unlink(missing_ok=True)
        if self.process is None or self.process.poll() is not None:
            self.start()

    def turnstile(self) -> Turnstile:
        """Stop it at the next place where it looks for an order, and at each one after that."""
        return Turnstile(self._order)

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

    def spawned_aside(self, **body: Any) -> "Aside":
        """Ask for a spawn that takes its time, and go on."""
        return Aside(lambda: self.spawn(**body))

    def being_prepared(self, session_key: str) -> str:
        """The id of the one spawn of a session that is being prepared."""
        query = {"requester": session_key, "status": "preparing"}
        (found,) = wait_for(
            "the spawn", lambda: self.http.get("/v1/runs", params=query).json()["items"]
        )
        return str(found["runId"])
