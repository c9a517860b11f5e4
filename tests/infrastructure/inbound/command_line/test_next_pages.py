"""The printed option for the next page works when it is pasted."""

import json
import shlex
from typing import Any

import pytest

from infrastructure.inbound.command_line.client.described import described_operations
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import Asked, RecordedApi, Reply

RUN = "11111111-0000-4000-8000-000000000001"
CURSOR = "eyJ" + "x" * 1000
NOTE = "there are more: continue with "
FOUND = {"method": "scan", "fromPosition": 0, "toPosition": 9, "before": {}, "after": {}}
CHANGE: dict[str, Any] = {"id": RUN, "kind": "run", "label": None, "patch": []}
DIFF = {"added": [CHANGE], "removed": [], "changed": [], "fromPosition": 1, "toPosition": 9}
EVENTS = "/v1/events"
LISTS: dict[str, tuple[str, str, Any, str]] = {
    "run list --status done --since 5m": ("/v1/runs", "nextCursor", CURSOR, "cursor"),
    "config history": ("/v1/config/revisions", "nextCursor", CURSOR, "cursor"),
    "event find --type RunEnded": ("/v1/events/find", "nextCursor", CURSOR, "cursor"),
    "diff pos:1 pos:9": ("/v1/diff", "nextCursor", CURSOR, "cursor"),
    "event list --tree main": (EVENTS, "nextAfter", 7, "after"),
    "event list --newest": (EVENTS, "nextBefore", 7, "before"),
    "announcement list": ("/v1/announcements", "nextAfter", 7, "after"),
    f"run history {RUN}": (f"/v1/runs/{RUN}/history", "nextAfter", 7, "after"),
    f"run log {RUN} --after 1": (f"/v1/runs/{RUN}/transcript", "nextAfter", 7, "after"),
}


def pages(member: str, value: Any, name: str) -> Any:
    def answer(request: Asked) -> Reply:
        is_first = request.query.get(name) in (None, "0", "1")
        items = [{"sequence": 7, "deliveries": [], "asOf": 7, **FOUND}] * int(
            request.query["limit"]
        )
        page = {"items": items, "head": 900, "setBy": {}, **DIFF, **FOUND, "nextAfter": None}
        return Reply({**page, member: value if is_first else None})

    return answer


@pytest.mark.parametrize("words", LISTS)
def test_list_with_more_names_next_page(words: str, api: RecordedApi, spawnlog: Command) -> None:
    path, member, value, name = LISTS[words]
    api.on("GET", path, pages(member, value, name))
    api.on("GET", f"/v1/runs/{RUN}", Reply({"runId": RUN}))
    command = [*words.split(), "--limit", "2" if "diff" not in words else "1"]
    option = spawnlog(*command).stderr.splitlines()[-1].removeprefix(NOTE)
    assert shlex.split(option) == [f"--{name}", str(value)]
    answer = json.loads(spawnlog(*command, "-o", "json").stdout)
    assert (answer["more"], answer[member]) == (True, value)
    if name in words:
        command = command[: command.index(f"--{name}")] + command[command.index(f"--{name}") + 2 :]
    first = api.asked[0].query
    pasted = spawnlog(*command, *shlex.split(option))
    query = [request for request in api.asked if request.path == path][-1].query
    assert query == {**first, name: str(value)}
    assert NOTE not in pasted.stderr


def test_list_with_more_says_nothing_beside_json(api: RecordedApi, spawnlog: Command) -> None:
    api.on("GET", "/v1/runs", pages("nextCursor", CURSOR, "cursor"))
    assert spawnlog("run", "list", "--limit", "1", "-o", "json").stderr == ""


def test_every_paged_list_is_tried() -> None:
    paged = {
        described_operation.words
        for described_operation in described_operations().values()
        if described_operation.paged and described_operation.limit < 10_000
    }
    assert {item for item in paged if item} <= {
        " ".join(listing.split()[:2]) for listing in LISTS
    } | {"diff"}
