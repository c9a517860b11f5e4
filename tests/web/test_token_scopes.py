"""Every view of the page with a token of each scope: none is blank, none fails."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.support.page.browser import watched_context
from tests.support.page.header import sign_out
from tests.support.servers.configurations import agent, configuration
from tests.support.servers.data_directories import copied, new_place
from tests.support.servers.server import Server
from tests.support.tiers import nightly_but

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]
GO_TO = "to => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')) }"
FAMILY = "agent:main:family"
OTHER = "agent:main:other"
SCOPES: dict[str, dict[str, Any]] = {
    "read-all": {"scopes": ["read"], "sessions": ["*"]},
    "read-one": {"scopes": ["read"], "sessions": [FAMILY]},
    "content-all": {"scopes": ["read", "content"], "sessions": ["*"]},
    "content-one": {"scopes": ["read", "content"], "sessions": [FAMILY]},
    "read-two": {"scopes": ["read"], "sessions": [FAMILY, OTHER]},
    "acting-one": {"scopes": ["read", "spawn", "control"], "sessions": [FAMILY]},
}
WITHOUT_READ: dict[str, dict[str, Any]] = {
    "spawn": {"scopes": ["spawn"], "sessions": ["*"]},
    "content": {"scopes": ["content"], "sessions": [FAMILY]},
    "worker": {"scopes": ["worker"], "sessions": ["*"]},
}


def token_of(name: str) -> str:
    return f"token-for-{name}-0123456789abcdef"


@dataclass(frozen=True)
class Family:
    """A server with a run that ended, its respawn, a refused run and a run of another family."""

    server: Server
    done: str
    respawn: str
    refused: str
    position: int

    def views(self) -> Iterator[str]:
        """Yield the address of each view, of each run and part."""
        yield from ("overview", "runs", "log", "lanes", "announcements")
        yield from ("shared-context", "configuration")
        yield from ("tree", f"tree/{FAMILY}", "changes", f"changes?session={FAMILY}&from=pos:0")
        yield from ("verify", "what-if", f"shared-context/{FAMILY}", f"compare/{self.done}")
        yield f"compare/{self.done}?with={self.respawn}"
        for run in (self.done, self.respawn, self.refused):
            for part in ("decisions", "history", "prompt", "shared", "conversation"):
                yield f"run/{run}?part={part}"


@pytest.fixture(scope="module")
def family(made_data_dir: Path) -> Iterator[Family]:
    with new_place() as place:
        tokens = []
        for name, rights in (SCOPES | WITHOUT_READ).items():
            file = place / name
            file.write_text(token_of(name), "utf-8")
            file.chmod(0o600)
            tokens.append({"id": name, **rights, "token": {"file": str(file)}})
        config = configuration(agent("main", default=True), tokens=tokens)
        with Server(copied(made_data_dir, place / "data"), config) as server:
            requester = {"sessionKey": FAMILY}
            done = server.spawn(
                "the task", requester=requester, label="done", sharedContext={"goal": "a text"}
            ).json()["runId"]
            server.run(done, "announced")
            respawn = server.http.post(f"/v1/runs/{done}/respawn", json={}).json()["runId"]
            server.run(respawn, "announced")
            refused = server.spawn("refused", requester=requester, agentId="nobody").json()["runId"]
            foreign = server.spawn("other", requester={"sessionKey": OTHER}, label="of-the-other")
            server.run(foreign.json()["runId"], "announced")
            head = server.http.get("/v1/log").json()["position"]
            yield Family(server, done, respawn, refused, head)


@pytest.mark.parametrize("name", nightly_but(SCOPES, ["content-all"]))
def test_every_view_opens_for_token(browser: Browser, family: Family, name: str) -> None:
    with watched_context(browser, family.server.url, token=token_of(name)) as (context, watched):
        page = context.new_page()
        page.goto("/ui/lanes")
        expect(page.get_by_role("heading", name="Lanes")).to_be_visible()
        for view in family.views():
            past = f"{'&' if '?' in view else '?'}at=pos:{family.position}"
            for at in ("", past) if view.startswith(("run/", "tree")) else ("",):
                page.evaluate(GO_TO, f"/ui/{view}{at}")
                expect(page.get_by_role("note")).to_have_count(1 if at else 0)
                expect(page.get_by_role("heading", level=1)).to_be_visible()
                expect(page.get_by_text("Reading …")).to_have_count(0)
                # The bar counts the events of everything, or of one tree.
                bar = page.get_by_role("region", name="Time", exact=True)
                expect(bar).to_have_count(0 if name == "read-two" else 1)
                if view.startswith("run/"):
                    expect(page.get_by_role("tabpanel")).not_to_be_empty()
                    hidden = page.get_by_text(
                        "This token sees the first 200 characters of the task"
                    )
                    expect(hidden).to_have_count(0 if "content" in name else 1)
                if view == "changes" and not name.endswith("-all"):
                    notice = page.get_by_text("this token does not see everything")
                    expect(notice).to_be_visible()
                    expect(page.get_by_role("link", name="What if")).to_have_count(0)
                alerts = page.get_by_role("alert").all_inner_texts()
                assert (view + at, alerts, watched.wrong) == (view + at, [], [])


@pytest.mark.parametrize("name", nightly_but(WITHOUT_READ, ["spawn"]))
def test_token_without_read_is_told_so(browser: Browser, family: Family, name: str) -> None:
    with watched_context(browser, family.server.url, token=token_of(name)) as (context, _):
        page = context.new_page()
        for view in ("runs", f"run/{family.done}"):
            page.goto(f"/ui/{view}")
            expect(page.get_by_role("main")).to_contain_text("requires scope read")
            sign_out(page)
            expect(page.get_by_label("Token")).to_be_visible()
