"""The ledger of a storm finds nothing in a sound one, and every way in which a cap is not kept."""

from collections.abc import Callable
from typing import Any

import pytest

from world.fleet.cap_ledger import CapLedger

KEY = "agent:main:storm"
CAP = 2
Act = Callable[[CapLedger], object]


def admits(run: str, beside: int, *, cap: int = CAP, key: str = KEY) -> Act:
    counts = {"activeChildren": beside, "maxChildren": cap}
    return _event("ChildAdmitted", run, key, counts)


def releases(run: str) -> Act:
    return _event("ChildReleased", run, KEY, {})


def _event(kind: str, run: str, key: str, counts: dict[str, int]) -> Act:
    payload = {"runId": run, **counts}
    event = {"position": 1, "stream": f"session:{key}", "type": kind, "payload": payload}
    return lambda ledger: ledger.record(event)


def accepts(run: str) -> Act:
    return lambda ledger: ledger.hear(201, {"runId": run})


def refuses(run: str, **changes: Any) -> Act:
    told = {"rule": "active_children", "current": CAP, "limit": CAP, "runId": run, **changes}
    return lambda ledger: ledger.hear(403, told)


def answers(status: int) -> Act:
    return lambda ledger: ledger.hear(status, {})


def answers_a_message(code: str) -> Act:
    return lambda ledger: ledger.hear(409, {"code": code}, of_message=True)


def shows(children: int) -> Act:
    return lambda ledger: ledger.look({"activeChildren": children})


BEGINNING = (
    *(admits("a", 0), accepts("a"), admits("b", 1), shows(2), refuses("c"), answers(503)),
    answers_a_message("run_active"),
    lambda ledger: ledger.hear(202, {"status": "queued"}, of_message=True),
)
SOUND = (*BEGINNING, releases("a"), admits("d", 1), releases("b"), releases("d"))
BROKEN: dict[str, tuple[Act, ...]] = {
    "decided with 1 children, there were 2": (*BEGINNING, admits("d", 1)),
    "admits a child beside 2, the cap is 2": (*BEGINNING, admits("d", 2)),
    "decided with the cap 3, not 2": (admits("a", 0, cap=3), releases("a")),
    "an answer with 202": (*SOUND, answers(202)),
    "is of session:agent:main:STORM": (admits("a", 0, key="agent:main:STORM"), releases("a")),
    "admits a once more": (*SOUND, admits("a", 0), releases("a")),
    "releases a, which has no place": (*SOUND, releases("a")),
    "places were lost: ['b', 'd']": SOUND[:-2],
    "accepted and never admitted: ['e']": (*SOUND, accepts("e")),
    "refused and yet admitted: ['a']": (*SOUND, refuses("a")),
    "refused by ('active_children', 1, 2)": (*SOUND, refuses("e", current=1)),
    "refused by ('depth', 2, 2)": (*SOUND, refuses("e", rule="depth")),
    "an answer with 500": (*SOUND, answers(500)),
    "an answer with 409: {}": (*SOUND, answers(409)),
    "an answer with 409: {'code': 'session_closed'}": (
        *SOUND,
        answers_a_message("session_closed"),
    ),
    "a server shows 3 children, the cap is 2": (*SOUND, shows(3)),
}


def ledger_of(*acts: Act) -> CapLedger:
    """The ledger when all of it is over."""
    ledger = CapLedger(KEY, CAP)
    for act in acts:
        act(ledger)
    ledger.close()
    return ledger


def test_a_sound_storm_has_no_fault() -> None:
    ledger = ledger_of(*SOUND)
    assert ledger.faults == []
    assert (ledger.most, len(ledger.admitted), ledger.answers) == (2, 3, 5)


@pytest.mark.parametrize("fault", BROKEN)
def test_a_fault_is_found(fault: str) -> None:
    found = ledger_of(*BROKEN[fault]).faults
    assert any(fault in one for one in found), found
