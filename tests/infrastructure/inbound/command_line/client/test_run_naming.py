"""Which run a person means."""

import pytest

from infrastructure.inbound.command_line.client.find_run import (
    RunMatch,
    RunNames,
    choose_run,
    parse_run_name,
)
from infrastructure.inbound.command_line.display.failures import CommandFailed, NotFound

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
