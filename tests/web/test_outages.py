"""The page shows nothing wrong and loses nothing, whatever happens to its servers."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.page.browser import ELSEWHERE, watched_context
from tests.support.page.round_robin import RoundRobin, round_robin
from tests.support.page.runs import search_runs
from tests.support.servers.configurations import agent, configuration
from tests.support.servers.data_directories import new_place
from tests.support.servers.databases import Databases
from tests.support.servers.server import Server

pytestmark = pytest.mark.server
TOKEN = "a-token-of-the-file-which-all-servers-have"
STORED = "localStorage.getItem('spawnlog.token')"
CONFIGURATION = {
    **configuration(agent("main", default=True)),
    "spawnlog": {
        "tokens": [
            {"id": "page", "token": "${PAGE_TOKEN}", "scopes": ["admin"], "sessions": ["*"]}
        ],
        "allowedHosts": [ELSEWHERE],
    },
}


@pytest.fixture
def between() -> Iterator[RoundRobin]:
    with round_robin() as between:
        yield between


@pytest.fixture
def page(browser: Browser, between: RoundRobin) -> Iterator[Page]:
    """Yield a window that permits no fault except an unavailable server."""
    with watched_context(browser, between.url, token=TOKEN, may_be_away=True) as (context, _):
        yield context.new_page()


def server_on(data_dir: Path, url: str) -> Server:
    return Server(data_dir, CONFIGURATION, database_url=url, environment={"PAGE_TOKEN": TOKEN})


@pytest.fixture
def first_server(database_url: str) -> Iterator[Server]:
    with new_place() as place, server_on(place / "data", database_url) as server:
        yield server


@pytest.mark.nightly
def test_two_servers_behind_one_address_read_as_one(
    page: Page, between: RoundRobin, first_server: Server
) -> None:
    with server_on(first_server.data_dir, first_server.database_url) as second_server:
        between.lead_to(first_server.url, second_server.url)
        page.goto("/ui/runs")
        for number, server in zip(
            range(6), itertools.cycle((first_server, second_server)), strict=False
        ):
            server.spawn(f"task {number}", label=f"label-{number}")
            expect(page.get_by_role("row").nth(1)).to_contain_text(f"label-{number}")
            expect(page.get_by_role("row")).to_have_count(number + 2)
    assert len(between.connections) == 2


@pytest.mark.nightly
def test_a_restart_loses_neither_place_nor_event(
    page: Page, between: RoundRobin, first_server: Server
) -> None:
    between.lead_to(first_server.url)
    for number in range(3):
        first_server.spawn(f"task {number}", label=f"label-{number}")
    page.goto("/ui/runs?status=done&status=running&status=preparing&status=queued")
    expect(page.get_by_role("row")).to_have_count(4)
    page.get_by_role("grid", name="Runs").press("j")
    expect(page.locator(".line.current")).to_contain_text("label-2")
    between.lead_to()
    expect(page.get_by_text("Disconnected. Showing data from")).to_be_visible()
    first_server.stop()
    first_server.start()
    first_server.spawn("task 3", label="label-3")
    expect(page.get_by_role("row")).to_have_count(4)
    between.lead_to(first_server.url)
    expect(page.get_by_role("button", name="newer events: show")).to_be_visible()
    expect(page.get_by_text("Disconnected. Showing data from")).to_have_count(0)
    expect(page.locator(".line.current")).to_contain_text("label-2")
    page.get_by_role("button", name="newer events: show").click()
    expect(page.get_by_role("row").nth(1)).to_contain_text("label-3")


def test_live_mark_goes_out_while_server_is_away(
    page: Page, between: RoundRobin, first_server: Server
) -> None:
    between.lead_to(first_server.url)
    first_server.spawn("task", label="the-first")
    page.goto("/ui/runs")
    expect(page.get_by_role("row")).to_have_count(2)
    live = page.get_by_text("● Live")
    expect(live).to_be_visible()
    heading = page.get_by_role("heading", name="Runs")
    before = heading.bounding_box()
    # An outage may also meet the bar's question of how much was recorded.
    page.route("**/v1/events/histogram?*", lambda route: route.abort())
    first_server.spawn("task", label="the-second")
    expect(page.get_by_text("The time bar cannot be read")).to_be_visible()
    between.lead_to()
    expect(page.get_by_text("Disconnected. Showing data from")).to_be_visible()
    expect(live).to_have_count(0)
    expect(page.get_by_role("button", name="Offline since")).to_be_visible()
    assert heading.bounding_box() == before
    between.lead_to(first_server.url)
    expect(live).to_be_visible()
    expect(page.get_by_text("Disconnected. Showing data from")).to_have_count(0)


@pytest.mark.nightly
def test_another_log_takes_the_place_of_everything_that_was_shown(
    page: Page, between: RoundRobin, first_server: Server, databases: Databases
) -> None:
    between.lead_to(first_server.url)
    run_id = first_server.spawn("of the one log", label="of-the-one").json()["runId"]
    first_server.run(run_id, "announced")
    page.goto("/ui/runs?at=pos:5")
    expect(page.get_by_role("note")).to_be_visible()
    url = databases.create()
    with psycopg.connect(url) as connection:
        # Databases of tests are copies of one, and so are their logs.
        connection.execute("UPDATE log_head SET log_id = gen_random_uuid()")
    with new_place() as place, server_on(place / "data", url) as fresh:
        fresh.spawn("of the other log", label="of-the-other")
        between.lead_to(fresh.url)
        expect(page.get_by_role("status").filter(has_text="another log")).to_be_visible()
        page.get_by_role("link", name="Runs").first.click()
        expect(page.get_by_role("row").nth(1)).to_contain_text("of-the-other")
        expect(page.get_by_text("of-the-one")).to_have_count(0)
        page.get_by_role("button", name="Close").click()
        expect(page.get_by_text("another log")).to_have_count(0)
    databases.drop(url)


@pytest.mark.nightly
def test_a_token_that_ended_meanwhile_is_not_taken_for_a_server_that_is_away(
    browser: Browser, between: RoundRobin, first_server: Server
) -> None:
    between.lead_to(first_server.url)
    code = first_server.http.post("/v1/page-codes").json()["code"]
    with watched_context(browser, between.url, may_be_away=True, refusals=(401,)) as (context, _):
        page = context.new_page()
        # A view that sends no requests by itself.
        page.goto(f"/ui/lanes#code={code}")
        expect(page.get_by_text("No runs are running or queued")).to_be_visible()
        own = {"Authorization": f"Bearer {page.evaluate(STORED)}"}
        between.lead_to()
        expect(page.get_by_text("Disconnected. Showing data from")).to_be_visible()
        assert first_server.http.delete("/v1/page-tokens/current", headers=own).json()["wasKnown"]
        between.lead_to(first_server.url)
        expect(page.get_by_role("alert")).to_contain_text("no longer valid")
        assert page.evaluate(STORED) is None


@pytest.mark.nightly
def test_in_an_outage_nothing_is_shown_as_the_answer_to_another_question(
    page: Page, between: RoundRobin, first_server: Server
) -> None:
    between.lead_to(first_server.url)
    first_server.run(first_server.spawn("task", label="the-first").json()["runId"], "announced")
    page.goto("/ui/runs")
    expect(page.get_by_role("row")).to_have_count(2)
    between.lead_to()
    expect(page.get_by_text("Disconnected. Showing data from")).to_be_visible()
    search_runs(page, "label:another")
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    expect(page.get_by_role("row")).to_have_count(0)
    between.lead_to(first_server.url)
    expect(page.get_by_text("0 of 1 run matches.")).to_be_visible()


@pytest.mark.nightly
def test_it_works_at_a_name_that_a_browser_trusts_with_little(
    browser: Browser, first_server: Server
) -> None:
    first_server.spawn("task", label="the-first")
    url = first_server.url.replace("127.0.0.1", ELSEWHERE)
    code = first_server.http.post("/v1/page-codes").json()["code"]
    with watched_context(browser, url) as (context, watched):
        page = context.new_page()
        page.goto(f"/ui/runs#code={code}")
        expect(page.get_by_role("row").nth(1)).to_contain_text("the-first")
        assert page.evaluate("isSecureContext") is False
        second_page = context.new_page()
        second_page.goto("/ui/runs")
        expect(second_page.get_by_role("row").nth(1)).to_contain_text("the-first")
        first_server.spawn("task", label="the-second")
        for window in (page, second_page):
            expect(window.get_by_role("row").nth(1)).to_contain_text("the-second")
        # A browser says that there it takes no note of one of the headers.
        assert [line for line in watched.wrong if "Cross-Origin-Opener-Policy" not in line] == []
        watched.wrong.clear()
