"""The log as a live stream from the real server."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.support.http.problems import problem_of
from tests.support.http.streams import Frame, StreamReader
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

Open = Callable[..., StreamReader]


@pytest.fixture
def reading(server: Server) -> Open:
    """Return a function that opens a stream with a query, headers and a token."""

    def open_stream(query: str = "", token: str | None = None, **headers: str) -> StreamReader:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return StreamReader(server.url, f"/v1/events{query}", token or server.token, given)

    return open_stream


def until_announced(stream: StreamReader) -> tuple[list[Frame], int]:
    """Return the events up to the first announcement, and how many checkpoints came meanwhile."""
    frames = stream.until(lambda frame: frame.event == "RunAnnounced")
    shown = [frame for frame in frames if frame.event != "checkpoint"]
    return shown, len(frames) - len(shown)


def test_stream_begins_at_head_and_is_live(server: Server, reading: Open) -> None:
    with reading() as stream:
        assert stream.status == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        start = int(stream.headers["spawnlog-position"])
        run_id = server.accepted(session=server.new_session())
        # Runs of other tests may end while this stream is open.
        frames = stream.until(
            lambda frame: frame.event == "RunAnnounced" and frame.data.get("runId") == run_id
        )
    shown = [frame for frame in frames if frame.event != "checkpoint"]
    assert int(shown[0].id or 0) > start
    for frame in shown:
        assert (frame.data["position"], frame.data["type"]) == (int(frame.id or 0), frame.event)
    assert "SpawnRequested" in [event.event for event in shown if event.data.get("runId") == run_id]
    page = server.get("/v1/events", limit=20)["items"]
    with reading("?after=0") as stream:
        assert [stream.event().data for _ in page] == page


@pytest.mark.parametrize("how", ["last-event-id", "after"])
def test_resume_has_no_gap_and_no_repeat(server: Server, reading: Open, how: str) -> None:
    seen: list[int] = [server.head()]
    session = server.new_session()
    with ThreadPoolExecutor(1) as pool:
        spawning = pool.submit(lambda: [server.announced(session=session) for _ in range(6)])
        while not spawning.done() or seen[-1] < server.head():
            last = str(seen[-1])
            opened = reading(f"?after={last}") if how == "after" else reading(Last_Event_ID=last)
            with opened as stream:
                count = min(5, server.head() - seen[-1])
                seen += [int(stream.event().id or 0) for _ in range(count)]
        spawning.result()
    assert seen == list(range(seen[0], seen[0] + len(seen)))
    assert len(seen) > 60


def test_last_event_id_outranks_after(server: Server, reading: Open) -> None:
    server.announced(session=server.new_session())
    with reading("?after=2", Last_Event_ID="7") as stream:
        assert stream.event().id == "8"
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(server.head() + 10_000)}
    problem_of(server.http.get("/v1/events", headers=headers), 410, "foreign_cursor")


def test_filtered_stream_shows_what_is_wanted(server: Server, reading: Open) -> None:
    session = server.new_session()
    with reading(f"?tree={session}&types=RunStarted,RunAnnounced") as stream:
        server.announced(session=server.new_session())
        run = server.announced(session=session)
        shown, _ = until_announced(stream)
    assert [frame.event for frame in shown] == ["RunStarted", "RunAnnounced"]
    assert {frame.data["runId"] for frame in shown} == {run["runId"]}


def test_checkpoint_skips_filtered_events(server: Server, reading: Open) -> None:
    while server.head() < 150:
        server.announced(session=server.new_session())
    with reading("?after=0&types=ConfigurationActivated") as stream:
        *_, point = stream.until(lambda frame: frame.event == "checkpoint")
    position = int(point.id or 0)
    assert point.data == {"position": position}
    assert position > 100
    with reading("?types=RunAnnounced", Last_Event_ID=str(position)) as stream:
        server.announced(session=server.new_session())
        assert int(stream.event().id or 0) > position


def test_reader_sees_its_trees_and_checkpoints(server: Server, reading: Open) -> None:
    with reading(token=server.secrets["reader"]) as stream:
        for _ in range(12):
            server.announced(session=server.new_session("stranger"))
        run = server.announced(session=server.new_session("reader"))
        shown, checkpoints = until_announced(stream)
    assert {frame.data["correlation"] for frame in shown} == {run["requesterSessionKey"]}
    assert checkpoints
    assert "stranger" not in str(shown)


def test_child_follows_its_own_run(server: Server, reading: Open) -> None:
    with server.held(server.new_session()) as run:
        with reading(f"?runId={run.run_id}&after=0", token=run.token) as stream:
            assert stream.until(lambda frame: frame.event == "RunStarted")
            server.let_go(run.run_id)
            shown, _ = until_announced(stream)
    assert {frame.data["runId"] for frame in shown} == {run.run_id}


def test_many_readers_see_the_same(server: Server, reading: Open) -> None:
    start = server.head()
    with ExitStack() as stack:
        streams = [stack.enter_context(reading(f"?after={start}")) for _ in range(20)]
        server.announced(session=server.new_session())
        seen = [[frame.id for frame in until_announced(stream)[0]] for stream in streams]
    assert seen == [seen[0]] * len(seen)
