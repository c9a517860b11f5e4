"""The list of runs: its search field, and the command that gives the same."""

from playwright.sync_api import Page, expect

SAME = "The same by command and by request"


def search_runs(page: Page, text: str) -> None:
    """Type into the search field, and press Enter."""
    field = page.get_by_role("combobox", name="Search runs")
    field.fill(text)
    field.press("Enter")


def command_elsewhere(page: Page) -> str:
    """Return the command that gives the same as the view, and close its window."""
    page.get_by_role("button", name=SAME).click()
    window = page.get_by_role("dialog", name=SAME)
    command = window.locator("code").first.inner_text()
    page.keyboard.press("Escape")
    expect(window).to_have_count(0)
    return command
