"""`spawnlog event find`: it goes on by itself, and says what that took."""

import json
from typing import Any

from tests.support.servers.command_line import Command
from tests.support.servers.recorded_api import Asked, RecordedApi, Reply, problem

FIND = "/v1/events/find"
RUN = "11111111-0000-4000-8000-000000000001"


def breakpoint_at(position: int, **more: Any) -> dict[str, Any]:
    event = {"type": "RunStarted", "position": position, "configRevision": 2, "payload": {}}
    return {
        "position": position,
        "asOf": f"pos:{position}",
        "recordedAt": "2026-03-01T09:30:00Z",
        "runId": RUN,
        "sessionKey": None,
        "before": {"running": 6},
        "after": {"running": 7},
        "alreadyHeld": False,
        "event": event,
        **more,
    }


def answer(*items: dict[str, Any], cursor: str | None = None, **more: Any) -> Reply:
    return Reply(
        {
            "items": list(items),
            "method": "scan",
            "eventsRead": 100,
            "reads": 2,
            "fromPosition": 0,
            "toPosition": 900,
            "searchedTo": 400,
            "nextCursor": cursor,
            **more,
        }
    )


def test_the_first_one_is_shown_with_what_made_the_difference(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", FIND, answer(breakpoint_at(400), cursor="more"))
    result = spawnlog("event", "find", "--when", "running > 6", "--tree", "main", "--to", "pos:9")
    assert result.exit_code == 0
    assert api.asked[0].query == {
        "when": "running > 6",
        "tree": "main",
        "to": "pos:9",
        "limit": "1",
    }
    assert "pos:400" in result.stdout
    assert "running=6" in result.stdout
    assert "running=7" in result.stdout
    assert "run list --at pos:400" in result.stderr
    assert "by a scan of 100 events" in result.stderr


def test_it_goes_on_until_it_has_found_something_or_the_end_is_reached(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on("GET", FIND, answer(cursor="a"), answer(cursor="b"), answer(breakpoint_at(800)))
    result = spawnlog("event", "find", "--rule", "active-children", "-o", "json")
    assert [asked.query.get("cursor") for asked in api.asked] == [None, "a", "b"]
    assert {asked.query["rule"] for asked in api.asked} == {"active_children"}
    shown = json.loads(result.stdout)
    assert (shown["eventsRead"], shown["reads"], shown["more"]) == (300, 6, False)
    assert [item["position"] for item in shown["items"]] == [800]


def test_nothing_found_is_not_found(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", FIND, answer(cursor="a"), answer(method="bisection"))
    result = spawnlog("event", "find", "--field", "outcome", "--becomes", "error")
    assert result.exit_code == 4
    assert result.stdout == ""
    assert "nothing found up to pos:900; by bisection, with 4 reads" in result.stderr
    assert api.asked[0].query == {"field": "outcome", "becomes": "error", "limit": "1"}


def test_the_last_one_is_that_behind_which_there_is_no_other(
    spawnlog: Command, api: RecordedApi
) -> None:
    api.on(
        "GET",
        FIND,
        answer(breakpoint_at(1), breakpoint_at(2), cursor="a"),
        answer(breakpoint_at(3), cursor="b"),
        answer(),
    )
    result = spawnlog("event", "find", "--type", "RunEnded", "--last", "-o", "jsonl")
    assert [json.loads(line)["position"] for line in result.stdout.splitlines()] == [3]
    assert api.asked[0].query["limit"] == "100"


def test_several_are_a_table_of_as_many_pages_as_it_takes(
    spawnlog: Command, api: RecordedApi
) -> None:
    def page(asked: Asked) -> Reply:
        start = int(asked.query.get("cursor", 0))
        size = int(asked.query["limit"])
        found = [breakpoint_at(start + place + 1) for place in range(size)]
        return answer(*found, cursor=str(start + size))

    api.on("GET", FIND, page)
    result = spawnlog("event", "find", "--field", "stage", "--changes", "--limit", "150")
    assert [asked.query["limit"] for asked in api.asked] == ["100", "50"]
    assert api.asked[0].query["changes"] == "true"
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["POSITION", "TIME", "RUN", "EVENT", "BEFORE", "AFTER"]
    assert len(lines) == 151


def test_a_mistake_is_said_in_the_words_of_the_server(spawnlog: Command, api: RecordedApi) -> None:
    detail = "/query/when: column 10: a number is expected"
    api.on("GET", FIND, problem(422, code="invalid_request", detail=detail))
    result = spawnlog("event", "find", "--when", "running >")
    assert result.exit_code == 2
    assert "column 10" in result.stderr
    assert spawnlog("event", "find", "--type", "A,B").exit_code == 2
    assert spawnlog("event", "find", "--when", "x", "--last", "--limit", "2").exit_code == 2


def test_an_answer_that_is_none_is_an_error(spawnlog: Command, api: RecordedApi) -> None:
    api.on("GET", FIND, Reply({"items": "none"}))
    assert spawnlog("event", "find", "--when", "running > 1").exit_code == 2


def test_what_is_left_out_is_named_by_its_option(spawnlog: Command, api: RecordedApi) -> None:
    nothing = spawnlog("event", "find")
    assert nothing.exit_code == 2
    assert "--when CONDITION, --field NAME, --type TYPE or --rule RULE" in nothing.stderr
    half = spawnlog("event", "find", "--field", "outcome")
    assert half.exit_code == 2
    assert "--becomes VALUE, or --changes" in half.stderr
    assert api.asked == []
