"""Foreign text is shown as text on every view: it is no markup, does not change the direction of
its neighbors, and stays within the page.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.page.browser import watched_context
from tests.support.page.hostile_server import FAMILY, MARKUP, HostileRecord, hostile_server
from tests.support.servers.misconfigured_storm import StormRecord
from tests.support.servers.server import Server
from tests.support.tiers import nightly_but

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]
VISIBLE = "<script>alert(2)</script>"
MADE = "img:not(.brand > img), b, main script, iframe"
"""What markup in a text would make; the page itself has an image beside its name."""
RAW = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
# Right-to-left letters reorder neighboring digits and brackets unless their element is isolated
# or a block.
BESIDE_OTHERS = """() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const isApart = (element) => {
    for (let one = element; one !== null; one = one.parentElement) {
      const { unicodeBidi, display } = getComputedStyle(one)
      if (['isolate', 'plaintext', 'isolate-override'].includes(unicodeBidi)) return true
      if (display !== 'inline') return false
    }
    return false
  }
  const found = []
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const holder = node.parentElement
    if (!/[\\u0590-\\u05ff]/.test(node.data) || holder.closest('textarea, option')) continue
    if (!isApart(holder)) found.push(holder.outerHTML.slice(0, 200))
  }
  return found
}"""
LONG_TASK = "x" * 1_000_000 + "the end"
TEXTS = {"markup": MARKUP, "long": LONG_TASK}
SEEN = {
    "markup": MARKUP,
    "long": "x" * 200_000,
}
VIEWS = {
    "overview": VISIBLE,
    "runs": VISIBLE,
    "runs?q=bold": VISIBLE,
    "tree": "runs",
    f"tree/{FAMILY}": VISIBLE,
    "changes?from=pos:0&fields=1": VISIBLE,
    "changes?from=pos:0&runId={talker}": VISIBLE,
    "compare/{talker}?with={scripts}": VISIBLE,
    "compare/{talker}?with={long}": VISIBLE,
    "compare/{failing}": VISIBLE,
    "run/{talker}?part=decisions": VISIBLE,
    "run/{talker}?part=history": VISIBLE,
    "run/{talker}?part=prompt": VISIBLE,
    "run/{talker}?part=shared": VISIBLE,
    "run/{talker}?part=conversation": "more characters",
    "run/{long}?part=prompt": "more characters",
    "run/{external}?part=decisions": VISIBLE,
    "run/{external}?part=history": VISIBLE,
    "run/{external}?part=conversation": VISIBLE,
    "run/{failing}?part=decisions": VISIBLE,
    "run/{failing}?part=history": VISIBLE,
    "run/{scripts}?part=decisions": VISIBLE,
    "run/{scripts}?part=history": VISIBLE,
    "run/{scripts}?part=prompt": VISIBLE,
    "run/{refused}?part=decisions": VISIBLE,
    "run/{refused}?part=history": VISIBLE,
    "run/{stopped}?part=history": VISIBLE,
    "run/{told}?part=history": VISIBLE,
    "run/{told}?part=conversation": VISIBLE,
    f"shared-context/{FAMILY}": VISIBLE,
    "announcements": VISIBLE,
    "announcements?open={announced}": VISIBLE,
    "lanes": "holds a slot",
    "configuration": VISIBLE,
    "what-if?try=text": "Begin again",
    "log": "asked again",
}


@pytest.fixture(scope="module")
def hostile(made_data_dir: Path) -> Iterator[HostileRecord]:
    with hostile_server(made_data_dir) as record:
        yield record


@pytest.fixture
def page(browser: Browser, hostile: HostileRecord) -> Iterator[Page]:
    server = hostile.server
    with watched_context(browser, server.url, token=server.token) as (context, _):
        yield context.new_page()


def faults_of_texts(page: Page) -> list[str]:
    """Return the effects of a text on the page around it."""
    found = [f"beside others: {fault}" for fault in page.evaluate(BESIDE_OTHERS)]
    if page.locator(MADE).count() > 0:
        found.append("markup")
    found += [f"raw: {text!r}" for text in set(RAW.findall(page.locator("body").inner_text()))]
    wide, room = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    if wide > room:
        found.append(f"{wide} px wide")
    return found


@pytest.mark.nightly
def test_on_every_view_it_is_text_and_nothing_else(page: Page, hostile: HostileRecord) -> None:
    server = hostile.server
    announced = server.http.get("/v1/announcements", params={"limit": 1}).json()["items"][0]
    names = {**hostile.runs, "announced": announced["position"]}
    faults: dict[str, list[str]] = {}
    for view, text in VIEWS.items():
        page.goto(f"/ui/{view.format(**names)}")
        expect(page.get_by_role("main")).to_contain_text(text)
        expect(page.get_by_text("Reading …")).to_have_count(0)
        found = faults_of_texts(page)
        # The page still takes keys.
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        if found:
            faults[view] = found
    assert faults == {}


@pytest.mark.nightly
def test_a_bar_is_named_beside_what_became_of_it(page: Page) -> None:
    page.goto("/ui/tree")
    bars = page.get_by_role("application")
    expect(bars).to_be_visible()
    bars.press("ArrowRight")
    expect(page.get_by_role("link", name="View at its start")).to_be_visible()
    assert faults_of_texts(page) == []
    named = page.get_by_text(VISIBLE).first
    assert named.evaluate("one => getComputedStyle(one).unicodeBidi") == "isolate"


@pytest.mark.nightly
def test_an_event_is_opened_with_all_that_it_says(page: Page, hostile: HostileRecord) -> None:
    page.goto(f"/ui/log?runId={hostile.runs['stopped']}")
    grid = page.get_by_role("grid", name="Events")
    rows = grid.get_by_role("row")
    expect(rows.nth(1)).to_be_visible()
    for _ in range(rows.count() - 1):
        grid.press("j")
        grid.press("Enter")
        expect(page.get_by_role("region", name="Event")).to_contain_text('"position"')
        assert faults_of_texts(page) == []


@pytest.mark.nightly
def test_what_is_tried_and_what_comes_of_it_is_text(page: Page) -> None:
    page.goto("/ui/what-if?cascade=1&same=1")
    page.locator("#search").fill("/agents/list/1/runtime/result")
    page.get_by_label("to", exact=True).fill('"<img src=x> \u202e\u05e9\u05dc\u05d5\u05dd (1)"')
    page.keyboard.press("Enter")
    page.locator("#search").fill("/agents/defaults/subagents/maxChildrenPerAgent")
    page.get_by_label("to", exact=True).fill("1")
    page.keyboard.press("Enter")
    assert faults_of_texts(page) == []
    page.get_by_role("button", name="Run what-if").click()
    expect(page.get_by_role("heading", name="Verdicts")).to_be_visible()
    decisions = page.get_by_role("grid", name="Decisions")
    expect(decisions.get_by_role("row").nth(1)).to_be_visible()
    for _ in range(decisions.get_by_role("row").count() - 1):
        decisions.press("j")
        assert faults_of_texts(page) == []
    page.goto("/ui/what-if?try=text")
    editor = page.get_by_label("The configuration to try, JSON5")
    expect(editor).to_have_value(re.compile("talker"))
    text = editor.input_value()
    comment = "// \u202e\u05e9\u05dc\u05d5\u05dd <img src=x onerror=alert(1)> " + "x" * 100_000
    editor.fill(f"{comment}\n{text}")
    page.get_by_role("button", name="Run what-if").click()
    expect(page.get_by_text("No decision changes")).to_be_visible()
    assert faults_of_texts(page) == []


@pytest.fixture(scope="module")
def runs(storm: tuple[Server, StormRecord]) -> dict[str, str]:
    """Return a run for each text, which is its task, its label and its result."""
    server, _ = storm
    made = {}
    for name, text in TEXTS.items():
        label = text if name == "markup" else None  # of the others no label may be
        answer = server.spawn(text, agentId="writer", label=label, contextPreamble=text)
        assert answer.status_code == 201, answer.text[:500]
        made[name] = str(answer.json()["runId"])
        server.http.get(f"/v1/runs/{made[name]}", params={"wait": "30s", "until": "announced"})
    return made


@pytest.mark.parametrize("name", nightly_but(TEXTS, ["markup"]))
def test_it_is_shown_as_text_on_every_view(window: Page, runs: dict[str, str], name: str) -> None:
    for view in ("", "?part=history", "?part=prompt", "?part=conversation"):
        window.goto(f"/ui/run/{runs[name]}{view}")
        outcome = window.get_by_role("region", name="Outcome")
        expect(outcome).to_contain_text(SEEN[name])
        expect(window.get_by_text("Reading …")).to_have_count(0)
        assert window.locator(MADE).count() == 0
    other_run = next(run_id for named, run_id in runs.items() if named != name)
    for view in (
        f"compare/{runs[name]}?with={other_run}",
        f"changes?from=pos:0&runId={runs[name]}",
    ):
        window.goto(f"/ui/{view}")
        expect(window.get_by_role("table").first).to_be_visible()
        assert window.locator(MADE).count() == 0
        assert "\u202e" not in window.locator("body").inner_text()
    for view in ("runs", "log", "announcements"):
        window.goto(f"/ui/{view}")
        expect(window.get_by_role("row").nth(1)).to_be_visible()
        assert window.locator(MADE).count() == 0
        assert "\u202e" not in window.locator("body").inner_text()


@pytest.mark.nightly
def test_a_long_text_is_whole_on_demand(window: Page, runs: dict[str, str]) -> None:
    window.goto(f"/ui/run/{runs['long']}")
    window.get_by_text("Task", exact=True).click()
    task = window.get_by_role("region", name="Task")
    task.get_by_role("button", name="more characters").click()
    expect(task.locator("pre")).to_contain_text("the end")


@pytest.mark.nightly
def test_what_an_address_says_is_text_too(window: Page) -> None:
    window.goto("/ui/runs?label=%3Cimg%20src=x%20onerror=alert(1)%3E%3Cscript%3E")
    expect(window.get_by_role("combobox", name="Search runs")).to_have_value(
        'label:="<img src=x onerror=alert(1)><script>"'
    )
    expect(window.get_by_role("button", name="Remove label:=")).to_contain_text("alert(1)")
    assert window.locator(MADE).count() == 0
