"""Given runs that were requested together: all of them would be created, or none."""

from itertools import product
from typing import Any

import pytest

from domain.run.facts import BatchFacts
from domain.what_if.batch import decide_batch_again
from domain.what_if.decide_again import DecidedAgain
from domain.what_if.record import RecordedDecision
from domain.what_if.verdict import SAME, Verdict, not_replayable
from tests.support.builders.decisions_again import Spawn, Values, but, limits
from tests.support.builders.script_receipts import candidate, receipt
from tests.support.builders.storytelling import run_id

ROUTER: Values = {"id": "router", "uri": "/scripts/router", "agentIdOverrideKey": "agent"}
SAGE = "like a sage"
WAYS = ("fit", "unfit")


def setting(writer: str = "fit", editor: str = "fit", **subagents: Any) -> Values:
    """Scripts name one of two agents; one that is unfit has a word for thinking that is none."""
    words = {"fit": "low", "unfit": SAGE}
    agents = [
        {"id": name, "subagents": {"thinking": words[way]}}
        for name, way in (("writer", writer), ("editor", editor))
    ]
    return limits(*agents, **{"contextScripts": {"run": [ROUTER]}, **subagents})


def member(number: int, of: int, agent_id: str) -> Spawn:
    """A task, for which a script names this agent."""
    ids = tuple(run_id(one) for one in range(1, of + 1))
    return Spawn(
        number=number,
        batch=BatchFacts(batch_id=run_id(500), index=number - 1, run_ids=ids),
        receipts=(receipt("router", "empty", exit_code=0, error=None, candidate=agent_id),),
        candidates=(candidate("router", agent_id),),
        override_to=agent_id,
    )


def batch(*agent_ids: str) -> list[Spawn]:
    """A task for each."""
    return [member(number, len(agent_ids), one) for number, one in enumerate(agent_ids, start=1)]


def lived(tasks: list[Spawn], values: Values) -> list[Spawn]:
    """The same as they are lived: the first that cannot be prepared refuses all others."""
    refused = [one.record(values).refused for one in tasks]
    first = next((at for at, one in enumerate(refused) if one is not None), None)
    if first is None or refused[first].step == "admission":  # type: ignore[union-attr]
        return tasks
    return [one if at == first else one.changed(refused_by="batch") for at, one in enumerate(tasks)]


def again(tasks: list[Spawn], then: Values, now: Values) -> list[Verdict]:
    """The verdicts of all of them."""
    members = [(one.record(then), one.again(then, now)) for one in lived(tasks, then)]
    return [one.verdict for one in decide_batch_again(members)]


def said(verdicts: list[Verdict]) -> list[tuple[str, str | None]]:
    """Verdicts and rules."""
    return [(one.verdict, one.rule) for one in verdicts]


BOTH = batch("writer", "editor")


@pytest.mark.parametrize(
    ("now", "rules"),
    [
        (setting(writer="unfit"), ["thinking", "batch"]),
        (setting(editor="unfit"), ["batch", "thinking"]),
        (setting(writer="unfit", editor="unfit"), ["thinking", "batch"]),
    ],
)
def test_one_that_cannot_be_prepared_now_refuses_the_others_whichever_it_is(
    now: Values, rules: list[str]
) -> None:
    assert said(again(BOTH, setting(), now)) == [("newly-refused", one) for one in rules]


def test_the_others_are_told_whose_fault_it_is() -> None:
    found = again(BOTH, setting(), setting(editor="unfit"))[0]
    assert found.text == (
        f"run {run_id(2)} of its batch would be refused, so none of them would be created"
    )
    assert found.difference is not None
    assert (found.difference.recorded, found.difference.decided) == (None, "batch")


def test_a_rule_of_admission_refuses_each_by_itself() -> None:
    found = again(BOTH, setting(), setting(maxChildrenPerAgent=1))
    assert said(found) == [("newly-refused", "active_children")] * 2
    assert found[0].text is not None
    assert found[0].text.endswith("(0/1): 2 tasks need 2 places")


def test_what_admission_refused_is_allowed_for_all() -> None:
    found = again(BOTH, setting(maxChildrenPerAgent=1), setting())
    assert said(found) == [("newly-allowed", "active_children")] * 2


def test_what_admission_refused_stays_refused_with_one_that_cannot_be_prepared() -> None:
    def without_scripts(**values: Any) -> Values:
        return setting(contextScripts={"run": []}, allowAgents=["*"], **values)

    tasks = [
        one.changed(agent_id=one.override_to, receipts=(), candidates=(), override_to=None)
        for one in BOTH
    ]
    found = again(tasks, without_scripts(maxChildrenPerAgent=1), without_scripts(writer="unfit"))
    assert said(found) == [("same", "thinking"), ("same", "batch")]
    assert found[1].difference is not None
    assert (found[1].difference.recorded, found[1].difference.decided) == (
        "active_children",
        "batch",
    )


def test_a_fault_that_is_mended_lets_all_of_them_pass_as_far_as_is_known() -> None:
    found = again(BOTH, setting(writer="unfit"), setting())
    assert said(found) == [("newly-allowed", "thinking"), ("newly-allowed", "batch")]
    assert found[1].assumed == (
        "it can be prepared itself: the others of its batch were looked at first",
    )
    assert "the others of its batch can be prepared" in found[0].assumed


def test_a_fault_that_stays_leaves_all_of_them_refused() -> None:
    assert again(BOTH, setting(writer="unfit"), setting(writer="unfit", thinking="low")) == [
        SAME,
        SAME,
    ]


def test_of_three_a_difference_of_one_is_its_own() -> None:
    slow = but(
        setting(),
        {
            "agents": {
                "list": [
                    {"id": "main"},
                    {"id": "writer", "subagents": {"thinking": "high"}},
                    {"id": "editor", "subagents": {"thinking": "low"}},
                ]
            }
        },
    )
    found = again(batch("writer", "editor", "writer"), setting(), slow)
    assert said(found) == [("different-plan", None), ("same", None), ("different-plan", None)]


@pytest.mark.parametrize("agent_ids", [*product(("writer", "editor"), repeat=3)])
@pytest.mark.parametrize("now", [*product(WAYS, repeat=2)])
def test_it_is_what_would_have_been_lived(agent_ids: tuple[str, ...], now: tuple[str, str]) -> None:
    tasks, values = batch(*agent_ids), setting(*now)
    found = again(tasks, setting(), values)
    really = [one.record(values).refused for one in lived(tasks, values)]
    assert [one.rule for one in found] == [one.rule if one is not None else None for one in really]


# One that cannot be decided.


def decided(*verdicts: Verdict, refused_by: tuple[str | None, ...] = ()) -> list[Verdict]:
    """As if each had been decided so by itself."""
    rules = refused_by or (None,) * len(verdicts)
    members: list[tuple[RecordedDecision, DecidedAgain]] = [
        (Spawn(number=at, refused_by=rule).record(limits()), DecidedAgain(one))
        for at, (rule, one) in enumerate(zip(rules, verdicts, strict=True), start=1)
    ]
    return [one.verdict for one in decide_batch_again(members)]


UNKNOWN = not_replayable("a text")
REFUSED = Verdict(verdict="newly-refused", rule="thinking")
OTHERS = not_replayable("another task of its batch, by which this one may be refused")


def test_one_that_nobody_knows_may_refuse_the_others() -> None:
    assert decided(SAME, UNKNOWN) == [OTHERS, UNKNOWN]
    assert decided(UNKNOWN, SAME, refused_by=("thinking", "batch")) == [UNKNOWN, OTHERS]


def test_one_that_is_refused_for_sure_refuses_also_what_nobody_knows() -> None:
    assert said(decided(UNKNOWN, REFUSED)) == [
        ("newly-refused", "batch"),
        ("newly-refused", "thinking"),
    ]


def test_one_alone_is_no_batch() -> None:
    assert decided(UNKNOWN) == [UNKNOWN]
    assert decided(SAME, refused_by=("batch",)) == [SAME]
