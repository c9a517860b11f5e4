"""Long lists of the page stay live, whatever the size of the window."""

import re
import time

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.page.browser import watched_context
from tests.support.page.runs import command_elsewhere
from tests.support.servers.misconfigured_storm import StormRecord
from tests.support.servers.server import Server

pytestmark = pytest.mark.server
Storm = tuple[Server, StormRecord]


@pytest.mark.nightly
@pytest.mark.parametrize("height", [1_000, 2_160])
def test_a_tall_window_is_live_too(browser: Browser, storm: Storm, height: int) -> None:
    server, _ = storm
    with watched_context(browser, server.url, token=server.token) as (context, _):
        page = context.new_page()
        page.set_viewport_size({"width": 1920, "height": height})
        page.goto("/ui/runs")
        expect(page.get_by_text(re.compile(r"^\d+ runs"))).to_be_visible()
        server.spawn("watched", agentId="writer", label=f"seen-at-{height}")
        expect(page.get_by_role("row").nth(1)).to_contain_text(f"seen-at-{height}")
        expect(page.get_by_role("button", name="newer events: show")).to_have_count(0)


def test_no_row_comes_between_the_mouse_and_the_row_that_it_aims_at(
    window: Page, storm: Storm
) -> None:
    server, _ = storm
    window.goto("/ui/runs")
    first = window.get_by_role("row").nth(1)
    first.hover()
    run = str(first.get_by_role("link").first.get_attribute("href"))
    server.spawn("watched", agentId="writer", label="came-while-aiming")
    expect(window.get_by_role("button", name="newer events: show")).to_be_visible()
    expect(first.get_by_role("link").first).to_have_attribute("href", run)
    window.get_by_role("heading", name="Runs").hover()
    expect(first).to_contain_text("came-while-aiming")


def test_no_row_moves_when_the_counts_come(window: Page) -> None:
    held: list[Route] = []
    window.route("**/v1/runs?*totals=true*", lambda route: held.append(route), times=1)
    with window.expect_request("**/v1/runs?*totals=true*"):
        window.goto("/ui/runs")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    before = window.get_by_role("grid").bounding_box()
    held[0].continue_()
    expect(window.get_by_text(re.compile(r"^\d+ runs"))).to_be_visible()
    assert window.get_by_role("grid").bounding_box() == before


@pytest.mark.nightly
def test_reading_on_goes_on_when_the_server_is_back(browser: Browser, storm: Storm) -> None:
    server, _ = storm
    with watched_context(browser, server.url, token=server.token, may_be_away=True) as (context, _):
        page = context.new_page()
        page.goto("/ui/runs?status=done")
        grid = page.get_by_role("grid", name="Runs")
        expect(page.get_by_role("row").nth(1)).to_be_visible()
        request_times: list[float] = []

        def refuse(route: Route) -> None:
            request_times.append(time.monotonic())
            route.abort()

        page.route("**/v1/runs?*cursor=*", refuse, times=2)
        grid.press("End")
        expect(page.get_by_role("alert")).to_contain_text("does not answer")
        expect(page.get_by_role("alert")).to_have_count(0)
        grid.press("End")
        chosen = page.locator(".line.current")
        expect(chosen).to_have_attribute("aria-rowindex", re.compile(r"^(4[3-9]|[5-9]\d|\d{3,})$"))
        first, second = request_times
        assert second - first > 0.5, "what failed is not asked again at once"


def test_search_whose_runs_are_all_counted_offers_to_show_more(window: Page) -> None:
    window.goto("/ui/runs?labelPrefix=writer-")
    grid = window.get_by_role("grid", name="Runs")
    more = window.get_by_role("button", name="Show more runs")
    expect(more).to_be_visible()
    first = grid.get_attribute("aria-rowcount")
    assert first is not None
    more.click()
    expect(grid).not_to_have_attribute("aria-rowcount", first)


@pytest.mark.nightly
def test_k_goes_up_from_wherever_one_is(window: Page) -> None:
    window.goto("/ui/runs")
    grid = window.get_by_role("grid", name="Runs")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    for _ in range(4):
        grid.press("j")
    window.get_by_role("heading", name="Runs").click()
    window.keyboard.press("k")
    expect(window.locator(".line.current")).to_have_attribute("aria-rowindex", "4")


def test_log_finds_a_run_by_its_label(window: Page, storm: tuple[Server, StormRecord]) -> None:
    server, record = storm
    run_id = min(record.accepted)
    label = server.http.get(f"/v1/runs/{run_id}").json()["label"]
    window.goto("/ui/log")
    field = window.get_by_label("Run", exact=True)
    field.fill("no such label")
    field.press("Enter")
    expect(window.get_by_role("alert")).to_have_text("No run has the label “no such label”.")
    field.fill(run_id[:8])
    field.press("Enter")
    expect(window.get_by_role("alert")).to_contain_text("copy the whole id")
    field.fill(label)
    field.press("Enter")
    expect(window).to_have_url(re.compile(r"runId=[0-9a-f-]{36}"))
    expect(window.get_by_role("alert")).to_have_count(0)
    expect(window.get_by_role("row").filter(has_text=label).first).to_be_visible()


def test_log_takes_types_of_events_in_words(window: Page) -> None:
    window.goto("/ui/log")
    field = window.get_by_label("Type", exact=True)
    field.fill("spawn refused, Run ended")
    field.press("Enter")
    expect(window).to_have_url(re.compile(r"types=SpawnRefused(,|%2C)RunEnded$"))
    expect(field).to_have_value("Spawn refused, Run ended")
    expect(window.get_by_role("row").nth(1)).to_contain_text(re.compile("Spawn refused|Run ended"))
    expect(window.get_by_role("alert")).to_have_count(0)


@pytest.mark.nightly
def test_the_command_of_the_log_names_every_filter(window: Page) -> None:
    window.goto("/ui/log?types=SpawnRefused&tree=main")
    command = "spawnlog event list --newest --type SpawnRefused --tree main"
    assert command_elsewhere(window) == command


def test_an_event_of_the_log_opens_beside_it_and_is_in_the_address(window: Page) -> None:
    window.goto("/ui/log")
    window.get_by_role("group", name="Type of event").get_by_role("button").first.click()
    expect(window).to_have_url(re.compile("types="))
    window.get_by_role("button", pressed=True).click()
    expect(window).not_to_have_url(re.compile("types="))
    row = window.get_by_role("row").filter(has_text="Run ended").first
    expect(row.get_by_role("link", name=re.compile(r"\w+ · .+"))).to_be_visible()
    position = row.get_by_role("link").last.inner_text()
    # Newer events may come meanwhile.
    row = window.get_by_role("row").filter(
        has=window.get_by_role("link", name=position, exact=True)
    )
    row.get_by_text("Run ended").click()
    heading = window.get_by_role("heading", name="Run ended")
    expect(heading).to_be_focused()
    expect(heading).to_be_in_viewport()
    expect(window).to_have_url(re.compile(f"open={position.replace(',', '')}"))
    # Who gets the address sees the event, also if the list does not have it.
    window.goto(f"/ui/log?types=SpawnRefused&open={position.replace(',', '')}")
    panel = window.get_by_role("region", name=f"Event {position}")
    expect(panel).to_contain_text("RunEnded")
    panel.get_by_role("link", name="View at this time").focus()
    window.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(window.get_by_role("grid", name="Events")).to_be_focused()


@pytest.mark.nightly
def test_who_leaves_while_a_list_is_read_on_hears_no_more_of_it(window: Page) -> None:
    held: list[Route] = []
    window.goto("/ui/runs")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    window.route("**/v1/runs?*cursor=*", lambda route: held.append(route), times=1)
    with window.expect_request("**/v1/runs?*cursor=*"):
        window.get_by_role("grid", name="Runs").press("End")
    window.get_by_role("link", name="Lanes").click()
    expect(window.get_by_role("heading", name="Lanes")).to_be_visible()
    with window.expect_response("**/v1/runs?*cursor=*"):
        held.pop().continue_()
    expect(window.get_by_role("heading", name="Lanes")).to_be_visible()
