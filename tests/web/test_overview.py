"""Overview and the spawn form: what runs, failed, was refused and waits, now and in the past."""

import contextlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, Error, Locator, Page, Request, Route, expect

from tests.support.page.browser import (
    color,
    faults_for_a_screen_reader,
    is_drawn,
    watched_context,
)
from tests.support.servers.configurations import agent
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.databases import Databases
from tests.support.servers.hook_server import HookServer, Reply
from tests.support.servers.narrators import narrate, narrating, said
from tests.support.servers.server import Server, serving
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server
CAUSE = "TimeoutError: the tide service did not answer within <n> s"
SLOTS = 3
BURST = 16


def tides(folder: Path) -> dict[str, Any]:
    """Return a configuration with the narrator `main` and agents whose runs fail."""
    config = narrating(folder)
    error = CAUSE.replace("<n>", "5")
    unpriced = config["agents"]["list"][0] | {"id": "unpriced", "model": "acme/other"}
    unpriced.pop("default")
    config["agents"]["list"] += [
        unpriced,
        agent("tides", {"type": "scripted", "outcome": "error", "error": error}),
        agent("planner", {"type": "scripted", "outcome": "error", "error": "no plan"}),
    ]
    config["agents"]["defaults"]["subagents"]["maxConcurrent"] = SLOTS
    return config


@dataclass(frozen=True)
class Day:
    """A server on which some runs ended, three are at work and two wait."""

    server: Server
    running: list[str]
    ended: int
    """Position at which all runs of the first part were over."""


@pytest.fixture(scope="module")
def day(made_data_dir: Path) -> Iterator[Day]:
    with new_place() as place, HookServer() as outside:
        outside.replies("gateway", Reply(500, b"no"))
        notes = place / "notes"
        notes.mkdir()
        config = tides(notes)
        config["spawnlog"]["announce"] = {
            "webhooks": [outside.webhook("gateway")],
            "attemptsMax": 1,
        }
        with Server(copied(made_data_dir, place / "data"), config, folder=notes) as server:
            usage = {"type": "usage", "inputTokens": 500_000, "outputTokens": 0}
            done = narrate(server, said("hello"), {"say": usage | {"model": "acme/big"}})
            second_usage = {"say": usage | {"model": "acme/other", "inputTokens": 1_000}}
            for run_id in (done, narrate(server, second_usage, agentId="unpriced")):
                server.run(run_id, "announced")
            # One session has at most five active children.
            failed = [server.accepted("tides", label=f"tide-{number}") for number in range(3)]
            for run_id in (*failed, server.accepted("planner")):
                server.run(run_id, "announced")
            assert server.spawn("anything", agentId="nobody").status_code == 422
            wait_for(
                "deliveries that are given up",
                lambda: (
                    len(server.get("/v1/announcements", state="parked", limit=10)["items"]) == 6
                ),
            )
            ended = server.head()
            running = [
                narrate(server, {"note": f"up-{number}", "await": "end"}, label=f"held-{number}")
                for number in range(SLOTS)
            ]
            for number in range(SLOTS):
                server.note(f"up-{number}")
            narrate(server, said("hello"), label="late")
            narrate(server, said("hello"), label="after", dependsOn=["held-0"])
            yield Day(server, running, ended)
            server.touch("end")
            for run_id in running:
                server.run(run_id, "ended")


@pytest.fixture
def window(browser: Browser, day: Day) -> Iterator[Page]:
    with watched_context(browser, day.server.url, token=day.server.token) as (context, _):
        yield context.new_page()


@pytest.fixture
def empty(browser: Browser, databases: Databases) -> Iterator[tuple[Server, Page]]:
    with (
        serving(databases, narrating) as server,
        watched_context(browser, server.url, token=server.token, refusals=(422,)) as (context, _),
    ):
        yield server, context.new_page()


def card(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=re.compile(f"^{name}"))


def height_px(there: Locator) -> float:
    box = there.bounding_box()
    assert box
    return box["height"]


def filters(link: Locator) -> list[tuple[str, str]]:
    """Return the filters in the address of a link, without the start of the range."""
    query = parse_qsl(urlsplit(link.get_attribute("href") or "").query)
    return [(name, value) for name, value in query if name not in ("endedSince", "since")]


def figure(page: Page, name: str) -> Locator:
    return card(page, "Since midnight").get_by_role("link", name=re.compile(f" {name}\\b"))


BROKEN_WORDS = """all => all.flatMap(one => {
  const words = []
  const walker = document.createTreeWalker(one, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    for (const { 0: word, index } of node.data.matchAll(/\\S+/g)) {
      const range = document.createRange()
      range.setStart(node, index)
      range.setEnd(node, index + word.length)
      if (new Set([...range.getClientRects()].map(box => box.top)).size > 1) words.push(word)
    }
  return words
})"""


def is_in_lines(elements: Locator, lines: int) -> bool:
    """Return True if the elements stand on this number of lines; False while one is drawn anew."""
    boxes = [one.bounding_box() for one in elements.all()]
    return None not in boxes and len({round(box["y"]) for box in boxes if box}) == lines


def cut_texts(page: Page) -> list[str]:
    """Return the causes, reasons and figures of which the window shows a part only."""
    found: list[str] = page.locator(".reason, .figure, td.right").evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth && one.clientWidth > 0)"
        ".map(one => one.textContent)"
    )
    return found


def open_form(page: Page) -> Locator:
    page.get_by_role("main").get_by_role("button", name="Spawn", exact=True).click()
    form = page.get_by_role("dialog", name="Spawn a sub-agent")
    expect(form.get_by_role("combobox", name="Agent")).to_be_focused()
    return form


def submit(form: Locator) -> None:
    form.get_by_role("button", name="Spawn", exact=True).click()


def test_first_view_tells_whether_all_is_well(window: Page, day: Day) -> None:
    window.set_viewport_size({"width": 1440, "height": 900})
    window.goto("/")
    expect(window.get_by_role("heading", name="Overview")).to_be_visible()
    expect(window.get_by_text("4 failed, 1 refused, 6 deliveries parked")).to_be_visible()
    expect(figure(window, "spawned")).to_contain_text("12")
    expect(figure(window, "done")).to_contain_text("2")
    assert filters(figure(window, "failed")) == [("status", "failed")]
    expect(figure(window, "tokens")).to_have_attribute("href", re.compile("^/ui/runs.endedSince="))
    failures = card(window, "Failures by cause")
    expect(failures.get_by_role("heading")).to_have_text("Failures by cause 4 failed")
    first = failures.get_by_role("listitem").first
    expect(first).to_contain_text(re.compile(r"3 ×.*tides, \d+ (s|min) ago"))
    assert filters(first.get_by_role("link", name=CAUSE.replace("<n>", "5"))) == [("cause", CAUSE)]
    refusal = card(window, "Refusals by rule").get_by_role("listitem")
    expect(refusal).to_contain_text(re.compile("1 ×.*agent not configured.*nobody"))
    expect(refusal.get_by_role("link", name="What if: agent not configured")).to_have_attribute(
        "href", re.compile(r"/ui/what-if\?like=[0-9a-f-]{36}&from=")
    )
    expect(
        refusal.get_by_role("link", name=re.compile(r"^Last refused: \w{8}$"))
    ).to_have_attribute("href", re.compile("/ui/run/"))
    for part, view in (("4 failed", "runs"), ("1 refused", "runs"), ("6 deliveries", "ann")):
        link = window.locator(".verdict").get_by_role("link", name=re.compile(f"^{part}"))
        expect(link).to_have_attribute("href", re.compile(f"^/ui/{view}"))
    waiting = card(window, "Waiting")
    expect(waiting).to_contain_text("1 run waits for a slot: lane subagent, depth 1 is full")
    expect(waiting).to_contain_text("main · after waits for held-0")
    parked = waiting.get_by_role("link", name="6 deliveries of 6 announcements parked")
    assert filters(parked) == [("state", "parked")]
    cost = card(window, "Cost by agent")
    expect(cost.get_by_role("listitem").nth(0)).to_contain_text(
        re.compile(r"main.*500 k tokens.*\$1\.00")
    )
    expect(cost.get_by_role("listitem").nth(1)).to_contain_text(
        re.compile("unpriced.*1,000 tokens.*no price")
    )
    expect(cost).to_contain_text("Left out: tokens without a price (unpriced).")
    expect(card(window, "Since midnight")).to_contain_text("cost (partial)")
    record = card(window, "Log and configuration")
    expect(record).to_contain_text(re.compile("not verified yet.*revision 1.*by"))
    assert faults_for_a_screen_reader(window) == []
    assert window.evaluate("document.documentElement.scrollHeight") <= 900
    window.set_viewport_size({"width": 390, "height": 844})
    wait_for("cards that fit", lambda: window.evaluate(FITS))
    regions = ("Failures", "Waiting", "Running", "Refusals", "Since midnight", "Cost")
    tops = [(card(window, name).bounding_box() or {"y": -1})["y"] for name in regions]
    assert tops == sorted(tops), tops
    parked = window.get_by_role("link", name="6 deliveries of 6 announcements parked")
    box = parked.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 844


def test_arrows_walk_the_rows_of_the_cards(window: Page) -> None:
    window.goto("/ui/overview")
    expect(card(window, "Failures by cause").get_by_role("listitem").first).to_be_visible()
    expect(card(window, "Waiting").get_by_role("listitem").first).to_be_visible()
    rows = card(window, "Running now").get_by_role("row")
    expect(rows).to_have_count(SLOTS + 1)
    window.keyboard.press("ArrowDown")
    expect(rows.nth(1).get_by_role("link")).to_be_focused()
    for _ in range(rows.count() - 1):
        window.keyboard.press("j")
    first = card(window, "Failures by cause").get_by_role("listitem").first.get_by_role("link")
    expect(first).to_be_focused()
    window.keyboard.press("ArrowUp")
    expect(rows.last.get_by_role("link")).to_be_focused()
    window.keyboard.press("ArrowDown")
    window.keyboard.press("Enter")
    expect(window.get_by_role("grid", name="Runs").get_by_role("row")).to_have_count(4)


def test_links_lead_to_the_runs_behind_a_figure(window: Page) -> None:
    window.goto("/ui/overview")
    figure(window, "failed").click()
    expect(window.get_by_role("grid", name="Runs").get_by_role("row")).to_have_count(5)


def add_running_usage(route: Route) -> None:
    """Let a summary say that running runs have used as much as those that ended."""
    answer = route.fetch()
    summary = answer.json()
    summary["live"]["usageByAgent"] = summary["ended"]["usageByAgent"]
    route.fulfill(response=answer, json=summary)


def test_costs_lead_to_ended_and_running_runs(window: Page) -> None:
    window.route("**/v1/summary*", add_running_usage)
    window.goto("/ui/overview")
    main = card(window, "Cost by agent").get_by_role("listitem").first
    expect(main).to_contain_text(re.compile(r"^main.*\$2\.00"))
    assert [filters(link) for link in main.get_by_role("link").all()] == [
        [("agentId", "main")],
        [("agentId", "main"), ("status", "running")],
    ]
    expect(main).to_contain_text("$1.00 ended, $1.00 running so far")
    expect(figure(window, "cost")).to_have_attribute("href", "#cost")
    figure(window, "cost").click()
    expect(window).to_have_url(re.compile("/ui/overview#cost$"))
    expect(window.get_by_role("heading", name=re.compile("^Cost by agent"))).to_be_in_viewport()
    assert cut_texts(window) == []


def test_running_run_is_followed_and_stopped(window: Page, day: Day) -> None:
    window.goto("/ui/overview")
    running = card(window, "Running now")
    row = running.get_by_role("row").filter(has_text="held-2")
    elapsed = row.get_by_role("cell").nth(1)
    before = elapsed.inner_text()
    expect(elapsed).not_to_have_text(before)
    rows = running.get_by_role("row")
    expect(rows.nth(1)).to_contain_text("held-0")
    row.get_by_role("button", name="Stop main · held-2").click()
    confirm = window.get_by_role("dialog", name="Stop main · held-2?")
    expect(confirm).to_contain_text("Stops the run. No run below it is active.")
    failures = card(window, "Failures by cause")
    place = failures.bounding_box()
    confirm.get_by_label("Reason").fill("by hand")
    confirm.get_by_role("button", name="Stop run").click()
    expect(running.get_by_role("status")).to_have_text("Stopped: main · held-2.")
    expect(row).to_have_count(0)
    assert failures.bounding_box() == place, "what is below has its place"
    assert day.server.run(day.running[2], "ended")["status"] == "stopped"
    expect(figure(window, "stopped")).to_be_visible()
    for width, lines in ((1024, 1), (720, 1), (660, 1), (390, 2)):
        window.set_viewport_size({"width": width, "height": 844})
        figures = card(window, "Since midnight").locator(".one")
        wait_for(f"{lines} lines at {width} px", partial(is_in_lines, figures, lines))
        assert cut_texts(window) == []
        assert figures.evaluate_all(BROKEN_WORDS) == []


def test_past_is_as_of_its_moment(window: Page, day: Day) -> None:
    window.goto(f"/ui/overview?at=pos:{day.ended}&period=24h")
    expect(card(window, "Running at this moment")).to_contain_text("No run is at work.")
    expect(card(window, "Waiting")).to_contain_text("No run waits.")
    figures = card(window, "Last 24 hours")
    expect(figures.get_by_role("link", name=re.compile(" spawned"))).to_contain_text("7")
    link = figures.get_by_role("link", name=re.compile(" refused"))
    assert ("at", f"pos:{day.ended}") in filters(link)
    spawn = window.get_by_role("main").get_by_role("button", name="Spawn")
    expect(spawn).to_be_disabled()
    window.goto("/ui/overview?at=pos:0")
    expect(window.get_by_text("No runs had been requested at this moment.")).to_be_visible()
    assert faults_for_a_screen_reader(window) == []


def test_summary_is_asked_for_once_a_second(window: Page, day: Day) -> None:
    requests: list[str] = []

    def note(request: Request) -> None:
        if "/v1/summary" in request.url:
            requests.append(request.url)

    window.goto("/ui/overview")
    expect(figure(window, "spawned")).to_be_visible()
    before = int(re.sub(r"\D", "", figure(window, "spawned").inner_text()))
    began = time.monotonic()
    window.on("request", note)
    for _ in range(BURST):
        day.server.spawn("anything", agentId="nobody")
        window.wait_for_timeout(250)
    expect(figure(window, "spawned")).to_contain_text(str(before + BURST))
    seconds = time.monotonic() - began
    own = [url for url in requests if "from=pos" not in url]
    assert 0 < len(own) <= seconds + 2, (own, seconds)
    assert len(requests) - len(own) <= 1 + seconds / 5, "the badges count as the view does"


FITS = "document.documentElement.scrollWidth <= innerWidth"


def add_yesterday(route: Route) -> None:
    """Add a yesterday to a summary, on which all cost twice as much."""
    answer = route.fetch()
    summary = answer.json()
    for usage in summary["spawned"]["usageByDay"][:]:
        day = str(date.fromisoformat(usage["day"]) - timedelta(days=1))
        cost = 2 * (usage["estimatedCostUsd"] or 0)
        summary["spawned"]["usageByDay"].append(usage | {"day": day, "estimatedCostUsd": cost})
    route.fulfill(response=answer, json=summary)


def test_costs_of_several_days_are_drawn_and_said(window: Page) -> None:
    window.goto("/ui/overview?period=7d")
    expect(card(window, "Cost by agent")).to_be_visible()
    days = window.get_by_role("slider", name="Cost by day")
    expect(days).to_have_count(0)
    window.route("**/v1/summary*", add_yesterday)
    for scheme in ("light", "dark"):
        window.emulate_media(color_scheme=scheme)
        window.goto("/ui/overview?period=7d")
        expect(days).to_have_attribute("aria-valuetext", re.compile(r": \$\d.*, main \$"))
        shade = color(window, "shade-0")
        wait_for(f"{scheme} days", partial(is_drawn, days.locator("canvas"), shade))
    today = days.get_attribute("aria-valuetext") or ""
    days.press("ArrowLeft")
    expect(days).not_to_have_attribute("aria-valuetext", today)
    yesterday = days.get_attribute("aria-valuetext") or ""
    costs = [float(re.findall(r"\$([\d.]+)", text)[0]) for text in (today, yesterday)]
    assert costs[1] == pytest.approx(2 * costs[0], abs=0.02)
    assert faults_for_a_screen_reader(window) == []
    window.set_viewport_size({"width": 390, "height": 844})
    wait_for("a chart that fits", lambda: window.evaluate(FITS))
    card(window, "Cost by agent").get_by_role("link", name=yesterday[:6]).click()
    expect(window).to_have_url(re.compile(r"/ui/runs\?since=.*&until="))


def test_empty_server_is_filled_by_the_form(empty: tuple[Server, Page]) -> None:
    server, page = empty
    page.goto("/ui/overview")
    expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
    assert faults_for_a_screen_reader(page) == []
    page.get_by_role("button", name="Spawn the first run").click()
    form = page.get_by_role("dialog", name="Spawn a sub-agent")
    submit(form)
    expect(form.get_by_role("textbox", name="Task")).to_be_focused()
    expect(form).to_contain_text("Write what the child is to do.")
    task = json.dumps([said("hello")])
    form.get_by_role("textbox", name="Task").fill(task)
    form.get_by_role("textbox", name="Label").fill("first")
    form.get_by_role("textbox", name="Shared context").fill("[1]")
    submit(form)
    expect(form).to_contain_text("Not a JSON object.")
    form.get_by_role("textbox", name="Shared context").fill('{"goal": {"deep": [1]}}')
    form.get_by_text("More").click()
    form.get_by_role("textbox", name="Timeout").fill("60")
    assert faults_for_a_screen_reader(page) == []
    submit(form)
    link = page.get_by_role("dialog", name="Spawned").get_by_role("link", name="Open main · first")
    expect(link).to_be_focused()
    (run,) = server.runs(label="first")
    assert run["runTimeoutSeconds"] == 60
    server.run(run["runId"], "started")
    shared = server.get(f"/v1/runs/{run['runId']}/shared-context")
    assert "deep" in json.dumps(shared)
    link.click()
    expect(page).to_have_url(re.compile(f"/ui/run/{run['runId']}"))


def test_list_of_runs_has_the_form_too(empty: tuple[Server, Page]) -> None:
    server, page = empty
    page.goto("/ui/runs")
    page.get_by_role("button", name="Spawn the first run").click()
    form = page.get_by_role("dialog", name="Spawn a sub-agent")
    agent_field = form.get_by_role("combobox", name="Agent")
    expect(agent_field).to_have_accessible_name("Agent (optional, main by default)")
    form.get_by_role("textbox", name="Task").fill(json.dumps([said("hello")]))
    submit(form)
    spawned = page.get_by_role("dialog", name="Spawned")
    expect(spawned.get_by_role("link", name=re.compile(r"^Open main · \w{8}$"))).to_be_focused()
    spawned.get_by_role("button", name="Close").click()
    expect(page.get_by_role("grid", name="Runs").get_by_role("row")).to_have_count(2)
    (run,) = server.runs()
    server.run(run["runId"], "ended")


def test_refused_spawn_is_explained_in_the_form(empty: tuple[Server, Page]) -> None:
    server, page = empty
    server.accepted(task="no steps")
    page.goto("/ui/overview")
    form = open_form(page)
    form.get_by_role("combobox", name="Agent").fill("nobody")
    form.get_by_role("textbox", name="Task").fill("anything")
    submit(form)
    expect(form.get_by_role("combobox", name="Agent")).to_be_focused()
    expect(form.get_by_role("alert")).to_contain_text("Refused, agent not configured")
    expect(form).to_contain_text('Agent "nobody" is not configured')
    expect(form.get_by_role("link", name="Open the refused run")).to_be_visible()
    assert faults_for_a_screen_reader(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("main").get_by_role("button", name="Spawn")).to_be_focused()


def test_unanswered_spawn_is_made_once(browser: Browser, databases: Databases) -> None:
    def lose_answer(route: Route) -> None:
        route.fetch()
        route.abort()

    with (
        serving(databases, narrating) as server,
        watched_context(browser, server.url, token=server.token, may_be_away=True) as (context, _),
    ):
        page = context.new_page()
        page.goto("/ui/overview")
        form = open_form(page)
        form.get_by_role("textbox", name="Task").fill(json.dumps([said("once")]))
        page.route("**/v1/spawns", lose_answer, times=1)
        submit(form)
        expect(form.get_by_role("alert")).to_contain_text("does not answer")
        submit(form)
        expect(page.get_by_role("dialog", name="Spawned")).to_be_visible()
        assert len(server.runs()) == 1


@pytest.mark.parametrize("scopes", [["read"], ["read", "spawn", "control"]])
def test_token_of_one_session_sees_its_own_runs(
    browser: Browser, made_data_dir: Path, scopes: list[str]
) -> None:
    token, own = "token-of-one-session-0123456789", "agent:main:own"
    with new_place() as place:
        notes = place / "notes"
        notes.mkdir()
        file = place / "token"
        file.write_text(token, "utf-8")
        file.chmod(0o600)
        config = tides(notes)
        config["spawnlog"]["tokens"] = [
            {"id": "one", "scopes": scopes, "sessions": [own], "token": {"file": str(file)}}
        ]
        with Server(copied(made_data_dir, place / "data"), config, folder=notes) as server:
            for session in (own, "agent:main:other"):
                run_id = server.accepted("tides", requester={"sessionKey": session})
                server.run(run_id, "announced")
            with watched_context(browser, server.url, token=token) as (context, _):
                page = context.new_page()
                page.goto("/ui/overview")
                expect(figure(page, "spawned")).to_contain_text("1")
                expect(card(page, "Failures by cause").get_by_role("listitem")).to_contain_text(
                    "1 ×"
                )
                expect(card(page, "Log and configuration")).to_have_count(0)
                spawn = page.get_by_role("main").get_by_role("button", name="Spawn")
                expect(spawn).to_have_count(int("spawn" in scopes))
                if "spawn" in scopes:
                    form = open_form(page)
                    form.get_by_text("More").click()
                    expect(form.get_by_role("textbox", name="Requested by")).to_have_value(own)
                expect(page.get_by_role("alert")).to_have_count(0)


def test_card_of_run_names_webhook_whose_delivery_failed(window: Page, day: Day) -> None:
    (run,) = day.server.get("/v1/runs", agentId="planner", limit=1)["items"]
    window.set_viewport_size({"width": 1440, "height": 900})
    window.goto(f"/ui/run/{run['runId']}")
    failed = window.get_by_role("link", name="delivery to gateway parked")
    expect(failed).to_be_visible()
    failed.click()
    expect(window).to_have_url(re.compile(r"/ui/announcements\?.*state=parked.*open=\d+"))


def test_waiting_leads_to_the_runs_that_it_does_not_list(browser: Browser, day: Day) -> None:
    server = day.server
    for number in range(4 * SLOTS):
        key = f"agent:main:line-{number}"
        narrate(server, {"await": "end"}, label=f"line-{number}", requester={"sessionKey": key})
    year = {"sessionKey": "agent:main:year"}
    before = [f"the-{number}-of-many-letters" for number in range(2)]
    for label in before:
        narrate(server, {"await": "end"}, label=label, requester=year)
    narrate(server, label="year-report", dependsOn=before, requester=year)
    with watched_context(browser, server.url, token=server.token) as (context, _):
        page = context.new_page()
        page.goto("/ui/overview")
        waiting = card(page, "Waiting")
        heading = waiting.get_by_role("heading")
        expect(heading).to_have_text(re.compile(r"Waiting \d+"))
        more = waiting.get_by_role("link", name=re.compile(r"^and \d+ more$"))
        expect(more).to_have_attribute("href", "/ui/runs?status=waiting&status=queued")
        page.set_viewport_size({"width": 390, "height": 844})
        expect(waiting.get_by_text("waits for the-0-of-many")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390, "nothing is cut"
        held: list[Route] = []
        page.goto("/ui/lanes")
        expect(page.get_by_role("heading", name="Lanes")).to_be_visible()
        page.route("**/v1/runs?status=waiting*", lambda route: held.append(route))
        with page.expect_request("**/v1/runs?status=waiting*"):
            page.goto("/ui/overview")
        expect(heading).to_have_text(re.compile(r"Waiting \d+"))
        expect(more).to_have_count(0)
        kept = height_px(waiting)
        page.unroute("**/v1/runs?status=waiting*")
        for route in held:
            # The page may have given up an earlier one.
            with contextlib.suppress(Error):
                route.continue_()
        expect(more).to_be_visible()
        assert height_px(waiting) == pytest.approx(kept, abs=1), "runs have their place"
        waiting.get_by_role("link", name="Lanes").click()
        page.get_by_role("link", name=re.compile(r"^\d+ runs? waits? for other runs$")).click()
        expect(page.get_by_role("grid").get_by_text("year-report")).to_be_visible()


def test_refusal_of_each_rule_names_its_last_run(window: Page, day: Day) -> None:
    day.server.spawn("anything", agentId="nobody", label="first-of-all")
    for number in range(51):
        key = f"agent:main:deep-{number}"
        answer = day.server.spawn("x", mode="session", requester={"sessionKey": key})
        assert answer.status_code in (403, 422), answer.text
    window.goto("/ui/overview")
    refusals = card(window, "Refusals by rule")
    last = refusals.get_by_role("link", name="Last refused: first-of-all")
    expect(last).to_be_visible()
    window.set_viewport_size({"width": 390, "height": 844})
    window.route("**/v1/runs?status=refused*", lambda _: None)
    window.reload()
    expect(refusals.get_by_role("listitem").last).to_be_visible()
    expect(last).to_have_count(0)
    kept = height_px(refusals)
    window.unroute("**/v1/runs?status=refused*")  # lets the request go on
    expect(last).to_be_visible()
    assert height_px(refusals) == pytest.approx(kept, abs=1), "reasons have their place"
