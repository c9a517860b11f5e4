"""How names of runs are understood."""

from dataclasses import dataclass
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
from infrastructure.inbound.command_line.display.failures import CommandFailed, NotFound
from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import RecordedApi, Reply

NEWEST = "aaaa1111-0000-4000-8000-000000000001"

MIDDLE = "aaaa2222-0000-4000-8000-000000000002"

OLDEST = "bbbb3333-0000-4000-8000-000000000003"

KEY = "agent:main:subagent:cccc0000-0000-4000-8000-000000000009"

RUNS = [
    RunNames(NEWEST, "reviewer", KEY),
    RunNames(MIDDLE, "bbbb", "agent:main:subagent:other"),
    RunNames(OLDEST, None, KEY),
]


def chosen(name: str, runs: list[RunNames] = RUNS) -> RunMatch:
    return choose_run(parse_run_name(name), runs)


def test_a_full_id_is_exact_in_any_case() -> None:
    assert chosen(MIDDLE.upper()) == RunMatch(MIDDLE, exact=True)


def test_last_is_the_newest_and_not_exact() -> None:
    assert chosen("last") == RunMatch(NEWEST, exact=False)


def test_a_place_counts_from_one_in_the_order_of_the_list() -> None:
    assert chosen("#1") == RunMatch(NEWEST, exact=False)
    assert chosen("#3") == RunMatch(OLDEST, exact=False)


def test_a_place_beyond_the_list_names_nothing() -> None:
    with pytest.raises(NotFound, match="the list has 3"):
        chosen("#4")


def test_places_have_an_end() -> None:
    with pytest.raises(CommandFailed, match="at most #10000"):
        parse_run_name("#10001")


def test_a_label_is_exact_when_one_run_has_it() -> None:
    assert chosen("reviewer") == RunMatch(NEWEST, exact=True)


def test_part_of_a_label_is_no_name() -> None:
    with pytest.raises(NotFound):
        chosen("review")


def test_a_label_that_also_begins_an_id_goes_first_but_is_not_exact() -> None:
    assert chosen("bbbb") == RunMatch(MIDDLE, exact=False)


def test_a_label_of_several_runs_names_none_of_them() -> None:
    runs = [RunNames(NEWEST, "same"), RunNames(MIDDLE, "same")]
    with pytest.raises(CommandFailed, match="names 2 runs") as failure:
        chosen("same", runs)
    assert NEWEST in failure.value.message
    assert MIDDLE in failure.value.message


def test_the_beginning_of_an_id_is_enough_when_unique() -> None:
    assert chosen("AAAA2") == RunMatch(MIDDLE, exact=False)


def test_the_beginning_of_several_ids_names_none() -> None:
    with pytest.raises(CommandFailed, match="names 2 runs"):
        chosen("aaaa")


def test_three_characters_are_too_few() -> None:
    with pytest.raises(NotFound, match="needs 4 characters"):
        chosen("aaa")


def test_a_child_key_means_its_newest_run() -> None:
    assert chosen(KEY) == RunMatch(NEWEST, exact=False)


def test_a_child_key_with_one_run_is_exact() -> None:
    assert chosen("agent:main:subagent:other") == RunMatch(MIDDLE, exact=True)


def test_an_empty_name_is_asked_for() -> None:
    with pytest.raises(CommandFailed, match="give the name of a run"):
        parse_run_name("  ")


def test_a_hostile_name_is_told_without_its_control_signs() -> None:
    with pytest.raises(NotFound) as failure:
        chosen("\x1b[31mred")
    assert "\x1b" not in failure.value.message


def test_many_candidates_are_told_in_part() -> None:
    runs = [RunNames(f"dddd000{i}-0000-4000-8000-000000000000", "many") for i in range(8)]
    with pytest.raises(CommandFailed, match="and 3 more"):
        chosen("many", runs)


def test_label_at_last_is_its_newest_run() -> None:
    runs = [RunNames(NEWEST, "other"), RunNames(MIDDLE, "same"), RunNames(OLDEST, "same")]
    assert chosen("same@last", runs) == RunMatch(MIDDLE, exact=False)
    with pytest.raises(NotFound):
        chosen("nothing@last", runs)


def test_label_at_last_prefers_a_run_that_is_not_refused() -> None:
    refused = [RunNames(one, "same", status="refused") for one in (NEWEST, MIDDLE)]
    assert chosen("same@last", refused) == RunMatch(NEWEST, exact=False)
    runs = [*refused, RunNames(OLDEST, "same", status="done")]
    assert chosen("same@last", runs) == RunMatch(OLDEST, exact=False)


def test_label_of_several_runs_lists_them_with_time_and_status() -> None:
    runs = [
        RunNames(NEWEST, "same", None, "2026-03-02T09:00:00Z", "running"),
        RunNames(MIDDLE, "same", None, "2026-03-01T09:00:00Z", "failed"),
    ]
    with pytest.raises(CommandFailed) as failure:
        chosen("same", runs)
    head, *candidates = failure.value.message.splitlines()
    assert 'or "same@last" for the newest' in head
    assert [" ".join(line.split()) for line in candidates] == [
        f"{NEWEST} 2026-03-02 09:00:00 running same",
        f"{MIDDLE} 2026-03-01 09:00:00 failed same",
    ]


ONE, OTHER = "agent:a:subagent:1", "agent:a:subagent:2"


@dataclass
class Listing:
    items: list[dict[str, Any]]
    more: bool


class Runs:
    """A server with these runs, the newest first, all with one label."""

    def __init__(self, *children: str, counts: int = 0) -> None:
        self._runs = [
            {"runId": f"00000000-0000-4000-8000-{number:012d}", "childSessionKey": child}
            | {"label": "reading", "agentId": "a", "stage": "announced"}
            for number, child in enumerate(children)
        ]
        self._counts = counts or len(self._runs)

    def items(self, _: str, query: dict[str, Any], *, limit: int) -> Listing:
        runs = self._runs if query.get("label") == "reading" else []
        return Listing(runs[:limit], self._counts > limit and bool(runs))


def found(*children: str, counts: int = 0) -> str:
    return find_run(Runs(*children, counts=counts), "reading").run_id  # type: ignore[arg-type]


@pytest.mark.parametrize("runs", [1, 10, 11, 200])
def test_the_newest_run_of_the_only_child_is_meant(runs: int) -> None:
    assert found(*([ONE] * runs)).endswith("-000000000000")


@pytest.mark.parametrize("runs", [1, 9, 10, 11, 200])
def test_another_child_behind_many_runs_of_one_is_not_overlooked(runs: int) -> None:
    with pytest.raises(CommandFailed):
        found(*([ONE] * runs), OTHER)


def test_what_cannot_be_looked_through_is_said() -> None:
    with pytest.raises(CommandFailed, match="give the full id"):
        found(*([ONE] * 20), counts=RUNS_SEARCHED_MAX + 1)


@pytest.mark.parametrize(("refused", "place"), [(0, 0), (1, 1), (10, 10), (200, 200)])
def test_newest_run_behind_refused_ones_is_found(refused: int, place: int) -> None:
    runs = Runs(*([ONE] * (refused + 1)))
    for run in runs._runs[:refused]:
        run["status"] = "refused"
    assert find_run(runs, "reading@last").run_id.endswith(f"-{place:012d}")  # type: ignore[arg-type]


@pytest.mark.parametrize("ago", ["-2h", "-5m", "-7d", "-90s", "2h", "2w"])
def test_diff_takes_times_ago_as_arguments(spawnlog: Command, api: RecordedApi, ago: str) -> None:
    page = {"fromPosition": 1, "toPosition": 1, "added": [], "removed": [], "changed": []}
    api.on("GET", "/v1/diff", Reply({**page, "nextCursor": None}))
    assert spawnlog("diff", "pos:1", ago).exit_code == 0
    assert api.asked[0].query["to"] == ago.removeprefix("-")
    assert spawnlog("diff", "-h").exit_code == 0
    assert spawnlog("diff", "pos:1", "pos:2", "--sesion", "main").exit_code == 2


@pytest.mark.parametrize("ago", ["-12h", "12h", "1d", "pos:7"])
def test_every_option_takes_the_same_moments(spawnlog: Command, api: RecordedApi, ago: str) -> None:
    api.on("GET", "/v1/runs", Reply({"items": [], "nextCursor": None}))
    assert spawnlog("run", "list", "--since", ago, "--until", ago, "--at", ago).exit_code == 0
    query = api.asked[0].query
    assert (query["since"], query["until"], query["at"]) == (ago, ago, ago)


@pytest.mark.parametrize(
    ("typed", "seconds"), [("10m", 600), ("90s", 90), ("600", 600), ("1d", 86_400), ("0", 0)]
)
def test_timeout_is_a_duration(
    spawnlog: Command, api: RecordedApi, typed: str, seconds: int
) -> None:
    api.on("POST", "/v1/spawns", Reply({"status": "accepted", "runId": "r"}, 202))
    assert spawnlog("spawn", "wait", "--timeout", typed).exit_code == 0
    assert api.asked[0].body["runTimeoutSeconds"] == seconds


@pytest.mark.parametrize("typed", ["-10m", "10 minutes", "0.5s", "ten"])
def test_timeout_that_is_no_duration_is_refused(
    spawnlog: Command, api: RecordedApi, typed: str
) -> None:
    told = spawnlog("spawn", "wait", "--timeout", typed)
    assert told.exit_code == 2
    assert api.asked == []


def test_what_if_lets_the_server_count_back_and_finds_its_run_by_name(
    spawnlog: Command, api: RecordedApi
) -> None:
    run_id = "11111111-0000-4000-8000-000000000001"
    totals = {"decisions": 0, "fromPosition": 1, "toPosition": 1, "byVerdict": {}}
    line = {"totals": {**totals, "byAgent": {}, "byRule": {}}}
    api.on("POST", "/v1/what-if", Reply(line, content_type="application/x-ndjson"))
    api.on("GET", "/v1/runs", Reply({"items": [{"runId": run_id, "label": "late"}]}))
    told = spawnlog("what-if", "--set", "/a=1", "--since", "2w", "--run", "late")
    assert told.exit_code == 0, told.output
    asked = next(one for one in api.asked if one.path == "/v1/what-if")
    assert asked.body["from"] == "2w"
    assert asked.body["filter"]["runId"] == run_id
