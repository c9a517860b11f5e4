"""Two runs, two moments, and another configuration, in a real browser."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.support.page.browser import color, watched_context
from tests.support.servers.misconfigured_storm import (
    MENDED,
    RULE,
    RULE_NAME,
    StormRecord,
)
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server
Storm = tuple[Server, StormRecord]
FITS = """[document.documentElement, document.querySelector('[role=grid]')]
    .every(one => one.scrollWidth <= one.clientWidth)"""
ALLOWED = "/agents/list/0/subagents/allowAgents"


@contextmanager
def watched_requests(page: Page, path: str) -> Iterator[list[str]]:
    """Yield a list that fills with the URLs of requests with this path."""
    urls: list[str] = []

    def note(request: Request) -> None:
        if path in request.url:
            urls.append(request.url)

    page.on("request", note)
    yield urls
    page.remove_listener("request", note)


def bounds_of_the_wrong_configuration(server: Server) -> tuple[int, int]:
    """Return its first position, and the first one of the next configuration."""
    items = server.http.get("/v1/config/revisions").json()["items"]
    wrong = items[-2]
    return int(wrong["position"]), int(wrong["untilPosition"])


@pytest.mark.nightly
def test_from_a_run_to_what_differs_in_another_one(window: Page, storm: Storm) -> None:
    _, record = storm
    refused, accepted = min(record.refused), min(record.accepted)
    window.goto(f"/ui/run/{refused}")
    window.get_by_role("button", name="Compare with").click()
    window.get_by_label("Compare with").fill("no-run-has-this")
    window.get_by_role("button", name="Compare", exact=True).click()
    expect(window.get_by_text("No run has this label")).to_be_visible()
    window.get_by_label("Compare with").fill(accepted)
    window.keyboard.press("Enter")
    expect(window.get_by_text("What differs: request, decisions")).to_be_visible()
    rule = window.get_by_role("row").filter(
        has=window.get_by_role("rowheader", name="agent allowed")
    )
    expect(rule.get_by_role("cell").first).to_contain_text("refused")
    expect(rule.get_by_role("cell").last).to_contain_text("passed")
    expect(window.get_by_text("at the rule “agent allowed”")).to_be_visible()
    tasks = window.get_by_text("The tasks differ")
    expect(tasks.locator("..")).to_have_text(re.compile(r"because of that\. Left: .+ Right: .*\w$"))
    outcome = window.get_by_role("table", name="Outcome")
    expect(outcome).to_contain_text(f"refused: {RULE_NAME}")
    same = window.get_by_text(re.compile(r"\d+ rules decided the same"))
    expect(same).to_be_visible()
    expect(window.get_by_role("rowheader", name="depth", exact=True)).to_be_hidden()
    same.click()
    expect(window.get_by_role("rowheader", name="depth", exact=True)).to_be_visible()
    window.get_by_role("button", name="Link, command and request").click()
    expect(window.get_by_text(f"spawnlog run compare {refused} {accepted}")).to_be_visible()
    window.keyboard.press("Escape")
    window.goto(f"/ui/compare/{accepted}?with={accepted}")
    expect(window.get_by_text("Nothing differs")).to_be_visible()


@pytest.mark.nightly
def test_run_of_a_later_time_is_not_compared(browser: Browser, storm: Storm) -> None:
    server, record = storm
    refused, accepted = min(record.refused), min(record.accepted)
    with watched_context(browser, server.url, token=server.token, refusals=(404,)) as (context, _):
        page = context.new_page()
        page.goto(f"/ui/compare/{refused}?with={accepted}&at=pos:2")
        expect(page.get_by_text("One of these runs had not been requested")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)


def test_changes_since_sums_up_a_range_with_the_lists_behind(window: Page, storm: Storm) -> None:
    server, record = storm
    start, end = bounds_of_the_wrong_configuration(server)
    window.goto(f"/ui/changes?from=pos:{start - 1}&to=pos:{end}")
    figures = window.get_by_role("list", name="Figures")
    refused = figures.get_by_role("link").filter(has_text="refused")
    expect(refused).to_contain_text(f"{len(record.refused)} refused")
    bounds = f"endedSince=pos:{start - 1}&endedUntil=pos:{end}"
    expect(refused).to_have_attribute("href", f"/ui/runs?status=refused&{bounds}")
    rule = window.get_by_role("region", name="Refusals by rule").get_by_role("link", name=RULE_NAME)
    expect(rule).to_have_attribute("href", f"/ui/runs?status=refused&rule={RULE}&{bounds}")
    spawned = server.http.get(
        "/v1/runs", params={"since": f"pos:{start - 1}", "until": f"pos:{end}", "totals": True}
    ).json()["totals"]
    expect(figures).to_contain_text(f"{spawned['runs']} spawned")
    writer = window.get_by_role("row").filter(
        has=window.get_by_role("rowheader", name="writer", exact=True)
    )
    expect(writer.get_by_role("cell").first).to_have_text(str(spawned["agents"]["writer"]))
    over = server.http.get(
        "/v1/runs",
        params={"endedSince": f"pos:{start - 1}", "endedUntil": f"pos:{end}", "totals": True},
    ).json()["totals"]
    reviewer = window.get_by_role("row").filter(
        has=window.get_by_role("rowheader", name="reviewer", exact=True)
    )
    refusals = reviewer.get_by_role(
        "link", name=str(over["statusesByAgent"]["reviewer"]["refused"])
    )
    expect(refusals.last).to_have_attribute(
        "href", f"/ui/runs?status=refused&agentId=reviewer&{bounds}"
    )
    revisions = window.get_by_role("region", name="Configuration changed 2 times")
    expect(revisions.get_by_role("button", name="revision 2 → 3")).to_be_visible()
    ended = figures.get_by_role("link").filter(has_text="ended")
    expect(ended).to_contain_text(re.compile(r"^\d+ ended$"))
    expect(ended).to_have_attribute("href", re.compile("status=done&status=failed.*endedSince"))
    revisions.get_by_role("button", name="revision 1 → 2").click()
    expect(revisions).to_contain_text(re.compile(r"Agent main.*allowAgents\s+lost reviewer"))
    window.get_by_role("link", name="Open in Configuration").click()
    expect(window.get_by_role("heading", name="Configuration", exact=True)).to_be_visible()


@pytest.mark.nightly
def test_changes_field_by_field_come_on_demand(window: Page, storm: Storm) -> None:
    server, _ = storm
    start, end = bounds_of_the_wrong_configuration(server)
    with watched_requests(window, "/v1/diff") as requests:
        window.goto(f"/ui/changes?from=pos:{start - 1}&to=pos:{end}")
        expect(window.get_by_role("list", name="Figures")).to_be_visible()
        assert requests == []
        window.get_by_role("button", name="What changed, field by field").click()
    expect(window.get_by_text("Configuration changed: revision 1 → 3.")).to_be_visible()
    fields = window.get_by_role("region", name="What changed, field by field")
    rows = fields.get_by_role("row")
    expect(rows).to_have_count(101)
    answer = server.http.get(
        "/v1/diff", params={"from": f"pos:{start - 1}", "to": f"pos:{end}", "limit": 500}
    ).json()
    every = sum(answer["counts"][verdict] for verdict in ("added", "removed", "changed"))
    assert 100 < every <= 200
    window.get_by_role("button", name="Show more").click()
    expect(rows).to_have_count(every + 1)
    expect(rows.filter(has_text=f"refused, reviewer, {RULE_NAME}").first).to_be_visible()
    fields.get_by_role("button", name="Link, command and request").click()
    expect(window.get_by_text(f"spawnlog diff pos:{start - 1} pos:{end}")).to_be_visible()
    window.keyboard.press("Escape")
    first = next(change["id"] for change in answer["added"] if change["kind"] == "run")
    window.get_by_role("combobox", name=re.compile("^Of")).select_option("the run")
    window.get_by_label("Run", exact=True).fill(first)
    window.keyboard.press("Enter")
    expect(rows).to_have_count(2)
    expect(window.get_by_role("list", name="Figures")).to_have_count(0)


@pytest.mark.nightly
def test_changes_of_a_tree_and_of_a_session(window: Page, storm: Storm) -> None:
    server, _ = storm
    key = "agent:main:book-3"
    window.goto("/ui/changes?from=pos:0")
    window.get_by_role("combobox", name=re.compile("^Of")).select_option("the tree")
    window.get_by_label("Tree", exact=True).fill(key)
    window.keyboard.press("Enter")
    totals = server.http.get("/v1/runs", params={"tree": key, "totals": True}).json()["totals"]
    spawned = (
        window.get_by_role("list", name="Figures").get_by_role("link").filter(has_text="spawned")
    )
    expect(spawned).to_contain_text(f"{totals['runs']} spawned")
    expect(spawned).to_have_attribute("href", re.compile(f"tree={key}"))
    window.get_by_role("combobox", name=re.compile("^Of")).select_option("the session")
    expect(window).to_have_url(re.compile(f"session={key}"))
    expect(spawned).to_have_attribute("href", re.compile(f"requester={key}"))
    expect(spawned).to_contain_text(f"{totals['runs']} spawned")
    window.goto(f"/ui/changes?tree={key}&session={key}")
    expect(window.get_by_role("alert")).to_have_text("Choose only one: tree, session or run.")


@pytest.mark.nightly
def test_changes_take_times_as_people_write_them(window: Page) -> None:
    window.goto("/ui/changes")
    since = window.get_by_role("group", name="Since")
    expect(since.get_by_role("button", name="Last 24 hours")).to_have_attribute(
        "aria-pressed", "true"
    )
    window.get_by_label("From", exact=True).fill("yesterday 18:00")
    window.keyboard.press("Enter")
    expect(since.get_by_role("button", name="Since yesterday 18:00")).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(window.get_by_role("main")).to_contain_text(re.compile(r"18:00:00 – "))
    since.get_by_role("button", name="Last hour").click()
    expect(window.get_by_label("From", exact=True)).to_have_value("1h")
    expect(window.get_by_role("list", name="Figures")).to_contain_text(
        re.compile(r"\b2\d\d spawned")
    )
    window.get_by_label("From", exact=True).click()
    window.keyboard.type("yesterday 18:00")
    expect(window.get_by_label("From", exact=True)).to_have_value("yesterday 18:00")
    # An example is not taken for a value, and a value that is not applied says how to apply it.
    field = window.get_by_label("From", exact=True)
    figures = window.get_by_role("list", name="Figures")
    expect(field).to_have_attribute("placeholder", "e.g. 20 minutes ago")
    expect(field).to_have_css("color", color(window, "text"))
    place = figures.bounding_box()
    expect(window.get_by_text("Enter applies it")).to_be_visible()
    assert figures.bounding_box() == place
    window.keyboard.press("Enter")
    expect(window.get_by_text("Enter applies it")).to_have_count(0)
    window.get_by_label("From", exact=True).fill("the day after")
    window.keyboard.press("Enter")
    expect(window.get_by_role("alert")).to_contain_text('"the day after" is not a time')
    expect(window.get_by_role("list", name="Figures")).to_contain_text(re.compile(r"\d+ spawned"))
    window.get_by_label("From", exact=True).fill("20 minutes ago")
    window.keyboard.press("Enter")
    expect(window.get_by_role("alert")).to_have_count(0)
    expect(window.get_by_role("list", name="Figures")).to_contain_text(re.compile(r"\d+ spawned"))
    window.get_by_role("button", name="Last 24 hours").click()
    window.keyboard.press("ArrowLeft")
    expect(window.get_by_role("note")).to_be_attached()
    since.get_by_role("button", name="Last hour").click()
    expect(window.get_by_role("list", name="Figures")).to_contain_text(re.compile(r"\d+ spawned"))
    expect(window.get_by_role("alert")).to_have_count(0)


@pytest.mark.nightly
def test_changes_stay_until_newer_ones_are_asked_for(window: Page, storm: Storm) -> None:
    server, _ = storm
    head = server.http.get("/v1/events", params={"limit": 1}).json()["head"]
    window.goto(f"/ui/changes?fields=1&from=pos:{head - 5}")
    figures = window.get_by_role("list", name="Figures")
    expect(figures).to_be_visible()
    before = figures.inner_text()
    server.spawn("between two moments", agentId="writer", label="came-between")
    button = window.get_by_role("button", name="newer events: show")
    expect(button).to_be_visible()
    assert figures.inner_text() == before
    button.click()
    expect(figures).not_to_have_text(before)
    row = window.get_by_role("row").filter(has_text="came-between").first
    expect(row).to_contain_text("added")
    window.goto("/ui/changes?at=pos:0&from=-2h")
    expect(window.get_by_text("This is before the first event")).to_be_visible()
    expect(window.get_by_text("Reading …")).to_have_count(0)


@pytest.mark.nightly
def test_one_value_would_have_allowed_what_was_refused(window: Page, storm: Storm) -> None:
    server, record = storm
    start, _ = bounds_of_the_wrong_configuration(server)
    window.goto("/ui/runs")
    expect(window.get_by_role("row").nth(1)).to_be_visible()
    window.keyboard.press("g")
    window.keyboard.press("w")
    expect(window.get_by_role("button", name="Run what-if (set a value first)")).to_be_disabled()
    window.keyboard.press("/")
    window.keyboard.type(ALLOWED)
    expect(window.get_by_text('It is ["writer","reviewer"].')).to_be_visible()
    window.get_by_label("to", exact=True).fill('["writer", reviewer]')
    window.keyboard.press("Enter")
    expect(window.get_by_text("Not valid JSON")).to_be_visible()
    window.get_by_label("to", exact=True).fill('["writer", "reviewer"]')
    window.keyboard.press("Enter")
    window.get_by_label("From", exact=True).fill(f"pos:{start}")
    window.keyboard.press("Enter")
    window.get_by_role("button", name="Run what-if").click()
    expect(window.get_by_role("columnheader", name="newly allowed")).to_be_visible()
    cell = window.get_by_role(
        "button", name=f"{len(record.refused)} newly allowed of rule {RULE_NAME}"
    )
    cell.click()
    grid = window.get_by_role("grid", name="Decisions")
    expect(grid).to_have_attribute("aria-rowcount", str(len(record.refused) + 1))
    setting = f'{ALLOWED}=["writer","reviewer"]'
    window.get_by_role("button", name="Link, command and request").click()
    expect(window.get_by_text(f"what-if --set '{setting}' --since pos:{start}")).to_be_visible()
    window.keyboard.press("Escape")
    grid.press("j")
    grid.press("Enter")
    expect(window.get_by_text(f"Refused, {RULE_NAME}")).to_be_visible()
    window.go_back()
    expect(grid).to_have_attribute("aria-rowcount", str(len(record.refused) + 1))
    window.reload()
    expect(window.get_by_role("code").filter(has_text=ALLOWED).first).to_be_visible()


def test_enter_in_any_field_tests_and_answers_in_a_sentence(window: Page, storm: Storm) -> None:
    server, record = storm
    refused = [server.get(f"/v1/runs/{run_id}") for run_id in record.refused]
    key = refused[0]["requesterSessionKey"]
    own = [run for run in refused if run["requesterSessionKey"] == key]
    # Another test may have had a spawn refused for another reason.
    most = rf"(Yes: all {len(refused)}|{len(refused)} of \d+) refused runs would be allowed."
    window.goto("/ui/what-if?from=2026-01-01T00:00:00Z")
    since = window.get_by_label("From", exact=True)
    expect(since).to_have_value("2026-01-01 00:00")
    assert since.evaluate("field => field.scrollWidth <= field.clientWidth")
    setting, value = window.locator("#search"), window.get_by_label("to", exact=True)
    expect(window.get_by_text("All runs since 2026-01-01 00:00 will be tested.")).to_be_visible()
    value.fill("8")
    run = window.get_by_role("button", name="Run what-if (choose a setting first)")
    expect(run).to_be_disabled()
    setting.fill("allowAgents")
    expect(run).to_be_disabled()
    value.press("Enter")
    expect(window.get_by_text("Several settings fit: ")).to_contain_text(ALLOWED)
    setting.fill("maxConc")
    value.fill("[")
    expect(setting).to_have_value("/agents/defaults/subagents/maxConcurrent")
    wrong = window.get_by_role("button", name="Run what-if (correct the value first)")
    expect(wrong).to_be_disabled()
    value.fill("")
    setting.fill(ALLOWED)
    window.keyboard.press("Enter")
    expect(value).to_be_focused()
    window.keyboard.type('["writer", "reviewer"]')
    window.keyboard.press("Enter")
    answer = window.get_by_text(re.compile(r"^(Yes|No|\d+ of \d+ refused)\b"))
    expect(answer).to_have_text(re.compile(f"^{most} Nothing else changes.$"))
    window.get_by_text("Only some decisions").click()
    window.get_by_label("Requester").fill(key)
    window.keyboard.press("Enter")
    name = key.removeprefix("agent:").replace(":", " · ")
    of = f"refused run{'s' if len(own) > 1 else ''} of {name}"
    expect(answer).to_contain_text(f"{of} would be allowed.")
    tested = f"All runs of {name} since 2026-01-01 00:00 are tested."
    expect(window.get_by_text(tested)).to_be_visible()
    since.fill("now-ish")
    window.keyboard.press("Enter")
    expect(window.get_by_role("alert")).to_contain_text('"now-ish" is not a time')
    since.fill("yesterday 18:00")
    window.keyboard.press("Enter")
    expect(window.get_by_text(f"All runs of {name} since yesterday 18:00 are")).to_be_visible()
    rows = window.get_by_role("grid", name="Decisions").get_by_role("row")
    expect(rows).to_have_count(len(own) + 1)
    difference = rows.nth(1).get_by_text(f"refused: {RULE_NAME} → accepted")
    expect(difference).to_have_attribute("title", re.compile("\n/rule$"))
    assert difference.evaluate("cell => cell.scrollWidth <= cell.clientWidth")
    for width in (1280, 720, 390):
        window.set_viewport_size({"width": width, "height": 844})
        expect(rows.nth(1)).to_contain_text(re.compile(r"^reviewer-\d+"))
        wait_for("a page that fits", lambda: window.evaluate(FITS))
    other = next(run for run in refused if run["requesterSessionKey"] != key)
    window.goto(f"/ui/what-if?like={other['runId']}&requester={key}")
    newest = max(own, key=lambda run: run["stages"][0]["position"])
    names = window.get_by_text(f"The newest that was refused as {RULE_NAME} is")
    expect(names).to_contain_text(f"{newest['label']}:")
    expect(names.get_by_role("link")).to_have_attribute("title", newest["runId"])


@pytest.mark.nightly
def test_results_come_into_sight_on_a_narrow_window(window: Page) -> None:
    window.set_viewport_size({"width": 390, "height": 700})
    window.goto(f"/ui/what-if?set={ALLOWED}=[]")
    window.get_by_role("button", name="Run what-if").click()
    expect(window.get_by_role("heading", name="Verdicts")).to_be_in_viewport()


@pytest.mark.nightly
def test_what_is_wrong_in_a_whole_configuration_is_said_at_its_line(
    browser: Browser, storm: Storm
) -> None:
    server, _ = storm
    with watched_context(browser, server.url, token=server.token, refusals=(422,)) as (context, _):
        page = context.new_page()
        page.goto("/ui/what-if?try=text")
        editor = page.get_by_label("The configuration to try, JSON5")
        expect(editor).to_have_value(re.compile("maxConcurrent"))
        right = json.loads(editor.input_value())
        lines = json.dumps({"agentz": 1, **right}, indent=2)
        editor.fill(lines)
        page.get_by_role("button", name="Run what-if").click()
        line = page.get_by_role("button", name="Line 2")
        expect(page.get_by_role("alert")).to_contain_text("agentz")
        line.click()
        assert (
            editor.evaluate("area => area.value.slice(area.selectionStart, area.selectionEnd)")
            == '  "agentz": 1,'
        )
        right["agents"]["defaults"]["subagents"]["maxConcurrent"] = 1
        editor.fill(json.dumps(right, indent=2))
        expect(page.get_by_role("alert")).to_have_count(0)
        page.get_by_role("button", name="Run what-if").click()
        expect(page.get_by_role("heading", name="Verdicts")).to_be_visible()
        page.get_by_role("button", name="Begin again from revision").click()
        expect(editor).to_have_value(re.compile('"maxConcurrent": 24'))


@pytest.mark.nightly
def test_a_question_that_takes_long_is_cancelled_and_asked_again(
    window: Page, storm: Storm
) -> None:
    setting = "/agents/defaults/subagents/maxConcurrent=1"
    window.goto(f"/ui/what-if?same=1&set={setting}")
    ask = window.get_by_role("button", name="Run what-if")
    expect(ask).to_be_enabled()
    expect(window.get_by_text(re.compile(r"Revision \d+ is in force"))).to_be_visible()
    network = window.context.new_cdp_session(window)
    slow = {"offline": False, "latency": 0, "downloadThroughput": 8_000, "uploadThroughput": -1}
    network.send("Network.emulateNetworkConditions", slow)
    ask.click()
    with window.expect_event("requestfailed") as ended:
        window.get_by_role("button", name="Cancel").click()
    assert ended.value.url.endswith("/v1/what-if")
    expect(window.get_by_text("Canceled: the results are incomplete.")).to_be_visible()
    expect(window.get_by_role("heading", name="Verdicts")).to_have_count(0)
    network.send("Network.emulateNetworkConditions", slow | {"downloadThroughput": -1})
    ask.click()
    expect(window.get_by_role("heading", name="Verdicts")).to_be_visible()
    expect(window.get_by_text("Canceled")).to_have_count(0)


@pytest.mark.nightly
def test_a_refusal_leads_to_the_setting_that_it_compared(window: Page, storm: Storm) -> None:
    _, record = storm
    window.goto(f"/ui/run/{min(record.refused)}")
    window.get_by_role("link", name="Test another configuration").click()
    expect(window.get_by_text(re.compile(r"^Only run \w+ will be tested"))).to_contain_text(
        f"It was refused, {RULE_NAME}: "
    )
    setting = window.locator("#search")
    expect(setting).to_have_value(ALLOWED)
    value = window.get_by_label("to", exact=True)
    value.fill('["writer", "reviewer"')
    window.keyboard.press("Enter")
    expect(window.get_by_text("Not valid JSON")).to_be_visible()
    expect(window.get_by_role("heading", name="Verdicts")).to_have_count(0)
    value.fill('["writer", "reviewer"]')
    window.get_by_role("button", name="Run what-if").click()
    expect(
        window.get_by_role("button", name=f"1 newly allowed of rule {RULE_NAME}")
    ).to_be_visible()
    window.get_by_role("button", name=f"Remove {ALLOWED}").click()
    expect(window.get_by_role("button", name="Run what-if (set a value first)")).to_be_disabled()
    expect(setting).to_have_value("")


@pytest.mark.nightly
def test_what_was_wrong_with_another_question_is_not_said_of_this_one(
    browser: Browser, storm: Storm
) -> None:
    server, record = storm
    with watched_context(browser, server.url, token=server.token, refusals=(422,)) as (context, _):
        page = context.new_page()
        page.goto(f"/ui/run/{min(record.refused)}")
        page.get_by_role("link", name="Test another configuration").click()
        expect(page.get_by_text(re.compile(r"^Only run \w+ will be tested"))).to_be_visible()
        value = page.get_by_label("to", exact=True)
        expect(page.locator("#search")).to_have_value(ALLOWED)
        expect(value).to_have_value('["writer","reviewer"]')
        expect(value).to_be_focused()
        assert page.evaluate("getSelection().toString()") == '["writer","reviewer"]'
        page.locator("#search").fill(ALLOWED)
        page.get_by_label("to", exact=True).fill('["writer", "reviewer"]')
        page.keyboard.press("Enter")
        page.get_by_label("From", exact=True).fill("no moment")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text('"no moment" is not a time')
        expect(page.get_by_role("button", name="Run what-if")).to_be_disabled()
        page.get_by_label("From", exact=True).fill("9")
        page.get_by_label("To", exact=True).fill("3")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).not_to_contain_text("is not a time")
        expect(page.get_by_role("alert")).to_be_visible()
        page.get_by_label("To", exact=True).fill("")
        page.get_by_label("From", exact=True).fill("")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_count(0)
        page.get_by_role("button", name="Test all runs").click()
        page.get_by_role("button", name="Run what-if").click()
        number = f"{len(record.refused)} newly allowed of rule {RULE_NAME}"
        expect(page.get_by_role("button", name=number)).to_be_visible()
        expect(page.get_by_text(re.compile(r"^Only run \w+"))).to_have_count(0)
        alone = page.get_by_text("Each decision is tested on its own")
        expect(alone).to_be_visible()
        # The results that are there are made again.
        page.get_by_role("checkbox", name="Count newly allowed runs toward the limits").check()
        expect(alone).to_have_count(0)
        expect(page.get_by_role("heading", name="Verdicts")).to_be_visible()
        expect(page.get_by_text("The results below are from before")).to_have_count(0)
        requester = page.get_by_label("Requester")
        expect(requester).to_be_visible()
        page.goto(f"/ui/what-if?like={min(record.refused)}&from=1h")
        tested = page.get_by_text(re.compile("^All runs since 1h ago will be tested"))
        expect(tested).to_contain_text(RULE_NAME)
        expect(requester).to_be_visible()
        key = server.get(f"/v1/runs/{min(record.refused)}")["requesterSessionKey"]
        expect(page.locator(f'#requesters option[value="{key}"]')).to_have_count(1)
        page.locator("#search").fill(ALLOWED)
        page.get_by_label("to", exact=True).fill('["writer", "reviewer"]')
        # Leaving the field shortens the sentence, and the button stays where it is pressed.
        requester.press_sequentially(key)
        page.get_by_role("button", name="Run what-if").click()
        expect(page.get_by_role("heading", name="Verdicts")).to_be_visible()


def test_failed_run_leads_to_a_good_one_with_a_like_task(window: Page, storm: Storm) -> None:
    server, _ = storm
    like = server.accepted("writer", "chapter 7 of the book", label="like")
    server.run(like, "ended")
    server.run(server.accepted("writer", "something else", label="unlike"), "ended")
    failing = json.loads(json.dumps(MENDED))
    failing["agents"]["list"][1]["runtime"] = {"type": "scripted", "outcome": "error", "error": "x"}
    server.reload(failing)
    failed = server.accepted("writer", "chapter 812 of the book", label="torn")
    server.run(failed, "ended")
    server.reload(MENDED)
    window.goto(f"/ui/run/{failed}")
    offer = window.get_by_text(re.compile("Compare with the last good run with a like task: like"))
    expect(offer).to_be_visible()
    window.get_by_role("button", name="Compare with").click()
    expect(window.get_by_text("Last good run of writer: unlike")).to_be_visible()
    window.get_by_role("link", name="Last good run with a like task: like").click()
    expect(window).to_have_url(re.compile(f"/ui/compare/{failed}\\?with={like}"))
    window.goto(f"/ui/compare/{failed}")
    expect(window.get_by_text("Last good run with a like task: like")).to_be_visible()
