"""Other servers of HTTP tests; everything that they wrote is searched at the end."""

import uuid
from collections.abc import Iterator

import pytest

from tests.support.servers.attachment_server import AttachmentServer, attachment_server
from tests.support.servers.server import Server


@pytest.fixture(scope="package")
def attaching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttachmentServer]:
    """Yield a server that accepts attachments, and removes them when a run is announced."""
    with attachment_server(tmp_path_factory.mktemp("attaching"), retain=False) as server:
        yield server


@pytest.fixture(scope="package")
def retaining(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttachmentServer]:
    """Yield a server that keeps attachments as long as the session."""
    with attachment_server(tmp_path_factory.mktemp("retaining"), retain=True) as server:
        yield server


@pytest.fixture(scope="package")
def names(server: Server) -> dict[str, str]:
    """Return values for the paths of operations, of existing things."""
    run = server.announced(session=server.new_session("named"), cleanup="keep")
    return {
        "runId": run["runId"],
        "id": run["runId"],
        "key": run["requesterSessionKey"],
        "revision": "1",
    }


@pytest.fixture
def unrecorded(server: Server) -> Iterator[str]:
    """Yield a session for which nothing may be recorded."""
    key = server.new_session("bad-body")
    yield key
    assert server.runs(requester=key) == []
    assert server.http.get(f"/v1/sessions/{key}").status_code == 404


@pytest.fixture
def label(server: Server) -> Iterator[str]:
    """Yield the label of a run whose script waits until the end of the test."""
    label = f"ponder-{uuid.uuid4().hex}"
    yield label
    server.let_go(label)
