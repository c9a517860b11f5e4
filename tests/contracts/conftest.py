"""Each adapter of a port in turn, and a launcher that leaves nothing behind.

Every adapter must pass a test of `running`. A test that inspects the database also requests
`postgres`, and runs on PostgreSQL alone.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import UUID

import pytest

from application.coordination.coordination import ClaimKind, Coordination
from application.ports.registry import Registry
from infrastructure.outbound.child_processes.launcher import ProcessLauncher
from tests.support.builders.launches import careful_launcher
from tests.support.builders.logged_family import LoggedFamily
from tests.support.memory.served_log import ServedLog, serving_in_memory
from tests.support.memory.store import Store
from tests.support.servers.running_log import RunningLog, running_on

Claim = Callable[..., Awaitable[list[UUID]]]
ADAPTERS = ("memory", pytest.param("postgresql", marks=pytest.mark.db))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test of the log, and of the stores beside it, once per adapter."""
    if "running" in metafunc.fixturenames and "postgres" not in metafunc.fixturenames:
        metafunc.parametrize("running", ADAPTERS, indirect=True)


@pytest.fixture
async def running(request: pytest.FixtureRequest) -> AsyncIterator[ServedLog]:
    if getattr(request, "param", "postgresql") == "memory":
        async with serving_in_memory(Store()) as log:
            yield log
    else:
        async with running_on(request.getfixturevalue("database_url")) as log_on_disk:
            yield log_on_disk


@pytest.fixture
def postgres(database_url: str, running: ServedLog) -> RunningLog:
    assert isinstance(running, RunningLog)
    return running


@pytest.fixture
def family(running: ServedLog) -> LoggedFamily:
    return LoggedFamily(running.log)


@pytest.fixture
def registry(running: ServedLog) -> Registry:
    return running.registry()


@pytest.fixture
def coordination(running: ServedLog) -> Coordination:
    return running.coordination()


@pytest.fixture
def claim(coordination: Coordination) -> Claim:
    """Return a function that claims work of a kind that is due, for a minute."""

    async def claimed(
        kind: ClaimKind, holder: str = "server-1", limit: int = 9, seconds: float = 60.0
    ) -> list[UUID]:
        return [*await coordination.claim(kind, holder, limit=limit, lease_seconds=seconds)]

    return claimed


@pytest.fixture
async def launcher() -> AsyncIterator[ProcessLauncher]:
    async with careful_launcher() as launcher:
        yield launcher
