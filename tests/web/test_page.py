"""The page in a real browser, live and in the past."""

import itertools
import json
import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.page.browser import faults_for_a_screen_reader, watched_context
from tests.support.page.header import open_moment, sign_out
from tests.support.page.runs import SAME, command_elsewhere, search_runs
from tests.support.servers.misconfigured_storm import RULE_NAME, StormRecord
from tests.support.servers.server import Server

pytestmark = pytest.mark.server
Storm = tuple[Server, StormRecord]


def slide_to(page: Page, position: int) -> None:
    """Move the bar of time as a hand does."""
    page.get_by_role("slider", name="Moment").fill(str(position))


def positions(page: Page) -> list[int]:
    """Return the positions of the events in the document."""
    rows = page.get_by_role("grid", name="Events").get_by_role("row").all()[1:]
    return [int(row.get_by_role("link").last.inner_text().replace(",", "")) for row in rows]


def address(view: str, record: StormRecord) -> str:
    """Return the address of the view for a refused or accepted run."""
    names = {"refused": min(record.refused), "accepted": min(record.accepted)}
    return "/ui/" + view.format(**names)


def test_who_has_a_token_signs_in_and_out_in_all_tabs(browser: Browser, storm: Storm) -> None:
    server, _ = storm
    with watched_context(browser, server.url, refusals=(401,)) as (context, _):
        page = context.new_page()
        page.goto("/")
        page.get_by_label("Token").fill("not-a-token")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("Invalid token")
        page.get_by_label("Token").fill(f"  {server.token}\n")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        second_page = context.new_page()
        second_page.goto("/ui/log")
        expect(second_page.get_by_role("heading", name="Log")).to_be_visible()
        sign_out(page)
        for tab in (page, second_page):
            expect(tab.get_by_label("Token")).to_be_visible()


def test_the_registry_is_as_it_was_at_any_moment(window: Page, storm: Storm) -> None:
    server, _ = storm
    window.goto("/ui/runs?status=refused")
    expect(window.get_by_role("row").nth(1)).to_contain_text(RULE_NAME)
    expect(window.get_by_text(re.compile(r"^\d+ runs$"))).to_be_visible()
    first = min(
        item["position"]
        for item in server.http.get("/v1/events", params={"types": "SpawnRefused"}).json()["items"]
    )
    slide_to(window, first - 1)
    expect(
        window.get_by_text(re.compile(r"^0 of \d+ runs match at this moment\.$"))
    ).to_be_visible()
    expect(window.get_by_role("note")).to_contain_text("This is the past")
    slide_to(window, first)
    expect(window.get_by_role("row")).to_have_count(2)
    expect(window).to_have_url(re.compile(rf"/ui/runs\?at=pos:{first}&status=refused"))
    window.reload()
    expect(window.get_by_role("row")).to_have_count(2)
    assert command_elsewhere(window) == f"spawnlog run list --status refused --at pos:{first}"
    window.get_by_role("button", name="Back to live").click()
    expect(window.get_by_role("note")).to_have_count(0)
    window.go_back()
    expect(window.get_by_role("note")).to_contain_text(f"position {first:,}")


def test_links_share_the_view_live_and_as_of_now(window: Page) -> None:
    window.goto("/ui/runs?status=refused")
    expect(window.get_by_role("row").nth(1)).to_contain_text(RULE_NAME)
    window.get_by_role("button", name=SAME).click()
    links = window.get_by_role("dialog", name=SAME).get_by_role("link")
    expect(links).to_have_count(2)
    live, frozen = links.all()
    assert live.get_attribute("href") == window.url
    frozen.click()
    expect(window).to_have_url(re.compile(r"/ui/runs\?at=pos:\d+&status=refused$"))
    expect(window.get_by_role("note")).to_contain_text("This is the past")
    window.get_by_role("button", name=SAME).click()
    link = window.get_by_role("dialog", name=SAME).get_by_role("link")
    assert link.get_attribute("href") == window.url


@pytest.mark.nightly
def test_a_drag_shows_where_it_ended(window: Page, storm: Storm) -> None:
    window.goto("/ui/runs")
    head = int(window.get_by_role("slider", name="Moment").get_attribute("max") or "0")
    while head == 0:
        head = int(window.get_by_role("slider", name="Moment").get_attribute("max") or "0")
    slider = window.get_by_role("slider", name="Moment")
    for position in range(head - 1, head // 2, -3):
        slider.evaluate(
            "(bar, to) => { bar.value = to;"
            " bar.dispatchEvent(new Event('input', { bubbles: true })) }",
            position,
        )
    expect(window.get_by_role("note")).to_contain_text(f"position {position:,},")
    then = window.request.get(
        f"/v1/runs?limit=1&at=pos:{position}",
        headers={"Authorization": f"Bearer {storm[0].token}"},
    ).json()["items"][0]
    expect(window.get_by_role("row").nth(1)).to_contain_text(then["label"])


@pytest.mark.nightly
def test_of_a_moment_that_is_none_nobody_but_the_field_asks(browser: Browser, storm: Storm) -> None:
    server, _ = storm
    refused: list[str] = []
    with watched_context(browser, server.url, token=server.token, refusals=(404,)) as (context, _):
        page = context.new_page()
        page.on("response", lambda response: None if response.ok else refused.append(response.url))
        page.goto("/ui/runs")
        expect(page.get_by_role("row").nth(1)).to_be_visible()
        open_moment(page)
        field = page.get_by_label("Go to")
        field.fill("18:99")
        field.press("Enter")
        expect(page.get_by_text('"18:99" is not a time I understand. Try')).to_be_visible()
        field.fill("999,999,999")
        field.press("Enter")
        expect(page.get_by_text("The log ends at position")).to_be_visible()
        assert refused == []
        field.fill("run:nobody-is-called-so@started")
        with page.expect_response("**/v1/moments*") as answer:
            field.press("Enter")
        expect(page.get_by_text(answer.value.json()["detail"])).to_be_visible()
        expect(page).to_have_url(re.compile("/ui/runs$"))
        assert len(refused) == 1
        field.fill("-1s")
        field.press("Enter")
        expect(page.get_by_role("note")).to_contain_text("This is the past")


def test_a_refusal_says_why_with_the_facts_that_were_compared(window: Page, storm: Storm) -> None:
    window.goto(address("run/{refused}", storm[1]))
    expect(window.get_by_text(f"Refused, {RULE_NAME}")).to_be_visible()
    refusal = window.get_by_role("region", name="Refusal")
    expect(refusal).to_contain_text(f"Refused: {RULE_NAME}")
    fact = refusal.get_by_role("definition").filter(has_text="writer").first
    expect(fact).to_be_hidden()
    refusal.get_by_text(re.compile(r"^\d facts compared$")).click()
    expect(fact).to_be_visible()
    unchecked = window.get_by_text(re.compile(r"\d+ rules were not checked"))
    expect(window.get_by_text("credentials", exact=True)).not_to_be_visible()
    unchecked.click()
    expect(window.get_by_text("credentials", exact=True)).to_be_visible()
    expect(window.get_by_role("button", name="Steer (the run was refused)")).to_be_disabled()
    expect(window.get_by_role("button", name="Stop")).to_have_count(0)


@pytest.mark.nightly
def test_behind_each_event_there_is_the_whole_state_of_its_run(window: Page, storm: Storm) -> None:
    window.goto(address("run/{accepted}?part=history", storm[1]))
    row = window.get_by_role("listitem").filter(has_text="Run started")
    created = window.get_by_text(re.compile(r"^Created with \d+ fields$"))
    expect(created).to_be_visible()
    row.get_by_text("fields changed").click()
    row.get_by_role("button", name="State after this event").click()
    state = row.get_by_role("region", name="State after position")
    expect(state).to_contain_text('"status": "running"')
    expect(state).to_contain_text('"endedAt": null')
    assert faults_for_a_screen_reader(window) == []


@pytest.mark.nightly
def test_each_part_of_a_prompt_leads_to_where_it_came_from(window: Page, storm: Storm) -> None:
    window.goto(address("run/{accepted}?part=prompt", storm[1]))
    window.get_by_role("link", name="the spawn request").click()
    expect(window.get_by_role("gridcell", name=re.compile("^Spawn requested"))).to_be_visible()
    window.go_back()
    window.get_by_role("link", name=re.compile("^revision ")).first.click()
    expect(window.get_by_role("heading", name="Configuration", exact=False).first).to_be_visible()


@pytest.mark.nightly
def test_in_the_past_nothing_can_be_done(window: Page, storm: Storm) -> None:
    server, record = storm
    run = server.http.get(f"/v1/runs/{min(record.accepted)}").json()
    started = next(stage for stage in run["stages"] if stage["stage"] == "started")
    window.goto(f"/ui/run/{run['runId']}?at=pos:{started['position']}")
    expect(window.get_by_role("note")).to_be_visible()
    for action in ("Stop", "Message", "Steer", "Respawn"):
        expect(window.get_by_role("button", name=f"{action} (not in the past)")).to_be_disabled()
    expect(window.get_by_text("You are looking at the past. Go live to act.")).to_have_count(1)


@pytest.mark.nightly
def test_before_it_was_asked_for_a_run_is_not_there(window: Page, storm: Storm) -> None:
    server, record = storm
    run = server.http.get(f"/v1/runs/{min(record.accepted)}").json()
    window.goto(f"/ui/run/{run['runId']}")
    expect(window.get_by_role("heading", name=run["label"])).to_be_visible()
    first = run["stages"][0]["position"]
    slide_to(window, first - 1)
    expect(window.get_by_text("This run had not been requested at this moment.")).to_be_visible()
    slide_to(window, first)
    expect(window.get_by_role("heading", name=run["label"])).to_be_visible()


@pytest.mark.nightly
def test_a_new_run_appears_and_what_one_reads_stays_where_it_is(window: Page, storm: Storm) -> None:
    server, _ = storm
    window.goto("/ui/runs")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    server.spawn("watched", agentId="writer", label="seen-live")
    expect(window.get_by_role("row").nth(1)).to_contain_text("seen-live")
    window.get_by_role("grid", name="Runs").press("j")
    window.keyboard.press("j")
    selected = window.locator(".line.current")
    place = selected.bounding_box()
    # The age of a run ticks; its label stays.
    label = selected.inner_text().split("\n")[2]
    server.spawn("watched", agentId="writer", label="seen-later")
    expect(window.get_by_role("button", name="newer events: show")).to_be_visible()
    assert selected.bounding_box() == place
    expect(selected).to_contain_text(label)
    window.get_by_role("button", name="newer events: show").click()
    expect(window.get_by_role("row").nth(1)).to_contain_text("seen-later")


@pytest.mark.nightly
def test_a_window_that_nobody_sees_reads_no_list_until_it_is_seen(
    window: Page, storm: Storm
) -> None:
    server, _ = storm
    window.goto("/ui/runs")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    seen = (
        "(is) => { Object.defineProperty(document, 'hidden', { value: !is, configurable: true });"
    )
    seen += " document.dispatchEvent(new Event('visibilitychange')) }"
    window.evaluate(seen, False)
    requests: list[str] = []
    window.on("request", lambda request: requests.append(request.url))
    heads = [window.get_by_role("slider").get_attribute("max") or ""]
    for number in range(3):
        server.spawn("watched", agentId="writer", label=f"unseen-{number}")
        expect(window.get_by_role("slider")).not_to_have_attribute("max", heads[-1])
        heads.append(window.get_by_role("slider").get_attribute("max") or "")
    assert not [url for url in requests if "/v1/runs" in url and url.split("=")[-1] in heads[1:]]
    window.evaluate(seen, True)
    expect(window.get_by_role("row").nth(1)).to_contain_text("unseen-2")


@pytest.mark.nightly
def test_another_question_has_nothing_of_the_list_before_it(window: Page, storm: Storm) -> None:
    server, _ = storm
    window.goto("/ui/runs")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    window.get_by_role("grid", name="Runs").press("j")
    window.get_by_role("grid", name="Runs").press("PageDown")
    search_runs(window, "label:asked-later")
    expect(window.get_by_text(re.compile(r"^0 of \d+ runs match\.$"))).to_be_visible()
    server.spawn("watched", agentId="writer", label="asked-later")
    expect(window.get_by_role("row").nth(1)).to_contain_text("asked-later")
    expect(window.get_by_role("row")).to_have_count(2)


@pytest.mark.nightly
def test_a_run_is_respawned_from_the_page(window: Page, storm: Storm) -> None:
    window.goto(address("run/{accepted}", storm[1]))
    window.get_by_role("button", name="Respawn").click()
    window.get_by_label("New task").fill("once more, shorter")
    window.get_by_role("button", name="Spawn again").click()
    expect(window.get_by_text("once more, shorter").first).to_be_visible()
    expect(window.get_by_text("Respawned from")).to_be_visible()


@pytest.mark.nightly
def test_the_keyboard_alone_leads_from_the_registry_to_a_refusal_and_its_moment(
    window: Page, storm: Storm
) -> None:
    window.goto("/ui/runs?status=refused")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    window.keyboard.press("?")
    expect(window.get_by_role("dialog", name="Keys")).to_be_visible()
    window.keyboard.press("Escape")
    expect(window.get_by_role("dialog", name="Keys")).to_be_hidden()
    window.keyboard.press("Shift+ArrowLeft")
    expect(window.get_by_role("note")).to_be_visible()
    window.keyboard.press("j")
    window.keyboard.press("Enter")
    expect(window.get_by_text(f"Refused, {RULE_NAME}")).to_be_visible()
    window.keyboard.press("l")
    expect(window.get_by_role("note")).to_have_count(0)
    window.keyboard.press("g")
    window.keyboard.press("l")
    expect(window.get_by_role("heading", name="Log")).to_be_visible()
    window.keyboard.press("/")
    window.keyboard.type("SpawnRefused")
    window.keyboard.press("Enter")
    expect(window).to_have_url(re.compile("types=SpawnRefused"))
    expect(window.get_by_role("row").nth(1)).to_contain_text(f"Spawn refused {RULE_NAME}")


@pytest.mark.nightly
def test_the_log_goes_back_to_its_first_event(window: Page, storm: Storm) -> None:
    window.goto("/ui/log")
    grid = window.get_by_role("grid", name="Events")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    first = window.get_by_role("row").filter(has_text="Configuration activated").last
    for _ in itertools.count():
        grid.press("End")
        if grid.get_attribute("aria-rowcount") != "-1":
            break
    grid.press("End")
    expect(first).to_be_visible()
    grid.press("Enter")
    expect(window.get_by_role("region", name="Event 1")).to_contain_text('"position": 1')


@pytest.mark.nightly
def test_the_log_goes_on_from_a_position_as_it_grows(window: Page, storm: Storm) -> None:
    server, _ = storm
    window.goto("/ui/log")
    window.get_by_role("checkbox", name="Oldest first").check()
    window.get_by_label("After position").fill("2")
    window.keyboard.press("Enter")
    grid = window.get_by_role("grid", name="Events")
    expect(window.get_by_role("row").nth(1).get_by_role("link").last).to_have_text("3")
    expect(window.get_by_role("columnheader", name="Position")).to_have_attribute(
        "aria-sort", "ascending"
    )
    assert command_elsewhere(window) == "spawnlog event list --after 2"
    for _ in itertools.count():
        grid.press("End")
        if grid.get_attribute("aria-rowcount") != "-1":
            break
    server.spawn("watched", agentId="writer", label="read-on")
    events = window.get_by_role("row").filter(has_text="writer · read-on")
    while events.count() == 0:
        grid.press("End")
    expect(events.filter(has_text="Spawn requested")).to_be_visible()
    # The newest first again: nothing is there twice, and nothing is left out.
    window.get_by_role("checkbox", name="Oldest first").uncheck()
    assert command_elsewhere(window) == "spawnlog event list --newest"
    grid.press("Home")
    expect(window.get_by_role("row").nth(1).get_by_role("link").last).not_to_have_text("3")
    shown = positions(window)
    assert shown == [*range(shown[0], shown[-1] - 1, -1)]


@pytest.mark.nightly
def test_behind_the_end_of_the_log_each_event_comes_once(window: Page, storm: Storm) -> None:
    server, _ = storm
    head = server.http.get("/v1/events", params={"limit": 1}).json()["head"]
    window.goto(f"/ui/log?order=asc&after={head}")
    expect(window.get_by_text("No events match.")).to_be_visible()
    server.spawn("watched", agentId="writer", label="behind")
    expect(window.get_by_role("row").filter(has_text="Run announced")).to_be_visible()
    shown = positions(window)
    assert shown == [*range(head + 1, shown[-1] + 1)]


@pytest.mark.nightly
def test_view_whose_script_is_missing_says_how_to_get_it(browser: Browser, storm: Storm) -> None:
    server, _ = storm
    watched = watched_context(browser, server.url, token=server.token, refusals=(404,))
    with watched as (context, _):
        page = context.new_page()
        scripts = "**/assets/other_views-*.js"
        page.route(scripts, lambda route: route.fulfill(status=404))
        page.goto("/ui/lanes")
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("This view could not be loaded")
        # What came with the page is there.
        page.get_by_role("link", name="Runs").click()
        expect(page.get_by_role("row").nth(1)).to_be_visible()
        expect(alert).to_have_count(0)
        page.get_by_role("link", name="Lanes").click()
        page.unroute(scripts)
        alert.get_by_role("button", name="Load the page again").click()
        expect(page.get_by_text("No runs are running or queued.")).to_be_visible()
        expect(alert).to_have_count(0)


@pytest.mark.parametrize("is_hidden", [True, False])
def test_other_views_are_loaded_ahead_unless_the_tab_is_hidden(
    window: Page, is_hidden: bool
) -> None:
    asked: list[str] = []
    window.on("request", lambda request: asked.append(request.url))
    hidden = "Object.defineProperty(document, 'hidden', {{ get: () => {} }})"
    window.add_init_script(hidden.format(json.dumps(is_hidden)))
    window.clock.install()
    window.goto("/ui/runs")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    window.clock.fast_forward(10_000)
    # What was asked for before this answer is known then.
    window.evaluate("fetch('/openapi.json')")
    scripts = [url for url in asked if re.search(r"/assets/other_views-.*\.js$", url)]
    assert len(scripts) == int(not is_hidden)
    window.get_by_role("link", name="Lanes").click()
    expect(window.get_by_text("No runs are running or queued.")).to_be_visible()


def test_address_of_the_past_asks_for_its_list_once(window: Page) -> None:
    asked = []
    window.on("request", lambda request: asked.append(request.url))
    window.goto("/ui/runs?at=pos:40")
    expect(window.get_by_text(re.compile(r"^\d+ runs"))).to_be_visible()
    assert len([url for url in asked if "/v1/runs?limit=" in url]) == 1


def test_a_key_right_behind_a_dialog_that_closes_is_taken(window: Page) -> None:
    window.goto("/ui/runs")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    window.keyboard.press("?")
    expect(window.get_by_role("dialog", name="Keys")).to_be_visible()
    # For a moment the focus is still on an element in it.
    window.evaluate(
        "() => { const dialog = document.querySelector('dialog'); dialog.close();"
        " const key = { key: 'ArrowLeft', shiftKey: true, bubbles: true };"
        " dialog.querySelector('button').dispatchEvent(new KeyboardEvent('keydown', key)) }"
    )
    expect(window.get_by_text("SpawnRefused at position")).to_be_visible()
