"""Moment control and time bar: every control leads to the intended moment."""

import re
from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.page.browser import color, is_drawn, watched_context
from tests.support.page.header import press_step, sign_out, write_moment
from tests.support.servers.misconfigured_storm import StormRecord
from tests.support.servers.server import Server
from tests.support.tiers import nightly_but
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server
Storm = tuple[Server, StormRecord]


def refusals(server: Server) -> list[int]:
    """Return the positions of refused spawns, newest first."""
    answer = server.http.get("/v1/events", params={"types": "SpawnRefused", "order": "desc"})
    return [item["position"] for item in answer.json()["items"]]


def at(position: int) -> re.Pattern[str]:
    return re.compile(rf"at=pos:{position}\b")


@pytest.fixture
def last_refused(storm: Storm) -> int:
    """Return the position of a new refusal, which is the head of the log."""
    server, _ = storm
    assert server.spawn("of nobody", agentId="nobody-knows").status_code == 403
    head = server.http.get("/v1/events", params={"limit": 1}).json()["head"]
    assert refusals(server)[0] == head
    return int(head)


@pytest.mark.nightly
def test_the_last_refusal_is_the_first_that_one_comes_to(window: Page, last_refused: int) -> None:
    window.goto("/ui/runs")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    press_step(window, "‹ Refusal")
    expect(window).to_have_url(at(last_refused))


def test_an_answer_of_the_bar_moves_nothing_beneath_it(window: Page) -> None:
    window.goto("/ui/runs?at=pos:2")
    heading = window.get_by_role("heading", name="Runs")
    expect(window.get_by_role("note")).to_contain_text("This is the past")
    before = heading.bounding_box()
    press_step(window, "‹ Failure")
    expect(window.get_by_text("No failure before this moment.")).to_be_visible()
    assert heading.bounding_box() == before


@pytest.mark.nightly
def test_who_presses_three_times_goes_three_refusals_back(
    window: Page, storm: Storm, last_refused: int
) -> None:
    window.goto("/ui/runs")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    window.get_by_role("heading", name="Runs").click()
    for _ in range(3):
        window.keyboard.press("Shift+ArrowLeft")
    assert last_refused == refusals(storm[0])[0]
    expect(window).to_have_url(at(refusals(storm[0])[2]))


@pytest.mark.nightly
def test_who_went_elsewhere_meanwhile_stays_there(window: Page, last_refused: int) -> None:
    window.goto("/ui/runs")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    late: list[Route] = []
    window.route("**/v1/events?types=*", lambda route: late.append(route), times=1)
    with window.expect_request("**/v1/events?types=*"):
        press_step(window, "‹ Refusal")
    write_moment(window, "100")
    expect(window).to_have_url(at(100))
    with window.expect_response("**/v1/events?types=*"):
        late.pop().continue_()
    press_step(window, "Event ›")
    expect(window).to_have_url(at(101))


@pytest.mark.nightly
def test_a_button_stays_where_it_is_when_one_leaves_live(window: Page) -> None:
    window.goto("/ui/log")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    back = window.get_by_role("button", name="Previous event")
    live = back.bounding_box()
    assert live is not None
    back.click()
    expect(window.get_by_role("note")).to_be_visible()
    assert back.bounding_box() == live


def test_past_address_places_slider_at_its_moment(window: Page) -> None:
    window.goto("/ui/runs?at=pos:32")
    slider = window.get_by_role("slider", name="Moment")
    expect(slider).not_to_have_attribute("max", re.compile("^(0|32)$"))
    expect(slider).to_have_value("32")
    slider.press("ArrowRight")
    expect(window).to_have_url(at(33))


@pytest.mark.nightly
def test_past_banner_counts_one_event_in_singular(window: Page) -> None:
    window.goto("/ui/log")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    window.get_by_role("button", name="Previous event").click()
    expect(window.get_by_role("note")).to_contain_text("1 event recorded since.")


@pytest.mark.nightly
def test_back_leads_to_where_a_drag_began(window: Page) -> None:
    window.goto("/ui/log")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    window.get_by_role("link", name="Runs").click()
    expect(window.get_by_role("heading", name="Runs")).to_be_visible()
    bar = window.get_by_role("slider", name="Moment").bounding_box()
    assert bar is not None
    window.mouse.move(bar["x"] + bar["width"] - 5, bar["y"] + 9)
    # A bar that has not been counted yet takes no drag.
    expect(window.get_by_text(re.compile(r"^\d{4}-\d\d-\d\d .* · "))).to_be_visible()
    window.mouse.down()
    for share in (0.9, 0.8, 0.7):
        window.mouse.move(bar["x"] + bar["width"] * share, bar["y"] + 9)
    window.mouse.up()
    expect(window).to_have_url(re.compile("/ui/runs.at=pos:"))
    window.go_back()
    expect(window).to_have_url(re.compile("/ui/runs$"))
    expect(window.get_by_role("note")).to_have_count(0)


@pytest.fixture
def mistaken(browser: Browser, storm: Storm) -> Iterator[Page]:
    """Yield a window in which requests for missing things are expected, which a browser reports."""
    server, _ = storm
    refusals = (404, 422)
    with watched_context(browser, server.url, token=server.token, refusals=refusals) as (seen, _):
        yield seen.new_page()


@pytest.mark.parametrize(
    "moment", nightly_but(["nonsense", "run:nobody@started", "pos:999999999"], ["nonsense"])
)
def test_what_is_no_moment_costs_nobody_their_place(mistaken: Page, moment: str) -> None:
    mistaken.goto("/ui/runs?at=pos:100")
    expect(mistaken.get_by_role("note")).to_contain_text("position 100")
    write_moment(mistaken, moment)
    expect(
        mistaken.get_by_role("status").filter(has_text=re.compile("time|run|log"))
    ).to_be_visible()
    expect(mistaken.get_by_role("note")).to_contain_text("position 100")
    expect(mistaken).to_have_url(at(100))


@pytest.mark.nightly
@pytest.mark.parametrize("moment", ["nonsense", "run:nobody@started", "pos:999999999"])
def test_an_address_of_no_moment_is_not_told_as_the_past(mistaken: Page, moment: str) -> None:
    mistaken.goto(f"/ui/lanes?at={moment}")
    expect(mistaken.get_by_role("note")).to_contain_text("There is no such moment")
    expect(mistaken.get_by_text("This is the past")).to_have_count(0)
    mistaken.get_by_role("button", name="Back to live").click()
    expect(mistaken.get_by_role("heading", name="Lanes")).to_be_visible()
    expect(mistaken.get_by_role("note")).to_have_count(0)


@pytest.mark.nightly
def test_a_moment_by_another_name_is_a_position_from_then_on(window: Page, storm: Storm) -> None:
    server, record = storm
    run = server.http.get(f"/v1/runs/{min(record.accepted)}").json()
    started = next(stage for stage in run["stages"] if stage["stage"] == "started")["position"]
    window.goto(f"/ui/runs?status=done&at=run:{run['runId']}@started")
    expect(window).to_have_url(re.compile(rf"at=pos:{started}&status=done"))
    window.goto("/ui/runs")
    write_moment(window, f"run:{run['runId']}@started")
    expect(window).to_have_url(at(started))
    expect(window.get_by_role("note")).to_contain_text(f"position {started:,}")


@pytest.mark.nightly
def test_signing_in_shows_what_the_address_says_then(window: Page, storm: Storm) -> None:
    window.goto("/ui/log")
    window.get_by_role("link", name="Lanes").click()
    expect(window.get_by_role("heading", name="Lanes")).to_be_visible()
    sign_out(window)
    window.go_back()
    window.get_by_label("Token").fill(storm[0].token)
    window.get_by_role("button", name="Sign in").click()
    expect(window.get_by_role("heading", name="Log")).to_be_visible()


def test_bar_draws_load_refusals_and_labels(window: Page) -> None:
    window.goto("/ui/runs")
    bar = window.get_by_role("region", name="Time", exact=True).locator("canvas")
    for scheme in ("light", "dark"):
        window.emulate_media(color_scheme=scheme)
        for name in ("load", "state-refused", "quiet"):
            wanted = color(window, name)
            wait_for(f"{name} in {scheme}", partial(is_drawn, bar, wanted))
