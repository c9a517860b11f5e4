"""All trees of sessions, and one tree as rows with their bars in time."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.page.browser import color, watched_context
from tests.support.page.runs import SAME
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.misconfigured_storm import RULE_NAME, StormRecord
from tests.support.servers.narrators import narrate, narrating
from tests.support.servers.server import Server

pytestmark = pytest.mark.server
ZOOM_STEPS = 12
Storm = tuple[Server, StormRecord]
ROOT = "agent:main:book-3"
NAME = "main · book-3"
FLEET = "agent:main:fleet"
READER = "only-reads"
SMALL_WINDOWS = ((390, 844), (640, 450), (720, 450))


def rows_of(page: Page) -> Locator:
    """Return the rows of the tree, its head first."""
    return page.get_by_role("treegrid", name="Sessions").get_by_role("row")


def test_tree_in_the_past_folds(window: Page, storm: Storm) -> None:
    server, _ = storm
    root = server.http.get(f"/v1/sessions/{ROOT}/tree").json()["root"]
    below, refused = root["children"], root["refused"]
    assert len(below) > 1
    assert refused
    window.goto(f"/ui/tree/{ROOT}")
    rows = rows_of(window)
    expect(rows).to_have_count(len(below) + len(refused) + 2)
    window.get_by_role("button", name=f"Fold {NAME}").click()
    expect(rows).to_have_count(2)
    window.get_by_role("button", name=f"Unfold {NAME}").click()
    second = sorted(child["runs"][0]["stages"][0]["position"] for child in below)[1]
    window.get_by_role("slider", name="Moment").fill(str(second - 1))
    expect(window.get_by_role("note")).to_be_visible()
    expect(rows).to_have_count(3)
    expect(window.locator(".axis .moment")).to_be_visible()
    expect(window.get_by_role("button", name="Stop the tree (not in the past)")).to_be_disabled()
    window.get_by_text("You are looking at the past").get_by_role("link", name="Go live").click()
    expect(window.get_by_role("note")).to_have_count(0)
    expect(window.get_by_text("You are looking at the past")).to_have_count(0)


@pytest.mark.nightly
def test_bar_has_stages_and_opens_its_run(window: Page, storm: Storm) -> None:
    server, _ = storm
    runs = server.http.get("/v1/runs", params={"tree": ROOT, "status": "done"}).json()["items"]
    run = runs[-1]
    window.goto(f"/ui/tree/{ROOT}")
    bar = rows_of(window).filter(has_text=run["label"]).locator("[data-bars] a")
    for stage in run["stages"]:
        assert f"{stage['stage']} {stage['at'][11:23]}" in str(bar.get_attribute("title"))
        assert f"{stage['stage']} {stage['at'][11:23]}" in str(bar.get_attribute("aria-label"))
    # The last of its pieces has the color of its state, and its pattern.
    expect(bar.locator(".segment").last).to_have_class(re.compile("fill-solid"))
    bar.click(position={"x": 1, "y": 5})
    expect(window.get_by_role("heading", name=run["label"])).to_be_visible()


@pytest.mark.nightly
def test_bars_zoom_and_pan_together(window: Page) -> None:
    window.goto(f"/ui/tree/{ROOT}")
    bars = rows_of(window).locator("[data-bars] .run")
    expect(bars.nth(1)).to_be_visible()
    cell = rows_of(window).nth(1).locator("[data-bars]").bounding_box()
    assert cell is not None
    middle = cell["x"] + cell["width"] / 2

    def begin_of(bar: Locator) -> float:
        box = bar.bounding_box()
        assert box is not None
        return box["x"]

    # Bars near the middle stay in sight.
    near = sorted(bars.all(), key=lambda bar: abs(begin_of(bar) - middle))[:2]
    targets = [str(bar.get_attribute("href")) for bar in near]

    def shape() -> tuple[float, float]:
        first, second = (begin_of(window.locator(f"[data-bars] a[href='{to}']")) for to in targets)
        return second - first, first

    grid = window.get_by_role("treegrid", name="Sessions")
    whole = shape()
    grid.press("+")
    apart, begin = shape()
    assert apart == pytest.approx(whole[0] * 1.5, rel=0.1, abs=2)
    x, y = cell["x"] + cell["width"] * 0.8, cell["y"] + 3
    window.mouse.move(x, y)
    window.mouse.down()
    window.mouse.move(x + 60, y, steps=3)
    window.mouse.up()
    assert shape()[1] == pytest.approx(begin + 60, abs=2)
    # A drag opens nothing.
    expect(window).to_have_url(re.compile(f"/ui/tree/{ROOT}$"))
    grid.press("0")
    assert shape() == whole


@pytest.mark.nightly
def test_all_runs_are_bars_by_hand_and_key(window: Page) -> None:
    window.goto("/ui/tree")
    bars = window.get_by_role("application", name="Runs as bars in time")
    expect(window.get_by_text(re.compile(r"\d+ runs\. Arrows"))).to_be_visible()
    bars.press("ArrowRight")
    named = window.get_by_role("application", name=re.compile("time: .+, "))
    expect(named).to_be_visible()
    label = str(named.get_attribute("aria-label")).split(": ")[1].split(", ")[0]
    bars.press("+")
    bars.press("Enter")
    expect(window.get_by_role("heading", name=label)).to_be_visible()
    window.go_back()
    expect(window.get_by_text(re.compile(r"\d+ runs\. Arrows"))).to_be_visible()
    # The first bar is at the left end of the first row, alone there once it is zoomed.
    canvas = bars.locator("canvas")
    canvas.hover(position={"x": 0, "y": 2})
    window.keyboard.down("Control")
    for _ in range(ZOOM_STEPS):
        window.mouse.wheel(0, -100)
    window.keyboard.up("Control")
    canvas.click(position={"x": 2, "y": 2})
    expect(window.get_by_role("heading", name=label)).to_be_visible()


@pytest.mark.nightly
def test_trees_are_listed_and_opened(window: Page, storm: Storm) -> None:
    server, _ = storm
    totals = server.http.get("/v1/runs", params={"tree": ROOT, "totals": True}).json()["totals"]
    window.goto("/ui/tree")
    row = (
        window.get_by_role("grid", name="Recent requesters")
        .get_by_role("row")
        .filter(has_text=re.compile(rf"{NAME}\b(?!\d)"))
    )
    cells = row.get_by_role("gridcell")
    expect(cells.nth(1)).to_have_text(str(totals["runs"]))
    expect(cells.nth(4)).to_have_text(str(totals["statuses"]["refused"]))
    row.get_by_role("link").click()
    expect(window.get_by_role("heading", name=NAME)).to_be_visible()
    window.get_by_role("link", name="All trees").click()
    window.get_by_role("button", name=SAME).click()
    expect(window.get_by_role("dialog", name=SAME)).to_contain_text("No command gives the same.")
    window.keyboard.press("Escape")
    field = window.get_by_label("Open the tree of")
    expect(window.locator(f"#requesters option[value='{ROOT}']")).to_have_count(1)
    field.fill(ROOT)
    field.press("Enter")
    expect(rows_of(window).nth(1)).to_contain_text(NAME)


@pytest.mark.nightly
def test_tree_is_walked_and_folded_by_keys(window: Page) -> None:
    window.goto(f"/ui/tree/{ROOT}")
    tree = window.get_by_role("treegrid", name="Sessions")
    first = tree.get_by_role("row").nth(1)
    expect(first).to_have_attribute("aria-expanded", "true")
    tree.press("j")
    tree.press("ArrowRight")
    second = tree.get_by_role("row").nth(2)
    expect(second).to_have_attribute("aria-selected", "true")
    expect(second).to_have_attribute("aria-level", "2")
    tree.press("ArrowLeft")
    expect(first).to_have_attribute("aria-selected", "true")
    tree.press("ArrowLeft")
    expect(first).to_have_attribute("aria-expanded", "false")
    expect(tree.get_by_role("row")).to_have_count(2)


@pytest.mark.nightly
def test_session_below_another_has_its_own_tree(window: Page, storm: Storm) -> None:
    server, _ = storm
    tree = server.http.get(f"/v1/sessions/{ROOT}/tree").json()["root"]
    child = next(child for child in tree["children"] if child["sessionKey"])
    window.goto(f"/ui/tree/{child['sessionKey']}")
    expect(rows_of(window)).to_have_count(len(child["children"]) + 2)
    runs = len(child["runs"]) + sum(
        len(child_session["runs"]) for child_session in child["children"]
    )
    expect(window.get_by_text(f"{runs} run{'' if runs == 1 else 's'}", exact=True)).to_be_visible()
    expect(window.get_by_role("alert")).to_have_count(0)
    window.get_by_role("main").get_by_role("link", name=NAME).first.click()
    expect(window.get_by_role("heading", name=NAME)).to_be_visible()


@pytest.mark.nightly
def test_tree_has_row_for_each_counted_run(window: Page, storm: Storm) -> None:
    server, _ = storm
    runs = server.http.get("/v1/runs", params={"tree": ROOT, "limit": 200}).json()["items"]
    refused = [run for run in runs if run["status"] == "refused"]
    window.goto(f"/ui/tree/{ROOT}")
    expect(window.get_by_text(f"{len(runs)} runs", exact=True)).to_be_visible()
    rows = rows_of(window)
    expect(rows).to_have_count(len(runs) + 2)
    row = rows.filter(has_text=refused[0]["label"])
    expect(row).to_contain_text(RULE_NAME)
    expect(row.get_by_role("gridcell").nth(1)).to_contain_text("refused")
    row.get_by_role("gridcell").first.click()
    expect(window.get_by_text(f"Refused, {RULE_NAME}")).to_be_visible()


@pytest.mark.nightly
def test_key_goes_to_the_start_of_a_run(window: Page, storm: Storm) -> None:
    server, _ = storm
    runs = server.http.get("/v1/timeline", params={"tree": ROOT, "limit": 500}).json()["items"]
    first, second = sorted(run["stages"][0]["position"] for run in runs)[:2]
    window.goto(f"/ui/tree/{ROOT}")
    tree = window.get_by_role("treegrid", name="Sessions")
    expect(tree.get_by_role("row").nth(2)).to_be_visible()
    tree.press("j")
    tree.press("j")
    tree.press("m")
    expect(window).to_have_url(re.compile(f"at=pos:{first}$"))
    expect(rows_of(window)).to_have_count(3)
    window.get_by_role("slider", name="Moment").fill(str(second))
    expect(rows_of(window)).to_have_count(4)
    expect(rows_of(window).last).to_contain_text("preparing")


LINE_COLOR = """canvas => {
  const { data } = canvas.getContext('2d').getImageData(canvas.width - 1, canvas.height - 40, 1, 1)
  return `rgb(${data.slice(0, 3).join(', ')})`
}"""


@pytest.mark.nightly
def test_past_tree_address_shows_its_moment(window: Page, storm: Storm) -> None:
    server, _ = storm
    head = server.http.get("/v1/log").json()["position"]
    at = f"pos:{head // 3}"
    then = server.http.get("/v1/timeline", params={"at": at, "limit": 5000}).json()["items"]
    moment = server.http.get("/v1/moments", params={"at": at}).json()["recordedAt"]
    instant = moment[:19].replace("T", " ")
    with window.expect_request(f"**/v1/timeline?*at={at.replace(':', '%3A')}*"):
        window.goto(f"/ui/tree?at={at}")
    expect(window.get_by_text(f"{len(then)} runs. Arrows")).to_be_visible()
    bars = window.get_by_role("application", name=f"Runs as bars in time, as of {instant} UTC")
    assert bars.locator("canvas").evaluate(LINE_COLOR) == color(window, "state-running")
    window.get_by_role("button", name="Link, command and request").click()
    expect(window.get_by_text(f"GET /v1/timeline?limit=5000&buckets=0&at={at}")).to_be_visible()


@pytest.mark.nightly
def test_past_tree_before_its_session_says_so(browser: Browser, storm: Storm) -> None:
    server, _ = storm
    with watched_context(browser, server.url, token=server.token, refusals=(404,)) as (context, _):
        page = context.new_page()
        page.goto(f"/ui/tree/{ROOT}?at=pos:1")
        expect(page.get_by_text("At this moment there was no such session.")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.nightly
def test_list_and_tree_agree_how_long_a_run_took(window: Page, storm: Storm) -> None:
    def taken(address: str, table: Any) -> dict[str, str]:
        window.goto(address)
        grid = window.get_by_role(table)
        expect(grid.get_by_role("row").nth(2)).to_be_visible()
        heads = [head.strip(" ↓↑") for head in grid.get_by_role("columnheader").all_inner_texts()]
        (name,) = [number for number, head in enumerate(heads) if head in ("Label", "Name")]
        (took,) = [number for number, head in enumerate(heads) if head in ("Took", "Elapsed")]
        cells = [
            row.get_by_role("gridcell").all_inner_texts()
            for row in grid.get_by_role("row").all()[1:]
        ]
        return {line[name].strip(): line[took] for line in cells if line[took]}

    listed = taken(f"/ui/runs?tree={ROOT}&status=done", "grid")
    shown = taken(f"/ui/tree/{ROOT}", "treegrid")
    assert listed
    assert {name: shown[name] for name in listed} == listed


@pytest.mark.nightly
@pytest.mark.parametrize("size", SMALL_WINDOWS)
def test_first_row_is_above_the_fold(window: Page, size: tuple[int, int]) -> None:
    width, height = size
    window.set_viewport_size({"width": width, "height": height})
    for address in ("/ui/tree", f"/ui/tree/{ROOT}"):
        window.goto(address)
        row = window.locator("[role=row][aria-rowindex='2']")
        expect(row).to_be_visible()
        box = row.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= height
        second = row if address == "/ui/tree" else rows_of(window).nth(2)
        for cell in second.get_by_role("gridcell").all():
            expect(cell).to_be_in_viewport(ratio=1)
        if address != "/ui/tree":
            expect(second.locator("[data-bars] a").first).to_be_in_viewport()


@pytest.fixture(scope="module")
def fleet(made_data_dir: Path) -> Iterator[Server]:
    """Yield a server with narrators, and a token that may only read."""
    with new_place() as place:
        notes = place / "notes"
        notes.mkdir()
        token = place / "reader"
        token.write_text(READER, "utf-8")
        token.chmod(0o600)
        reads = {"id": "reader", "scopes": ["read"], "sessions": ["*"]}
        config = narrating(notes)
        config["spawnlog"]["tokens"] = [reads | {"token": {"file": str(token)}}]
        with Server(copied(made_data_dir, place / "data"), config) as server:
            yield server


def usage(tokens: int) -> dict[str, Any]:
    return {"say": {"type": "usage", "inputTokens": tokens, "outputTokens": 0, "model": "acme/big"}}


@pytest.mark.nightly
def test_cost_of_tree_grows_while_its_run_works(browser: Browser, fleet: Server) -> None:
    key = "agent:main:at-work"
    more = ({"note": "began", "await": "go-on"}, usage(250_000), {"note": "more", "await": "over"})
    run = narrate(fleet, usage(500_000), *more, label="at work", requester={"sessionKey": key})
    fleet.note("began")
    with watched_context(browser, fleet.url, token=fleet.token) as (context, _):
        page = context.new_page()
        page.goto("/ui/tree")
        row = page.get_by_role("grid").get_by_role("row").filter(has_text="main · at-work")
        expect(row.get_by_text("$1.00")).to_be_visible()
        fleet.touch("go-on")
        fleet.note("more")
        expect(row.get_by_text("$1.50")).to_be_visible()
    fleet.touch("over")
    fleet.run(run, "ended")


def test_tree_is_stopped_as_a_whole(browser: Browser, fleet: Server) -> None:
    requester = {"sessionKey": FLEET}
    child = {
        "task": json.dumps([usage(1_000_000), {"note": "low", "await": "end"}]),
        "label": "the child",
    }
    above = narrate(
        fleet,
        usage(500_000),
        {"note": "spawned", "spawn": child},
        {"note": "high", "await": "end"},
        label="the parent",
        requester=requester,
    )
    over = narrate(fleet, usage(250_000), label="over", requester=requester)
    fleet.run(over, "ended")
    for name in ("low", "high"):
        fleet.note(name)
    narrate(fleet, label="waits", dependsOn=["the parent"], requester=requester)
    with watched_context(browser, fleet.url, token=fleet.token) as (context, _):
        page = context.new_page()
        page.goto("/ui/tree")
        listed = page.get_by_role("grid").get_by_role("row").filter(has_text="main · fleet")
        expect(page.get_by_role("columnheader", name="At work")).to_be_visible()
        expect(page.get_by_role("columnheader", name="Last event")).to_be_visible()
        expect(listed.get_by_role("gridcell").nth(2)).to_have_text("3")
        page.goto(f"/ui/tree/{FLEET}")
        waits = rows_of(page).filter(has_text="waits")
        expect(waits.get_by_role("gridcell").nth(3)).to_have_text(re.compile(r"\d m?s$"))
        expect(waits.locator(".segment").last).to_have_class(re.compile("fill-vertical"))
        root, parent = rows_of(page).nth(1), rows_of(page).filter(has_text="the parent")
        # The sum includes the tokens that the two running ones have used so far.
        expect(root.get_by_role("gridcell").nth(5)).to_have_text("$3.50")
        page.get_by_role("button", name="Stop the tree").click()
        dialog = page.get_by_role("dialog", name="Stop 3 runs of main · fleet?")
        expect(dialog).to_contain_text("everything below main · fleet: 1 waiting, 2 running.")
        dialog.get_by_label("Reason").fill("enough")
        links = [page.get_by_role("link", name=name) for name in ("Show in Runs", "All trees")]
        places = [link.bounding_box() for link in links]
        dialog.get_by_role("button", name="Stop 3 runs").click()
        expect(page.get_by_text("Stopped 3 runs.")).to_be_visible()
        assert [link.bounding_box() for link in links] == places
        expect(page.get_by_role("button", name="Stop the tree (no run is active)")).to_be_disabled()
        expect(parent).to_contain_text("stopped")
        # Tokens and cost of the child count for the parent and the tree.
        # Own are those of the session's runs alone: nobody ran in the root.
        expect(parent.get_by_role("gridcell").nth(5)).to_have_text("$3.00")
        expect(parent.get_by_role("gridcell").nth(7)).to_have_text("$1.00")
        cells = root.get_by_role("gridcell")
        for number, text in ((4, "1.75 M"), (5, "$3.50"), (6, ""), (7, "")):
            expect(cells.nth(number)).to_have_text(text)
        # A stop does not change that it waited.
        expect(waits).to_contain_text("stopped")
        waited = waits.locator(".segment.fill-vertical")
        expect(waited).to_be_visible()
        expect(page.locator(".legend")).to_contain_text("waiting")
    stopped = fleet.http.get(f"/v1/runs/{above}").json()
    assert (stopped["status"], stopped["outcome"]) == ("stopped", "stopped")


def test_costs_of_trees_in_sight_are_one_request(browser: Browser, fleet: Server) -> None:
    for number in range(4):
        requester = {"sessionKey": f"agent:main:cost-{number}"}
        # A later event is one more reason to ask.
        fleet.run(narrate(fleet, usage(500_000), requester=requester), "announced")
    with watched_context(browser, fleet.url, token=fleet.token) as (context, _):
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto("/ui/tree")
        for number in range(4):
            row = page.get_by_role("grid").get_by_role("row").filter(has_text=f"cost-{number}")
            expect(row.get_by_text("$1.00")).to_be_visible()
    assert sum("/v1/trees/usage?" in url for url in asked) == 1
    assert not [url for url in asked if "totals=true" in url]


@pytest.mark.nightly
def test_token_without_control_sees_no_stop(browser: Browser, fleet: Server) -> None:
    run = narrate(fleet, label="seen", requester={"sessionKey": "agent:main:seen"})
    fleet.run(run, "ended")
    with watched_context(browser, fleet.url, token=READER) as (context, _):
        page = context.new_page()
        page.goto("/ui/tree/agent:main:seen")
        expect(rows_of(page).nth(2)).to_contain_text("seen")
        expect(page.get_by_role("button", name="Stop the tree")).to_have_count(0)
