"""Header of the page: its height, navigation, badges, settings, titles and focus."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.support.page.browser import faults_for_a_screen_reader, watched_context
from tests.support.page.header import open_moment, press_step, write_moment
from tests.support.page.keyboard import Keyboard
from tests.support.servers.configurations import agent, configuration, scripted
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.misconfigured_storm import StormRecord
from tests.support.servers.server import Server
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.server
Storm = tuple[Server, StormRecord]
HEADER_PX_MAX = 100
SIZES = {
    "desktop": (1440, 900),
    "window": (1280, 800),
    "laptop": (1024, 768),
    "phone": (390, 844),
    "zoom": (720, 450),
}
FAMILY = "agent:main:family"
TOKEN = "token-of-one-session-0123456789abcdef"


@pytest.mark.parametrize("name", nightly_but(SIZES, ["window", "phone"]))
def test_header_height_stays_in_the_past(window: Page, name: str) -> None:
    width, height = SIZES[name]
    window.set_viewport_size(ViewportSize(width=width, height=height))
    window.goto("/ui/lanes")
    heading = window.get_by_role("heading", name="Lanes")
    expect(heading).to_be_visible()
    live, below = heading.bounding_box(), window.get_by_role("main").bounding_box()
    assert live is not None
    assert below is not None
    assert below["y"] <= HEADER_PX_MAX
    window.get_by_role("button", name="Previous event").click()
    expect(window.get_by_role("note")).to_contain_text("This is the past")
    assert heading.bounding_box() == live
    assert window.evaluate("document.documentElement.scrollWidth") == width
    views = window.get_by_role("navigation", name="Views").locator(":scope > :is(.entry, button)")
    last = views.last.bounding_box()
    control = window.get_by_role("group", name="Time shown").bounding_box()
    assert last is not None
    assert control is not None
    assert last["x"] + last["width"] <= control["x"]
    open_moment(window)
    assert faults_for_a_screen_reader(window) == []
    window.keyboard.press("Escape")
    expect(window.get_by_label("Go to")).to_have_count(0)
    expect(window.get_by_role("button", name="Time shown")).to_be_focused()


def test_names_of_views_keep_their_places(window: Page) -> None:
    window.goto("/ui/overview")
    views = window.get_by_role("navigation", name="Views").locator(".entry")
    expect(window.get_by_role("heading", name="Overview")).to_be_visible()
    places = [one.bounding_box() for one in views.all()]
    views.get_by_role("link", name="Lanes").click()
    expect(window.get_by_role("heading", name="Lanes")).to_be_visible()
    assert [one.bounding_box() for one in views.all()] == places


def test_titles_and_focus_follow_the_view(window: Page, storm: Storm) -> None:
    server, record = storm
    run = server.http.get(f"/v1/runs/{min(record.accepted)}").json()
    window.goto("/ui/log")
    expect(window).to_have_title("Log · spawnlog")
    # The title is there before the page.
    expect(window.get_by_role("heading", name="Log")).to_be_visible()
    keys = Keyboard(window)
    keys.press("Tab")
    expect(window.get_by_role("link", name="Skip to content")).to_be_focused()
    keys.press("Enter")
    expect(window.get_by_role("heading", name="Log")).to_be_focused()
    keys.press("g", "r")
    expect(window.get_by_role("heading", name="Runs")).to_be_focused()
    window.goto(f"/ui/runs?label={run['label']}")
    expect(window.get_by_role("row").nth(1).get_by_role("link")).to_have_text(run["label"])
    keys.press("j", "Enter")
    expect(window).to_have_title(f"{run['label']} · Run · spawnlog")
    expect(window.get_by_role("heading", name=run["label"], exact=True)).to_be_focused()


def test_time_is_typed_right_after_its_key(window: Page) -> None:
    window.goto("/ui/overview")
    expect(window.get_by_role("region", name="Running now")).to_be_visible()
    window.keyboard.type("tgl/?")
    expect(window.get_by_label("Go to", exact=True)).to_have_value("gl/?")
    expect(window).to_have_url(re.compile("/ui/overview$"))
    keys = Keyboard(window)
    keys.type("pos:9")
    expect(window).to_have_url(re.compile("/ui/overview.at=pos:9$"))
    control = window.get_by_role("button", name="Time shown")
    expect(control).to_be_focused()
    assert control.evaluate("one => one.matches(':focus-visible')")
    keys.press("l", "t", "Escape")
    expect(control).to_be_focused()


def test_slash_searches_runs_from_a_view_without_fields(window: Page) -> None:
    window.goto("/ui/overview")
    expect(window.get_by_role("region", name="Running now")).to_be_visible()
    # The letters are typed at once: none of them is a shortcut.
    window.keyboard.type("/gtl?")
    search = window.get_by_role("combobox", name="Search runs")
    expect(search).to_be_focused()
    expect(search).to_have_value("gtl?")
    expect(window).to_have_url(re.compile("/ui/runs$"))


def test_walk_by_keys_is_one_history_entry(window: Page) -> None:
    window.goto("/ui/log")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    before = window.evaluate("history.length")
    for _ in range(5):
        window.keyboard.press("ArrowLeft")
    expect(window).to_have_url(re.compile(r"at=pos:\d+"))
    window.keyboard.press("Shift+ArrowLeft")
    expect(window.get_by_text("SpawnRefused at position")).to_be_visible()
    assert window.evaluate("history.length") == before + 1
    window.go_back()
    expect(window).to_have_url(re.compile("/ui/log$"))


def test_strides_on_a_run_stay_on_its_events(window: Page, storm: Storm) -> None:
    server, record = storm
    run = server.http.get(f"/v1/runs/{min(record.accepted)}").json()
    events = server.http.get("/v1/events", params={"runId": run["runId"]}).json()["items"]
    window.goto(f"/ui/run/{run['runId']}")
    expect(window.get_by_role("heading", name=run["label"])).to_be_visible()
    for event in events[:-3:-1]:
        window.keyboard.press("Shift+ArrowLeft")
        expect(window).to_have_url(re.compile(rf"at=pos:{event['position']}\b"))


def test_time_bar_says_and_shows_what_is_pointed_at(window: Page, storm: Storm) -> None:
    window.goto("/ui/log")
    slider = window.get_by_role("slider", name="Moment")
    expect(slider).not_to_have_attribute("max", "0")
    box = slider.bounding_box()
    assert box is not None
    late = (box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
    window.mouse.move(*late)
    expect(window.get_by_text(re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d.* · "))).to_be_visible()
    window.mouse.down()
    window.mouse.up()
    expect(window).to_have_url(re.compile(r"at=pos:\d+$"))
    position = int(window.url.rpartition(":")[2])
    assert 1 < position < int(slider.get_attribute("max") or "0")
    expect(slider).to_have_attribute(
        "aria-valuetext",
        re.compile(rf"^\d{{4}}-\d\d-\d\d .* UTC\), position {position} of \d+$"),
    )


def test_theme_and_time_zone_are_remembered(browser: Browser, storm: Storm) -> None:
    server, _ = storm
    with watched_context(browser, server.url, token=server.token) as (context, _):
        page = context.new_page()
        page.goto("/ui/lanes")
        page.get_by_role("button", name="Account and settings").click()
        expect(page.get_by_role("group", name="Account")).to_contain_text("admin")
        theme = page.get_by_role("group", name="Theme")
        theme.get_by_role("radio", name="Dark").check()
        page.get_by_role("radio", name="UTC", exact=True).check()
        page.reload()
        page.get_by_role("button", name="Account and settings").click()
        expect(theme.get_by_role("radio", name="Dark")).to_be_checked()
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
        open_moment(page)
        expect(page.get_by_label("Date and time (UTC)")).to_be_visible()


@pytest.mark.nightly
def test_picked_time_is_read_in_the_time_zone(browser: Browser, storm: Storm) -> None:
    server, _ = storm
    first = server.http.get("/v1/events", params={"limit": 1}).json()["items"][0]
    with watched_context(browser, server.url, token=server.token) as (context, _):
        page = context.new_page()
        page.goto("/ui/lanes")
        write_moment(page, "2020-01-01 18:00")
        expect(page).to_have_url(re.compile("at=pos:0$"))
        write_moment(page, first["recordedAt"])
        expect(page.get_by_role("note")).to_contain_text("position 1,")
        press_step(page, "Event ›")
        expect(page).to_have_url(re.compile("at=pos:2$"))


def test_token_of_one_session_sees_its_own_time_bar(browser: Browser, made_data_dir: Path) -> None:
    with new_place() as place:
        file = place / "token"
        file.write_text(TOKEN, "utf-8")
        file.chmod(0o600)
        tokens = [
            {"id": "one", "scopes": ["read"], "sessions": [FAMILY], "token": {"file": str(file)}},
            {
                "id": "two",
                "scopes": ["read"],
                "sessions": [FAMILY, "agent:main:other"],
                "token": {"file": str(file.with_name("other"))},
            },
        ]
        second_file = file.with_name("other")
        second_file.write_text(TOKEN[::-1], "utf-8")
        second_file.chmod(0o600)
        config = configuration(agent("main", default=True), tokens=tokens)
        with Server(copied(made_data_dir, place / "data"), config) as server:
            answer = server.spawn("the task", requester={"sessionKey": FAMILY}, label="own")
            server.run(answer.json()["runId"], "announced")
            with watched_context(browser, server.url, token=TOKEN) as (context, _):
                page = context.new_page()
                with page.expect_response("**/v1/events/histogram?*") as counted:
                    page.goto("/ui/lanes")
                assert counted.value.ok
                assert sum(bucket["events"] for bucket in counted.value.json()["items"]) > 1
                expect(page.get_by_role("slider", name="Moment")).to_be_attached()
            with watched_context(browser, server.url, token=TOKEN[::-1]) as (context, _):
                page = context.new_page()
                page.goto("/ui/lanes")
                heading = page.get_by_role("heading", name="Lanes")
                expect(heading).to_be_visible()
                expect(page.get_by_role("region", name="Time")).to_have_count(0)
                box = heading.bounding_box()
                assert box is not None
                assert box["y"] < HEADER_PX_MAX - 40


def test_badges_count_what_goes_on_at_the_moment_shown(
    browser: Browser, made_data_dir: Path
) -> None:
    with new_place() as place:
        config = configuration(
            agent("main", scripted(steps=[{"afterMs": 600_000}]), default=True), maxConcurrent=1
        )
        with Server(copied(made_data_dir, place / "data"), config) as server:
            before = server.head()
            server.run(server.accepted(label="runs"), "started")
            one = server.head()
            for label in ("waits", "waits-too"):
                server.spawn("the task", label=label)
            with watched_context(browser, server.url, token=server.token) as (context, _):
                page = context.new_page()
                page.goto("/ui/log")
                expect(page.get_by_role("link", name="Runs (1 running now)")).to_be_visible()
                waiting = page.get_by_role("link", name="Lanes (2 queued now)")
                expect(waiting).to_be_visible()
                assert faults_for_a_screen_reader(page) == []
                write_moment(page, f"pos:{one}")
                expect(
                    page.get_by_role("link", name="Runs (1 running at this moment)")
                ).to_be_visible()
                expect(page.get_by_role("link", name="Lanes", exact=True)).to_be_visible()
                write_moment(page, f"pos:{before}")
                expect(page.get_by_role("link", name="Runs", exact=True)).to_be_visible()
                page.get_by_role("button", name="Back to live").first.click()
                expect(waiting).to_be_visible()
