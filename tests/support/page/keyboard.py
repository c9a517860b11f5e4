"""User without a mouse: keys act where the focus is."""

from playwright.sync_api import Locator, Page, expect

TABS_MAX = 60


class Keyboard:
    """The keys of a window. Nothing here clicks, fills, or gives the focus to anything."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def press(self, *keys: str) -> None:
        """Press one key after the other, such as `g` and `t`."""
        for key in keys:
            self._page.keyboard.press(key)

    def type(self, text: str, *, then: str = "Enter") -> None:
        """Replace the text of the focused field."""
        self._page.keyboard.press("Control+a")
        self._page.keyboard.type(text)
        self._page.keyboard.press(then)

    def reach(self, target: Locator, *, by: str = "Tab") -> None:
        """Go from one thing to the next until the focus is on this one, and is seen there."""
        expect(target).to_be_visible()
        for _ in range(TABS_MAX):
            self._page.keyboard.press(by)
            if target.evaluate("one => one === document.activeElement"):
                assert target.evaluate("one => one.matches(':focus-visible')")
                return
        raise AssertionError(f"{TABS_MAX} times {by} did not lead to {target}")

    def use(self, target: Locator, *, by: str = "Tab") -> None:
        """Go there and press Enter."""
        self.reach(target, by=by)
        self.press("Enter")
