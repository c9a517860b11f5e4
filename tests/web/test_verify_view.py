"""Verification of the log on the page: started, followed, stopped, and its result."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.page.browser import faults_for_a_screen_reader, watched_context
from tests.support.page.runs import command_elsewhere
from tests.support.servers.configurations import agent, configuration
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server
WATCHER_TOKEN = "watches-the-whole-log-0123456789abcdef"
DAMAGED = 4


@pytest.fixture(scope="module")
def server(made_data_dir: Path) -> Iterator[Server]:
    """Yield a server with one life on its log, which was never verified."""
    with new_place() as place:
        token = place / "watcher"
        token.write_text(WATCHER_TOKEN, "utf-8")
        token.chmod(0o600)
        watcher = {"id": "watcher", "scopes": ["read"], "sessions": ["*"]}
        config = configuration(agent("main"), tokens=[{**watcher, "token": {"file": str(token)}}])
        with Server(copied(made_data_dir, place / "data"), config) as server:
            answer = server.spawn("hello", agentId="main", cleanup="delete")
            assert answer.status_code == 201, answer.text
            server.run(answer.json()["runId"], "archived")
            yield server


@contextmanager
def held(server: Server) -> Iterator[None]:
    """Block a verification that begins meanwhile in its middle."""
    with psycopg.connect(server.conninfo) as connection:
        connection.execute("LOCK TABLE contents IN ACCESS EXCLUSIVE MODE")
        yield


@contextmanager
def damaged(server: Server) -> Iterator[None]:
    """Add a space to a recorded event during the block."""
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        where = f"WHERE position = {DAMAGED}"
        connection.execute(f"UPDATE events SET state = state || ' ' {where}")
        yield
        connection.execute(f"UPDATE events SET state = substr(state, 1, length(state) - 1) {where}")


def verification(server: Server) -> dict[str, Any]:
    """Return the newest verification, once it has ended."""

    def over() -> dict[str, Any] | None:
        (newest, *_) = server.http.get("/v1/log").json()["verifications"] or [None]
        return newest if newest is not None and newest["state"] != "running" else None

    return wait_for("the verification to end", over)


def test_a_log_is_verified_from_the_page_and_the_page_says_so(page: Page, server: Server) -> None:
    page.goto("/ui/runs")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("v")
    expect(page.get_by_text("Not verified yet.")).to_be_visible()
    head = server.http.get("/v1/log").json()
    expect(page.get_by_text(f"{head['position']}:{head['chainHash']}")).to_be_visible()
    start = page.get_by_role("button", name="Verify the log")
    with held(server):
        start.click()
        expect(page.get_by_role("status").filter(has_text="is being verified")).to_be_visible()
        progress = page.get_by_role("progressbar", name="How far the log was verified")
        expect(progress).to_be_visible()
        expect(start).to_be_disabled()
        expect(page.get_by_text("It continues when this page is closed.")).to_be_visible()
        assert faults_for_a_screen_reader(page) == []
    expect(page.get_by_role("heading", name="nothing differs")).to_be_visible()
    expect(page.get_by_text(f"Verified: positions 1 to {head['position']}")).to_be_visible()
    expect(progress).to_have_count(0)
    expect(start).to_be_enabled()
    assert server.log_command("verify").returncode == 0
    expect(page.get_by_text("at a command")).to_be_visible()
    earlier = page.get_by_role("region", name="Earlier verifications")
    expect(earlier.get_by_role("row")).to_have_count(2)


def test_the_first_difference_leads_to_its_place_in_the_log(page: Page, server: Server) -> None:
    with damaged(server):
        page.goto("/ui/verify")
        page.get_by_role("button", name="Verify the log").click()
        expect(page.get_by_role("heading", name="something differs")).to_be_visible()
        found = verification(server)["difference"]
        region = page.get_by_role("region", name="Verification", exact=True)
        expect(region).to_contain_text(found["text"])
        region.get_by_role("link", name=str(DAMAGED)).click()
        expect(page).to_have_url(re.compile(rf"/ui/log\?at=pos:{DAMAGED}$"))
        first = page.get_by_role("grid", name="Events").get_by_role("row").nth(1)
        expect(first).to_contain_text(str(DAMAGED))


@pytest.mark.nightly
def test_one_under_way_is_stopped_from_the_page(page: Page, server: Server) -> None:
    with held(server):
        page.goto("/ui/verify")
        page.get_by_role("button", name="Verify the log").click()
        stop = page.get_by_role("button", name="Stop")
        stop.click()
        expect(page.get_by_role("status").filter(has_text="It stops within")).to_be_visible()
        expect(stop).to_be_disabled()
        expect(page.get_by_text("stopping")).to_be_visible()
    assert verification(server)["stopRequestedBy"] == "admin"


@pytest.mark.nightly
def test_in_the_past_the_head_is_that_of_then_and_nothing_is_begun(
    page: Page, server: Server
) -> None:
    then = server.http.get("/v1/log", params={"at": "pos:5"}).json()
    page.goto("/ui/verify?at=pos:5")
    expect(page.get_by_text(f"5:{then['chainHash']}")).to_be_visible()
    button = page.get_by_role("button", name="Verify the log (not in the past)")
    expect(button).to_be_disabled()
    expect(page.get_by_text("Verifications are shown as of now")).to_be_visible()
    assert command_elsewhere(page, "Head of the log") == "spawnlog log head --at pos:5"
    page.keyboard.press("l")
    expect(page.get_by_role("button", name="Verify the log", exact=True)).to_be_enabled()


@pytest.mark.nightly
def test_a_token_that_is_no_administrators_sees_it_and_begins_none(
    browser: Browser, server: Server
) -> None:
    with watched_context(browser, server.url, token=WATCHER_TOKEN) as (context, _):
        page = context.new_page()
        page.goto("/ui/verify")
        button = page.get_by_role("button", name="Verify the log (for tokens with scope admin)")
        expect(button).to_be_disabled()
