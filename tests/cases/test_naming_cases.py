"""By what a run is called."""

from collections.abc import Mapping

import pytest

from domain.delivery.announcement import display_name
from infrastructure.inbound.command_line.client.find_run import RunNames, choose_run, parse_run_name
from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import hold

NEWEST, OLDER = RunNames("newest"), RunNames("older")


def named(given: Given) -> Answer:
    """The run that a name means on the command line, and how a run is called among others."""
    if "label" in given:
        key = "agent:main:subagent:x"
        return {"shown": display_name(given["label"], given["task"], key)}
    name = parse_run_name(given["token"])
    if "runs" not in given:
        return {"picks": choose_run(name, [NEWEST, OLDER]).run_id}
    runs = [RunNames(run["runId"], run["label"]) for run in given["runs"]]
    return {"runId": choose_run(name, runs).run_id}


RUNNERS: Mapping[str, Runner] = {"targets": named}


@pytest.mark.parametrize("case", cases_of(RUNNERS))
def test_a_run_is_found_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
