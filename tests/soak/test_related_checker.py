"""The checker finds every contradiction about runs that wait for others, and about batches."""

from dataclasses import replace

import pytest

from tests.soak.checker import check
from tests.support.builders.related_history import CONTRADICTIONS, related_history


def test_a_good_history_of_batches_and_waiting_runs_has_no_contradiction() -> None:
    assert check(related_history()) == {}


@pytest.mark.parametrize("seeded", CONTRADICTIONS)
def test_a_contradiction_about_related_runs_is_found(seeded: str) -> None:
    rule, mutation = CONTRADICTIONS[seeded]
    broken = check(mutation(related_history()))
    assert rule in broken, f"found only {broken}"


def test_each_answer_to_a_batch_may_name_another_of_its_runs() -> None:
    history = related_history()
    refused = next(one for one in history.calls if one.caller == "refused")
    answer = {"code": "idempotency_in_flight", "runId": "r2"}
    under_way = replace(refused, number=2, status=409, answer=answer)
    assert check(replace(history, calls=(*history.calls, under_way))) == {}
