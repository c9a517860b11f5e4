"""A running run on the page: its growing transcript, time, tokens and progress."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.support.servers.narrators import entry, heard, narrate, said
from tests.support.servers.server import Server
from tests.support.waiting import wait_for

pytestmark = pytest.mark.server


def seconds(page: Page, words: str) -> float:
    """Return the seconds that follow the words."""
    text = page.get_by_text(re.compile(rf"^{words} [0-9.]+ s$")).inner_text()
    return float(text.removeprefix(f"{words} ").removesuffix(" s"))


def held(server: Server, name: str, *steps: dict[str, Any]) -> str:
    """Return a run that has done these steps, and goes on when `<name>.end` is touched.

    The last step sends an entry, which the server has then: later moments include it.
    """
    run_id = narrate(server, *steps, {"await": f"{name}.end"}, label=name)
    heard(server, run_id, steps[-1])
    return run_id


def test_run_at_work_is_followed(page: Page, server: Server) -> None:
    run_id = narrate(
        server,
        said("the first"),
        {"note": "followed", "await": "followed.go"},
        said("the second"),
        {"await": "followed.on"},
        said("the third"),
        entry("usage", inputTokens=1_200, outputTokens=34, model="acme/big"),
        entry("progress", text="half of it"),
        {"await": "followed.end"},
        label="followed",
    )
    server.note("followed")
    page.goto(f"/ui/run/{run_id}?part=conversation")
    panel = page.get_by_role("tabpanel")
    expect(panel.get_by_text("the first", exact=True)).to_be_visible()
    head = server.http.get("/v1/log").json()["position"]
    server.touch("followed.go")
    expect(panel.get_by_text("the second", exact=True)).to_be_visible()
    server.touch("followed.on")
    expect(panel.get_by_text("the third", exact=True)).to_be_visible(timeout=5_000)
    expect(page.get_by_text(re.compile("^1,200 in, 34 out.* so far$"))).to_be_visible()
    expect(page.get_by_text("half of it", exact=True).first).to_be_visible()
    expect(panel.get_by_text("the first", exact=True)).to_have_count(1)
    assert server.http.get("/v1/log").json()["position"] == head, "the log did not grow"
    server.touch("followed.end")
    expect(page.get_by_text(re.compile("^took "))).to_be_visible()
    expect(page.get_by_text("so far")).to_have_count(0)


def _later_position(server: Server) -> int:
    """Spawn a run, and return the position of its request."""
    server.spawned("another", agentId="main")
    return server.head()


def test_run_at_work_in_the_past_opens_at_its_newest_entry(page: Page, server: Server) -> None:
    lines = (said(f"line {number}") for number in range(60))
    used = entry("usage", inputTokens=1_200, outputTokens=34, model="acme/big")
    run_id = held(server, "past", *lines, used)
    at = _later_position(server)
    server.touch("past.end")
    server.run(run_id, "ended")
    page.goto(f"/ui/run/{run_id}?part=conversation&at=pos:{at}")
    panel = page.get_by_role("tabpanel")
    expect(panel.get_by_text("line 59", exact=True)).to_be_in_viewport()
    expect(panel.get_by_text("line 0", exact=True)).not_to_be_in_viewport()
    expect(page.get_by_text("1,200 in, 34 out so far", exact=True)).to_be_visible()
    panel.get_by_role("button", name="Show from the beginning").click()
    expect(panel.get_by_text("line 0", exact=True)).to_be_in_viewport()


def test_sums_include_what_runs_now(page: Page, server: Server) -> None:
    used = entry("usage", inputTokens=61_000, outputTokens=3_000, model="acme/big")
    run_id = held(server, "summed", used)
    page.goto("/ui/runs?label=summed")
    expect(
        page.get_by_text("1 run · 64.0 k tokens · $0.1460 · with 1 running so far")
    ).to_be_visible()
    page.goto("/ui/tree/main")
    row = page.get_by_role("treegrid").get_by_role("row").filter(has_text="summed")
    expect(row).to_contain_text("64.0 k")
    # Another spawn makes a position that is later than the tokens.
    page.goto(f"/ui/tree/main?at=pos:{_later_position(server)}")
    expect(page.get_by_text(re.compile("^with [0-9]+ running so far$"))).to_be_visible()
    expect(row).to_contain_text("64.0 k")
    page.goto("/ui/overview")
    running = page.get_by_role("region", name="Running now")
    expect(running.get_by_role("heading")).to_contain_text("64.0 k tokens")
    page.goto("/ui/changes?tree=agent:main:main")
    expect(page.get_by_text("include what the running ones have used so far")).to_be_visible()
    server.touch("summed.end")
    server.run(run_id, "ended")


@pytest.mark.nightly
def test_time_at_work_grows_by_the_server_clock(page: Page, server: Server) -> None:
    run_id = narrate(server, {"note": "timed", "await": "timed.go"}, label="timed")
    server.note("timed")
    # A browser whose clock is an hour behind.
    page.add_init_script("{ const now = Date.now; Date.now = () => now() - 3_600_000 }")
    page.goto(f"/ui/run/{run_id}")
    expect(page.get_by_text(re.compile("^for "))).to_be_visible()
    first = wait_for("time to pass", lambda: seconds(page, "for"))
    wait_for("more time to pass", lambda: seconds(page, "for") >= first + 2)
    page.goto("/ui/tree/main")
    row = page.get_by_role("treegrid").get_by_role("row").filter(has_text="timed")
    took = row.get_by_role("gridcell").nth(3)
    expect(took).to_have_text(re.compile(r"^[2-9][0-9.]* s|^\d\d"))
    page.goto("/ui/runs")
    row = page.get_by_role("grid", name="Runs").get_by_role("row").filter(has_text="timed")
    expect(row.get_by_role("gridcell").nth(5)).to_have_text(re.compile(r"^[2-9][0-9.]* s|^\d\d"))
    server.touch("timed.go")
    server.run(run_id, "ended")
