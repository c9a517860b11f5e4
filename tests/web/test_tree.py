"""A family as rows and as bars in time."""

import pytest
from playwright.sync_api import Page, expect

from tests.support.servers.misconfigured_storm import StormRecord
from tests.support.servers.reloaded_server import ReloadedServer

pytestmark = pytest.mark.server
Storm = tuple[ReloadedServer, StormRecord]
ROOT = "agent:main:book-3"


def test_a_tree_is_as_it_was_and_folds(window: Page, storm: Storm) -> None:
    server, _ = storm
    below = server.http.get(f"/v1/sessions/{ROOT}/tree").json()["root"]["children"]
    assert len(below) > 1
    window.goto(f"/ui/tree/{ROOT}")
    grid = window.get_by_role("grid", name="Sessions")
    expect(grid.get_by_role("row")).to_have_count(len(below) + 2)
    window.get_by_role("button", name=f"Fold {ROOT}").click()
    expect(grid.get_by_role("row")).to_have_count(2)
    window.get_by_role("button", name=f"Unfold {ROOT}").click()
    second = sorted(one["runs"][0]["stages"][0]["position"] for one in below)[1]
    window.get_by_role("slider", name="Moment").fill(str(second - 1))
    expect(window.get_by_role("note")).to_be_visible()
    expect(grid.get_by_role("row")).to_have_count(3)
    assert window.get_by_role("application").is_visible()


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


def test_all_runs_are_bars_and_lead_to_the_trees(window: Page) -> None:
    window.goto("/ui/tree")
    expect(window.get_by_role("application", name="Runs as bars in time")).to_be_visible()
    window.get_by_label("Session").fill(ROOT)
    window.get_by_role("button", name="Show its tree").click()
    expect(window.get_by_role("grid", name="Sessions")).to_be_visible()
