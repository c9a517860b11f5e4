"""The document about time travel, done on the page by a user without a mouse."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.page.keyboard import Keyboard
from tests.support.servers.preloaded import run_command
from tests.support.servers.server import Server
from tests.support.servers.time_travel import (
    commands_that_record,
    server_of_examples,
    status_of_recording,
)

pytestmark = pytest.mark.server
CAP = "/agents/defaults/subagents/maxChildrenPerAgent"
NAME = '"maxChildrenPerAgent"'
THEN = "run:late@refused"
FIELDS_MAX = 80


@pytest.fixture(scope="module")
def server(made_data_dir: Path) -> Iterator[Server]:
    """Yield the server of the document, after its first commands."""
    with server_of_examples(made_data_dir) as running:
        for words in commands_that_record():
            result = run_command(*words, "--data-dir", str(running.data_dir))
            assert result.returncode == status_of_recording(words), result.stderr
        yield running


@pytest.mark.nightly
def test_the_story_of_time_travel_is_walked_by_keys_alone(page: Page, server: Server) -> None:
    (late,) = server.http.get("/v1/runs", params={"label": "late"}).json()["items"]
    keys = Keyboard(page)
    rows = page.get_by_role("row")
    selected = page.locator(".line.current")
    page.goto("/ui/runs")
    expect(rows).to_have_count(7)

    # In the past, five runs were running when the sixth was refused.
    keys.press("t")
    keys.type(THEN)
    keys.press("Escape")
    expect(page.get_by_role("note")).to_contain_text("This is the past")
    expect(page.get_by_role("button", name="running 5")).to_be_visible()
    keys.press("/")
    keys.type("label:nap-3")
    keys.press("Escape")
    expect(rows).to_have_count(2)
    keys.press("j")
    expect(selected).to_contain_text("running")
    keys.press("Enter")
    expect(page.get_by_role("heading", name="nap-3")).to_be_visible()
    keys.press("g", "t")
    expect(page.get_by_role("heading", name="Trees")).to_be_visible()
    keys.press("/")
    keys.type("main")
    tree = page.get_by_role("treegrid", name="Sessions")
    expect(tree.get_by_role("row")).to_have_count(8)
    expect(tree.get_by_role("row").last).to_contain_text("too many children at once")
    keys.press("j", "j")
    expect(selected).to_contain_text("nap-1")
    expect(selected).to_contain_text("running")
    keys.press("g", "n")
    slots = page.get_by_role("list", name="Slots of each lane").get_by_role("listitem")
    expect(slots).to_have_text(re.compile(r"subagent\s+depth 1\s+5 / 8\s+taken$"))
    keys.press("g", "a")
    expect(page.get_by_text("No announcements up to this time.")).to_be_visible()
    keys.press("g", "c")
    expect(page.get_by_role("row").filter(has_text="in force then")).to_be_visible()
    keys.use(page.locator("summary").filter(has_text="Text of revision 1"))
    content = page.get_by_role("region", name="Content of revision 1")
    keys.reach(content)
    keys.press("End")
    expect(content.get_by_text(f"{NAME}: 5")).to_be_visible()

    # Step back from now to the refusal, and see its event.
    keys.press("l")
    expect(page.get_by_role("note")).to_have_count(0)
    keys.press("Shift+ArrowLeft")
    expect(page.get_by_text("SpawnRefused at position")).to_be_visible()
    refused_at = int(page.url.rpartition("at=pos:")[2].partition("&")[0])
    keys.press("ArrowLeft")
    expect(page).to_have_url(re.compile(f"at=pos:{refused_at - 1}$"))
    keys.press("g", "l", "/")
    keys.type("RunStarted")
    keys.press("Escape")
    expect(rows).to_have_count(6)
    keys.press("j", "Enter")
    opened = page.get_by_role("region", name="Event")
    expect(opened).to_contain_text('"type": "RunStarted"')
    keys.use(opened.get_by_role("link", name="View at this time"))
    expect(rows).to_have_count(6)
    expect(page.get_by_role("note")).to_contain_text("This is the past")

    # Changes between two positions, in one run, and compared with another run.
    keys.press("l", "g", "d", "/")
    keys.type("run:nap-1@queued", then="Tab")
    keys.type(THEN)
    expect(page.get_by_role("link", name="1 refused")).to_be_visible()
    keys.use(page.get_by_role("button", name="What changed, field by field"))
    table = page.get_by_role("table", name="Runs and sessions that were added")
    refused = table.get_by_role("row").filter(has=page.get_by_role("link", name="late"))
    expect(refused).to_contain_text("added")
    keys.use(refused.locator("summary"))
    expect(table.get_by_text('"rule": "active_children"')).to_be_visible()
    keys.use(table.get_by_role("link", name="nap-1"))
    expect(page.get_by_role("heading", name="nap-1")).to_be_visible()
    keys.reach(page.get_by_role("tab", name="Conversation"))
    keys.press("ArrowRight", "ArrowRight", "ArrowRight", "Enter")
    events = page.get_by_role("list", name="Events of the run")
    expect(events.get_by_role("listitem").last).to_contain_text("Run announced")
    fields = page.get_by_label("Events that set")
    keys.reach(fields)
    # A slow browser takes a typed word for several.
    for _ in range(FIELDS_MAX):
        if fields.input_value() == "announcement":
            break
        keys.press("ArrowDown")
    expect(fields).to_have_value("announcement")
    expect(events.get_by_role("listitem").last).to_contain_text("Run announced")
    expect(events.get_by_text("Run started")).to_have_count(0)
    keys.press("Escape")
    keys.use(page.get_by_role("button", name="Compare with"), by="Shift+Tab")
    expect(page.get_by_label("Compare with")).to_be_focused()
    keys.type("late")
    expect(page.get_by_text("What differs: request, decisions")).to_be_visible()
    keys.use(page.locator("summary").filter(has_text="decided the same"))
    expect(page.get_by_role("rowheader", name="depth", exact=True)).to_be_visible()
    keys.use(page.get_by_role("link", name="late", exact=True), by="Shift+Tab")
    expect(page.get_by_text("5 of 5 children are active").first).to_be_visible()

    # Decisions that would differ: with one value, then with an edited text.
    keys.press("g", "w", "/")
    keys.type(CAP, then="Tab")
    keys.type("2")
    keys.use(page.get_by_role("button", name="Run what-if"))
    number = page.get_by_role(
        "button", name="3 newly refused of rule too many children at once: show them"
    )
    keys.use(number)
    decisions = page.get_by_role("grid", name="Decisions")
    expect(decisions.get_by_role("row")).to_have_count(4)
    keys.reach(page.get_by_role("checkbox", name="Count newly allowed runs"), by="Shift+Tab")
    keys.press("Space")
    keys.use(page.get_by_role("button", name="Run what-if"))
    expect(page).to_have_url(re.compile("cascade=1"))
    expect(number).to_be_visible()
    keys.reach(page.get_by_role("checkbox", name="Count newly allowed runs"), by="Shift+Tab")
    keys.press("Space")
    keys.reach(page.get_by_role("radio", name="Set single values"), by="Shift+Tab")
    keys.press("ArrowRight")
    editor = page.get_by_label("The configuration to try, JSON5")
    expect(editor).to_have_value(re.compile("maxChildrenPerAgent"))
    lines = editor.input_value().split("\n")
    keys.reach(editor)
    keys.press("Control+Home")
    keys.press(*["ArrowDown"] * lines.index(f"{' ' * 8}{NAME}: 5,"))
    keys.press("Home", "Shift+End")
    page.keyboard.type(f"{NAME}: 8, // room for one more")
    keys.press("Escape")
    keys.use(page.get_by_role("button", name="Run what-if"))
    keys.use(page.get_by_role("button", name="1 newly allowed: show them"))
    expect(decisions.get_by_role("row")).to_have_count(2)
    keys.press("j")
    expect(page.get_by_text("Press Enter to open the run.")).to_be_visible()
    keys.press("Enter")
    expect(page.get_by_role("heading", name="late")).to_be_visible()

    # Once more, since there is room by now.
    keys.use(page.get_by_role("button", name="Respawn"))
    expect(page.get_by_label("New task")).to_be_focused()
    keys.type("Sleep for 0 seconds", then="Control+Enter")
    expect(page.get_by_text("Respawned from")).to_be_visible()
    expect(page.get_by_text("slept for 0 s").first).to_be_visible()
    keys.use(page.get_by_role("definition").get_by_role("link", name=late["runId"][:8]))
    expect(page.get_by_text("Refused, too many children at once")).to_be_visible()
