"""The other servers of tests of the HTTP door; what they wrote is looked through at the end."""

import uuid
from collections.abc import Iterator

import pytest

from tests.support.servers.attachment_server import AttachingHouse, attaching_house
from tests.support.servers.configurations import agent, configuration
from tests.support.servers.databases import Databases
from tests.support.servers.http_server import House
from tests.support.servers.inner_server import InnerServer, inner_server


@pytest.fixture(scope="package")
def attaching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttachingHouse]:
    """A server that takes attachments, and removes them when a run is announced."""
    with attaching_house(tmp_path_factory.mktemp("attaching"), retain=False) as house:
        yield house


@pytest.fixture(scope="package")
def retaining(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttachingHouse]:
    """A server that keeps attachments as long as the session."""
    with attaching_house(tmp_path_factory.mktemp("retaining"), retain=True) as house:
        yield house


@pytest.fixture(scope="package")
def inner(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InnerServer]:
    """A server in this process. Tests record nothing for the sessions `main` and `x`."""
    url = databases.create()
    with inner_server(tmp_path_factory.mktemp("inner"), configuration(agent()), url) as server:
        yield server
    databases.drop(url)


@pytest.fixture(scope="package")
def names(inner: InnerServer) -> dict[str, str]:
    """Values for the paths of operations, of things that exist."""
    run = inner.spawn(cleanup="keep")
    return {
        "runId": run["runId"],
        "id": run["runId"],
        "key": run["requesterSessionKey"],
        "revision": "1",
    }


@pytest.fixture
def unrecorded(house: House) -> Iterator[str]:
    """A session for which nothing may be recorded."""
    key = house.session("bad-body")
    yield key
    assert house.runs(key) == []
    assert house.http.get(f"/v1/sessions/{key}").status_code == 404


@pytest.fixture
def label(house: House) -> Iterator[str]:
    """The label of a run whose script waits at its gate; the gate is open at the end."""
    label = f"ponder-{uuid.uuid4().hex}"
    yield label
    house.gates.open(label)
