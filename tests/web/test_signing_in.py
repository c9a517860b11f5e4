"""Signing in to the page without copying a token."""

import contextlib
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from playwright.sync_api import Browser, Error, Page, Route, expect

from tests.support.page.browser import watched_context
from tests.support.page.header import sign_out
from tests.support.page.runs import search_runs
from tests.support.servers.configurations import agent, command, configuration
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.misconfigured_storm import StormRecord
from tests.support.servers.server import Server
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server
TELLING = 'printf %s "$SPAWNLOG_TOKEN" > "$0/$$"; mv "$0/$$" "$0/token"; exec sleep 600'
STORED = "localStorage.getItem('spawnlog.token')"


def opened(server: Server, *flags: str, **environment: str) -> str:
    """Return the output of `spawnlog open`."""
    command = [sys.executable, "-m", "infrastructure.inbound.command_line.main", "open", *flags]
    settings = {"SPAWNLOG_URL": server.url, "SPAWNLOG_TOKEN": server.token, **environment}
    done = subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def sign_in(page: Page, token: str) -> None:
    """Sign in by typing a token."""
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_server_without_a_page_says_so(made_data_dir: Path) -> None:
    with new_place() as place:
        data = copied(made_data_dir, place / "data")
        with Server(data, configuration(agent(), noPage=True)) as server:
            for path in ("/", "/ui/runs"):
                answer = server.http.get(path)
                assert answer.status_code == 404
                assert "This server serves no page: noPage is set." in answer.text
            with pytest.raises(subprocess.CalledProcessError) as failed:
                opened(server, "--no-browser")
    assert failed.value.returncode == 4
    assert "this server serves no page: noPage is set. Remove noPage" in failed.value.stderr


def test_an_address_that_was_printed_signs_in_once_and_signing_out_ends_its_token(
    browser: Browser, storm: tuple[Server, StormRecord]
) -> None:
    server, _ = storm
    address = opened(server, "--no-browser")
    assert urlsplit(address).fragment.startswith("code=")
    assert not urlsplit(address).query
    with watched_context(browser, server.url, refusals=(401,)) as (context, _):
        page = context.new_page()
        page.goto(address)
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        assert urlsplit(page.url).fragment == ""
        token = page.evaluate(STORED)
        assert token != server.token
        own = {"Authorization": f"Bearer {token}"}
        assert page.request.get("/v1/me", headers=own).json()["token"] == "admin"
        page.go_back()
        assert "code=" not in page.url
        page.goto("/ui/log")
        with page.expect_response("**/v1/page-tokens/current") as revoked:
            sign_out(page)
        assert revoked.value.ok
        expect(page.get_by_label("Token")).to_be_visible()
        assert page.request.get("/v1/me", headers=own).status == 401
        page.goto("about:blank")
        page.goto(address)
        expect(page.get_by_role("alert")).to_contain_text("run spawnlog open again")
        assert urlsplit(page.url).fragment == ""
        assert page.evaluate(STORED) is None
    assert address.partition("#code=")[2] not in server.log()


@pytest.mark.nightly
def test_an_address_that_was_printed_signs_in_where_the_page_is_open_already(
    browser: Browser, storm: tuple[Server, StormRecord]
) -> None:
    server, _ = storm
    code = urlsplit(opened(server, "--no-browser")).fragment
    with watched_context(browser, server.url) as (context, _):
        page = context.new_page()
        page.goto("/ui/log")
        expect(page.get_by_label("Token")).to_be_visible()
        page.goto(f"/ui/log#{code}")
        expect(page.get_by_role("heading", name="Log")).to_be_visible()
        assert urlsplit(page.url).fragment == ""


@pytest.mark.nightly
def test_what_is_late_of_the_token_before_signs_nobody_out(
    browser: Browser, storm: tuple[Server, StormRecord]
) -> None:
    server, _ = storm
    with watched_context(browser, server.url, refusals=(401,)) as (context, _):
        page = context.new_page()
        page.goto(urlunsplit(urlsplit(opened(server, "--no-browser"))._replace(path="/ui/runs")))
        expect(page.get_by_role("row").nth(1)).to_be_visible()
        late: list[Route] = []
        page.route("**/v1/runs?*", lambda route: late.append(route), times=1)
        with page.expect_request("**/v1/runs?*"):
            search_runs(page, "agent:writer")
        second_page = context.new_page()
        second_page.goto(
            urlunsplit(urlsplit(opened(server, "--no-browser"))._replace(path="/ui/log"))
        )
        expect(second_page.get_by_role("heading", name="Log")).to_be_visible()
        token = second_page.evaluate(STORED)
        with contextlib.suppress(Error):
            late.pop().continue_()
        expect(page.get_by_role("row").nth(1)).to_contain_text("writer")
        page.get_by_role("link", name="Lanes").click()
        expect(page.get_by_role("heading", name="Lanes")).to_be_visible()
        assert second_page.evaluate(STORED) == token


@pytest.mark.parametrize(
    "text", nightly_but(["\u0442\u043e\u043a\u0435\u043d", "two words", "a\u00e9b"], ["two words"])
)
def test_a_text_that_is_no_token_is_told_from_a_server_that_is_away(
    browser: Browser, storm: tuple[Server, StormRecord], text: str
) -> None:
    with watched_context(browser, storm[0].url) as (context, _):
        page = context.new_page()
        page.goto("/")
        page.get_by_label("Token").fill(text)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("Check that you copied all of it")
        # An older page may have kept it.
        page.evaluate("text => localStorage.setItem('spawnlog.token', text)", text)
        page.reload()
        expect(page.get_by_label("Token")).to_be_visible()


@pytest.mark.nightly
def test_a_browser_is_opened_with_the_address(
    tmp_path: Path, storm: tuple[Server, StormRecord]
) -> None:
    server, _ = storm
    program, file = tmp_path / "browser", tmp_path / "told"
    program.write_text(f'#!/bin/sh\nprintf %s "$1" >{file}\n', "utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert opened(server, BROWSER=f"{program} %s") == file.read_text("utf-8")


@pytest.fixture(scope="module")
def child(made_data_dir: Path) -> Iterator[tuple[Server, str]]:
    """Yield a server with two running children, and the token of one of them."""
    with new_place() as place:
        place.chmod(0o711)
        notes = place / "notes"
        notes.mkdir()
        notes.chmod(0o777)
        config = configuration(agent("main", command("sh", "-c", TELLING, str(notes))))
        with Server(copied(made_data_dir, place / "data"), config) as server:
            for label in ("one", "another"):
                server.spawn(label=label)
            wait_for("a child to tell its token", (notes / "token").exists)
            yield server, (notes / "token").read_text("utf-8")


@pytest.mark.nightly
def test_the_token_of_a_child_shows_its_own_run_as_it_goes_on(
    browser: Browser, child: tuple[Server, str]
) -> None:
    server, token = child
    own = server.http.get("/v1/me", headers={"Authorization": f"Bearer {token}"}).json()["runId"]
    with watched_context(browser, server.url, token=token) as (context, _):
        page = context.new_page()
        page.goto("/ui/log")
        rows = page.get_by_role("grid", name="Events").get_by_role("row")
        expect(rows.nth(1)).to_contain_text("Run started")
        before = rows.count()
        # Every event links to its own run: it sees no other.
        links = rows.get_by_role("link").filter(has_text=" · ")
        assert {str(link.get_attribute("href")) for link in links.all()} == {f"/ui/run/{own}"}
        sent = server.http.post(f"/v1/runs/{own}/messages", json={"message": "one thing more"})
        assert sent.status_code == 202, sent.text
        expect(rows).to_have_count(before + 1)
        expect(rows.nth(1)).to_contain_text("Message queued")


@pytest.mark.nightly
def test_who_signs_in_elsewhere_in_the_browser_looks_in_all_of_its_windows(
    browser: Browser, child: tuple[Server, str]
) -> None:
    server, token = child
    with watched_context(browser, server.url) as (context, _):
        page, second_page = context.new_page(), context.new_page()
        page.goto("/ui/runs")
        sign_in(page, server.token)
        expect(page.get_by_role("link", name="Configuration")).to_be_visible()
        second_page.goto("/ui/lanes")
        sign_out(second_page)
        expect(page.get_by_label("Token")).to_be_visible()
        sign_in(second_page, token)
        expect(page.get_by_role("link", name="Log")).to_be_visible()
        expect(page.get_by_role("link", name="Configuration")).to_have_count(0)
