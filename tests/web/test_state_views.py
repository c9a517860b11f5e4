"""State at a moment: shared contexts, announcements, lanes and configurations on the page."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.support.page.browser import faults_for_a_screen_reader, watched_context
from tests.support.servers.configurations import agent, scripted
from tests.support.servers.hook_server import Call, HookServer, Reply
from tests.support.servers.misconfigured_storm import MENDED, WRONG_REVISION, StormRecord
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server
HELD_MS = 600_000
SLOTS = 2
FAMILY = "agent:main:family"
FAMILY_NAME = "main · family"
HOSTILE = "<img src=x onerror=alert(1)> \u202egnp.exe"
READER_TOKEN = "reader-of-a-family-0123456789abcdef"
WATCH_BUTTONS = """() => {
  const number = () => [...document.querySelectorAll('main button.primary:not(dialog *)')].filter(
    (button) => button.textContent.trim().startsWith('Redeliver')).length
  window.fewest = number()
  new MutationObserver(() => { window.fewest = Math.min(window.fewest, number()) })
    .observe(document.body, { subtree: true, childList: true, characterData: true })
}"""
WATCH_STATUS = """() => {
  window.told = []
  new MutationObserver(() => {
    for (const one of document.querySelectorAll('[role=status]')) window.told.push(one.innerText)
  }).observe(document.body, { subtree: true, childList: true, characterData: true })
}"""
LINES_OF_TEXT = """(element) => {
  const range = document.createRange()
  range.selectNodeContents(element)
  return new Set([...range.getClientRects()].map((box) => box.top)).size
}"""
GOAL = {"audience": ["developers", HOSTILE]}


@dataclass
class State:
    """A server on which something is shared, parked, held and waited for."""

    server: Server
    outside: HookServer
    first: int
    """Position at which the family first shared a key."""
    patched: int
    child: str
    held: list[str]
    waiting: str

    def ledger(self, state: str) -> list[dict[str, Any]]:
        """Return the announcements in the ledger."""
        answer = self.server.http.get("/v1/announcements", params={"state": state, "limit": 500})
        return list(answer.json()["items"])

    def announced(self) -> dict[str, Any]:
        """Return the announcement of the child."""
        (found,) = self.server.inbox(FAMILY)
        return found


def busy_configuration(outside: HookServer, token: Path) -> dict[str, Any]:
    """Return a configuration with lanes of width 2, a long run, and webhooks with one attempt."""
    config: dict[str, Any] = json.loads(json.dumps(MENDED))
    config["agents"]["list"][0]["subagents"]["allowAgents"].append("sleeper")
    config["agents"]["list"].append(agent("sleeper", scripted(steps=[{"afterMs": HELD_MS}])))
    config["agents"]["defaults"]["subagents"]["maxConcurrent"] = SLOTS
    config["spawnlog"]["announce"] = {
        "webhooks": [outside.webhook("gateway"), outside.webhook("ops")],
        "attemptsMax": 1,
    }
    config["spawnlog"]["hooks"] = {**outside.hooks("subagentSpawned"), "attemptsMax": 1}
    reader = {"id": "reader", "scopes": ["read"], "sessions": [FAMILY]}
    config["spawnlog"]["tokens"] = [{**reader, "token": {"file": str(token)}}]
    return config


@pytest.fixture(scope="module")
def state(
    storm: tuple[Server, StormRecord], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[State]:
    server, _ = storm
    token = tmp_path_factory.mktemp("tokens") / "reader"
    token.write_text(READER_TOKEN, "utf-8")
    token.chmod(0o600)
    with HookServer() as outside:
        outside.replies("gateway", Reply(500))
        outside.replies("subagentSpawned", Reply(500))
        server.reload(busy_configuration(outside, token))
        child = spawned(server, agentId="writer", label="child", sharedContext={"goal": GOAL})
        server.run(child, "announced")
        path = f"/v1/sessions/{FAMILY}/shared-context"
        first = server.http.get(path).json()["version"]
        patch = server.http.patch(
            path, json={"goal": "another", "deadline": "May"}, headers={"If-Match": "*"}
        )
        assert patch.status_code == 200, patch.text
        held = [spawned(server, agentId="sleeper", label=f"held-{n}") for n in range(SLOTS)]
        for run_id in held:
            server.run(run_id, "started")
        waiting = spawned(server, agentId="sleeper", label="in-line")
        made = State(server, outside, first, patch.json()["version"], child, held, waiting)
        wait_for("the webhook to be given up", lambda: made.ledger("parked"))
        yield made
        for run_id in (*held, waiting):
            server.http.post(f"/v1/runs/{run_id}/stop", json={"reason": "over"})
            server.run(run_id, "announced")
        wait_for("the last delivery", lambda: not made.ledger("due"))
        server.reload(MENDED)


def spawned(server: Server, **body: Any) -> str:
    answer = server.spawn("watched", requester={"sessionKey": FAMILY}, **body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["runId"])


def row_of(page: Page | Locator, text: str) -> Locator:
    return page.get_by_role("row").filter(has_text=text)


@pytest.mark.nightly
def test_what_a_family_shares_is_told_with_who_wrote_it_and_who_started_with_it(
    window: Page, state: State
) -> None:
    window.goto("/ui/shared-context")
    window.get_by_role("main").get_by_role("link", name=FAMILY_NAME).click()
    goal = row_of(window, "another")
    expect(goal.get_by_role("rowheader")).to_have_text("goal")
    expect(goal.get_by_role("cell").nth(1)).to_have_text(str(len('"another"')))
    assert faults_for_a_screen_reader(window) == []
    versions = window.get_by_role("region", name="Versions")
    expect(versions.get_by_role("row")).to_have_count(3)
    expect(row_of(versions, "patch")).to_contain_text("goal, deadline")
    started = window.get_by_role("region", name="Runs that started with it")
    expect(row_of(started, "child")).to_contain_text(f"{state.first:,}")
    expect(row_of(started, "held-0")).to_contain_text(f"{state.patched:,}")
    written = state.server.http.patch(
        f"/v1/sessions/{FAMILY}/shared-context", json={"note": "live"}, headers={"If-Match": "*"}
    )
    expect(row_of(versions, f"{written.json()['version']:,}")).to_contain_text("note")
    versions.get_by_role("link", name=f"{state.first:,}").click()
    expect(window.get_by_role("note")).to_contain_text("This is the past")
    expect(row_of(window, "goal").first).to_contain_text("⟨202E⟩gnp.exe")
    expect(window.get_by_text("deadline")).to_have_count(0)
    assert window.locator("main img").count() == 0
    window.get_by_role("slider", name="Moment").fill(str(state.first - 20))
    expect(window.get_by_text("Nothing was shared yet at this time")).to_be_visible()


@pytest.mark.nightly
def test_a_run_tells_what_it_was_given_at_its_start(window: Page, state: State) -> None:
    window.goto(f"/ui/run/{state.child}")
    window.get_by_role("tab", name="Shared context").click()
    expect(row_of(window, "goal")).to_contain_text("developers")
    expect(row_of(window, "goal").get_by_role("link", name=FAMILY_NAME)).to_be_visible()
    window.goto(f"/ui/run/{state.waiting}?part=shared")
    expect(window.get_by_text("The child had not started yet")).to_be_visible()
    window.get_by_role("link", name="Shared context of the requester").click()
    expect(row_of(window, "another")).to_be_visible()


@pytest.mark.nightly
def test_what_is_parked_is_sent_again_with_a_reason(window: Page, state: State) -> None:
    (parked,) = state.ledger("parked")
    position = parked["position"]
    window.set_viewport_size({"width": 1440, "height": 900})
    window.goto("/ui/announcements")
    views = window.get_by_role("navigation", name="Views")
    expect(views.get_by_role("link", name="Announcements")).to_have_attribute(
        "href", "/ui/announcements"
    )
    views.get_by_role("link", name="1 parked").click()
    expect(window).to_have_url(re.compile("state=parked"))
    grid = window.get_by_role("grid", name="Announcements")
    row = row_of(grid, "gateway: Parked after 1 attempt (HTTP 500); ops: Delivered")
    columns = grid.get_by_role("columnheader").all_inner_texts()
    expect(row).to_have_count(1)
    row.get_by_role("button", name="Redeliver … writer · child").click()
    expect(window.get_by_role("heading", name="Announcement of writer · child")).to_be_visible()
    panel = window.get_by_role("region", name=re.compile("^Announcement at"))
    way = panel.get_by_role("list", name="Deliveries to webhooks").get_by_role("listitem")
    gateway = way.filter(has_text="gateway")
    expect(gateway).to_contain_text("Last error: the webhook responded with HTTP 500")
    assert faults_for_a_screen_reader(window) == []
    expect(panel.get_by_label("Reason")).to_be_focused()
    assert grid.get_by_role("columnheader").all_inner_texts() == columns, "the panel takes none"
    window.evaluate(WATCH_BUTTONS)
    place = grid.bounding_box()
    window.keyboard.type("perhaps now")
    window.get_by_role("button", name="Redeliver", exact=True).click()
    failed = window.get_by_text("1 announcement sent again: 0 delivered, 1 parked again (HTTP 500)")
    expect(failed).to_be_visible()
    assert grid.bounding_box() == place, "nothing moves when it is told"
    expect(gateway).to_contain_text("Parked after 2 attempts")
    expect(window.get_by_role("status").filter(has_text=re.compile("."))).to_have_count(1)
    assert window.evaluate("fewest") == 2, "the form and the button for all keep their places"
    # The announcement is at a newer position now; its link is the same.
    expect(window).to_have_url(re.compile(rf"open={position}\b"))
    opened = grid.locator(".opened")
    expect(opened).to_contain_text("gateway: Parked")
    states = window.get_by_role("group", name="State")
    states.get_by_role("button", name="Parked").click()
    expect(grid.get_by_role("row")).not_to_have_count(2)
    expect(window).not_to_have_url(re.compile("state=parked"))
    listed = grid.get_by_title("View at this time").all_inner_texts()
    positions = [int(text.replace(",", "")) for text in listed]
    assert positions == sorted(positions), "the list is in the order that its head names"
    states.get_by_role("button", name="Parked").click()
    expect(window).to_have_url(re.compile("state=parked"))
    window.reload()
    expect(window.get_by_role("heading", name="Announcement of writer · child")).to_be_visible()
    expect(gateway).to_contain_text("Parked after 2 attempts")
    expect(opened).to_have_count(1)
    panel.get_by_label("Reason").press("Escape")
    expect(gateway).to_have_count(0)
    expect(grid).to_be_focused()
    window.set_viewport_size({"width": 390, "height": 844})
    expect(grid.get_by_role("columnheader")).to_have_count(2)
    expect(window.get_by_text("1 parked", exact=True)).to_be_visible()
    place = grid.bounding_box()
    all_again = window.get_by_role("button", name="Redeliver 1 …")
    all_again.click()
    dialog = window.get_by_role("dialog", name="Redeliver 1 parked announcement?")
    dialog.get_by_label("Reason (required)").fill("and now")
    held: list[Route] = []
    window.route("**/v1/announcements/redrive", lambda route: held.append(route), times=1)
    dialog.get_by_role("button", name="Redeliver 1").click()
    expect(dialog.get_by_role("button", name="Working …")).to_be_visible()
    route = held.pop()
    response = route.fetch()
    wait_for("the webhook to be given up again", lambda: state.ledger("parked"))
    window.evaluate(WATCH_STATUS)
    route.fulfill(response=response)
    expect(failed).to_be_visible()
    assert grid.bounding_box() == place, "nothing moves when it is told"
    window.set_viewport_size({"width": 1440, "height": 900})
    told = window.evaluate("told")
    assert not [text for text in told if "being delivered" in text], "it is told as it is"
    history = window.context.new_page()
    history.goto(f"/ui/run/{state.child}?part=history")
    again = history.get_by_role("listitem").filter(has_text="Delivery to gateway asked again")
    expect(again).to_have_text(
        [re.compile("again by admin: perhaps now"), re.compile("again by admin: and now")]
    )
    history.close()
    state.outside.replies("gateway", Reply(204))
    grid.press("ArrowDown")
    grid.press("Enter")
    expect(panel.get_by_label("Reason")).to_be_focused()
    all_again.click()
    dialog.get_by_label("Reason").fill("it is back")
    dialog.get_by_role("button", name="Redeliver 1").click()
    expect(window.get_by_text("1 announcement sent again: 1 delivered.")).to_be_focused()
    expect(window.get_by_text("No announcement is parked.")).to_be_visible()
    expect(gateway).to_contain_text("Delivered")
    expect(window.get_by_role("button", name=re.compile("^Redeliver"))).to_have_count(0)
    (call,) = state.outside.calls("gateway")[3:]
    assert call.body["data"]["runId"] == state.child
    reasons = state.server.http.get("/v1/events", params={"types": "EffectRedriven"}).json()
    parked_then = reasons["items"][-3]["position"] - 1
    window.goto(f"/ui/announcements?open={position}&state=parked&at=pos:{parked_then}")
    expect(gateway).to_contain_text("Parked after 1 attempt")
    expect(grid.get_by_role("columnheader")).to_have_text(columns)
    for name in ("Redeliver (not in the past)", "Redeliver 1 … (not in the past)"):
        expect(window.get_by_role("button", name=name)).to_be_disabled()
    expect(window.get_by_text("You are looking at the past. Go live to act.")).to_have_count(1)


@pytest.mark.parametrize("width", [390, 720, 1440])
def test_rows_of_announcements_stay_when_it_is_known_how_many_are_parked(
    window: Page, state: State, width: int
) -> None:
    window.set_viewport_size({"width": width, "height": 844})
    counts = "**/v1/summary?*"
    held: list[Route] = []

    def answer(route: Route) -> None:
        response = route.fetch()
        body = response.json()
        body["live"]["parkedAnnouncements"] = 123
        route.fulfill(response=response, json=body)

    window.route(counts, lambda route: held.append(route))
    with window.expect_request(counts):
        window.goto("/ui/announcements")
    grid = window.get_by_role("grid", name="Announcements")
    expect(grid.get_by_role("row").nth(1)).to_be_visible()
    place = grid.bounding_box()
    window.route(counts, answer)
    answer(held.pop())
    expect(window.get_by_text("123 parked", exact=True)).to_be_visible()
    expect(window.get_by_role("button", name="Redeliver all 123 …")).to_be_visible()
    assert grid.bounding_box() == place


def test_history_says_of_a_delivery_what_the_log_says(window: Page, state: State) -> None:
    window.goto(f"/ui/run/{state.child}?part=history")
    events = window.get_by_role("list", name="Events of the run").get_by_role("listitem")
    for name in ("Delivery to gateway", "Hook subagentSpawned"):
        text = f"{name} failed at attempt 1: HTTP 500"
        expect(events.filter(has_text=text).first).to_be_visible()
        parked = events.filter(has_text=f"{name} parked after 1 attempt: HTTP 500").first
        expect(parked).to_be_visible()
        expect(parked.get_by_role("group")).to_have_count(0)
    expect(events.filter(has_text="Run started")).to_contain_text("fields changed")
    expect(events.filter(has_text="No field")).to_have_count(0)
    window.goto(f"/ui/log?runId={state.child}")
    parked = row_of(window, "Delivery to gateway parked after 1 attempt: HTTP 500").last
    expect(parked).to_be_visible()


def test_a_parked_hook_is_called_again_with_a_reason(window: Page, state: State) -> None:
    def given_up() -> list[int]:
        query = {"types": "EffectParked", "runId": state.child}
        events = state.server.http.get("/v1/events", params=query).json()["items"]
        return [event["position"] for event in events if event["payload"]["kind"] == "hook"]

    (position,) = wait_for("the hook to be given up", given_up)
    window.goto(f"/ui/log?types=EffectParked&runId={state.child}")
    row_of(window, f"{position:,}").click()
    state.outside.replies("subagentSpawned", Reply(204))
    window.get_by_label("Reason").fill("it is back")
    window.get_by_role("button", name="Call again").click()
    expect(window.get_by_role("status").filter(has_text="will be called again")).to_contain_text(
        "subagentSpawned"
    )

    def calls() -> list[Call]:
        return [
            call for call in state.outside.calls("subagentSpawned") if call.run_id == state.child
        ]

    wait_for("the second call", lambda: len(calls()) == 2)
    expect(window.get_by_role("button", name="Call again")).to_have_count(0)


@pytest.mark.nightly
def test_the_ledger_goes_on_behind_its_first_page(window: Page, state: State) -> None:
    ledger = [*state.ledger("delivered")]
    window.goto("/ui/announcements")
    grid = window.get_by_role("grid", name="Announcements")
    expect(row_of(grid, f"{ledger[0]['position']:,}").first).to_be_visible()
    while grid.get_attribute("aria-rowcount") == "-1":
        grid.press("End")
    grid.press("End")
    expect(grid).to_have_attribute("aria-rowcount", str(len(ledger) + 1))
    expect(row_of(grid, f"{ledger[-1]['position']:,}").first).to_be_visible()
    window.get_by_label("After position").fill(str(ledger[-1]["position"] - 1))
    window.get_by_label("After position").press("Enter")
    expect(grid.get_by_role("row")).to_have_count(2)
    expect(window).to_have_url(re.compile("after="))


def test_a_lane_shows_who_holds_a_slot_and_who_waits_for_one(window: Page, state: State) -> None:
    window.goto("/ui/runs")
    expect(window.get_by_role("heading", name="Runs")).to_be_visible()
    window.keyboard.press("g")
    window.keyboard.press("n")
    expect(row_of(window, "sleeper · held-0")).to_contain_text(re.compile(r"holds a slot.*\d m?s"))
    line = row_of(window, "sleeper · in-line")
    expect(line).to_contain_text("1 in line for a slot")
    expect(line).to_contain_text("main · family")
    slots = window.get_by_role("list", name="Slots of each lane").get_by_role("listitem")
    expect(slots).to_contain_text(f"{SLOTS} / {SLOTS} taken, 1 in line")
    line.get_by_role("link").click()
    expect(window).to_have_url(re.compile(state.waiting))
    window.goto(f"/ui/lanes?at=pos:{state.first}")
    expect(window.get_by_text("No runs are running or queued at this time.")).to_be_visible()


@pytest.mark.parametrize(("width", "height"), [(390, 844), (720, 450)])
def test_rows_of_a_narrow_window_say_all_without_scrolling_sideways(
    window: Page, state: State, width: int, height: int
) -> None:
    window.set_viewport_size({"width": width, "height": height})
    rows = {
        "lanes": ("in-line", ("sleeper · in-line", "1 in line for a slot", FAMILY_NAME)),
        f"announcements?after={state.first}": (
            "child",
            (
                "writer · child",
                "done",
                re.compile("^gateway.*(Parked|Delivered)$"),
                FAMILY_NAME,
                re.compile(r"\d s|ago"),
            ),
        ),
        "configuration": (
            "bytes",
            (re.compile(r"\d\d:\d\d"), "in force", re.compile(r"\d bytes")),
        ),
        "shared-context": (FAMILY, (FAMILY_NAME, FAMILY)),
        f"log?types=RunEnded&runId={state.child}": (
            "Run ended",
            ("Run ended", "writer · child", "system"),
        ),
    }
    for path, (name, texts) in rows.items():
        window.goto(f"/ui/{path}")
        row = row_of(window, name).first
        row.scroll_into_view_if_needed()
        for text in texts:
            expect(row.get_by_text(text).first).to_be_in_viewport(ratio=1)
        grid = window.get_by_role("grid")
        assert grid.evaluate("box => box.scrollWidth <= box.clientWidth"), path
        assert faults_for_a_screen_reader(window) == []
    window.goto(f"/ui/shared-context/{FAMILY}?at=pos:{state.first}")
    expect(row_of(window, "developers").get_by_role("button", name="Copy")).to_be_attached()
    assert window.evaluate("document.documentElement.scrollWidth") == width, "its tables scroll"
    window.goto(f"/ui/run/{state.child}?part=shared")
    line = window.get_by_role("columnheader", name="Key").evaluate(LINES_OF_TEXT)
    assert line == 1, "its words are whole"


@pytest.mark.nightly
def test_the_revision_in_force_is_marked_and_two_are_compared(window: Page, state: State) -> None:
    listed = state.server.http.get("/v1/config/revisions").json()["items"]
    last = listed[0]["revision"]
    window.goto("/ui/configuration")
    grid = window.get_by_role("grid", name="Revisions")
    in_force = grid.get_by_role("row").filter(has=window.get_by_text("in force", exact=True))
    expect(in_force).to_have_count(1)
    expect(in_force).to_contain_text(f"{listed[0]['position']:,}")
    newest = window.get_by_role("region", name=f"Revision {last}, compared")
    expect(newest.get_by_role("definition")).to_contain_text([f"maxConcurrent 24 → {SLOTS}"])
    grid.get_by_role("link", name=str(WRONG_REVISION), exact=True).click()
    expect(window).to_have_url(re.compile(f"revision={WRONG_REVISION}"))
    compared = window.get_by_role("region", name=f"Revision {WRONG_REVISION}, compared")
    lines = compared.get_by_role("definition")
    expect(lines).to_have_text(["maxConcurrent 16 → 24", "allowAgents lost reviewer"])
    expect(compared.get_by_role("term")).to_have_text(["All agents (defaults)", "Agent main"])
    compared.get_by_text("By path, as JSON").click()
    expect(row_of(compared, "/agents/list/0/subagents/allowAgents")).to_be_visible()
    expect(row_of(compared, "/agents/defaults/subagents/maxConcurrent")).to_contain_text("16")
    compared.get_by_label("with revision").fill(str(last))
    compared.get_by_label("with revision").press("Enter")
    expect(lines.filter(has_text="removed")).not_to_have_count(0)
    compared.get_by_role("button", name="Link, command and request").click()
    expect(window.get_by_text(f"spawnlog config diff {last} {WRONG_REVISION}")).to_be_visible()
    window.keyboard.press("Escape")
    wrong = next(revision for revision in listed if revision["revision"] == WRONG_REVISION)
    window.goto(f"/ui/configuration?at=pos:{wrong['position']}")
    expect(row_of(grid, "in force then")).to_contain_text(f"{wrong['position']:,}")
    expect(grid.get_by_role("row")).to_have_count(WRONG_REVISION + 1)
    window.get_by_text(f"Text of revision {WRONG_REVISION}").click()
    content = window.get_by_role("region", name=f"Content of revision {WRONG_REVISION}")
    expect(content).to_contain_text('"maxConcurrent": 24')


@pytest.mark.nightly
def test_a_token_for_some_sessions_is_offered_what_it_may_see(
    browser: Browser, state: State
) -> None:
    announced = state.announced()
    with watched_context(browser, state.server.url, token=READER_TOKEN) as (context, _):
        page = context.new_page()
        page.goto("/ui/configuration")
        expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
        links = page.get_by_role("navigation", name="Views").get_by_role("link").all_inner_texts()
        names = [text.partition("\n")[0] for text in links]
        assert "Lanes" in names
        assert not {"Configuration", "Shared context"} & set(names)
        page.goto(f"/ui/announcements?open={announced['position']}")
        expect(page.get_by_role("heading", name="Announcement of writer · child")).to_be_visible()
        page.goto("/ui/lanes")
        expect(row_of(page, "held-0")).to_contain_text("holds a slot")
