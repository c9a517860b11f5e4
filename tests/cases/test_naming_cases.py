"""By what a run is called."""

from collections.abc import Mapping

import pytest

from domain.announcement import shown_name
from infrastructure.inbound.command_line.naming import Named, choose, parse
from tests.support.case_comparison import hold
from tests.support.cases import Answer, Case, Given, Runner, cases_of

NEWEST, OLDER = Named("newest"), Named("older")


def named(given: Given) -> Answer:
    """The run that a name means on the command line, and how a run is called among others."""
    if "label" in given:
        key = "agent:main:subagent:x"
        return {"shown": shown_name(given["label"], given["task"], key)}
    name = parse(given["token"])
    if "runs" not in given:
        return {"picks": choose(name, [NEWEST, OLDER]).run_id}
    runs = [Named(run["runId"], run["label"]) for run in given["runs"]]
    return {"runId": choose(name, runs).run_id}


RUNNERS: Mapping[str, Runner] = {"targets": named}


@pytest.mark.parametrize("case", cases_of(RUNNERS))
def test_a_run_is_found_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
