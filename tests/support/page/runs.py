"""The list of runs: its search field, and the command that gives the same."""

from playwright.sync_api import Page, expect

SAME = "Link, command and request"


def search_runs(page: Page, text: str) -> None:
    """Type into the search field, and press Enter."""
    field = page.get_by_role("combobox", name="Search runs")
    field.fill(text)
    field.press("Enter")


def command_elsewhere(page: Page, region: str | None = None) -> str:
    """Return the command that gives the same as the view or a region of it, and close its
    window."""
    place = page if region is None else page.get_by_role("region", name=region)
    place.get_by_role("button", name=SAME).click()
    window = page.get_by_role("dialog", name=SAME)
    command = window.locator("code").first.inner_text()
    page.keyboard.press("Escape")
    expect(window).to_have_count(0)
    return command
