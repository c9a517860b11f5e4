"""Every case is run once, or listed with its reason; and each run really compares."""

import hashlib
import json
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.support.cases.cases import BY_A_SERVER, CASES, NOT_RUN, UNREAD, Answer, Case, NotRun
from tests.support.cases.comparison import Differs, falsified, hold
from tests.support.cases.modules import CaseModule, case_modules

ROOT = Path(__file__).parents[2]
MODULES = case_modules()
RUNS = [(case, module) for module in MODULES for case in module.cases]

# Hash of all cases, independent of their files. A case is never changed; if spawnlog differs from
# its expectation, name it in the list instead.
TAKEN = "7905425fe5693e69cd7badb732c899e135d50e00340d0ee2148efc3b4dcdeac6"


def test_the_cases_are_as_they_were_taken() -> None:
    plain = [asdict(case) for case in sorted(CASES, key=str)]
    text = json.dumps(plain, sort_keys=True, ensure_ascii=False)
    assert hashlib.sha256(text.encode()).hexdigest() == TAKEN


def test_no_two_cases_are_called_the_same() -> None:
    assert [name for name, count in Counter(map(str, CASES)).items() if count > 1] == []
    assert len(CASES) == 283


def test_every_case_is_run_by_one_module_or_listed_and_never_both() -> None:
    places = Counter(str(case) for case, _ in RUNS) + Counter(map(str, NOT_RUN))
    assert {str(case): places[str(case)] for case in CASES if places[str(case)] != 1} == {}
    assert places.keys() - set(map(str, CASES)) == set(), "no such case"


def test_no_module_has_a_runner_for_nothing() -> None:
    for module in MODULES:
        assert set(module.runners) == {case.area for case in module.cases}, module.path


@pytest.mark.parametrize("listed", NOT_RUN, ids=str)
def test_what_is_not_run_has_a_reason(listed: NotRun) -> None:
    assert re.fullmatch(r"[A-Z`a-z].{20,}\.", listed.reason), listed.reason
    match listed.because:
        case "decided otherwise":
            assert listed.decided_in
            for number in listed.decided_in:
                assert list((ROOT / "docs" / "adr").glob(f"{number}-*.md")), number
        case "later":
            assert listed.comes_with
        case _:
            assert listed.because == "another subsystem"
    assert bool(listed.decided_in) == (listed.because == "decided otherwise")
    assert bool(listed.comes_with) == (listed.because == "later")


def test_what_is_not_compared_is_expected_and_not_answered() -> None:
    runs = {str(case): (case, module) for case, module in RUNS}
    for leaf in UNREAD:
        case, module = runs[leaf.case]
        answer = module.runners[case.area](case.given)
        *above, name = leaf.leaf.split(".")
        expected, answered = case.expect, answer
        for step in above:
            expected, answered = expected[step], answered[step]
        assert name in expected, leaf
        assert name not in answered, f"{leaf} is answered: compare it"


@pytest.mark.parametrize(
    ("case", "module"),
    [
        pytest.param(
            case,
            module,
            id=str(case),
            marks=[pytest.mark.server] if str(case) in BY_A_SERVER else [],
        )
        for case, module in RUNS
    ],
)
def test_a_wrong_expectation_fails(case: Case, module: CaseModule) -> None:
    answer = module.runners[case.area](case.given)
    hold(answer, case)
    wrong = list(falsified(case, answer))
    assert wrong, "nothing of it is compared"
    assert [leaf for leaf, expectation in wrong if holds(answer, expectation)] == []


def holds(answer: Answer, case: Case) -> bool:
    try:
        hold(answer, case)
    except Differs:
        return False
    return True


def test_page_of_differences_counts_the_cases() -> None:
    page = (ROOT / "docs" / "openclaw-differences.md").read_text("utf-8")
    _, _, tested = page.partition("## How this is tested")
    reasons = Counter(case.because for case in NOT_RUN)
    counts = [len(CASES), len(RUNS), len(NOT_RUN)]
    counts += [reasons[name] for name in ("decided otherwise", "another subsystem", "later")]
    assert [int(number) for number in re.findall(r"\b\d+\b", tested)] == counts
