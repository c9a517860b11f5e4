"""A user's action on the page is executed once."""

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.support.page.browser import watched_context
from tests.support.servers.misconfigured_storm import StormRecord
from tests.support.servers.server import Server

pytestmark = pytest.mark.server
NARROW = 360


def test_what_nobody_has_answered_is_the_same_when_it_is_sent_again(
    browser: Browser, storm: tuple[Server, StormRecord]
) -> None:
    server, record = storm
    run_id = max(record.accepted)

    def lose_answer(route: Route) -> None:
        route.fetch()
        route.abort()

    with watched_context(browser, server.url, token=server.token, may_be_away=True) as (context, _):
        page = context.new_page()
        page.goto(f"/ui/run/{run_id}")
        page.get_by_role("button", name="Respawn").click()
        page.get_by_label("New task").fill("once, however often")
        page.route("**/respawn", lose_answer, times=1)
        page.get_by_role("button", name="Spawn again").click()
        expect(page.get_by_role("status").filter(has_text="does not answer")).to_be_visible()
        page.get_by_role("button", name="Spawn again").click()
        expect(page.get_by_text("Respawned from")).to_be_visible()
    assert len(server.http.get(f"/v1/runs/{run_id}").json()["respawns"]) == 1


@pytest.mark.nightly
def test_nothing_stands_beyond_the_edge_of_a_narrow_window(
    browser: Browser, storm: tuple[Server, StormRecord]
) -> None:
    server, record = storm
    run, refused = min(record.accepted), min(record.refused)
    wide: dict[str, int] = {}
    with watched_context(browser, server.url, token=server.token) as (context, _):
        page = context.new_page()
        page.set_viewport_size({"width": NARROW, "height": 700})
        for view in (
            "runs",
            "what-if",
            "announcements",
            f"run/{refused}",
            f"run/{run}?part=history",
            f"run/{run}?part=prompt",
            f"compare/{refused}?with={run}",
        ):
            page.goto(f"/ui/{view}")
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            expect(page.get_by_text("Reading …")).to_have_count(0)
            width = page.evaluate("document.documentElement.scrollWidth")
            wide |= {view: width} if width > NARROW else {}
    assert wide == {}
