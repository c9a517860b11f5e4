"""A user who has only the page finds since when children were refused, why, and what another
configuration would change.

Each step is a picture; `make pictures` puts them into the README.
"""

import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.page.browser import picture, watched_context
from tests.support.page.header import press_step
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.misconfigured_storm import (
    RULE_NAME,
    WRONG_REVISION,
    StormRecord,
    blow,
    server_of_storm,
)
from tests.support.servers.preloaded import run_command
from tests.support.servers.server import Server
from tests.support.servers.time_travel import commands_that_record, server_of_examples

pytestmark = pytest.mark.server
FOLDER_VARIABLE = "SPAWNLOG_PICTURES"
ALLOWED = "/agents/list/0/subagents/allowAgents"
SHOWN_FILE = "/etc/spawnlog/spawnlog.json5"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder for the pictures, by default a temporary one."""
    return Path(os.environ.get(FOLDER_VARIABLE) or tmp_path)


@pytest.fixture
def storm(made_data_dir: Path) -> Iterator[tuple[Server, StormRecord]]:
    """Yield a separate server, because the story begins with the last refusal."""
    with new_place() as place:
        with server_of_storm(copied(made_data_dir, place / "data")) as server:
            yield server, blow(server)


def _show_file(file: str, route: Route) -> None:
    """Let a picture show a file that a reader may have, in place of a temporary one."""
    response = route.fetch()
    changed = ("content-encoding", "content-length", "etag")
    headers = {name: value for name, value in response.headers.items() if name not in changed}
    route.fulfill(headers=headers, body=response.text().replace(file, SHOWN_FILE))


@pytest.mark.nightly
def test_the_page_alone_leads_to_the_wrong_configuration_and_what_it_did(
    window: Page, storm: tuple[Server, StormRecord], folder: Path
) -> None:
    server, record = storm
    # Step to a refusal in the list of refused runs.
    window.goto("/ui/runs")
    window.get_by_role("button", name="refused").click()
    expect(window.get_by_role("row").nth(1)).to_contain_text(RULE_NAME)
    press_step(window, "‹ Refusal")
    expect(window.get_by_role("note")).to_contain_text("This is the past")
    expect(window.get_by_role("status").filter(has_text="SpawnRefused at position")).to_be_visible()
    head = window.get_by_role("heading", name="Runs").locator("..")
    expect(head).to_contain_text(re.compile(r"\d+ runs"))
    window.keyboard.press("Escape")
    expect(window.get_by_label("Go to")).to_have_count(0)
    picture(window, folder, "runs")
    # Why: the facts that were compared.
    window.get_by_role("grid", name="Runs").press("j")
    window.keyboard.press("Enter")
    expect(window.get_by_text(f"Refused, {RULE_NAME}")).to_be_visible()
    refusal = window.get_by_role("region", name="Refusal")
    expect(refusal).to_contain_text("writer")
    expect(refusal).to_contain_text(f"under revision {WRONG_REVISION}.")
    picture(window, folder, "run")
    # The differences of that configuration from the one before it.
    window.get_by_role("button", name="Back to live").click()
    window.route("**/v1/config/revisions*", partial(_show_file, str(server.config)))
    window.get_by_role("link", name="Configuration", exact=True).click()
    expect(window.get_by_role("grid", name="Revisions")).to_contain_text(SHOWN_FILE)
    window.get_by_role("grid", name="Revisions").get_by_role(
        "link", name=str(WRONG_REVISION), exact=True
    ).click()
    compared = window.get_by_role("region", name=f"Revision {WRONG_REVISION}, compared")
    expect(compared).to_contain_text(ALLOWED)
    picture(window, folder, "configuration")
    # Ask what another configuration would have decided.
    window.get_by_role("link", name="What if", exact=True).click()
    window.get_by_label("From", exact=True).fill("pos:1")
    window.keyboard.press("Enter")
    window.locator("#search").fill(ALLOWED)
    window.get_by_label("to", exact=True).fill('["writer", "reviewer"]')
    window.keyboard.press("Enter")
    window.get_by_role("button", name="Run what-if").click()
    number = f"{len(record.refused)} newly allowed of rule {RULE_NAME}"
    expect(window.get_by_role("button", name=number)).to_be_visible()
    picture(window, folder, "what-if")
    # The refused runs in the tree of all runs.
    window.goto("/ui/tree")
    expect(window.get_by_role("application", name="Runs as bars in time")).to_be_visible()
    picture(window, folder, "tree")
    made = {path.stem for path in folder.glob("*.png")}
    assert made >= {"runs", "run", "configuration", "what-if", "tree"}


def test_the_page_alone_tells_when_a_cap_was_hit_why_and_what_a_larger_one_would_change(
    browser: Browser, made_data_dir: Path, folder: Path
) -> None:
    with server_of_examples(made_data_dir) as server:
        for words in commands_that_record():
            run_command(*words, "--data-dir", str(server.data_dir))
        with watched_context(browser, server.url, token=server.token) as (context, _):
            page = context.new_page()
            page.goto("/ui/runs")
            page.get_by_role("button", name="refused").click()
            expect(page.get_by_text("1 run", exact=True)).to_be_visible()
            page.get_by_role("row").filter(has_text="late").click()
            expect(page.get_by_text("5 of 5 children are active").first).to_be_visible()
            expect(page.get_by_text("Refused, too many children at once")).to_be_visible()
            picture(page, folder, "cap")
            page.get_by_role("link", name="Test another configuration").click()
            # The page learns from the run which value one is likely to ask about.
            expect(page.get_by_text("It is 5.")).to_be_visible()
            page.get_by_role("button", name="Test all runs").click()
            expect(page.get_by_text("It is 5.")).to_be_visible()
            page.get_by_label("to", exact=True).fill("8")
            page.get_by_role("button", name="Run what-if").click()
            number = "1 newly allowed of rule too many children at once"
            expect(page.get_by_role("button", name=number)).to_be_visible()
            picture(page, folder, "cap-what-if")
    assert {path.stem for path in folder.glob("*.png")} >= {"cap", "cap-what-if"}
