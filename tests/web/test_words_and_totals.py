"""The registry of the page: search words, and the number of runs per status."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.page.runs import command_elsewhere, search_runs
from tests.support.servers.misconfigured_storm import StormRecord
from tests.support.servers.server import Server

pytestmark = pytest.mark.server


def test_words_are_looked_for_from_the_keyboard_and_stand_in_the_address(
    window: Page, storm: tuple[Server, StormRecord]
) -> None:
    server, _ = storm
    server.spawn("lighthouse", agentId="writer", label="Keeper-of-the-light")
    window.goto("/ui/runs")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    window.keyboard.press("/")
    window.keyboard.type("LIGHT keeper")
    window.keyboard.press("Enter")
    expect(window.get_by_role("row")).to_have_count(2)
    expect(window.get_by_role("row").nth(1)).to_contain_text("Keeper-of-the-light")
    expect(window).to_have_url(re.compile(r"q=LIGHT\+keeper"))
    expect(window.get_by_text("1 run", exact=True)).to_be_visible()
    assert command_elsewhere(window) == "spawnlog run list --words 'LIGHT keeper'"
    search_runs(window, "no-such-word")
    expect(window.get_by_text(re.compile(r"^0 of \d+ runs match\.$"))).to_be_visible()
    window.get_by_role("button", name="Show all runs").click()
    expect(window.get_by_role("row").nth(1)).to_be_visible()


def test_the_numbers_beside_the_statuses_are_those_of_the_moment(
    window: Page, storm: tuple[Server, StormRecord]
) -> None:
    server, _ = storm
    head = server.http.get("/v1/events", params={"limit": 1}).json()["head"]
    numbers = {}
    for at in (head, head // 2):
        answer = server.http.get("/v1/runs", params={"totals": True, "at": f"pos:{at}"})
        numbers[at] = answer.json()["totals"]["statuses"]["refused"]
        window.goto(f"/ui/runs?at=pos:{at}&status=refused")
        chip = window.get_by_role("button", name=f"refused {numbers[at]}")
        expect(chip).to_have_attribute("aria-pressed", "true")
    assert numbers[head] > numbers[head // 2]
    window.goto("/ui/runs")
    before = server.http.get("/v1/runs", params={"totals": True}).json()["totals"]["runs"]
    expect(window.get_by_text(f"{before} runs")).to_be_visible()
    server.spawn("counted", agentId="writer")
    expect(window.get_by_text(f"{before + 1} runs")).to_be_visible()
