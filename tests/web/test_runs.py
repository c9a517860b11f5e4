"""The list of runs: search, filters, columns, views, and what is done to several runs."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from tests.support.page.browser import faults_for_a_screen_reader, watched_context
from tests.support.page.runs import command_elsewhere, search_runs
from tests.support.servers.configurations import agent, configuration, python, scripted
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.server import Server

pytestmark = pytest.mark.server
CUSTOMER = "agent:main:customer-7"
READER = "token-of-a-reader-0123456789abcdef"
FAIL = """
import sys
sys.stdin.read()
def ask(times):
    if times > 0:
        ask(times - 1)
    raise TimeoutError("tide service")
ask(5)
"""
SMALL_WINDOWS = ({"width": 390, "height": 844}, {"width": 720, "height": 450})


@pytest.fixture(scope="module")
def server(made_data_dir: Path) -> Iterator[Server]:
    """A server with runs that are done, failed and refused; the agent `slow` works for an hour."""
    with new_place() as place:
        file = place / "token"
        file.write_text(READER, "utf-8")
        file.chmod(0o600)
        reader = {"id": "reader", "scopes": ["read"], "sessions": ["*"]}
        settings = configuration(
            agent("main", default=True),
            agent("slow", scripted(steps=[{"afterMs": 3_600_000}])),
            agent("tides", python(FAIL, input="stdin-json", output="jsonl")),
            archiveAfterMinutes=0,
            maxChildrenPerAgent=20,
            tokens=[{**reader, "token": {"file": str(file)}}],
        )
        with Server(copied(made_data_dir, place / "data"), settings) as running:
            for number in range(12):
                running.accepted(task="count boats", session=CUSTOMER, label=f"boat-{number}")
            failed = running.accepted("tides", "read the tides", label="=1+1")
            running.run(failed, "ended")
            running.spawn("nothing", agentId="nobody", label="refused")
            yield running


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    with watched_context(browser, server.url, token=server.token) as (context, _):
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield context.new_page()


def _rows(page: Page) -> Locator:
    return page.get_by_role("grid", name="Runs").get_by_role("row")


def test_tokens_of_the_search_field_narrow_the_list(page: Page) -> None:
    page.goto("/ui/runs")
    expect(_rows(page).nth(1)).to_be_visible()
    search_runs(page, "label:boat-1 agent:main")
    expect(_rows(page)).to_have_count(4)
    expect(page).to_have_url(re.compile(r"/ui/runs\?labelPrefix=boat-1&agentId=main$"))
    expect(page.get_by_text("3 runs", exact=True)).to_be_visible()
    command = command_elsewhere(page)
    assert command == "spawnlog run list --label-prefix boat-1 --agent main"
    page.reload()
    expect(_rows(page)).to_have_count(4)
    field = page.get_by_role("combobox", name="Search runs")
    expect(field).to_have_value("label:boat-1 agent:main")
    # A beginning: longer labels are found, too.
    expect(page.get_by_role("button", name="Remove label: boat-1")).to_contain_text("boat-1…")
    page.get_by_role("button", name="Remove label: boat-1").click()
    expect(field).to_have_value("agent:main")
    search_runs(page, "label:boat-2 label:boat-11")
    expect(_rows(page)).to_have_count(3)
    expect(page.get_by_text("2 runs", exact=True)).to_be_visible()
    page.get_by_role("button", name="Remove label: boat-2").click()
    expect(field).to_have_value("label:boat-11")
    search_runs(page, "label:=boat-1")
    expect(_rows(page)).to_have_count(2)
    expect(page).to_have_url(re.compile(r"/ui/runs\?label=boat-1$"))
    search_runs(page, "label:=boat-1 label:boat-11")
    expect(_rows(page)).to_have_count(3)
    expect(page.get_by_text("2 runs", exact=True)).to_be_visible()
    page.get_by_role("button", name="Remove label:= boat-1").click()
    expect(field).to_have_value("label:boat-11")
    search_runs(page, "rule:depth rule:batch")
    field.blur()
    expect(page.get_by_role("alert")).to_have_text("Use rule: only once. The last one is used.")
    search_runs(page, "lable:boat-1 tide")
    expect(page.get_by_role("alert")).to_have_text(
        "“lable:” is no filter, so it is looked for as a word."
    )
    expect(page.get_by_text("A run must have every word.")).to_be_visible()
    # The search covers whole errors; the list shows their last line.
    search_runs(page, "timeouterror")
    expect(_rows(page)).to_have_count(2)
    expect(_rows(page).nth(1)).to_contain_text("TimeoutError: tide service")
    expect(_rows(page).nth(1)).not_to_contain_text("Traceback")
    search_runs(page, "since:1h until:1h")
    expect(page.get_by_text(re.compile(r"^0 of \d+ runs match\.$"))).to_be_visible()
    page.get_by_role("button", name="Show all runs").click()
    expect(_rows(page).nth(5)).to_be_visible()


def test_arrow_down_leads_from_the_search_to_the_first_row(page: Page) -> None:
    page.goto("/ui/runs")
    expect(_rows(page).nth(1)).to_be_visible()
    for text in ("boat-11", "label:boat-11"):
        page.keyboard.press("/")
        field = page.get_by_role("combobox", name="Search runs")
        field.fill(text)
        page.keyboard.press("Enter")
        page.keyboard.press("ArrowDown")
        expect(_rows(page)).to_have_count(2)
        expect(_rows(page).nth(1)).to_have_attribute("aria-selected", "false")
        grid = page.get_by_role("grid", name="Runs")
        expect(grid).to_be_focused()
        expect(grid).to_have_attribute("aria-activedescendant", re.compile("."))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="boat-11")).to_be_visible()


def test_head_counts_the_listed_runs(page: Page, server: Server) -> None:
    page.goto("/ui/runs?labelPrefix=counted-")
    server.accepted(task="count boats", session=CUSTOMER, label="counted-1")
    expect(page.get_by_text("1 run", exact=True)).to_be_visible()
    # Totals come later than the rows: here never.
    page.route(re.compile("/v1/runs.*totals=true"), lambda _: None)
    server.accepted(task="count boats", session=CUSTOMER, label="counted-2")
    expect(_rows(page)).to_have_count(3)
    expect(page.get_by_text("2 runs", exact=True)).to_be_visible()


@pytest.mark.nightly
def test_search_field_suggests_values_and_names_unknown_ones(page: Page) -> None:
    page.goto("/ui/runs")
    expect(page.get_by_role("button", name="refused 1")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("agent:ti")
    offered = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
    expect(offered).to_have_count(1)
    assert faults_for_a_screen_reader(page) == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(_rows(page)).to_have_count(2)
    expect(offered).to_have_count(0)
    search_runs(page, "status:broken since:soon")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("“broken” is not a status")
    expect(alert).to_contain_text('"soon" is not a time I understand')
    search_runs(page, "agent:nobody-at-all")
    expect(page.get_by_text("No run has the agent “nobody-at-all”.")).to_be_visible()


@pytest.mark.nightly
def test_chips_filter_by_what_is_there(page: Page) -> None:
    page.goto("/ui/runs")
    filters = page.get_by_role("group", name="Filters")
    filters.get_by_role("button", name="failed 1").click()
    expect(_rows(page)).to_have_count(2)
    expect(page.get_by_role("combobox", name="Search runs")).to_have_value("status:failed")
    filters.get_by_role("button", name="refused 1").click()
    expect(_rows(page)).to_have_count(3)
    filters.get_by_role("button", name="Clear filters").click()
    rule = filters.get_by_role("button", name="agent not configured 1")
    expect(rule).to_have_attribute("title", "rule: agent_unknown")
    rule.click()
    expect(_rows(page)).to_have_count(2)
    expect(page).to_have_url(re.compile("rule=agent_unknown$"))
    expect(filters.get_by_role("button", name="waiting")).to_have_count(0)
    # A chip counts what it would show beside the other filters.
    filters.get_by_role("button", name="Clear filters").click()
    filters.get_by_role("button", name="tides 1").click()
    expect(_rows(page)).to_have_count(2)
    expect(filters.get_by_role("button", name="agent not configured")).to_have_count(0)


@pytest.mark.nightly
def test_columns_are_remembered_in_the_address_and_the_browser(page: Page) -> None:
    page.goto("/ui/runs")
    heads = page.get_by_role("columnheader")
    expect(heads.filter(has_text="Requested by")).to_have_count(0)
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="Requested by").check()
    page.get_by_role("checkbox", name="Cost").uncheck()
    assert faults_for_a_screen_reader(page) == []
    expect(heads.filter(has_text="Requested by")).to_be_visible()
    expect(heads.filter(has_text="Cost")).to_have_count(0)
    expect(page).to_have_url(re.compile("columns=status%2Cagent%2Clabel%2Ctask%2Crequester"))
    page.goto("/ui/runs?status=done")
    expect(heads.filter(has_text="Requested by")).to_be_visible()
    page.goto("/ui/runs?columns=run,nothing")
    expect(heads.filter(has_text="Run")).to_be_visible()
    expect(heads).to_have_count(2)
    expect(_rows(page).nth(1).get_by_role("link")).to_be_attached()


@pytest.mark.nightly
def test_saved_view_leads_back_to_its_filters(page: Page) -> None:
    page.goto("/ui/runs?status=failed&agentId=tides")
    expect(_rows(page)).to_have_count(2)
    page.get_by_role("button", name="Views").click()
    page.get_by_label("Save these filters").fill(" Tides <b> ")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name="Tides <b>")).to_have_attribute("aria-current", "true")
    assert faults_for_a_screen_reader(page) == []
    page.get_by_role("button", name="Copy the link as of now").click()
    expect(page.get_by_text("Copied.")).to_be_attached()
    copied_link = page.evaluate("navigator.clipboard.readText()")
    assert re.search(r"/ui/runs\?at=pos:\d+&agentId=tides&status=failed$", copied_link)
    page.goto("/ui/runs")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("link", name="Tides <b>").click()
    expect(_rows(page)).to_have_count(2)
    page.get_by_role("button", name="Views").click()
    page.get_by_role("button", name="Delete Tides <b>").click()
    expect(page.get_by_role("link", name="Tides <b>")).to_have_count(0)


@pytest.mark.nightly
def test_time_range_is_chosen_or_written(page: Page) -> None:
    page.goto("/ui/runs?endedSince=2h")
    page.get_by_role("button", name="Time range: Ended since 2h ago").click()
    page.get_by_role("button", name="Any time", exact=True).click()
    expect(page).to_have_url(re.compile("/ui/runs$"))
    page.get_by_role("button", name="Time range: Any time").click()
    page.get_by_role("button", name="Last hour").click()
    expect(page).to_have_url(re.compile("since=1h$"))
    expect(_rows(page).nth(1)).to_be_visible()
    page.get_by_role("button", name="Time range: Last hour").click()
    page.get_by_label("Created from").fill("yesterday 25:00")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("is not a time I understand")
    page.get_by_label("Created from").fill("2020-01-01")
    page.get_by_label("to before").fill("2020-01-02 18:00")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_text(re.compile(r"^0 of \d+ runs match\.$"))).to_be_visible()


def test_chosen_runs_are_stopped_and_each_row_says_so(page: Page, server: Server) -> None:
    session = server.new_session()
    slow = [server.accepted("slow", session=session, label=f"slow-{n}") for n in range(2)]
    for run_id in slow:
        server.run(run_id, "started")
    over = server.announced(session=session, label="over")["runId"]
    page.goto(f"/ui/runs?requester={session}")
    expect(_rows(page)).to_have_count(4)
    page.keyboard.press("j")
    page.keyboard.press("x")
    chosen = page.get_by_role("group", name="Chosen runs")
    expect(chosen).to_contain_text("1 chosen")
    expect(chosen.get_by_role("button", name="Stop … (it is over)")).to_be_disabled()
    page.get_by_role("checkbox", name="Choose all 3 rows").check()
    # While rows are chosen none moves.
    server.spawn("later", session=session, label="later")
    expect(page.get_by_role("button", name="newer events: show")).to_be_visible()
    chosen.get_by_role("button", name="Stop …").click()
    dialog = page.get_by_role("dialog", name="Stop 2 runs?")
    expect(dialog).to_contain_text("2 running runs will be stopped")
    expect(dialog).to_contain_text("1 chosen run is over and stays as it is.")
    dialog.get_by_label("Reason").fill("enough")
    dialog.get_by_role("button", name="Stop 2 runs").click()
    expect(_rows(page).filter(has_text="stop requested")).to_have_count(2)
    expect(_rows(page).filter(has_text="stopped")).to_have_count(2)
    assert [server.run(run_id, "ended")["outcome"] for run_id in slow] == ["stopped"] * 2
    assert server.http.get(f"/v1/runs/{over}").json()["outcome"] == "success"
    expect(page.get_by_text("2 done", exact=True)).to_be_visible()
    page.get_by_role("button", name="Hide results").click()
    expect(page.get_by_role("columnheader", name="Result")).to_have_count(0)


@pytest.mark.nightly
def test_chosen_runs_are_respawned_or_compared(page: Page, server: Server) -> None:
    session = server.new_session()
    first = server.announced(session=session, label="one")
    second = server.announced(session=session, label="two")
    page.goto(f"/ui/runs?requester={session}")
    expect(_rows(page)).to_have_count(3)
    place = page.get_by_role("grid").bounding_box()
    page.get_by_role("checkbox", name="Choose main two").check()
    page.get_by_role("checkbox", name="Choose main one").check()
    chosen = page.get_by_role("group", name="Chosen runs")
    expect(chosen.get_by_role("link", name="Compare")).to_be_visible()
    chosen.get_by_role("button", name="Download chosen").click()
    with page.expect_download() as saved:
        page.get_by_role("menuitem", name="JSON").click()
    runs = json.loads(saved.value.path().read_text("utf-8"))
    assert [run["label"] for run in runs] == ["two", "one"]
    assert page.get_by_role("grid").bounding_box() == place, "no row moves under the pointer"
    chosen.get_by_role("button", name="Respawn …").click()
    page.get_by_role("dialog").get_by_role("button", name="Respawn 2 runs").click()
    expect(_rows(page).filter(has_text="respawned:")).to_have_count(2)
    again = {
        item["respawnedFrom"]: item["runId"]
        for item in server.runs(requester=session)
        if item["respawnedFrom"] is not None
    }
    assert set(again) == {first["runId"], second["runId"]}
    made = page.get_by_role("link", name=f"respawned: {again[first['runId']][:8]}")
    expect(made).to_have_attribute("href", f"/ui/run/{again[first['runId']]}")
    page.get_by_role("checkbox", name="Choose main two").first.check()
    page.get_by_role("checkbox", name="Choose main one").first.check()
    chosen.get_by_role("link", name="Compare").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Compare")
    assert faults_for_a_screen_reader(page) == []


@pytest.mark.nightly
def test_failed_action_says_why_and_keeps_the_choice(browser: Browser, server: Server) -> None:
    session = server.new_session()
    server.announced(session=session, label="one")
    with watched_context(browser, server.url, token=server.token, may_be_away=True) as (context, _):
        page = context.new_page()
        page.route("**/v1/runs/*/respawn", lambda route: route.abort())
        page.goto(f"/ui/runs?requester={session}")
        page.get_by_role("checkbox", name="Choose main one").check()
        page.get_by_role("button", name="Respawn …").click()
        page.get_by_role("dialog").get_by_role("button", name="Respawn 1 run").click()
        expect(_rows(page).nth(1)).to_contain_text("The server does not answer")
        expect(page.get_by_role("group", name="Chosen runs")).to_be_visible()
        page.unroute("**/v1/runs/*/respawn")
        page.get_by_role("button", name="Respawn …").click()
        page.get_by_role("dialog").get_by_role("button", name="Respawn 1 run").click()
        expect(_rows(page).filter(has_text="respawned:")).to_have_count(1)


@pytest.mark.parametrize("path", ["/ui/runs", "/ui/announcements"])
def test_list_fits_the_window(page: Page, path: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(path)
    expect(page.get_by_role("row").nth(1)).to_be_visible()
    page.wait_for_function("document.documentElement.scrollHeight <= innerHeight")


def test_arrow_and_enter_open_a_run_without_another_key(page: Page) -> None:
    page.goto("/ui/runs")
    expect(_rows(page).nth(1)).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".line.current")).to_have_attribute("aria-rowindex", "2")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/ui/run/[0-9a-f-]{36}$"))


def test_down_leads_from_a_search_to_the_list(page: Page) -> None:
    page.goto("/ui/runs")
    expect(_rows(page).nth(1)).to_be_visible()
    search_runs(page, "tide")
    expect(page).to_have_url(re.compile("q=tide"))
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("grid", name="Runs")).to_be_focused()


def test_back_from_a_search_takes_nothing_along(page: Page) -> None:
    page.goto("/ui/overview")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(_rows(page).nth(1)).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("boat")
    page.go_back()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page).to_have_url(re.compile("/ui/overview$"))


def test_escape_leaves_the_search_for_the_list(page: Page) -> None:
    page.goto("/ui/runs")
    expect(_rows(page).nth(1)).to_be_visible()
    search_runs(page, "label:boat-1")
    expect(_rows(page)).to_have_count(4)
    page.keyboard.press("Escape")
    expect(page.get_by_role("grid", name="Runs")).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.type("no-run-has-this-word")
    page.keyboard.press("Escape")
    expect(page.get_by_text(re.compile("^0 of "))).to_be_visible()
    expect(page.get_by_role("heading", name="Runs")).to_be_focused()


def test_token_without_control_is_offered_no_stop(browser: Browser, server: Server) -> None:
    with watched_context(browser, server.url, token=READER) as (context, _):
        page = context.new_page()
        page.goto("/ui/runs")
        expect(_rows(page).nth(1)).to_be_visible()
        page.keyboard.press("j")
        page.keyboard.press("x")
        chosen = page.get_by_role("group", name="Chosen runs")
        expect(chosen).to_be_visible()
        expect(chosen.get_by_role("button", name="Stop")).to_have_count(0)
        expect(chosen.get_by_role("button", name="Respawn")).to_have_count(0)
        expect(chosen.get_by_role("button", name="Compare (choose two)")).to_be_disabled()
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        expect(chosen).to_have_count(0)


@pytest.mark.nightly
def test_past_offers_no_action(page: Page, server: Server) -> None:
    head = server.http.get("/v1/log").json()["position"]
    page.goto(f"/ui/runs?at=pos:{head}")
    expect(_rows(page).nth(1)).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("x")
    for action in ("Stop …", "Respawn …"):
        button = page.get_by_role("button", name=f"{action} (not in the past)")
        expect(button).to_be_disabled()
    expect(page.get_by_text("You are looking at the past. Go live to act.")).to_have_count(1)


def test_matching_runs_are_saved_as_csv_and_json(page: Page) -> None:
    page.goto("/ui/runs?agentId=tides")
    expect(_rows(page)).to_have_count(2)
    files = {}
    button = page.get_by_role("button", name="Download")
    place = button.bounding_box()
    for form in ("CSV", "JSON"):
        button.click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=form).click()
        files[download.value.suggested_filename] = download.value.path().read_text("utf-8-sig")
        expect(page.get_by_text("1 run saved.")).to_be_visible()
        assert button.bounding_box() == place
        page.get_by_role("button", name="Close").click()
    (row,) = csv.DictReader(io.StringIO(files["spawnlog-runs.csv"]))
    assert (row["status"], row["label"]) == ("failed", "'=1+1")
    assert row["cause"] == "TimeoutError: tide service"
    (run,) = json.loads(files["spawnlog-runs.json"])
    assert run["runId"] == row["runId"]


@pytest.mark.nightly
def test_download_is_cancelled(page: Page) -> None:
    page.goto("/ui/runs")
    expect(_rows(page).nth(1)).to_be_visible()
    page.route("**/v1/runs?*limit=500*", lambda _: None)
    page.get_by_role("button", name="Download").click()
    page.get_by_role("menuitem", name="CSV").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Cancelled.")).to_be_visible()


@pytest.mark.parametrize("size", SMALL_WINDOWS, ids=("narrow", "enlarged"))
def test_small_window_shows_status_cost_and_cause(page: Page, size: ViewportSize) -> None:
    page.set_viewport_size(size)
    page.goto("/ui/runs?status=failed")
    row = _rows(page).nth(1)
    for text in ("failed", "=1+1", "TimeoutError: tide service"):
        expect(row.get_by_text(text)).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("columnheader", name="Cost")).to_be_in_viewport(ratio=1)
    expect(row.get_by_role("link", name="=1+1")).to_have_attribute("href", re.compile("/ui/run/"))
    grid = page.get_by_role("grid", name="Runs")
    assert grid.evaluate("box => box.scrollWidth <= box.clientWidth"), "nothing is beside it"
    assert faults_for_a_screen_reader(page) == []
    # Columns that the reader has chosen are all there.
    page.goto("/ui/runs?status=failed&columns=status,task,created,run")
    expect(page.get_by_role("columnheader")).to_have_count(5)


@pytest.mark.parametrize("size", SMALL_WINDOWS, ids=("narrow", "enlarged"))
def test_longest_status_is_whole(page: Page, server: Server, size: ViewportSize) -> None:
    requested = server.run(server.accepted())["stages"][0]["position"]
    page.set_viewport_size(size)
    page.goto(f"/ui/runs?at=pos:{requested}")
    status = _rows(page).nth(1).get_by_role("gridcell", name="preparing")
    expect(status).to_be_visible()
    assert status.evaluate("cell => cell.scrollWidth <= cell.clientWidth")


@pytest.mark.nightly
@pytest.mark.parametrize("size", SMALL_WINDOWS, ids=("narrow", "enlarged"))
def test_first_row_is_above_the_fold(page: Page, server: Server, size: ViewportSize) -> None:
    page.set_viewport_size(size)
    head = server.http.get("/v1/log").json()["position"]
    for address in ("/ui/runs", f"/ui/runs?status=done&labelPrefix=boat&at=pos:{head}"):
        page.goto(address)
        expect(_rows(page).nth(1)).to_be_visible()
        box = _rows(page).nth(1).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= size["height"]
        assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
        assert faults_for_a_screen_reader(page) == []
