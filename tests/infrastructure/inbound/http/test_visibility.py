"""Answers and effects of each operation for a token that does not cover the resource."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from infrastructure.inbound.http.operations import OPERATIONS
from infrastructure.inbound.http.requests.endpoint import query_fields
from tests.support.http.operations import request_of
from tests.support.http.problems import problem_of
from tests.support.servers.server import Server

pytestmark = pytest.mark.server

OK, NOT_FOUND, FORBIDDEN = (200, ""), (404, "not_found"), (403, "not_permitted")
Outcome = tuple[int, str]
CANARY = f"{'word ' * 50}canary"
"""Task whose end is in no preview."""
ABOUT_ONE = {
    row.name: row
    for row in OPERATIONS
    if any(f"{{{name}}}" in row.path for name in ("runId", "key", "id"))
}
ABOUT_ALL = [row for row in OPERATIONS if row.token and row.name not in ABOUT_ONE]
OF_SESSION = [name for name, row in ABOUT_ONE.items() if "{key}" in row.path]
BY_SESSION = {
    "yieldSession", "provideTranscript", "patchSharedContext", "listAnnouncements",
    "acknowledgeAnnouncement",
}  # fmt: skip
"""Operations that first check whether the token acts for the session in the path."""
TEXTS = {
    "getRunPrompt", "getRunTranscript", "explainRun", "compareRuns", "getRunSharedContext",
}  # fmt: skip
COMMANDS = {
    "stopRun", "stopSession", "sendMessage", "writePreamble", "clearPreamble",
    "redriveAnnouncement",
}  # fmt: skip
EXTERNAL = {"claimRun", "prolongClaim", "reportTranscript", "endRun"}


def outcomes(default: Outcome, **others: Any) -> dict[str, Outcome]:
    return {name: others.get(name, default) for name in ABOUT_ONE}


STRANGERS = outcomes(NOT_FOUND, **dict.fromkeys(BY_SESSION, FORBIDDEN))
SIBLINGS = {
    **STRANGERS,
    **dict.fromkeys([*TEXTS, "respawn", "stopRun", "sendMessage"], FORBIDDEN),
    **dict.fromkeys(["getRun", "listRunEvents", "getRunHistory"], OK),
}
ABOVE = {**STRANGERS, **dict.fromkeys(COMMANDS, FORBIDDEN)}
OWN = {
    **outcomes(OK),
    **dict.fromkeys([*COMMANDS - {"redriveAnnouncement"}, *EXTERNAL, "respawn"], FORBIDDEN),
    "acknowledgeAnnouncement": NOT_FOUND,
    "redriveAnnouncement": (409, "no_announcement"),
    "provideTranscript": (409, "transcript_is_kept_here"),
}
OWN.pop("yieldSession")  # Its run would end.


@dataclass(frozen=True)
class Families:
    """Runs of other requesters, and tokens that do not cover them."""

    tokens: Mapping[str, str]
    names: Mapping[str, Mapping[str, str]]
    """Values for paths, by owner."""


def names_of(run_id: str, key: str) -> dict[str, str]:
    return {"runId": run_id, "id": run_id, "key": key, "revision": "1"}


@pytest.fixture(scope="module")
def families(server: Server) -> Iterator[Families]:
    parent = server.new_session("parent")
    sibling = server.announced(session=parent, task=CANARY)
    with (
        server.held(server.new_session("stranger"), task=CANARY, label="stranger") as stranger,
        server.held(parent) as child,
        server.held(child.child) as leaf,
    ):
        strangers = str(server.run(stranger.run_id)["requesterSessionKey"])
        yield Families(
            {
                "visitor": server.secrets["visitor"],
                "child": child.token,
                "leaf": leaf.token,
            },
            {
                "stranger": names_of(stranger.run_id, stranger.child),
                "stranger's requester": names_of(stranger.run_id, strangers),
                "sibling": names_of(sibling["runId"], sibling["childSessionKey"]),
                "requester": names_of(sibling["runId"], parent),
                "child": names_of(child.run_id, child.child),
            },
        )


def outcome_of(answer: httpx2.Response) -> Outcome:
    assert "canary" not in answer.text
    if answer.is_success:
        return OK
    code = str(answer.json()["code"])
    problem_of(answer, answer.status_code, code)
    return answer.status_code, code


@pytest.mark.parametrize(
    ("caller", "about", "expected"),
    [
        ("visitor", "stranger", STRANGERS),
        ("visitor", "stranger's requester", STRANGERS),
        ("child", "stranger", STRANGERS),
        ("child", "sibling", SIBLINGS),
        ("child", "requester", {name: STRANGERS[name] for name in OF_SESSION}),
        ("leaf", "child", ABOVE),
        ("child", "child", OWN),
    ],
)
def test_token_reaches_own_runs_alone(
    server: Server, families: Families, caller: str, about: str, expected: Mapping[str, Outcome]
) -> None:
    names = families.names[about]
    path = f"/v1/runs/{names['runId']}/events"
    before = server.get(path)
    with server.with_token(families.tokens[caller]) as http:
        found = {
            name: outcome_of(http.request(**request_of(ABOUT_ONE[name], names)))
            for name in expected
        }
    assert found == expected
    assert caller == about or server.get(path) == before


REFUSED: Mapping[Outcome, str] = {
    FORBIDDEN: """spawn whatIf startVerification stopVerification getMetrics getLogHead
        getLogHead?at listRevisions listRevisions?at getRevision getRevision?at
        countEvents countEvents?tree findEvents findEvents?session getDiff""",
    NOT_FOUND: """listAgents listAgents?at listAgents?requester listRuns?at listLedger?at
        listEvents?at listEvents?runId countEvents?runId findEvents?runId listTimeline?at
        getDiff?runId getDiff?session getDiff?tree listLanes?at
        listTreeUsage?at""",
    (409, "no_announcement"): "redriveAnnouncements",
}
"""Requests about a session or run of others, by outcome; other requests show nothing."""
REFUSED_TO: Mapping[str, Mapping[Outcome, str]] = {
    "visitor": {NOT_FOUND: "getMoment?at findEvents?tree"},
    "child": {
        FORBIDDEN: "listEvents listEvents?tree getMoment getMoment?at makePageCode findEvents?tree"
    },
}


@pytest.mark.parametrize("caller", ["visitor", "child"])
def test_lists_and_searches_show_nothing_of_strangers(
    server: Server, families: Families, caller: str
) -> None:
    run_id, session = (families.names["stranger"][name] for name in ("runId", "key"))
    root = families.names["stranger's requester"]["key"]
    naming = {"requester": root, "tree": root, "session": session, "runId": run_id}
    naming |= {"respawnedFrom": run_id, "at": f"run:{run_id}@started", "label": "stranger"}
    expected = {
        request: outcome
        for table in (REFUSED, REFUSED_TO[caller])
        for outcome, requests in table.items()
        for request in requests.split()
    }
    found = {}
    with server.with_token(families.tokens[caller]) as http:
        for row in ABOUT_ALL:
            for name in ("", *(naming.keys() & query_fields(row.query).keys())):
                request = request_of(row, {**families.names["stranger"], "key": root})
                if name:
                    request["params"] |= {name: naming[name]}
                answer = http.request(**request)
                assert not answer.is_success or run_id not in answer.text, (row.name, name)
                found[f"{row.name}?{name}".removesuffix("?")] = outcome_of(answer)
    assert {name: outcome for name, outcome in found.items() if outcome != OK} == expected
    assert len(found) > 40
