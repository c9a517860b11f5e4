"""The other servers of tests of the HTTP door; what they wrote is looked through at the end."""

import uuid
from collections.abc import Iterator

import pytest

from tests.support.servers.attachment_server import AttachmentServer, attachment_server
from tests.support.servers.server import Server


@pytest.fixture(scope="package")
def attaching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttachmentServer]:
    """A server that takes attachments, and removes them when a run is announced."""
    with attachment_server(tmp_path_factory.mktemp("attaching"), retain=False) as server:
        yield server


@pytest.fixture(scope="package")
def retaining(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttachmentServer]:
    """A server that keeps attachments as long as the session."""
    with attachment_server(tmp_path_factory.mktemp("retaining"), retain=True) as server:
        yield server


@pytest.fixture(scope="package")
def names(server: Server) -> dict[str, str]:
    """Values for the paths of operations, of things that exist."""
    run = server.announced(session=server.new_session("named"), cleanup="keep")
    return {
        "runId": run["runId"],
        "id": run["runId"],
        "key": run["requesterSessionKey"],
        "revision": "1",
    }


@pytest.fixture
def unrecorded(server: Server) -> Iterator[str]:
    """A session for which nothing may be recorded."""
    key = server.new_session("bad-body")
    yield key
    assert server.runs(requester=key) == []
    assert server.http.get(f"/v1/sessions/{key}").status_code == 404


@pytest.fixture
def label(server: Server) -> Iterator[str]:
    """The label of a run whose script waits at its gate; the gate is open at the end."""
    label = f"ponder-{uuid.uuid4().hex}"
    yield label
    server.let_go(label)
