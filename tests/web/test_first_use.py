"""First use of the page: an empty server, the cost of runs, a narrow window."""

import os
import re
import subprocess
from collections.abc import Iterator
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from tests.support.page.browser import faults_for_a_screen_reader
from tests.support.servers.databases import Databases
from tests.support.servers.narrators import entry, narrate, narrating, said
from tests.support.servers.preloaded import ROOT
from tests.support.servers.server import Server, serving

pytestmark = pytest.mark.server
NARROW = {"width": 390, "height": 844}
COMMAND_SECONDS_MAX = 30


@pytest.fixture
def server(databases: Databases) -> Iterator[Server]:
    with serving(databases, narrating) as running:
        yield running


def _run_in_shell(line: str, token: str) -> str:
    environment = {
        **os.environ,
        "SPAWNLOG_TOKEN": token,
        "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["sh", "-c", line],
        env=environment,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS_MAX,
        check=True,
    )
    return done.stdout


def test_empty_server_shows_first_spawn(page: Page, server: Server) -> None:
    page.goto("/ui/runs")
    expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
    command = page.get_by_label("Command", exact=True).inner_text()
    request = page.get_by_label("Request", exact=True).inner_text()
    main = page.get_by_role("main")
    expect(main.get_by_role("button", name="Copy the command").first).to_be_visible()
    assert faults_for_a_screen_reader(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function(f"document.documentElement.scrollWidth === {NARROW['width']}")
    _run_in_shell(command, server.token)
    rows = page.get_by_role("grid", name="Runs").get_by_role("row")
    expect(rows).to_have_count(2)
    assert '"status":"accepted"' in _run_in_shell(request, server.token)
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_contain_text("first")


def test_tokens_and_cost_are_in_rows_sums_and_days(page: Page, server: Server) -> None:
    for tokens, label in ((500_000, "small"), (1_500_000, "large")):
        usage = entry("usage", inputTokens=tokens, outputTokens=1_000, model="acme/big")
        run_id = narrate(server, said("hello"), usage, label=label)
        server.run(run_id, "ended")
    failed = server.accepted(task="no steps", label="broken")
    server.run(failed, "ended")
    page.goto("/ui/runs")
    row = page.get_by_role("row").filter(has_text="large")
    expect(row.get_by_role("gridcell").nth(6)).to_have_text("1.50 M")
    expect(row.get_by_role("gridcell").nth(7)).to_have_text("$3.01")
    sums = page.get_by_title("2,000,000 tokens in, 2,000 out")
    expect(sums).to_have_text("3 runs · 2.00 M tokens · $4.02")
    page.get_by_text("Tokens and cost by agent and day").click()
    by_day = page.get_by_role("table", name="By day and agent").get_by_role("row").nth(1)
    expect(by_day).to_have_text(re.compile(r"\d{4}-\d\d-\d\d\s*main\s*3\s*2,000,000\s*2,000\s*\$4"))
    assert faults_for_a_screen_reader(page) == []
    page.get_by_role("button", name="failed 1").click()
    expect(page.get_by_text("1 run", exact=True)).to_be_visible()
    expect(sums).to_have_count(0)
    page.get_by_role("button", name="done 2").click()
    expect(sums).to_have_text("3 runs · 2.00 M tokens · $4.02")


def test_every_view_is_reached_at_390_px(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/ui/verify")
    navigation = page.get_by_role("navigation", name="Views")
    menu = navigation.get_by_role("button", name="Views")
    menu.click()
    links = navigation.get_by_role("link")
    expect(links).to_have_count(11)
    boxes = [box for link in links.all() if (box := link.bounding_box()) is not None]
    assert len(boxes) == 11
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= NARROW["width"] for box in boxes)
    assert all(first["y"] + first["height"] <= second["y"] for first, second in pairwise(boxes))
    names = [link.inner_text() for link in links.all()]
    page.keyboard.press("Escape")
    for name in names:
        menu.click()
        navigation.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        menu.click()
        expect(navigation.get_by_role("link", name=name, exact=True)).to_have_attribute(
            "aria-current", "page"
        )
        page.keyboard.press("Escape")
        assert page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]


def test_tool_call_of_a_running_run_unfolds(page: Page, server: Server) -> None:
    run_id = narrate(
        server,
        {"note": "up", "await": "up.go"},
        entry("tool", name="bash", input={"command": "ls -l\ncat notes"}, output="one\ntwo"),
        entry("progress", text="half of it"),
        {"await": "up.more"},
        entry("usage", inputTokens=1_200, outputTokens=34, model="acme/big"),
        {"await": "up.end"},
        label="tools",
    )
    server.note("up")
    page.goto(f"/ui/run/{run_id}")
    expect(page.get_by_role("tab", name="Conversation")).to_have_attribute("aria-selected", "true")
    server.touch("up.go")
    call = page.get_by_role("tabpanel").get_by_role("group").filter(has_text="bash")
    expect(call).to_contain_text("ls -l cat notes")
    expect(page.get_by_text("half of it", exact=True).first).to_be_visible()
    expect(call.get_by_text("one two")).not_to_be_visible()
    call.get_by_text("bash").first.click()
    expect(call.get_by_text("one two")).to_be_visible()
    assert faults_for_a_screen_reader(page) == []
    others = page.context.new_page()
    others.goto("/ui/runs")
    row = others.get_by_role("row").filter(has_text="tools")
    expect(row).to_contain_text("running")
    server.touch("up.more")
    expect(row).to_contain_text("1,234")
    expect(row).to_contain_text("$0.0027")
    others.close()
    server.touch("up.end")
    expect(page.get_by_text(re.compile("^took "))).to_be_visible()
    expect(page.get_by_role("tab", name="Conversation")).to_have_attribute("aria-selected", "true")
    expect(call.get_by_text("one two")).to_be_visible()
