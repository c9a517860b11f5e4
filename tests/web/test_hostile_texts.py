"""Whatever a model, a script or a caller writes is text on the page, and nothing else."""

import pytest
from playwright.sync_api import Page, expect

from tests.support.servers.misconfigured_storm import StormRecord
from tests.support.servers.reloaded_server import ReloadedServer

pytestmark = pytest.mark.server
MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script><b>bold</b>"
TURNED = "safe\u202egnp.exe\u202c and \u2066hidden\u2069"
CONTROL = "a\u0007b\u001b[31mc\u007fd\u0085e"
LONG = "x" * 1_000_000 + "the end"
HOSTILE = {"markup": MARKUP, "turned": TURNED, "control": CONTROL, "long": LONG}
SEEN = {
    "markup": MARKUP,
    "turned": "safe⟨202E⟩gnp.exe⟨202C⟩ and ⟨2066⟩hidden⟨2069⟩",
    "control": "a⟨0007⟩b⟨001B⟩[31mc⟨007F⟩d⟨0085⟩e",
    "long": "x" * 200_000,
}


@pytest.fixture(scope="module")
def runs(storm: tuple[ReloadedServer, StormRecord]) -> dict[str, str]:
    """A run for each text, which is its task, its label and its result."""
    server, _ = storm
    made = {}
    for name, text in HOSTILE.items():
        label = text if name == "markup" else None  # of the others no label may be
        answer = server.spawn(text, agentId="writer", label=label, contextPreamble=text)
        assert answer.status_code == 201, answer.text[:500]
        made[name] = str(answer.json()["runId"])
        server.http.get(f"/v1/runs/{made[name]}", params={"wait": "30s", "until": "announced"})
    return made


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_shown_as_text_on_every_view(window: Page, runs: dict[str, str], name: str) -> None:
    for view in ("", "?part=history", "?part=prompt", "?part=transcript"):
        window.goto(f"/ui/run/{runs[name]}{view}")
        expect(window.locator("dd pre").first).to_have_text(SEEN[name])
        expect(window.get_by_text("Reading …")).to_have_count(0)
        assert window.locator("img, b, main script, iframe").count() == 0
    other = next(one for named, one in runs.items() if named != name)
    for view in (
        f"compare/{runs[name]}?with={other}",
        f"changes?from=pos:0&runId={runs[name]}",
    ):
        window.goto(f"/ui/{view}")
        expect(window.get_by_role("table").first).to_be_visible()
        assert window.locator("img, b, main script, iframe").count() == 0
        assert "\u202e" not in window.locator("body").inner_text()
    for view in ("runs", "log", "announcements"):
        window.goto(f"/ui/{view}")
        expect(window.get_by_role("row").nth(1)).to_be_visible()
        assert window.locator("img, b, main script, iframe").count() == 0
        assert "\u202e" not in window.locator("body").inner_text()


def test_a_long_text_is_whole_on_demand(window: Page, runs: dict[str, str]) -> None:
    window.goto(f"/ui/run/{runs['long']}")
    task = window.locator("dd").first
    task.get_by_role("button", name="more characters").click()
    expect(task.locator("pre")).to_contain_text("the end")


def test_what_an_address_says_is_text_too(window: Page) -> None:
    window.goto("/ui/runs?label=%3Cimg%20src=x%20onerror=alert(1)%3E%3Cscript%3E")
    expect(window.get_by_role("complementary").last).to_contain_text("alert(1)")
    assert window.locator("img, main script").count() == 0
