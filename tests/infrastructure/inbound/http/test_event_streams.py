"""The log as a live stream from the real server."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.http.problems import problem_of
from tests.support.http.streams import Frame, StreamReader
from tests.support.servers.http_server import House

pytestmark = pytest.mark.server

Open = Callable[..., StreamReader]


@pytest.fixture
def reading(house: House) -> Open:
    """Opens a stream with a query, headers and a token."""

    def open_stream(query: str = "", token: str | None = None, **headers: str) -> StreamReader:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return StreamReader(
            house.server.url, f"/v1/events{query}", token or house.server.token, given
        )

    return open_stream


def positions(frames: list[Frame]) -> list[int]:
    return [int(frame.id) for frame in frames if frame.id]


def test_a_stream_begins_at_the_head_and_goes_on_live(house: House, reading: Open) -> None:
    with reading() as stream:
        assert stream.status == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        start = int(stream.headers["spawnlog-position"])
        run = house.accepted(house.session())
        # Those of other tests may still be under way, and end meanwhile.
        frames = stream.until(
            lambda frame: frame.event == "RunAnnounced" and frame.data.get("runId") == run["runId"]
        )
        assert positions(frames)[0] > start
        shown = [frame for frame in frames if frame.event != "checkpoint"]
        own = [frame.event for frame in shown if frame.data.get("runId") == run["runId"]]
        assert "SpawnRequested" in own
        for frame in shown:
            assert frame.data["position"] == int(frame.id or 0)
            assert frame.data["type"] == frame.event


def test_a_frame_is_the_event_as_pages_show_it(house: House, reading: Open) -> None:
    page = house.get("/v1/events", limit=20)["items"]
    with reading("?after=0") as stream:
        assert [stream.event().data for _ in page] == page


@pytest.mark.parametrize("how", ["last-event-id", "after"])
def test_a_resume_has_no_gap_and_no_repeat(house: House, reading: Open, how: str) -> None:
    seen: list[int] = [house.head()]
    session = house.session()
    with ThreadPoolExecutor(1) as pool:
        spawning = pool.submit(lambda: [house.ended(session) for _ in range(6)])
        while not spawning.done() or seen[-1] < house.head():
            last = str(seen[-1])
            opened = reading(f"?after={last}") if how == "after" else reading(Last_Event_ID=last)
            with opened as stream:
                count = min(5, house.head() - seen[-1])
                seen += [int(stream.event().id or 0) for _ in range(count)]
        spawning.result()
    assert seen == list(range(seen[0], seen[0] + len(seen)))
    assert len(seen) > 60


def test_last_event_id_goes_before_after(house: House, reading: Open) -> None:
    with reading("?after=2", Last_Event_ID="7") as stream:
        assert stream.event().id == "8"


def test_a_position_of_another_log_is_gone(house: House) -> None:
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(house.head() + 10_000)}
    problem_of(house.http.get("/v1/events", headers=headers), 410, "foreign_cursor")


def test_a_filtered_stream_shows_what_is_wanted_alone(house: House, reading: Open) -> None:
    session = house.session()
    with reading(f"?tree={session}&types=RunStarted,RunAnnounced") as stream:
        house.ended(house.session())
        run = house.ended(session)
        frames = stream.until(lambda frame: frame.event == "RunAnnounced")
        shown = [frame for frame in frames if frame.event != "checkpoint"]
        assert [frame.event for frame in shown] == ["RunStarted", "RunAnnounced"]
        assert {frame.data["runId"] for frame in shown} == {run["runId"]}


def test_what_is_filtered_is_skipped_by_a_checkpoint(house: House, reading: Open) -> None:
    while house.head() < 150:
        house.ended(house.session())
    with reading("?after=0&types=ConfigurationActivated") as stream:
        frames = stream.until(lambda frame: frame.event == "checkpoint")
        point = frames[-1]
        assert point.data == {"position": int(point.id or 0)}
        assert int(point.id or 0) > 100
    with reading("?types=RunAnnounced", Last_Event_ID=str(point.id)) as stream:
        house.ended(house.session())
        assert all(int(frame.id or 0) > int(point.id or 0) for frame in [stream.event()])


def test_a_restricted_reader_sees_its_trees_and_checkpoints(house: House, reading: Open) -> None:
    with reading("", token=house.secrets["reader"]) as stream:
        for _ in range(12):
            house.ended(house.session("stranger"))
        run = house.ended(house.session("reader"))
        frames = stream.until(lambda frame: frame.event == "RunAnnounced")
        shown = [frame for frame in frames if frame.event != "checkpoint"]
        assert {frame.data["correlation"] for frame in shown} == {run["requesterSessionKey"]}
        assert any(frame.event == "checkpoint" for frame in frames)
        assert "stranger" not in str(shown)


def test_the_stream_of_one_run_is_open_to_its_child(house: House, reading: Open) -> None:
    with house.held(house.session()) as run:
        with reading(f"?runId={run.run_id}&after=0", token=run.token) as stream:
            assert stream.until(lambda frame: frame.event == "RunStarted")
            house.gates.open(run.run_id)
            frames = stream.until(lambda frame: frame.event == "RunAnnounced")
            assert {frame.data["runId"] for frame in frames if frame.event != "checkpoint"} == {
                run.run_id
            }


def test_many_readers_see_the_same(house: House, reading: Open) -> None:
    start = house.head()
    streams = [reading(f"?after={start}") for _ in range(20)]
    try:
        for stream in streams:
            stream.__enter__()
        house.ended(house.session())
        seen = [
            positions(stream.until(lambda frame: frame.event == "RunAnnounced"))
            for stream in streams
        ]
        assert all(one == seen[0] for one in seen)
    finally:
        for stream in streams:
            stream.leave()


def test_a_reader_that_left_is_not_an_error(house: House, reading: Open) -> None:
    before = house.server.log()
    for _ in range(10):
        with reading("?after=0") as stream:
            stream.event()
    house.ended(house.session())
    assert house.server.log() == before


def test_without_the_media_type_it_is_a_page(house: House) -> None:
    answer = house.http.get("/v1/events", headers={"Accept": "application/json"})
    assert answer.headers["content-type"] == "application/json"
