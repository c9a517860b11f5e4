"""Cost of the page in a real browser: `python -m benchmarks.page`.

Measures its first table, a scrub, a new run, ten tabs, and the memory of a tab while the log grows.
Log, server and browser are created for it and removed afterwards.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from benchmarks.generate import EVENTS_MAX, EVENTS_MIN, generate
from benchmarks.report import Figure, figures_table, percentile
from benchmarks.server import CONFIGURATION, Server, running_server
from infrastructure.server.database import open_database

SEED = 1
LOADS = 10
FRAME_SECONDS = 3
SCRUBS = 50
SPAWNS = 10
QUIET_MS = 700
BUSY_MS = 130
TABS = 10
EVENTS_A_SECOND = 50
EVENTS_OF_A_LIFE = 12
SECONDS_MAX = 3600.0
WAIT_MS_MAX = 30_000

FIRST_ROW = "[role=row][aria-rowindex='2']"
FIRST_FIGURE = "main .figure"
PAINTED = """
(selector) => new Promise((done) => {
  const began = performance.now()
  const look = () => {
    const row = document.querySelector(selector)
    if (row) requestAnimationFrame(() => done(performance.now()))
    else if (performance.now() - began < 30000) setTimeout(look, 1)
    else done(-1)
  }
  look()
})
"""
SCRUB = """
(position) => new Promise((done) => {
  const bar = document.querySelector('input[type=range]')
  const began = performance.now()
  const finish = () => {
    watch.disconnect()
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - began), 0))
  }
  // A table says as of which position its rows are.
  const watch = new MutationObserver(() => {
    if (document.querySelector('[role=grid]')?.dataset.position === String(position)) finish()
  })
  const all = { subtree: true, childList: true, attributes: true }
  watch.observe(document.querySelector('main'), all)
  bar.value = position
  bar.dispatchEvent(new Event('input', { bubbles: true }))
  setTimeout(() => { watch.disconnect(); done(-1) }, 10000)
})
"""
FRAMES = """
(seconds) => new Promise((done) => {
  const bars = document.querySelector('[role=application]')
  const taken = []
  // Each drawing begins by clearing the canvas.
  let drawings = 0
  const clear = CanvasRenderingContext2D.prototype.clearRect
  CanvasRenderingContext2D.prototype.clearRect = function (...area) {
    if (bars.contains(this.canvas)) drawings += 1
    return clear.apply(this, area)
  }
  const began = performance.now()
  let last = began
  let number = 0
  const frame = (now) => {
    taken.push(now - last)
    last = now
    // In and out again, so that each frame draws other bars.
    const key = number++ % 40 < 20 ? '+' : '-'
    bars.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))
    if (now - began < seconds * 1000) requestAnimationFrame(frame)
    else {
      const seconds = (now - began) / 1000
      const sorted = taken.slice(2).sort((a, b) => a - b)
      done([taken.length / seconds, drawings / seconds, sorted])
    }
  }
  requestAnimationFrame(frame)
})
"""
NEW_ROW = """
(label) => new Promise((done) => {
  const began = performance.now()
  const look = () => {
    const rows = [...document.querySelectorAll('[role=row]')]
    if (rows.some((row) => row.textContent.includes(label)))
      requestAnimationFrame(() => done(performance.now() - began))
    else if (performance.now() - began > 10000) done(-1)
    else setTimeout(look, 1)
  }
  look()
})
"""
HEAP = "() => performance.memory ? performance.memory.usedJSHeapSize / 1048576 : 0"


@contextmanager
def browser() -> Iterator[Browser]:
    """Yield Chromium, as installed on this machine."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise SystemExit("bench-page needs Chromium: `make browser` installs it")
    flags = ["--enable-precise-memory-info", "--js-flags=--expose-gc"]
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=path,
            args=[*flags, *(["--no-sandbox"] if os.geteuid() == 0 else [])],
        )
        yield opened
        opened.close()


@contextmanager
def signed_in(opened: Browser, server: Server) -> Iterator[BrowserContext]:
    """Yield a browser context that has only the token."""
    context = opened.new_context(base_url=server.url, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(WAIT_MS_MAX)
    context.add_init_script(
        f"if (location.protocol === 'http:')"
        f" localStorage.setItem('spawnlog.token', {json.dumps(server.token)})"
    )
    yield context
    context.close()


def first_paints(opened: Browser, server: Server, address: str, selector: str) -> list[float]:
    """Return the milliseconds from the request of the document to the painted element, with an
    empty cache.
    """
    taken = []
    for _ in range(LOADS):
        with signed_in(opened, server) as context:
            page = context.new_page()
            page.goto(address, wait_until="commit")
            taken.append(float(page.evaluate(PAINTED, selector)))
    return taken


def scrubs(page: Page) -> list[float]:
    """Return the milliseconds from the input to the painted table, at positions throughout the
    log.
    """
    page.goto("/ui/runs")
    expect(page.locator(FIRST_ROW)).to_be_visible()
    head = int(page.get_by_role("slider").get_attribute("max") or "0")
    picked = random.Random(SEED)
    return [
        float(page.evaluate(SCRUB, picked.randrange(head // 10, head))) for _ in range(SCRUBS + 3)
    ][3:]


def spawn(server: Server, label: str) -> None:
    body = {"requester": {"sessionKey": f"agent:main:{label}"}, "task": "look", "label": label}
    request = urllib.request.Request(
        f"{server.url}/v1/spawns",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        answer.read()


def new_runs(page: Page, server: Server, pause_ms: int, name: str) -> list[float]:
    """Return the milliseconds from the request of a spawn to the painted row, each after a
    pause.
    """
    page.goto("/ui/runs")
    expect(page.locator(FIRST_ROW)).to_be_visible()
    taken = []
    for number in range(SPAWNS):
        label = f"painted-{name}-{number}"
        sending = threading.Thread(target=spawn, args=(server, label))
        page.wait_for_timeout(pause_ms)
        began = time.perf_counter()
        sending.start()
        if page.evaluate(NEW_ROW, label) < 0:
            raise RuntimeError("a new run was not painted within ten seconds")
        taken.append((time.perf_counter() - began) * 1000)
        sending.join()
    return taken


def frames(page: Page) -> tuple[int, float, float, float]:
    """Return the number of bars, the frames and drawings per second while zooming, and the 95th
    percentile of a frame in milliseconds.
    """
    page.goto("/ui/tree")
    bars = page.get_by_role("application", name="Runs as bars in time")
    expect(bars).to_be_visible()
    text = page.get_by_text(" runs. Arrows").inner_text()
    a_second, drawn, taken = page.evaluate(FRAMES, FRAME_SECONDS)
    number = int(text.split()[0].replace(",", ""))
    return number, float(a_second), float(drawn), float(percentile(taken, 0.95))


def tabs(opened: Browser, server: Server) -> float:
    """Return the milliseconds until the last of ten tabs of one browser shows its table."""
    with signed_in(opened, server) as context:
        began = time.perf_counter()
        pages = [context.new_page() for _ in range(TABS)]
        for page in pages:
            page.goto("/ui/runs", wait_until="commit")
        for page in pages:
            expect(page.locator(FIRST_ROW)).to_be_visible()
        return (time.perf_counter() - began) * 1000


def kept_memory(opened: Browser, server: Server, seconds: float) -> tuple[float, float]:
    """Return the MiB that a live tab uses after a tenth of the time and at its end, with fifty
    events per second.

    Garbage is collected before each reading.
    """
    with signed_in(opened, server) as context, growing(server, "grown"):
        page = context.new_page()
        page.goto("/ui/runs")
        expect(page.locator(FIRST_ROW)).to_be_visible()
        page.wait_for_timeout(seconds * 100)
        early = _in_use(page)
        page.wait_for_timeout(seconds * 900)
        return early, _in_use(page)


@contextmanager
def growing(server: Server, name: str) -> Iterator[None]:
    """Append some fifty events per second until the end of the block."""
    over = threading.Event()

    def keep_spawning() -> None:
        number = 0
        while not over.wait(EVENTS_OF_A_LIFE / EVENTS_A_SECOND):
            spawn(server, f"{name}-{number}")
            number += 1

    spawning = threading.Thread(target=keep_spawning)
    spawning.start()
    try:
        yield
    finally:
        over.set()
        spawning.join()


def _in_use(page: Page) -> float:
    page.evaluate("() => { gc(); gc() }")
    return float(page.evaluate(HEAP))


def measured(folder: Path, events: int, memory_seconds: float) -> Iterator[Figure]:
    """Yield all figures, on a log of this many events."""
    data = folder / "data"
    data.mkdir(mode=0o711)
    database = open_database(None, data / "postgres")
    try:
        generate(database.conninfo, events=events, seed=SEED)
        with psycopg.connect(database.conninfo, autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE)")
    finally:
        database.close()
    with running_server(folder, configuration=CONFIGURATION) as server, browser() as opened:
        yield from _of_times(
            "first table, cold", first_paints(opened, server, "/ui/runs", FIRST_ROW)
        )
        # The day of the last event: the generated log ends before today.
        day = f"/ui/overview?at=pos:{events}"
        yield from _of_times("overview, cold", first_paints(opened, server, day, FIRST_FIGURE))
        with signed_in(opened, server) as context:
            page = context.new_page()
            yield from _of_times("scrub", scrubs(page))
            number, a_second, drawn, slow = frames(page)
            yield Figure(f"{number} bars, zoomed", "frames a second", round(a_second, 1))
            yield Figure(f"{number} bars, zoomed", "drawings a second", round(drawn, 1))
            yield Figure(f"{number} bars, zoomed: a frame, p95", "ms", round(slow, 1))
            quiet = new_runs(page, server, QUIET_MS, "quiet")
            yield from _of_times("new run, request to painted", quiet)
            with growing(server, "beside"):
                busy = new_runs(page, server, BUSY_MS, "busy")
            name = f"new run, request to painted, at some {EVENTS_A_SECOND} events a second"
            yield from _of_times(name, busy)
        yield Figure(f"{TABS} tabs of one browser, the last one", "ms", _ms(tabs(opened, server)))
        early, late = kept_memory(opened, server, memory_seconds)
        yield Figure("memory of a tab, early", "MiB", round(early, 1))
        note = f"{memory_seconds:.0f} s at some {EVENTS_A_SECOND} events a second"
        yield Figure("memory of a tab, at the end", "MiB", round(late, 1), note)


def _of_times(name: str, taken: Sequence[float]) -> list[Figure]:
    if min(taken) < 0:
        raise RuntimeError(f"{name}: something was not painted in time")
    ordered = sorted(taken)
    return [
        Figure(f"{name}: {which}", "ms", _ms(percentile(ordered, share)))
        for which, share in (("p50", 0.5), ("p95", 0.95))
    ]


def _ms(milliseconds: float) -> float:
    return round(milliseconds, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. Return 0 if everything was painted."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("--events", type=int, default=100_000, help="of the generated log")
    parser.add_argument("--memory-seconds", type=float, default=60.0)
    options = parser.parse_args(arguments)
    if not EVENTS_MIN <= options.events <= EVENTS_MAX:
        parser.error(f"--events is from {EVENTS_MIN} to {EVENTS_MAX}")
    if not 1 <= options.memory_seconds <= SECONDS_MAX:
        parser.error(f"--memory-seconds is up to {SECONDS_MAX:.0f}")
    folder = Path(tempfile.mkdtemp(prefix="spawnlog-bench-"))
    folder.chmod(0o711)
    load = os.getloadavg()[0]
    figures: list[Figure] = []
    try:
        for figure in measured(folder, options.events, options.memory_seconds):
            # The memory measurement takes up to an hour: print earlier figures at once.
            print(f"{figure.name}: {figure.value} {figure.unit}", file=sys.stderr, flush=True)
            figures.append(figure)
    except RuntimeError as error:
        print(f"the benchmark failed: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{options.events} events; load of the machine before it began: {load:.1f}\n")
    print(figures_table(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
