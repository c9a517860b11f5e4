"""The page of one run: outcome, conversation, card and actions."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.support.page.browser import (
    faults_for_a_screen_reader,
    resting_scroll,
    watched_context,
)
from tests.support.servers.narrators import entry, narrate, said
from tests.support.servers.server import Server
from tests.support.tiers import nightly_but

pytestmark = pytest.mark.server
NARROW_PX = 390
SIZES = {"wide": (1440, 900), "phone": (390, 844), "zoom": (720, 450)}
MARKDOWN = "The **high** tide:\n\n- `14:20`\n- 20:31"


def tool(name: str, **input_: Any) -> dict[str, Any]:
    call = {"name": name, "input": input_, "output": "one\ntwo", "durationMs": 2_300}
    return entry("tool", **call)


def test_new_entries_leave_reader_where_he_is(page: Page, server: Server) -> None:
    many = [said(f"entry {number}") for number in range(60)]
    run_id = narrate(
        server,
        *many,
        {"note": "read", "await": "read.go"},
        said("one more"),
        said("another one"),
        {"await": "read.on"},
        said("the last one"),
        {"await": "read.end"},
        label="read",
    )
    server.note("read")
    page.goto(f"/ui/run/{run_id}")
    conversation = page.get_by_role("list", name="Conversation")
    expect(conversation.get_by_text("entry 59", exact=True)).to_be_in_viewport()
    page.get_by_role("button", name="Show from the beginning").click()
    expect(conversation.get_by_text("entry 0", exact=True)).to_be_in_viewport()
    expect(page.get_by_role("button", name="Newest entry")).to_be_visible()
    top = resting_scroll(page)
    server.touch("read.go")
    new = page.get_by_role("button", name="2 new entries")
    expect(new).to_be_visible()
    assert resting_scroll(page) == top
    new.click()
    expect(conversation.get_by_text("another one", exact=True)).to_be_in_viewport()
    server.touch("read.on")
    expect(conversation.get_by_text("the last one", exact=True)).to_be_in_viewport()
    server.touch("read.end")
    server.run(run_id, "ended")
    page.goto(f"/ui/run/{run_id}")
    expect(conversation.get_by_text("the last one", exact=True)).to_be_attached()
    assert page.evaluate("scrollY") == 0, "a run that is over opens at its top"


@pytest.mark.parametrize("name", nightly_but(SIZES, ["zoom"]))
def test_running_run_is_followed_with_its_controls_in_sight(
    page: Page, server: Server, name: str
) -> None:
    width, height = SIZES[name]
    page.set_viewport_size({"width": width, "height": height})
    run_id = narrate(
        server,
        *(said(f"entry {number}") for number in range(60)),
        {"note": f"{name}.noted", "await": f"{name}.one"},
        said("entry sixty"),
        {"await": f"{name}.two"},
        said("entry sixty-one"),
        {"await": f"{name}.end"},
        label=f"long-{name}",
    )
    server.note(f"{name}.noted")
    page.goto("/ui/runs")
    page.get_by_role("grid", name="Runs").get_by_text(f"long-{name}").first.click()
    expect(page.get_by_role("heading", name=f"long-{name}")).to_be_focused()
    conversation = page.get_by_role("list", name="Conversation")
    stop = page.get_by_role("button", name="Stop", exact=True)
    newest = page.get_by_role("button", name=re.compile("Newest entry|new entr"))
    entry = conversation.get_by_text("entry 59", exact=True)
    expect(entry).to_be_in_viewport()
    for part in (
        stop,
        page.get_by_role("navigation", name="Views"),
        page.get_by_role("group", name="Time shown"),
    ):
        expect(part).to_be_in_viewport(ratio=1)
    page.keyboard.press("Tab")
    expect(stop).to_be_focused()
    server.touch(f"{name}.one")
    expect(conversation.get_by_text("entry sixty", exact=True)).to_be_in_viewport()
    expect(newest).to_have_count(0)
    page.keyboard.press("k")
    top = resting_scroll(page)
    server.touch(f"{name}.two")
    expect(conversation.get_by_text("entry sixty-one", exact=True)).to_be_attached()
    expect(newest).to_be_in_viewport(ratio=1)
    assert resting_scroll(page) == top, "the focus in an entry stops the following"
    newest.click()
    expect(conversation.get_by_text("entry sixty-one", exact=True)).to_be_in_viewport()
    # The first entry at the lower edge of the window.
    page.get_by_role("button", name="Show from the beginning").click()
    first = conversation.get_by_role("listitem").first
    first.evaluate("row => scrollBy(0, row.getBoundingClientRect().bottom - innerHeight)")
    expect(newest).to_be_visible()
    assert first.evaluate(
        "row => { const { left, right, top, bottom } = row.getBoundingClientRect();"
        " return row.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2)) }"
    )
    assert faults_for_a_screen_reader(page) == []
    server.touch(f"{name}.end")
    server.run(run_id, "ended")


def test_following_waits_for_the_focus_and_ends_with_the_wheel(page: Page, server: Server) -> None:
    steps = [[{"await": f"wheel.{name}"}, said(f"entry {name}")] for name in ("a", "b", "c", "d")]
    run_id = narrate(
        server,
        *(said(f"entry {number}") for number in range(60)),
        {"note": "wheel.noted"},
        *(step for pair in steps for step in pair),
        {"await": "wheel.end"},
        label="wheeled",
    )
    server.note("wheel.noted")
    page.set_viewport_size({"width": 720, "height": 450})
    page.goto(f"/ui/run/{run_id}")
    conversation = page.get_by_role("list", name="Conversation")
    newest = page.get_by_role("button", name=re.compile("Newest entry|new entr"))

    def new_entry(name: str) -> Locator:
        server.touch(f"wheel.{name}")
        entry = conversation.get_by_text(f"entry {name}", exact=True)
        expect(entry).to_be_attached()
        return entry

    expect(conversation.get_by_text("entry 59", exact=True)).to_be_in_viewport()
    message = page.get_by_role("button", name="Message", exact=True)
    message.focus()
    expect(message).to_be_in_viewport(ratio=1)
    new_entry("a")
    expect(newest).to_be_attached()
    expect(message).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Stop", exact=True).focus()
    expect(new_entry("b")).to_be_in_viewport()
    page.mouse.move(360, 300)
    page.mouse.wheel(0, -200)
    expect(newest).to_be_visible()
    top = resting_scroll(page)
    new_entry("c")
    expect(newest).to_have_text("1 new entry ↓")
    assert resting_scroll(page) == top
    page.mouse.wheel(0, 2_000)
    expect(newest).to_have_count(0)
    expect(new_entry("d")).to_be_in_viewport()
    server.touch("wheel.end")
    server.run(run_id, "ended")


@pytest.mark.nightly
def test_long_running_run_shows_its_first_and_its_last_entries(page: Page, server: Server) -> None:
    many = [said(f"entry {number}") for number in range(450)]
    run_id = narrate(
        server, *many, {"note": "long", "await": "long.go"}, said("the last one"), label="long"
    )
    server.note("long")
    page.goto(f"/ui/run/{run_id}")
    conversation = page.get_by_role("list", name="Conversation")
    expect(conversation.get_by_text("entry 449", exact=True)).to_be_in_viewport()
    page.get_by_role("button", name="Show from the beginning ↑").click()
    expect(conversation.get_by_text("entry 0", exact=True)).to_be_in_viewport()
    page.get_by_role("button", name="Newest entry").click()
    expect(conversation.get_by_text("entry 449", exact=True)).to_be_in_viewport()
    server.touch("long.go")
    expect(conversation.get_by_text("the last one", exact=True)).to_be_in_viewport()
    server.run(run_id, "ended")


def test_outcome_comes_first_and_tabs_remember(page: Page, server: Server) -> None:
    steps = (said(MARKDOWN), tool("bash", command="ls -l\ncat notes", timeout=5))
    done = narrate(server, *steps, {"say": {"type": "result", "text": MARKDOWN}}, label="tides")
    failed = server.accepted(task="no steps", label="broken")
    for run_id in (done, failed):
        server.run(run_id, "announced")
    page.goto(f"/ui/run/{done}")
    result = page.get_by_role("region", name="Result")
    expect(result.get_by_role("listitem")).to_have_text(["14:20", "20:31"])
    expect(page.get_by_role("list", name="Stages of the run")).to_have_text(
        re.compile(r"prepared \d.*queued \d.*ran \d.*announced")
    )
    page.get_by_role("button", name="Plain text").click()
    expect(result).to_contain_text("The **high** tide")
    expect(page.get_by_role("tab", name="Conversation")).to_have_attribute("aria-selected", "true")
    conversation = page.get_by_role("list", name="Conversation")
    expect(conversation.locator("> li").first).to_be_visible()
    page.keyboard.press("j")
    expect(conversation.locator("> li").first).to_be_focused()
    call = conversation.get_by_role("group")
    expect(call.locator("summary")).to_have_text("bash · 2.3 s ls -l cat notes · timeout: 5")
    call.get_by_text("bash").click()
    expect(call.locator("pre").first).to_have_text("command:\n  ls -l\n  cat notes\ntimeout: 5")
    page.get_by_role("tab", name="Prompt").click()
    expect(page).to_have_url(re.compile("part=prompt"))
    folded = page.get_by_role("region", name="Outcome").locator("summary").first
    expect(folded).to_have_text("Result The high tide:")
    page.reload()
    expect(page.get_by_role("tab", name="Prompt")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_text("separator")).to_have_count(0)
    expect(page.locator(".part").first).to_be_visible()
    heads, parts = (sum_of_bytes(page.locator(line)) for line in (".head", ".part .source"))
    assert heads == parts + sum_of_bytes(page.locator(".head"), r"([\d,]+) between the parts")
    page.goto(f"/ui/run/{failed}")
    outcome = page.get_by_role("region", name="Outcome")
    expect(outcome.locator("p").first).to_have_text(re.compile("^json.decoder.JSONDecodeError: "))
    expect(outcome.get_by_text("Traceback")).not_to_be_visible()
    outcome.get_by_text("Whole error").click()
    expect(outcome.get_by_text("Traceback")).to_be_visible()
    page.get_by_role("tab", name="Prompt").click()
    line = outcome.locator("summary").first
    expect(line).to_have_text(re.compile("^json.decoder.JSONDecodeError: "))
    expect(outcome.get_by_text("Whole error")).not_to_be_visible()
    line.click()
    expect(outcome.get_by_text("Whole error")).to_be_visible()
    assert faults_for_a_screen_reader(page) == []


def sum_of_bytes(lines: Locator, what: str = "([\\d,]+) bytes?") -> int:
    numbers = re.findall(what, " ".join(lines.all_inner_texts()))
    assert numbers
    return sum(int(number.replace(",", "")) for number in numbers)


def test_run_whose_texts_were_erased_says_so(browser: Browser, server: Server) -> None:
    run_id = narrate(server, said("a secret"), label="forgotten")
    server.run(run_id, "announced")
    server.erase_session(server.run(run_id)["sessionId"])
    with watched_context(browser, server.url, token=server.token, refusals=(410,)) as (context, _):
        page = context.new_page()
        page.goto(f"/ui/run/{run_id}")
        outcome = page.get_by_role("region", name="Outcome")
        expect(outcome).to_have_text(
            "The texts of this run were erased, or are not in this copy of the log."
        )
        respawn = page.get_by_role("button", name="Respawn (its texts were erased)")
        expect(respawn).to_be_disabled()


def test_card_compares_with_the_last_good_or_failed_run(page: Page, server: Server) -> None:
    good = narrate(server, label="good")
    failed = server.accepted(task="no steps", label="bad")
    for run_id in (good, failed):
        server.run(run_id, "announced")
    held: list[Route] = []
    page.set_viewport_size({"width": NARROW_PX, "height": 844})
    page.route("**/v1/runs?agentId=*", lambda route: held.append(route), times=1)
    with page.expect_request("**/v1/runs?agentId=*"):
        page.goto(f"/ui/run/{failed}")
    expect(page.get_by_role("tabpanel")).not_to_be_empty()
    before = page.get_by_role("tablist").bounding_box()
    held[0].continue_()
    expect(page.get_by_role("link", name="Compare with the last good run")).to_be_visible()
    assert page.get_by_role("tablist").bounding_box() == before, "the offer has its place"
    page.set_viewport_size({"width": 1280, "height": 800})
    for run_id, text, absent in (
        (failed, "good run of main: good", good),
        (good, "failed run of main: bad", failed),
    ):
        page.goto(f"/ui/run/{run_id}")
        page.get_by_role("button", name="Compare with …").click()
        page.get_by_role("link", name=f"Last {text}").click()
        expect(page).to_have_url(re.compile(rf"/ui/compare/{run_id}\?with={absent}$"))


def test_card_names_parent_and_children(page: Page, server: Server) -> None:
    child = {"task": json.dumps([{"await": "family.go"}]), "label": "wing"}
    steps = ({"spawn": child, "note": "family"}, {"await": "family.end"})
    parent = narrate(server, *steps, label="tower")
    run_id = json.loads(server.note("family"))["runId"]
    page.set_viewport_size({"width": NARROW_PX, "height": 844})
    page.goto(f"/ui/run/{parent}")
    page.get_by_text("Details").click()
    children = page.get_by_role("definition").filter(has_text="wing")
    expect(children).to_contain_text("running")
    assert page.evaluate("document.documentElement.scrollWidth") == NARROW_PX
    page.set_viewport_size({"width": 1280, "height": 800})
    children.get_by_role("link", name="wing").click()
    expect(page.get_by_role("heading", name="wing")).to_be_visible()
    page.get_by_role("link", name="tower", exact=True).click()
    expect(page.get_by_role("heading", name="tower")).to_be_visible()
    page.reload()
    stop = page.get_by_role("button", name="Stop", exact=True)
    stop.click()
    dialog = page.get_by_role("dialog", name="Stop tower?")
    expect(dialog).to_contain_text("Stops the run and 1 run below it: 1 running.")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(stop).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("enough")
    dialog.get_by_role("button", name="Stop run").click()
    expect(page.get_by_role("status").filter(has_text="Stopped.")).to_be_visible()
    expect(page.get_by_role("heading", name="tower")).to_be_focused()
    expect(page.get_by_text("stopped").first).to_be_visible()
    expect(page.get_by_role("definition").filter(has_text="admin: enough")).to_be_visible()
    server.run(run_id, "ended")


def test_reason_of_stop_is_shown_in_history_and_log(page: Page, server: Server) -> None:
    run_id = narrate(server, {"await": "reason.go"}, label="halted")
    server.run(run_id, "started")
    page.goto(f"/ui/run/{run_id}")
    page.get_by_role("button", name="Stop", exact=True).click()
    dialog = page.get_by_role("dialog", name="Stop halted?")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    server.stop_run(run_id, reason="enough")
    server.run(run_id, "ended")
    expect(page.get_by_text(re.compile("^took "))).to_be_attached()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="halted")).to_be_focused()
    page.goto(f"/ui/run/{run_id}?part=history")
    history = page.get_by_role("list", name="Events of the run").get_by_role("listitem")
    expect(history.filter(has_text="Stop requested")).to_contain_text("reason enough by admin")
    page.goto(f"/ui/log?runId={run_id}&types=StopRequested")
    row = page.get_by_role("grid", name="Events").get_by_role("row").nth(1)
    expect(row).to_contain_text("by admin, with a reason")
    row.click()
    panel = page.get_by_role("region", name="Event")
    expect(panel.get_by_role("definition").filter(has_text="enough")).to_be_visible()


def test_refused_run_names_its_setting_and_who_held_the_places(
    browser: Browser, server: Server
) -> None:
    session = {"sessionKey": "agent:main:full"}
    children = [
        narrate(server, {"await": f"full.{number}"}, label=f"child-{number}", requester=session)
        for number in range(5)
    ]
    refused = server.spawn(json.dumps([]), requester=session, label="sixth").json()["runId"]
    with watched_context(browser, server.url, token=server.token, refusals=(403,)) as (context, _):
        page = context.new_page()
        page.goto(f"/ui/run/{refused}")
        refusal = page.get_by_role("region", name="Refusal")
        expect(refusal).to_contain_text("agents.defaults.subagents.maxChildrenPerAgent: 5")
        setting = refusal.get_by_role("link", name="agents.defaults.subagents.maxChildrenPerAgent")
        expect(setting).to_have_attribute("href", re.compile(r"configuration\?revision=1$"))
        expect(page.get_by_text("None: refused", exact=True)).to_be_visible()
        held = refusal.get_by_role("list", name="The 5 children that held the places then:")
        for number, run_id in enumerate(children):
            link = held.get_by_role("link", name=f"child-{number}")
            expect(link).to_have_attribute("href", re.compile(run_id))
        expect(refusal).to_contain_text("Now 5 of 5 places are taken.")
        assert faults_for_a_screen_reader(page) == []
        again = refusal.get_by_role("button", name="Spawn it again")
        again.click()
        expect(refusal.get_by_role("status")).to_contain_text("max active children")
        server.touch("full.0")
        server.run(children[0], "ended")
        expect(refusal).to_contain_text("Now 4 of 5 places are taken.")
        expect(held.get_by_role("listitem").first).to_have_text("child-0 ran then, ✓ done now")
        buttons = again.bounding_box()
        assert buttons is not None
        place = held.bounding_box()
        assert place is not None
        assert buttons["y"] + buttons["height"] <= place["y"], "what comes later is below"

        def with_six(values: dict[str, Any]) -> None:
            values["agents"]["defaults"]["subagents"]["maxChildrenPerAgent"] = 6

        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        with server.configured(with_six):
            expect(refusal).to_contain_text(re.compile(r"In force now, revision \d: 6\."))
            expect(refusal).to_contain_text("Now 4 of 6 places are taken.")
        assert not [url for url in asked if "/v1/what-if" in url]
        again.click()
        expect(page.get_by_role("heading", name="sixth")).to_be_focused()
        expect(page).not_to_have_url(re.compile(refused))
        page.go_back()
        refusal.get_by_role("link", name="What if 6").click()
        expect(page.get_by_role("listitem")).to_contain_text("maxChildrenPerAgent = 6")
    for number in range(1, 5):
        server.touch(f"full.{number}")
        server.run(children[number], "ended")


def test_refused_run_says_whether_it_would_be_allowed_now(page: Page, server: Server) -> None:
    def only_main(values: dict[str, Any]) -> None:
        values["agents"]["defaults"]["subagents"]["allowAgents"] = ["main"]

    def with_coder(values: dict[str, Any]) -> None:
        agents = values["agents"]["list"]
        agents.append({**agents[0], "id": "coder", "default": False})

    with server.configured(only_main):
        refused = server.spawn(json.dumps([]), agentId="coder", label="coded").json()["runId"]
        page.goto(f"/ui/run/{refused}")
        refusal = page.get_by_role("region", name="Refusal")
        expect(refusal).to_contain_text("Add the agent to the setting, or spawn an allowed one.")
        expect(refusal).not_to_contain_text("In force now")
    now = re.compile(r'In force now, revision \d: \["\*"\]')
    expect(refusal).to_contain_text(now)
    expect(refusal).to_contain_text("it would be refused now: agent not configured.")
    with server.configured(with_coder):
        expect(refusal).to_contain_text("it would be allowed now.")
        expect(refusal).to_contain_text("The configuration has changed since: spawn it again.")
