"""Shared parts of the page under its real content security policy; a violation fails a test."""

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.page.browser import faults_for_a_screen_reader, watched_context
from tests.support.page.workshop import workshop
from tests.support.waiting import wait_for


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with workshop(tmp_path_factory.mktemp("workshop")) as origin:
        yield origin


@pytest.fixture
def page(browser: Browser, origin: str) -> Iterator[Page]:
    with watched_context(browser, origin) as (context, _):
        page = context.new_page()
        page.goto("/ui/runs")
        yield page


def test_menu_opens_by_key_and_returns_focus(page: Page) -> None:
    button = page.get_by_role("button", name="Actions")
    button.focus()
    page.keyboard.press("Enter")
    menu = page.get_by_role("menu", name="Actions")
    expect(menu.get_by_role("menuitem", name="Stop")).to_be_focused()
    expect(menu.get_by_role("group", name="Signed in").get_by_role("menuitem")).to_have_count(3)
    assert faults_for_a_screen_reader(page) == []
    page.keyboard.press("ArrowDown")
    disabled = menu.get_by_role("menuitem", name="Send not in the past")
    expect(disabled).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    expect(menu.get_by_role("menuitem", name="Lanes")).to_be_focused()
    page.keyboard.press("Escape")
    expect(menu).to_have_count(0)
    expect(button).to_be_focused()
    button.click()
    menu.get_by_role("menuitem", name="Stop").click()
    expect(page.get_by_role("status").filter(has_text="chosen")).to_contain_text("stop")


def test_menu_sets_theme(page: Page) -> None:
    back = "getComputedStyle(document.documentElement).backgroundColor"
    assert page.evaluate(back) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitemcheckbox", name="Dark").click()
    assert page.evaluate(back) == "rgb(13, 17, 23)"
    page.reload()
    assert page.evaluate(back) == "rgb(13, 17, 23)"
    assert faults_for_a_screen_reader(page) == []


def test_menu_stays_open_for_more_choices(page: Page) -> None:
    page.get_by_role("button", name="Actions").click()
    choice = page.get_by_role("menuitemcheckbox", name="With label")
    for is_checked in ("true", "false", "true"):
        expect(choice).to_have_attribute("aria-checked", is_checked)
        choice.click()
    expect(page.get_by_role("columnheader", name="Label")).to_have_count(0)


def test_menu_link_navigates(page: Page) -> None:
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitem", name="Lanes").click()
    expect(page).to_have_url(re.compile("/ui/lanes$"))


def test_popover_closes_and_returns_focus(page: Page) -> None:
    button = page.get_by_role("button", name="More")
    for close in ("Escape", "Tab Enter"):
        button.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_label("Name")).to_be_focused()
        assert faults_for_a_screen_reader(page) == []
        for key in close.split():
            page.keyboard.press(key)
        expect(page.get_by_label("Name")).to_have_count(0)
        expect(button).to_be_focused()


def test_escape_closes_popover_before_its_panel(page: Page) -> None:
    page.get_by_role("button", name="Open panel").click()
    panel = page.get_by_role("region", name="Panel")
    button = panel.get_by_role("button", name="Of the panel")
    button.click()
    inside = panel.get_by_role("button", name="In it")
    expect(inside).to_be_focused()
    for leave in ("Shift+Tab", "Tab"):
        page.keyboard.press(leave)
        expect(inside).to_be_visible()
        page.keyboard.press("Escape")
        expect(inside).to_have_count(0)
        expect(panel).to_be_visible()
        button.click()
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)


@pytest.mark.parametrize("name", ["Actions", "More"])
def test_keys_in_floating_part_are_not_of_page(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).focus()
    page.keyboard.press("x")
    page.keyboard.press("Enter")
    expect(page.locator(".floating")).to_be_visible()
    page.keyboard.press("l")
    page.keyboard.press("Escape")
    expect(page.locator(".floating")).to_have_count(0)
    page.keyboard.press("y")
    expect(page.get_by_text("keys of the page: xy")).to_be_visible()


def test_tip_shows_on_focus_and_hover_until_escape(page: Page) -> None:
    term, tip = page.get_by_role("term"), page.get_by_role("tooltip")
    term.focus()
    expect(tip).to_have_text(re.compile("counted from 1"))
    page.keyboard.press("Escape")
    expect(tip).to_have_count(0)
    page.get_by_role("button", name="Actions").focus()
    term.hover()
    expect(tip).to_be_visible()
    page.keyboard.press("Escape")
    expect(tip).to_have_count(0)


def test_elsewhere_gives_command_and_request(page: Page) -> None:
    page.get_by_role("button", name="Link, command and request").click()
    window = page.get_by_role("dialog", name="Link, command and request")
    expect(window.get_by_text("spawnlog run list", exact=True)).to_be_visible()
    expect(window.get_by_text("GET /v1/runs?q=it%27s", exact=True)).to_be_visible()
    expect(window.get_by_role("button", name="Copy the command")).to_be_visible()


def test_link_is_copied_or_shown(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    link = page.get_by_role("button", name="Copy the link to this view as of now")
    expect(link).to_have_text("Link")
    link.click()
    expect(page.get_by_text("Copied.")).to_be_attached()
    assert page.evaluate("navigator.clipboard.readText()") == page.url
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject() }")
    link.click()
    window = page.get_by_role("dialog", name="Link, command and request")
    expect(window.get_by_role("link", name=page.url)).to_be_visible()


def test_confirm_asks_and_shows_refusal(page: Page) -> None:
    opener = page.get_by_role("button", name="Stop them")
    opener.click()
    dialog = page.get_by_role("dialog", name="Stop 3 runs?")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("too slow")
    assert faults_for_a_screen_reader(page) == []
    dialog.get_by_role("button", name="Stop 3 runs").click()
    expect(dialog.get_by_role("alert")).to_have_text("The server refused it.")
    dialog.get_by_role("button", name="Stop 3 runs").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("status").filter(has_text="chosen")).to_contain_text(
        "stopped: too slow"
    )
    expect(opener).to_be_focused()
    opener.click()
    expect(dialog.get_by_label("Reason")).to_have_value("")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_tabs_are_kept_in_address(page: Page) -> None:
    expect(page.get_by_role("tabpanel")).to_have_text("Panel two")
    page.get_by_role("tab", name="Two").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.get_by_role("tabpanel")).to_have_text("Panel one")
    expect(page).to_have_url(re.compile(r"\?part=one$"))
    page.reload()
    expect(page.get_by_role("tab", name="One")).to_have_attribute("aria-selected", "true")


def test_values_read_short_with_whole_on_hover(page: Page) -> None:
    expect(page.get_by_text("3 min ago")).to_have_attribute("title", re.compile(r"\d UTC$"))
    expect(page.locator("time").nth(1)).to_have_attribute("title", "2026-03-01 09:00:00.123456 UTC")
    expect(page.get_by_role("link", name="summer · 15845153")).to_have_attribute(
        "title", re.compile("^agent:summer:subagent:")
    )
    expect(page.get_by_text("12.3 k")).to_have_attribute("title", "12,000 in, 345 out")
    expect(page.get_by_text("$1.50")).to_be_visible()
    expect(page.get_by_role("button", name="Copy the run id")).to_be_visible()


def test_markdown_makes_no_markup_of_html(page: Page) -> None:
    text = page.get_by_role("region", name="Text")
    expect(text.get_by_role("heading", name="Head", level=3)).to_be_visible()
    expect(text.get_by_text('<b onclick="x">raw</b>')).to_be_visible()
    link = text.get_by_role("link", name="link")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(link).to_have_attribute("title", "https://example.org/")
    assert faults_for_a_screen_reader(page) == []
    hostile = (
        "![x](https://example.org/x.png) [y](javascript:alert(1)) <img src=x onerror=alert(2)>"
    )
    page.goto(f"/ui/runs?markdown={hostile}%0A%0Aa%E2%80%AEb%0A%0A{'>' * 100}")
    expect(text.locator("img, script")).to_have_count(0)
    expect(text.locator("[href^=javascript]")).to_have_count(0)
    expect(text).to_contain_text("⟨202E⟩")


def test_rows_are_chosen_by_box_key_and_range(page: Page) -> None:
    status = page.get_by_role("status").filter(has_text="chosen")
    grid = page.get_by_role("grid", name="Rows")
    grid.get_by_label("Choose label 1", exact=True).click()
    grid.get_by_label("Choose label 4", exact=True).click(modifiers=["Shift"])
    expect(status).to_contain_text("4 chosen")
    expect(grid.get_by_label("Choose label 3", exact=True)).to_be_checked()
    grid.press("j")
    grid.press(" ")
    expect(status).to_contain_text("5 chosen")
    grid.get_by_label("Choose all 300 rows").check()
    expect(status).to_contain_text("300 chosen")
    grid.press("Enter")
    expect(status).to_contain_text("opened r0")
    grid.get_by_text("r2", exact=True).click()
    expect(status).to_contain_text("opened r2")
    expect(grid).to_be_focused()


def test_hidden_column_is_left_out(page: Page) -> None:
    grid = page.get_by_role("grid", name="Rows")
    expect(grid.get_by_role("columnheader", name="Label")).to_be_visible()
    page.get_by_label("Label", exact=True).uncheck()
    expect(grid.get_by_role("columnheader")).to_have_count(2)
    expect(grid.get_by_role("row").nth(1).get_by_role("gridcell")).to_have_count(2)


@pytest.mark.parametrize(("width", "height"), [(390, 844), (720, 450), (1440, 900)])
def test_table_ends_with_window(page: Page, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    grid = page.get_by_role("grid", name="Rows")

    def fits() -> bool:
        box = grid.bounding_box()
        return box is not None and box["height"] <= max(height - box["y"], height / 2, 5 * 28 + 29)

    wait_for("a table as high as the window has room", fits)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_downloads_have_fixed_names_and_no_formulas(page: Page, tmp_path: Path) -> None:
    for name in ("CSV", "JSON"):
        with page.expect_download() as download:
            page.get_by_role("button", name=name, exact=True).click()
        assert download.value.suggested_filename == f"spawnlog-runs.{name.lower()}"
        download.value.save_as(tmp_path / name)
    rows = list(csv.reader(io.StringIO((tmp_path / "CSV").read_text("utf-8-sig"), newline="")))
    assert rows[:3] == [["key", "label"], ["r0", "'=1+1"], ["r1", "label 1"]]
    assert json.loads((tmp_path / "JSON").read_text("utf-8"))[1] == {
        "key": "r1",
        "label": "label 1",
    }
