"""The page of a server in a real browser, watched for forbidden behavior."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from tests.support.servers.preloaded import ROOT

AXE = ROOT / ".build" / "page" / "node_modules" / "axe-core" / "axe.min.js"
Scheme = Literal["light", "dark"]
SHOWN_MS_MAX = 15_000
ELSEWHERE = "spawnlog.test"
"""Host name of this machine that a browser trusts no more than any other."""

FEATURES_OFF = (
    # With each window, Chromium loads two invisible pages for its address bar. They took nearly
    # half of the processor time of a test.
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    "WebUIOmniboxFullPopup",
    # This list replaces Playwright's own, so the rest repeats that one.
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
    "LensOverlay",
    "MediaRouter",
    "PaintHolding",
    "ThirdPartyStoragePartitioning",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "OptimizationHints",
    "NetworkTimeServiceQuerying",
    "AimEnabled",
    "PreconnectToSearch",
)

expect.set_options(timeout=SHOWN_MS_MAX)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield the browser of this machine."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.fail("tests of the page need Chromium: `make browser` installs it")
    # Its sandbox wants another user than root, and Playwright leaves it out unless one asks.
    is_sandboxed = os.geteuid() != 0
    arguments = [
        f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1",
        f"--disable-features={','.join(FEATURES_OFF)}",
    ]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=arguments, chromium_sandbox=is_sandboxed
        )
        yield browser
        browser.close()


@dataclass
class Watched:
    """Faults of a window: console lines, errors, requests to other hosts."""

    url: str
    may_be_away: bool = False
    refusals: tuple[int, ...] = ()
    wrong: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        """Take note of everything in this window."""
        page.on("console", lambda line: self._hear(f"{line.type}: {line.text}"))
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("request", lambda request: self._look_at(request.url))
        page.on("dialog", lambda dialog: self.wrong.append(f"dialog: {dialog.message}"))

    def _hear(self, line: str) -> None:
        # A browser logs each request that is not answered, or refused.
        refusals = [f"with a status of {status}" for status in self.refusals]
        if self.may_be_away:
            refusals += ["Failed to load resource: net::", "with a status of 503"]
        if not any(item in line for item in refusals):
            self.wrong.append(line)

    def _look_at(self, url: str) -> None:
        if urlsplit(url).netloc != urlsplit(self.url).netloc:
            self.wrong.append(f"request: {url}")


@contextmanager
def watched_context(
    browser: Browser,
    url: str,
    *,
    scheme: Scheme = "light",
    token: str | None = None,
    may_be_away: bool = False,
    refusals: tuple[int, ...] = (),
) -> Iterator[tuple[BrowserContext, Watched]]:
    """Yield a browser context with only a token, if one is given.

    Every fault in its windows fails the test, except for responses with a status in `refusals`,
    which may come at any time.
    """
    context = browser.new_context(
        base_url=url, color_scheme=scheme, viewport={"width": 1280, "height": 800}
    )
    context.set_default_timeout(SHOWN_MS_MAX)
    watched = Watched(url, may_be_away, refusals)
    context.on("page", watched.watch)
    if token is not None:
        context.add_init_script(
            f"if (location.protocol === 'http:') localStorage.setItem('spawnlog.token', '{token}')"
        )
    try:
        yield context, watched
    finally:
        context.close()
    assert watched.wrong == [], watched.wrong


def faults_for_a_screen_reader(page: Page, *rules: str) -> list[str]:
    """Return the findings of axe, by all rules or these: rule and place."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text("utf-8"))
    found: dict[str, Any] = page.evaluate(
        "rules => axe.run(rules.length > 0 ? { runOnly: rules } : {})", list(rules)
    )
    return [
        f"{fault['id']}: {node['target']} {node.get('failureSummary', '')}"
        for fault in found["violations"]
        for node in fault["nodes"]
    ]


def color(page: Page, name: str) -> str:
    """Return a color of the style sheet, by its custom property without `--`: `rgb(0, 90, 158)`."""
    found: str = page.evaluate(
        """name => {
  const probe = document.body.appendChild(document.createElement('span'))
  probe.style.color = `var(--${name})`
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}""",
        name,
    )
    return found


def is_drawn(canvas: Locator, wanted: str) -> bool:
    """Return True if an opaque pixel of a canvas has this color, as `color` gives it.

    An edge between two pixels is blended, which can change a channel by 1.
    """
    found: bool = canvas.evaluate(
        """(canvas, wanted) => {
  const { width, height } = canvas
  // Chromium warns if the canvas of the page itself is read more than once.
  const copy = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true })
  copy.drawImage(canvas, 0, 0)
  const { data } = copy.getImageData(0, 0, width, height)
  const channels = wanted.match(/[0-9]+/g).map(Number)
  for (let i = 0; i < data.length; i += 4)
    if (data[i + 3] === 255 && channels.every((one, c) => Math.abs(one - data[i + c]) <= 1))
      return true
  return false
}""",
        wanted,
    )
    return found


def resting_scroll(page: Page) -> float:
    """Return how far the page is scrolled once it rests: a wheel moves it over several frames."""
    top: float = page.evaluate(
        """async () => {
  let before = NaN
  while (scrollY !== before) {
    before = scrollY
    for (let frame = 0; frame < 5; frame += 1) await new Promise(requestAnimationFrame)
  }
  return before
}"""
    )
    return top


def picture(page: Page, folder: Path, name: str) -> Path:
    """Save a screenshot."""
    path = folder / f"{name}.png"
    page.screenshot(path=path)
    return path
