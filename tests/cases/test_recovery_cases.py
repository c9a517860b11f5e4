"""Cases of recovery: runs that a second server takes over."""

from collections.abc import Mapping
from uuid import uuid4

import pytest

from domain.run.commands import ClaimRun
from domain.spawn.cascade import CascadeState, UnknownRun, decide
from domain.values.refusals import LostClaim, WrongStage
from tests.support.builders import run_commands as ask
from tests.support.cases.cases import Answer, Case, Given, Runner, cases_of
from tests.support.cases.comparison import hold
from tests.support.cases.families import CaseFamily

LOST, SECOND = "server-1", "server-2"


class TakeOvers:
    """Runs that a server claimed and did not start, and a server that looks at them."""

    def __init__(self) -> None:
        self.family = CaseFamily()
        self.recovered = 0
        self.skipped = 0

    def claimed(self, name: str) -> int:
        """Claim a run. Return its epoch."""
        self.family.spawn(name)
        self.family.create(name)
        self.family.tell(name, ask.claim(holder=LOST))
        return self.family.run(name).epoch

    def attempt(self, name: str | None, lost_epoch: int | None) -> None:
        """Try to take a run over; the epoch is that of a lost holder, or None while it lives."""
        command = ask.claim(holder=SECOND, lost_epoch=lost_epoch)
        try:
            self._tell(name, command)
        except (LostClaim, WrongStage, UnknownRun):
            self.skipped += 1
        else:
            self.recovered += 1

    def _tell(self, name: str | None, command: ClaimRun) -> None:
        if name is None:
            decide(CascadeState({}, {}), uuid4(), command)
        else:
            self.family.tell(name, command)

    def answer(self) -> Answer:
        """Return the number of takeovers."""
        return {"recovered": self.recovered, "skipped": self.skipped}


def recovered(given: Given) -> Answer:
    """Take over runs that their holder had claimed and not started, where the cases execute a run
    again.

    A run qualifies if it is recorded, has not ended, and its holder is gone (`aborted`). One server
    takes it, under a new attempt.
    """
    servers = TakeOvers()
    if "runs" in given:
        # Two runs of one session are two servers that look at the one run it has.
        (child,) = {run.partition(" child ")[2] for run in given["runs"]}
        epoch = servers.claimed(child)
        for _ in given["runs"]:
            servers.attempt(child, epoch)
    elif given.keys() == {"run"}:
        return _after_one(servers, given["run"]["runId"])
    elif "entry" in given:
        _one_entry(servers, given)
    else:
        for name, how in given.items():
            epoch = servers.claimed(name)
            servers.attempt(name, epoch if how == "aborted" else None)
    return servers.answer()


def _one_entry(servers: TakeOvers, given: Given) -> None:
    entry = given["entry"]
    if entry is None:
        servers.attempt(None, 1)
        return
    epoch = servers.claimed("a")
    if "run" in given:
        servers.family.tell("a", ask.start(epoch))
        servers.family.end("a")
    servers.attempt("a", epoch if entry["abortedLastRun"] else None)


def _after_one(servers: TakeOvers, name: str) -> Answer:
    servers.attempt(name, servers.claimed(name))
    run = servers.family.run(name)
    again = {"automaticAttempts": run.attempt - 1, "lastRunId": servers.family.names[run.run_id]}
    return {"abortedLastRun": run.holder == LOST, "subagentRecovery": again}


RUNNERS: Mapping[str, Runner] = {"recovery.orphan": recovered}


@pytest.mark.parametrize("case", cases_of(RUNNERS))
def test_a_run_is_taken_over_as_the_case_says(case: Case) -> None:
    hold(RUNNERS[case.area](case.given), case)
