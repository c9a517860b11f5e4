"""Signing in to the page without copying a token."""

import contextlib
import os
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from playwright.sync_api import Browser, Error, Route, expect

from tests.support.page.browser import watched_context
from tests.support.servers.misconfigured_storm import StormRecord
from tests.support.servers.reloaded_server import ReloadedServer

pytestmark = pytest.mark.server
STORED = "localStorage.getItem('spawnlog.token')"


def opened(server: ReloadedServer, *flags: str, **environment: str) -> str:
    """What `spawnlog open` prints."""
    command = [sys.executable, "-m", "infrastructure.inbound.command_line.main", "open", *flags]
    settings = {"SPAWNLOG_URL": server.url, "SPAWNLOG_TOKEN": server.token, **environment}
    done = subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_an_address_that_was_printed_signs_in_once_and_signing_out_ends_its_token(
    browser: Browser, storm: tuple[ReloadedServer, StormRecord]
) -> None:
    server, _ = storm
    address = opened(server, "--no-browser")
    assert urlsplit(address).fragment.startswith("code=")
    assert not urlsplit(address).query
    with watched_context(browser, server.url) as (context, watched):
        page = context.new_page()
        page.goto(address)
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        assert urlsplit(page.url).fragment == ""
        token = page.evaluate(STORED)
        assert token != server.token
        own = {"Authorization": f"Bearer {token}"}
        assert page.request.get("/v1/me", headers=own).json()["token"] == "admin"
        page.go_back()
        assert "code=" not in page.url
        page.goto("/ui/log")
        with page.expect_response("**/v1/page-tokens/current") as revoked:
            page.get_by_role("button", name="Sign out").click()
        assert revoked.value.ok
        expect(page.get_by_label("Token")).to_be_visible()
        assert page.request.get("/v1/me", headers=own).status == 401
        page.goto("about:blank")
        page.goto(address)
        expect(page.get_by_role("alert")).to_contain_text("run spawnlog open once more")
        assert urlsplit(page.url).fragment == ""
        assert page.evaluate(STORED) is None
        assert "401" in watched.wrong.pop()
    assert address.partition("#code=")[2] not in server.log()


def test_an_address_that_was_printed_signs_in_where_the_page_is_open_already(
    browser: Browser, storm: tuple[ReloadedServer, StormRecord]
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


def test_what_is_late_of_the_token_before_signs_nobody_out(
    browser: Browser, storm: tuple[ReloadedServer, StormRecord]
) -> None:
    server, _ = storm
    with watched_context(browser, server.url) as (context, watched):
        page = context.new_page()
        page.goto(opened(server, "--no-browser"))
        expect(page.get_by_role("row").nth(1)).to_be_visible()
        late: list[Route] = []
        page.route("**/v1/runs?*", lambda route: late.append(route), times=1)
        with page.expect_request("**/v1/runs?*"):
            page.get_by_label("Agent").fill("writer")
            page.get_by_label("Agent").press("Enter")
        other = context.new_page()
        other.goto(urlunsplit(urlsplit(opened(server, "--no-browser"))._replace(path="/ui/log")))
        expect(other.get_by_role("heading", name="Log")).to_be_visible()
        token = other.evaluate(STORED)
        with contextlib.suppress(Error):
            late.pop().continue_()
        expect(page.get_by_role("row").nth(1)).to_contain_text("writer")
        page.get_by_role("link", name="Lanes").click()
        expect(page.get_by_role("heading", name="Lanes")).to_be_visible()
        assert other.evaluate(STORED) == token
        assert [line for line in watched.wrong if "401" not in line] == []
        watched.wrong.clear()


@pytest.mark.parametrize("text", ["\u0442\u043e\u043a\u0435\u043d", "two words", "a\u00e9b"])
def test_a_text_that_is_no_token_is_told_from_a_server_that_is_away(
    browser: Browser, storm: tuple[ReloadedServer, StormRecord], text: str
) -> None:
    with watched_context(browser, storm[0].url) as (context, _):
        page = context.new_page()
        page.goto("/")
        page.get_by_label("Token").fill(text)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("Copy the whole of it")
        # An older page may have kept it.
        page.evaluate("text => localStorage.setItem('spawnlog.token', text)", text)
        page.reload()
        expect(page.get_by_label("Token")).to_be_visible()


def test_a_browser_is_opened_with_the_address(
    tmp_path: Path, storm: tuple[ReloadedServer, StormRecord]
) -> None:
    server, _ = storm
    program, told = tmp_path / "browser", tmp_path / "told"
    program.write_text(f'#!/bin/sh\nprintf %s "$1" >{told}\n', "utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert opened(server, BROWSER=f"{program} %s") == told.read_text("utf-8")
