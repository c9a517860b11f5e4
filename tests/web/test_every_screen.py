"""Each screen of the page, now and in the past, on two logs: the storm, and the demo's family."""

import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.page.browser import faults_for_a_screen_reader, watched_context
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.misconfigured_storm import RULE_NAME, StormRecord
from tests.support.servers.preloaded import ROOT
from tests.support.servers.server import Server

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]
DEMO = "agent:main:demo"
SIZES = ((1440, 900), (1024, 768), (390, 844), (720, 450))
"""The last one is a window of 1440 by 900 at a zoom of 200 %."""


@dataclass(frozen=True)
class Screen:
    """A view by its address, and a text that is shown now, and then."""

    view: str
    now: str
    then: str | None = None
    """None: the same text."""


@dataclass(frozen=True)
class Record:
    """A server, a past position of its log, and the expected screens."""

    server: Server
    position: int
    screens: tuple[Screen, ...]


@pytest.fixture(scope="module")
def after_the_storm(storm: tuple[Server, StormRecord]) -> Record:
    server, record = storm
    head = server.http.get("/v1/events", params={"limit": 1}).json()["head"]
    refused, accepted = min(record.refused), min(record.accepted)
    return Record(
        server,
        head - 3,
        (
            Screen("overview", "spawned"),
            Screen("runs?status=refused", RULE_NAME),
            Screen("log", f"{head:,}", f"{head - 3:,}"),
            Screen("tree", "main · book-"),
            Screen("tree/agent:main:book-3", "main · book-3"),
            Screen("changes", "spawned"),
            Screen(f"compare/{refused}", "with which run?"),
            Screen(f"compare/{refused}?with={accepted}", "What differs: request"),
            Screen("what-if", "is in force"),
            Screen("what-if?try=text&set=/agents=1", "Begin again from revision"),
            Screen(f"run/{refused}", f"Refused, {RULE_NAME}"),
            Screen(f"run/{accepted}?part=history", "Run started"),
            Screen(f"run/{accepted}?part=prompt", "System prompt"),
            Screen(f"run/{accepted}?part=shared", "No shared context was given to this run"),
            Screen(f"run/{accepted}?part=conversation", "User"),
            Screen("shared-context", "agent:main:book-3"),
            Screen("announcements?state=delivered", "In inbox"),
            Screen("lanes", "Lanes"),
            Screen("configuration", "in force", "in force then"),
            Screen("verify", "Head of the log", "Head of the log at this moment"),
        ),
    )


@pytest.fixture(scope="module")
def after_the_demo(made_data_dir: Path) -> Iterator[Record]:
    """Yield the record at the first refusal, when five children were active."""
    with new_place() as place:
        data = copied(made_data_dir, place / "data")
        subprocess.run([sys.executable, ROOT / "examples" / "demo.py", data], check=True)
        with Server(data, ROOT / "examples" / "spawnlog.json5") as server:
            yield record_of_demo(server)


def record_of_demo(server: Server) -> Record:
    """Return its screens, including the editor with a model's tools, and its children."""

    def run(label: str) -> str:
        runs = server.http.get("/v1/runs", params={"label": label, "order": "asc"}).json()["items"]
        return str(runs[0]["runId"])

    events = server.http.get("/v1/events", params={"types": "SpawnRefused"}).json()["items"]
    refused, position = events[0]["runId"], events[0]["position"]
    posted = server.http.get("/v1/runs", params={"tree": f"{DEMO}-6"}).json()["items"][0]
    announced = server.http.get("/v1/announcements", params={"limit": 100}).json()["items"]
    (post,) = [
        announcement["position"]
        for announcement in announced
        if announcement["runId"] == posted["runId"]
    ]
    edition, summary, words = run("edition"), run("summary"), run("harbour-words")
    return Record(
        server,
        position,
        (
            Screen("runs", "once-more", "refused 1"),
            Screen("log", "Configuration activated", "Spawn refused"),
            Screen("tree", f"{DEMO}-4"),
            Screen(f"tree/{DEMO}-4", "edition"),
            Screen(f"tree/{DEMO}-8", "stopped", "running"),
            Screen("changes", "spawned"),
            Screen(f"changes?from=pos:0&tree={DEMO}-4&fields=1", "edition"),
            Screen(f"compare/{refused}", "with which run?"),
            Screen(f"compare/{refused}?with={edition}", "What differs: request"),
            Screen(f"compare/{words}?with={summary}", "What differs: request"),
            Screen("what-if", "Revision 2 is in force", "Revision 1 is in force"),
            Screen("what-if?try=text&set=/agents=1", "Begin again from revision"),
            Screen(f"run/{refused}", "5 of 5 children are active"),
            Screen(f"run/{edition}?part=decisions", "agent allowed"),
            Screen(f"run/{edition}?part=history", "Yield requested"),
            Screen(f"run/{edition}?part=prompt", "Ask counter"),
            Screen(f"run/{edition}?part=conversation", "sessions_yield"),
            Screen(f"run/{summary}?part=shared", "which text is longer"),
            Screen("shared-context", f"{DEMO}-8"),
            Screen(f"shared-context/{DEMO}-3", "which text is longer"),
            Screen("announcements", "harbour-words"),
            Screen(f"announcements?open={post}", "chat"),
            Screen("lanes", "No runs are running or queued", "holds a slot"),
            Screen("configuration", "in force", "in force then"),
            Screen("verify", "Head of the log", "Head of the log at this moment"),
        ),
    )


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["after_the_storm", "after_the_demo"])
def test_each_is_whole_and_without_a_fault_for_a_screen_reader_and_weak_eyes(
    browser: Browser, request: pytest.FixtureRequest, name: str
) -> None:
    record: Record = request.getfixturevalue(name)
    found: dict[str, list[str]] = {}
    with watched_context(browser, record.server.url, token=record.server.token) as (context, _):
        page = context.new_page()
        for screen, is_then in itertools.product(record.screens, (False, True)):
            at = f"{'&' if '?' in screen.view else '?'}at=pos:{record.position}" if is_then else ""
            page.emulate_media(color_scheme="light")
            page.goto(f"/ui/{screen.view}{at}")
            text = screen.then if is_then and screen.then is not None else screen.now
            expect(page.get_by_role("main")).to_contain_text(text)
            expect(page.get_by_text("Reading …")).to_have_count(0)
            expect(page.get_by_role("alert")).to_have_count(0)
            expect(page.get_by_role("note")).to_have_count(int(is_then))
            found[screen.view + at] = faults_for_a_screen_reader(page)
            page.emulate_media(color_scheme="dark")
            # Only colors differ in the dark scheme.
            found[screen.view + at] += faults_for_a_screen_reader(page, "color-contrast")
    assert [fault for faults in found.values() for fault in faults] == []


@pytest.mark.nightly
@pytest.mark.parametrize("size", SIZES)
def test_each_shows_data_above_the_fold(
    browser: Browser, after_the_storm: Record, size: tuple[int, int]
) -> None:
    record, (width, height) = after_the_storm, size
    missed: list[str] = []
    with watched_context(browser, record.server.url, token=record.server.token) as (context, _):
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        # The tabs of a run are below its outcome, and an editor is below its choices.
        screens = [screen for screen in record.screens if not re.search("part=|try=", screen.view)]
        for screen, is_then in itertools.product(screens, (False, True)):
            at = f"{'&' if '?' in screen.view else '?'}at=pos:{record.position}" if is_then else ""
            page.goto(f"/ui/{screen.view}{at}")
            text = screen.then if is_then and screen.then is not None else screen.now
            data = page.get_by_role("main").get_by_text(text).filter(visible=True).first
            expect(data).to_be_visible()
            expect(page.get_by_text("Reading …")).to_have_count(0)
            box = data.bounding_box()
            if box is None or box["y"] + box["height"] > height:
                missed.append(f"{screen.view}{at}: {text} at {box}")
            if page.evaluate("document.documentElement.scrollWidth") > width:
                missed.append(f"{screen.view}{at} is wider than the window")
    assert missed == []
