"""Every view on a log of 100,000 events, live and in its middle."""

from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.generate import generate
from benchmarks.server import CONFIGURATION, Server, running_server
from infrastructure.outbound.identity.data_directory import DataDirectory
from infrastructure.server.database import open_database
from tests.support.page.browser import watched_context
from tests.support.servers.data_directories import new_place

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]
EVENTS = 100_000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with new_place() as place:
        database = open_database(None, DataDirectory.open(place / "data").postgres)
        try:
            generate(database.conninfo, events=EVENTS, seed=1)
        finally:
            database.close()
        # The generated log was decided by its own configuration, so it is only read.
        with running_server(place, configuration=CONFIGURATION) as server:
            yield server


def newest(server: Server, **parameters: str) -> dict[str, str]:
    """Return the newest run."""
    answer = httpx2.get(
        f"{server.url}/v1/runs",
        params={**parameters, "limit": "1"},
        headers={"Authorization": f"Bearer {server.token}"},
    )
    return dict(answer.json()["items"][0])


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    # A server that has just begun to follow so long a log may say that it is not so far yet.
    with watched_context(browser, server.url, token=server.token, may_be_away=True) as (context, _):
        yield context.new_page()


@pytest.mark.nightly
@pytest.mark.parametrize("at", ["", f"at=pos:{EVENTS // 2}"])
def test_every_view_is_there_in_the_past_and_now(page: Page, server: Server, at: str) -> None:
    then = {"at": at.removeprefix("at=")} if at else {}
    run, second_run = newest(server, **then), newest(server, status="done", **then)
    views = (
        "runs",
        "runs?status=refused",
        "tree",
        f"tree/{run['requesterSessionKey']}",
        *(f"run/{second_run['runId']}?part={part}" for part in ("decisions", "history", "prompt")),
        f"compare/{run['runId']}?with={second_run['runId']}",
        "changes",
        "what-if",
        "log",
        "lanes",
        "announcements",
        f"shared-context/{run['requesterSessionKey']}",
        "configuration",
    )
    for view in views:
        page.goto(f"/ui/{view}{'&' if '?' in view else '?'}{at}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_text("Reading …")).to_have_count(0)
        expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.nightly
def test_the_end_of_a_long_list_is_reached(page: Page) -> None:
    page.goto(f"/ui/runs?at=pos:{EVENTS // 50}")
    grid = page.get_by_role("grid", name="Runs")
    expect(page.get_by_role("row").nth(1)).to_be_visible()
    while grid.get_attribute("aria-rowcount") == "-1":
        grid.press("End")
    rows = int(grid.get_attribute("aria-rowcount") or "0")
    assert rows > 100
    grid.press("End")
    expect(page.locator(f"[aria-rowindex='{rows}']")).to_be_visible()
    assert page.get_by_role("row").count() < 60
