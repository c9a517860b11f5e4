"""A label stands for a child only when all runs that have it are that child's."""

from dataclasses import dataclass
from typing import Any

import pytest

from infrastructure.inbound.command_line.client.find_run import RUNS_SEARCHED_MAX, find_run
from infrastructure.inbound.command_line.display.failures import CommandFailed

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
