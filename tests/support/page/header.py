"""The header of the page: the panel that takes a moment, and the account menu."""

from playwright.sync_api import Page, expect


def open_moment(page: Page) -> None:
    """Open the panel in which a moment is chosen, unless it is open."""
    field = page.get_by_label("Go to")
    if not field.is_visible():
        page.get_by_role("button", name="Time shown").click()
        expect(field).to_be_focused()


def write_moment(page: Page, text: str) -> None:
    """Write a moment and press Enter."""
    open_moment(page)
    page.get_by_label("Go to").fill(text)
    page.get_by_label("Go to").press("Enter")


def press_step(page: Page, name: str) -> None:
    """Press a button of the panel, such as `‹ Refusal` or `Event ›`."""
    open_moment(page)
    page.get_by_role("group", name="Step").get_by_role("button", name=name).click()


def sign_out(page: Page) -> None:
    """Sign out by the account menu."""
    page.get_by_role("button", name="Account and settings").click()
    page.get_by_role("button", name="Sign out").click()
