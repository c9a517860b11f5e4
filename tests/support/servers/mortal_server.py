"""A server that dies by kill -9 at an exact place in the log, and is started again."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import psycopg

from infrastructure.outbound.log.append.fault_point import VARIABLE
from tests.support.faults.turnstiles import Turnstile
from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases
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
        database_url: str = "",
        *,
        order: str = "fail-point",
        **more: Any,
    ) -> None:
        self._order = data_dir.with_name(order)
        super().__init__(
            data_dir,
            folder,
            lease_seconds=QUICK_LEASE_SECONDS,
            environment={VARIABLE: str(self._order)},
            database_url=database_url,
            **more,
        )

    def alive(self) -> None:
        """Running, and ordered to stay so: whatever the test before has left."""
        self._order.unlink(missing_ok=True)
        if self.process is None or self.process.poll() is not None:
            self.start()

    def differing_decisions(self) -> list[dict[str, Any]]:
        """Whatever the last death has left is gone on with first."""
        self.alive()
        return super().differing_decisions()

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

    def again(self) -> None:
        """Start it after its death; nobody waits for the lease of the dead one."""
        self.forget_the_dead()
        self.start()

    def dies_again(self, moment: str) -> None:
        """Start it after its death, and it dies while it goes on."""
        self.is_to_die(moment)
        self.forget_the_dead()
        # It may be gone before it says that it is ready.
        with contextlib.suppress(AssertionError):
            self.start()
        self.has_died()

    def forget_the_dead(self, living: str = "") -> None:
        """Let the leases and claims of all servers but the one at this address run out now."""
        of_the_dead = "WHERE holder IN (SELECT holder FROM holders WHERE url IS DISTINCT FROM %s)"
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            for table in ("holders", "work_claims"):
                statement = f"UPDATE {table} SET until = clock_timestamp() {of_the_dead}"
                connection.execute(statement.encode(), [living])

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


_Server = TypeVar("_Server", bound=Mortal)


@contextlib.contextmanager
def mortal_on(
    databases: Databases, make: Callable[[Path, Path, str], _Server]
) -> Iterator[_Server]:
    """A server on a database of its own, which stays when the server is killed; `make` is given its
    data directory, the folder of its children and the URL. Its log is verified once all is over."""
    url = databases.create()
    with new_place() as place:
        with make(place / "data", place / "notes", url) as server:
            yield server
        verified = server.log_command("verify")
        assert verified.returncode == 0, verified.stdout + verified.stderr
    databases.drop(url)
