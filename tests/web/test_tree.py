"""A family as rows and as bars in time."""

import re
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.page.browser import watched_context
from tests.support.servers.misconfigured_storm import StormRecord
from tests.support.servers.server import Server

pytestmark = pytest.mark.server
Storm = tuple[Server, StormRecord]
ROOT = "agent:main:book-3"


def test_a_tree_is_as_it_was_and_folds(window: Page, storm: Storm) -> None:
    server, _ = storm
    root = server.http.get(f"/v1/sessions/{ROOT}/tree").json()["root"]
    below, refused = root["children"], root["refused"]
    assert len(below) > 1
    assert refused
    window.goto(f"/ui/tree/{ROOT}")
    grid = window.get_by_role("treegrid", name="Sessions")
    expect(grid.get_by_role("row")).to_have_count(len(below) + len(refused) + 2)
    window.get_by_role("button", name=f"Fold {ROOT}").click()
    expect(grid.get_by_role("row")).to_have_count(2)
    window.get_by_role("button", name=f"Unfold {ROOT}").click()
    second = sorted(one["runs"][0]["stages"][0]["position"] for one in below)[1]
    window.get_by_role("slider", name="Moment").fill(str(second - 1))
    expect(window.get_by_role("note")).to_be_visible()
    expect(grid.get_by_role("row")).to_have_count(3)
    assert window.get_by_role("application").is_visible()


@pytest.mark.nightly
def test_from_a_bar_one_comes_to_its_run_by_hand_and_by_key(window: Page, storm: Storm) -> None:
    server, _ = storm
    runs = server.http.get("/v1/runs", params={"tree": ROOT, "order": "asc"}).json()["items"]
    window.goto(f"/ui/tree/{ROOT}")
    bars = window.get_by_role("application", name="Runs as bars in time")
    expect(window.get_by_text(f"{len(runs)} runs.")).to_be_visible()
    bars.press("ArrowRight")
    expect(window.get_by_text(f"{runs[0]['label']}, ")).to_be_visible()
    bars.press("+")
    bars.press("Enter")
    expect(window.get_by_role("heading", name=runs[0]["label"])).to_be_visible()
    window.go_back()
    # The first bar stands at the left end of the first row.
    bars.locator("canvas").click(position={"x": 2, "y": 2})
    expect(window.get_by_role("heading", name=runs[0]["label"])).to_be_visible()


@pytest.mark.nightly
def test_all_runs_are_bars_and_lead_to_the_trees(window: Page) -> None:
    window.goto("/ui/tree")
    expect(window.get_by_role("application", name="Runs as bars in time")).to_be_visible()
    window.get_by_label("Session").fill(ROOT)
    window.get_by_role("button", name="Show its tree").click()
    expect(window.get_by_role("treegrid", name="Sessions")).to_be_visible()


@pytest.mark.nightly
def test_a_tree_is_walked_and_folded_by_keys(window: Page) -> None:
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
def test_a_session_below_another_has_a_tree_of_its_own(window: Page, storm: Storm) -> None:
    server, _ = storm
    tree = server.http.get(f"/v1/sessions/{ROOT}/tree").json()["root"]
    child = next(one for one in tree["children"] if one["sessionKey"])
    window.goto(f"/ui/tree/{child['sessionKey']}")
    expect(window.get_by_role("treegrid", name="Sessions").get_by_role("row")).to_have_count(
        len(child["children"]) + 2
    )
    # The window's console has to be empty too: nothing was asked that is refused.
    expect(window.get_by_role("alert")).to_have_count(0)
    runs = [one for one in child["children"] if one["runs"]]
    shown = (
        f"{len(runs)} runs." if runs else "No run was asked for yet by this session or below it."
    )
    expect(window.get_by_text(shown)).to_be_visible()


@pytest.mark.nightly
def test_tree_has_row_for_each_counted_run(window: Page, storm: Storm) -> None:
    server, _ = storm
    runs = server.http.get("/v1/runs", params={"tree": ROOT, "limit": 200}).json()["items"]
    refused = [run for run in runs if run["status"] == "refused"]
    window.goto(f"/ui/tree/{ROOT}")
    expect(window.get_by_text(f"{len(runs)} runs.")).to_be_visible()
    rows = window.get_by_role("treegrid", name="Sessions").get_by_role("row")
    expect(rows).to_have_count(len(runs) + 2)
    row = rows.filter(has_text=refused[0]["label"])
    expect(row).to_contain_text(refused[0]["rule"])
    expect(row.get_by_role("gridcell").nth(1)).to_contain_text("refused")
    row.click()
    expect(window.get_by_text(f"Refused by rule {refused[0]['rule']}")).to_be_visible()


@pytest.mark.nightly
def test_bars_are_those_of_the_moment_while_one_scrubs(window: Page, storm: Storm) -> None:
    server, _ = storm
    runs = server.http.get("/v1/timeline", params={"tree": ROOT, "limit": 500}).json()["items"]
    first = min(run["stages"][0]["position"] for run in runs)
    window.goto(f"/ui/tree/{ROOT}")
    bars = window.get_by_role("application", name="Runs as bars in time")
    bars.press("ArrowRight")
    window.get_by_role("link", name="As it began").click()
    expect(window).to_have_url(re.compile(f"at=pos:{first}$"))
    expect(window.get_by_role("treegrid", name="Sessions").get_by_role("row")).to_have_count(3)
    second = sorted(run["stages"][0]["position"] for run in runs)[1]
    with window.expect_response(f"**/v1/timeline?*at=pos%3A{second}") as asked:
        window.get_by_role("slider", name="Moment").fill(str(second))
    assert len(asked.value.json()["items"]) == 2
    expect(window.get_by_text("preparing").first).to_be_visible()


LINE_COLOR = """canvas => [...canvas.getContext('2d').getImageData(
    canvas.width - 1, canvas.height - 40, 1, 1).data]"""


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
    expect(window.get_by_text(f"{len(then)} runs.")).to_be_visible()
    expect(window.get_by_role("note")).to_contain_text(f"{instant} UTC")
    bars = window.get_by_role("application", name=f"Runs as bars in time, as of {instant} UTC")
    assert bars.locator("canvas").evaluate(LINE_COLOR)[:3] == [0x2F, 0x6F, 0xEB]
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
    def taken(
        address: str, table: Literal["grid", "treegrid"], name: int, took: int
    ) -> dict[str, str]:
        window.goto(address)
        rows = window.get_by_role(table).get_by_role("row")
        expect(rows.nth(2)).to_be_visible()
        cells = [row.get_by_role("gridcell").all_inner_texts() for row in rows.all()[1:]]
        return {line[name].strip(): line[took] for line in cells if line[took]}

    listed = taken(f"/ui/runs?tree={ROOT}&status=done", "grid", 3, 5)
    shown = taken(f"/ui/tree/{ROOT}", "treegrid", 0, 6)
    assert listed
    assert {name: shown[name] for name in listed} == listed


@pytest.mark.nightly
def test_rows_stay_where_they_are_while_bars_come(window: Page) -> None:
    held: list[Route] = []
    window.route("**/v1/timeline*", lambda route: held.append(route), times=1)
    with window.expect_request("**/v1/timeline*"):
        window.goto(f"/ui/tree/{ROOT}")
    tree = window.get_by_role("treegrid", name="Sessions")
    expect(tree.get_by_role("row").nth(1)).to_be_visible()
    before = tree.bounding_box()
    held.pop().continue_()
    expect(window.get_by_role("application", name="Runs as bars in time")).to_be_visible()
    assert tree.bounding_box() == before
