"""Names of runs, moments and durations on the command line."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from infrastructure.inbound.command_line.client.find_run import (
    RUNS_SEARCHED_MAX,
    RunMatch,
    RunNames,
    choose_run,
    find_run,
    parse_run_name,
)
from infrastructure.inbound.command_line.client.wall_clock import wall_time
from infrastructure.inbound.command_line.display.failures import CommandError, ResourceNotFoundError
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply

NEWEST = "aaaa1111-0000-4000-8000-000000000001"
MIDDLE = "aaaa2222-0000-4000-8000-000000000002"
OLDEST = "bbbb3333-0000-4000-8000-000000000003"
KEY = "agent:main:subagent:cccc0000-0000-4000-8000-000000000009"
OTHER_KEY = "agent:main:subagent:other"
RUNS = [
    RunNames(NEWEST, "reviewer", KEY),
    RunNames(MIDDLE, "bbbb", OTHER_KEY),
    RunNames(OLDEST, None, KEY),
]
SAME = [
    RunNames(NEWEST, "same", None, "2026-03-02T09:00:00Z", "running"),
    RunNames(MIDDLE, "same", None, "2026-03-01T09:00:00Z", "failed"),
]
MANY = [RunNames(f"dddd000{i}-0000-4000-8000-000000000000", "many") for i in range(8)]
REFUSED = [RunNames(item, "same", status="refused") for item in (NEWEST, MIDDLE)]


def chosen(name: str, runs: list[RunNames]) -> RunMatch:
    return choose_run(parse_run_name(name), runs)


@pytest.mark.parametrize(
    ("name", "runs", "run_id", "exact"),
    [
        (MIDDLE.upper(), RUNS, MIDDLE, True),
        ("last", RUNS, NEWEST, False),
        ("#1", RUNS, NEWEST, False),
        ("#3", RUNS, OLDEST, False),
        ("reviewer", RUNS, NEWEST, True),
        # A label goes before the beginning of an id.
        ("bbbb", RUNS, MIDDLE, False),
        ("AAAA2", RUNS, MIDDLE, False),
        (KEY, RUNS, NEWEST, False),
        (OTHER_KEY, RUNS, MIDDLE, True),
        ("same@last", SAME, NEWEST, False),
        ("same@last", REFUSED, NEWEST, False),
        ("same@last", [*REFUSED, RunNames(OLDEST, "same", status="done")], OLDEST, False),
    ],
)
def test_name_means_one_run(name: str, runs: list[RunNames], run_id: str, exact: bool) -> None:
    assert chosen(name, runs) == RunMatch(run_id, exact=exact)


@pytest.mark.parametrize(
    ("name", "runs", "error", "text"),
    [
        ("#4", RUNS, ResourceNotFoundError, "the list has 3"),
        ("#10001", RUNS, CommandError, "at most #10000"),
        ("review", RUNS, ResourceNotFoundError, "no run has the name"),
        ("nothing@last", SAME, ResourceNotFoundError, "no run has the name"),
        ("same", SAME, CommandError, "matches 2 runs"),
        ("aaaa", RUNS, CommandError, "matches 2 runs"),
        ("many", MANY, CommandError, "and 3 more"),
        ("aaa", RUNS, ResourceNotFoundError, "needs 4 characters"),
        ("  ", RUNS, CommandError, "give the name of a run"),
        ("\x1b[31mred", RUNS, ResourceNotFoundError, "no run has the name"),
    ],
)
def test_name_of_no_single_run_is_refused(
    name: str, runs: list[RunNames], error: type[CommandError], text: str
) -> None:
    with pytest.raises(error, match=text) as failure:
        chosen(name, runs)
    assert "\x1b" not in failure.value.message


def test_ambiguous_label_lists_time_and_status() -> None:
    with pytest.raises(CommandError) as failure:
        chosen("same", SAME)
    head, *candidates = failure.value.message.splitlines()
    assert 'or "same@last" for the newest' in head
    assert [" ".join(line.split()) for line in candidates] == [
        f"{NEWEST} 2026-03-02 09:00:00 running same",
        f"{MIDDLE} 2026-03-01 09:00:00 failed same",
    ]


@dataclass
class Listing:
    items: list[dict[str, Any]]
    more: bool


class Runs:
    """A server with these runs, the newest first, all with one label."""

    def __init__(self, *children: str, refused: int = 0, count: int = 0) -> None:
        self._runs = [
            {"runId": f"00000000-0000-4000-8000-{number:012d}", "childSessionKey": child}
            | {"label": "reading", "agentId": "a", "stage": "announced"}
            | {"status": "refused" if number < refused else "done"}
            for number, child in enumerate(children)
        ]
        self._count = count or len(self._runs)

    def items(self, _: str, query: dict[str, Any], *, limit: int) -> Listing:
        runs = self._runs if query.get("label") == "reading" else []
        return Listing(runs[:limit], self._count > limit and bool(runs))

    def find(self, name: str) -> str:
        return find_run(self, name).run_id  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, 9, 10, 11, 200])
def test_label_is_looked_up_in_all_runs(count: int) -> None:
    assert Runs(*([KEY] * count)).find("reading").endswith("-000000000000")
    with pytest.raises(CommandError):
        Runs(*([KEY] * count), OTHER_KEY).find("reading")
    behind_refused = Runs(*([KEY] * (count + 1)), refused=count)
    assert behind_refused.find("reading@last").endswith(f"-{count:012d}")


def test_label_beyond_searched_runs_is_not_guessed() -> None:
    with pytest.raises(CommandError, match="give the full id"):
        Runs(*([KEY] * 20), count=RUNS_SEARCHED_MAX + 1).find("reading")


NOON = datetime(2026, 11, 26, 12, 0)


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("11:30", "2026-11-26T11:30:00"),
        ("18:00", "2026-11-25T18:00:00"),
        ("7:05:09", "2026-11-26T07:05:09"),
        ("today", "2026-11-26T00:00:00"),
        ("today 18:00", "2026-11-26T18:00:00"),
        (" Yesterday  at 18:00 ", "2026-11-25T18:00:00"),
        ("2026-11-25", "2026-11-25T00:00:00"),
        ("2026-11-25 18:00", "2026-11-25T18:00:00"),
        ("2026-11-25T18:00:01", "2026-11-25T18:00:01"),
        ("25:00", None),
        ("2026-02-30", None),
        ("2026-11-25T18:00:00Z", None),
        ("-2h", None),
        ("pos:120", None),
        ("run:reviewer@started", None),
        ("tomorrow", None),
        ("", None),
    ],
)
def test_wall_time_is_read_as_people_write_it(text: str, local: str | None) -> None:
    found = wall_time(text, NOON)
    assert (found and found.isoformat()) == local


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


def test_time_of_the_terminal_is_sent_as_an_instant(
    spawnlog: Command, api: RecordedApi, in_berlin: None
) -> None:
    api.on("GET", "/v1/runs", Reply({"items": []}))
    typed = ("--since", "2026-07-01 18:00", "--ended-until", "2026-11-25")
    assert spawnlog("run", "list", *typed, "--at", "12h").exit_code == 0
    query = api.asked[0].query
    assert (query["since"], query["at"]) == ("2026-07-01T16:00:00Z", "12h")
    assert query["endedUntil"] == "2026-11-24T23:00:00Z"


@pytest.mark.parametrize("ago", ["-2h", "2w"])
def test_diff_takes_times_ago(spawnlog: Command, api: RecordedApi, ago: str) -> None:
    page = {"fromPosition": 1, "toPosition": 1, "added": [], "removed": [], "changed": []}
    api.on("GET", "/v1/diff", Reply({**page, "nextCursor": None}))
    assert spawnlog("diff", "pos:1", ago).exit_code == 0
    assert api.asked[0].query["to"] == ago.removeprefix("-")
    assert spawnlog("diff", "-h").exit_code == 0


@pytest.mark.parametrize("ago", ["-12h", "1d", "pos:7"])
def test_every_option_takes_the_same_moments(spawnlog: Command, api: RecordedApi, ago: str) -> None:
    api.on("GET", "/v1/runs", Reply({"items": [], "nextCursor": None}))
    assert spawnlog("run", "list", "--since", ago, "--until", ago, "--at", ago).exit_code == 0
    query = api.asked[0].query
    assert (query["since"], query["until"], query["at"]) == (ago, ago, ago)


@pytest.mark.parametrize(
    ("typed", "seconds"), [("10m", 600), ("600", 600), ("1d", 86_400), ("0", 0)]
)
def test_timeout_is_a_duration(
    spawnlog: Command, api: RecordedApi, typed: str, seconds: int
) -> None:
    api.on("POST", "/v1/spawns", Reply({"status": "accepted", "runId": "r"}, 202))
    assert spawnlog("spawn", "wait", "--timeout", typed).exit_code == 0
    assert api.asked[0].body["runTimeoutSeconds"] == seconds


def test_what_if_sends_time_ago_and_run_id(spawnlog: Command, api: RecordedApi) -> None:
    totals = {"decisions": 0, "fromPosition": 1, "toPosition": 1, "byVerdict": {}}
    line = {"totals": {**totals, "byAgent": {}, "byRule": {}}}
    api.on("POST", "/v1/what-if", Reply(line, content_type="application/x-ndjson"))
    api.on("GET", "/v1/runs", Reply({"items": [{"runId": NEWEST, "label": "late"}]}))
    result = spawnlog("what-if", "--set", "/a=1", "--since", "2w", "--run", "late")
    assert result.exit_code == 0, result.output
    request = next(request for request in api.asked if request.path == "/v1/what-if")
    assert request.body["from"] == "2w"
    assert request.body["filter"]["runId"] == NEWEST
