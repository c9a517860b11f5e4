"""What-if for consecutive decisions: batches, and the runs that would count."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.run.facts import BatchFacts, Dependency, RespawnFacts
from domain.values.shared_values import SharedChange, SharedContextRequest, SharedKey
from domain.what_if import cascade
from domain.what_if.batch import decide_batch_again
from domain.what_if.cascade import Cascade, CascadeTooLargeError, CountRange
from domain.what_if.decide_again import AS_RECORDED, DecidedAgain, HypotheticalSession
from domain.what_if.record import RecordedDecision
from domain.what_if.verdict import SAME, Verdict, not_replayable
from tests.support.builders import run_histories as past
from tests.support.builders.decisions_again import Sent, Spawn, Values, below, but, limits
from tests.support.builders.facts import fact_of
from tests.support.builders.script_receipts import candidate, receipt
from tests.support.builders.storytelling import CHILD, ROOT, plan, ref, run_id

# Given runs that were requested together: all of them would be created, or none.

ROUTER: Values = {"id": "router", "uri": "/scripts/router", "agentIdOverrideKey": "agent"}
SAGE = "like a sage"
WAYS = ("fit", "unfit")


def setting(writer: str = "fit", editor: str = "fit", **subagents: Any) -> Values:
    """Return a file whose scripts propose one of two agents; an unfit one has an invalid thinking
    level.
    """
    words = {"fit": "low", "unfit": SAGE}
    agents = [
        {"id": name, "subagents": {"thinking": words[way]}}
        for name, way in (("writer", writer), ("editor", editor))
    ]
    return limits(*agents, **{"contextScripts": {"run": [ROUTER]}, **subagents})


def member(number: int, of: int, agent_id: str) -> Spawn:
    """Return a task of a batch whose script proposes this agent."""
    ids = tuple(run_id(number) for number in range(1, of + 1))
    return Spawn(
        number=number,
        batch=BatchFacts(batch_id=run_id(500), index=number - 1, run_ids=ids),
        receipts=(receipt("router", "empty", exit_code=0, error=None, candidate=agent_id),),
        candidates=(candidate("router", agent_id),),
        override_to=agent_id,
    )


def batch(*agent_ids: str) -> list[Spawn]:
    """Return one task per agent."""
    return [
        member(number, len(agent_ids), agent_id)
        for number, agent_id in enumerate(agent_ids, start=1)
    ]


def lived(tasks: list[Spawn], values: Values) -> list[Spawn]:
    """Return the tasks as recorded: the first that cannot be prepared refuses all others."""
    refused = [task.record(values).refused for task in tasks]
    first = next((at for at, refusal in enumerate(refused) if refusal is not None), None)
    if first is None or refused[first].step == "admission":  # type: ignore[union-attr]
        return tasks
    return [
        task if at == first else task.changed(refused_by="batch") for at, task in enumerate(tasks)
    ]


def again(tasks: list[Spawn], then: Values, now: Values) -> list[Verdict]:
    """Return the verdicts of all tasks."""
    members = [(item.record(then), item.again(then, now)) for item in lived(tasks, then)]
    return [verdict_line.verdict for verdict_line in decide_batch_again(members)]


def said(verdicts: list[Verdict]) -> list[tuple[str, str | None]]:
    """Return verdicts and rules."""
    return [(verdict_line.verdict, verdict_line.rule) for verdict_line in verdicts]


BOTH = batch("writer", "editor")


def test_others_are_told_whose_fault_it_is() -> None:
    found = again(BOTH, setting(), setting(editor="unfit"))[0]
    assert found.text == (
        f"run {run_id(2)} of its batch would be refused, so none of them would be created"
    )
    assert found.difference is not None
    assert (found.difference.recorded, found.difference.decided) == (None, "batch")


def test_rule_of_admission_refuses_each_by_itself() -> None:
    found = again(BOTH, setting(), setting(maxChildrenPerAgent=1))
    assert said(found) == [("newly-refused", "active_children")] * 2
    assert found[0].text is not None
    assert found[0].text.endswith("(0/1): 2 tasks need 2 places")


def test_admission_refusal_stays_if_one_task_is_unfit() -> None:
    def without_scripts(**values: Any) -> Values:
        return setting(contextScripts={"run": []}, allowAgents=["*"], **values)

    tasks = [
        item.changed(agent_id=item.override_to, receipts=(), candidates=(), override_to=None)
        for item in BOTH
    ]
    found = again(tasks, without_scripts(maxChildrenPerAgent=1), without_scripts(writer="unfit"))
    assert said(found) == [("same", "thinking"), ("same", "batch")]
    assert found[1].difference is not None
    assert (found[1].difference.recorded, found[1].difference.decided) == (
        "active_children",
        "batch",
    )


def test_mended_task_allows_the_whole_batch() -> None:
    found = again(BOTH, setting(writer="unfit"), setting())
    assert said(found) == [("newly-allowed", "thinking"), ("newly-allowed", "batch")]
    assert found[1].assumed == (
        "its own preparation: the other tasks of its batch were checked first",
    )
    assert "the other tasks of its batch can be prepared" in found[0].assumed


def test_unmended_task_leaves_the_batch_refused() -> None:
    faulty = setting(writer="unfit"), setting(writer="unfit", thinking="low")
    assert again(BOTH, *faulty) == [SAME, SAME]


@pytest.mark.parametrize("agent_ids", [*product(("writer", "editor"), repeat=3)])
@pytest.mark.parametrize("now", [*product(WAYS, repeat=2)])
def test_it_is_what_would_have_been_lived(agent_ids: tuple[str, ...], now: tuple[str, str]) -> None:
    tasks, values = batch(*agent_ids), setting(*now)
    found = again(tasks, setting(), values)
    really = [item.record(values).refused for item in lived(tasks, values)]
    assert [item.rule for item in found] == [
        item.rule if item is not None else None for item in really
    ]


# A decision that cannot be replayed.


def decided(*verdicts: Verdict, refused_by: tuple[str | None, ...] = ()) -> list[Verdict]:
    """Return the verdicts as if each was decided alone."""
    rules = refused_by or (None,) * len(verdicts)
    members: list[tuple[RecordedDecision, DecidedAgain]] = [
        (Spawn(number=at, refused_by=rule).record(limits()), DecidedAgain(verdict))
        for at, (rule, verdict) in enumerate(zip(rules, verdicts, strict=True), start=1)
    ]
    return [verdict_line.verdict for verdict_line in decide_batch_again(members)]


UNKNOWN = not_replayable("a text")
REFUSED = Verdict(verdict="newly-refused", rule="thinking")
OTHERS = not_replayable("another task of its batch, whose refusal would refuse this one")


def test_one_that_nobody_knows_may_refuse_the_others() -> None:
    assert decided(SAME, UNKNOWN) == [OTHERS, UNKNOWN]
    assert decided(UNKNOWN, SAME, refused_by=("thinking", "batch")) == [UNKNOWN, OTHERS]


def test_refused_task_refuses_unknown_ones() -> None:
    assert said(decided(UNKNOWN, REFUSED)) == [
        ("newly-refused", "batch"),
        ("newly-refused", "thinking"),
    ]


def test_one_alone_is_no_batch() -> None:
    assert decided(UNKNOWN) == [UNKNOWN]
    assert decided(SAME, refused_by=("batch",)) == [SAME]


# Cascades: children counted or not by a cap, and requests of runs that would not have started.

BASE = limits("writer", allowAgents=["*"], maxSpawnDepth=2)
STRICT = limits("writer", allowAgents=["main"], maxSpawnDepth=2)
FEW = {"agents": {"defaults": {"subagents": {"maxChildrenPerAgent": 1}}}}


def child(number: int, agent_id: str | None = "writer", **values: Any) -> Spawn:
    """Return a spawn of a root session."""
    return Spawn(number=number, agent_id=agent_id, **values)


def noted(counts: Cascade, spawn: Spawn, then: Values, now: Values) -> DecidedAgain:
    """Replay a decision and apply it to the cascade."""
    decided = spawn.again(then, now, decide=counts.decide)
    counts.note(spawn.record(then), decided)
    return decided


def newly_allowed(number: int) -> str:
    """Return the unknown fact about a newly allowed run."""
    return f"how long run {run_id(number)}, newly allowed, would have run"


def undecided(number: int) -> str:
    """Return the unknown fact about a run that cannot be replayed."""
    return f"whether run {run_id(number)}, which cannot be decided again, would have run"


def following(spawns: Iterable[Spawn], then: Values, now: Values) -> Cascade:
    """Return the cascade after these decisions."""
    counts = Cascade()
    for request in spawns:
        noted(counts, request, then, now)
    return counts


def test_newly_refused_run_is_not_counted_until_released() -> None:
    counts = following([child(1), child(2)], BASE, STRICT)
    assert counts.active_children(ROOT, 3) == CountRange(1, 1)
    counts.release(ROOT, run_id(1))
    assert counts.active_children(ROOT, 2) == CountRange(1, 1)
    counts.release(ROOT, run_id(2))
    assert counts.active_children(ROOT, 1) == CountRange(1, 1)


def test_both_are_reckoned_together() -> None:
    counts = following([child(1)], BASE, STRICT)
    noted(counts, child(2), STRICT, BASE)
    assert counts.active_children(ROOT, 3) == CountRange(2, 3, (newly_allowed(2),))


UNDECIDED = DecidedAgain(not_replayable("something"))


def test_undecided_run_may_have_been_active() -> None:
    counts = Cascade()
    counts.note(child(1).record(BASE), UNDECIDED)
    counts.note(child(2).record(STRICT), UNDECIDED)
    assert counts.active_children(ROOT, 3) == CountRange(2, 4, (undecided(1),))
    counts.release(ROOT, run_id(1))
    assert counts.active_children(ROOT, 2) == CountRange(2, 3, (undecided(2),))
    below_it = Spawn(number=3, requester=below(run_id=run_id(1)))
    assert noted(counts, below_it, BASE, BASE).verdict.missing == (undecided(1),)
    assert noted(counts, child(4), BASE, BASE).verdict == SAME


NEVER_ASKED = "it would not have been requested: run {}, from which it originates, would be refused"


@pytest.mark.parametrize(
    ("spawn", "above"),
    [
        (child(2, requester=below(run_id=run_id(1))), 1),
        (child(3), None),
        # The message is to the session of run 1.
        (Sent(agent_id="writer", number=5), 1),
    ],
)
def test_request_of_refused_run_is_refused(spawn: Spawn, above: int | None) -> None:
    counts = following([child(1)], BASE, STRICT)
    found = noted(counts, spawn, BASE, BASE).verdict
    text = NEVER_ASKED.format(run_id(above)) if above is not None else None
    assert found == (Verdict(verdict="newly-refused", text=text) if text is not None else SAME)


def test_spawn_refused_either_way_is_same_below_undecided_run() -> None:
    counts = Cascade()
    counts.note(child(1).record(BASE), UNDECIDED)
    request = child(2, requester=below(run_id=run_id(1)), active_children=5)
    assert noted(counts, request, BASE, BASE).verdict == SAME


def test_refusal_with_unknown_count_says_no_number() -> None:
    full = but(BASE, FEW)
    counts = following([child(1, active_children=1)], full, BASE)
    wide = but(BASE, {"agents": {"defaults": {"subagents": {"maxChildrenPerAgent": 9}}}})
    found = noted(counts, child(2, active_children=6), wide, full).verdict
    assert (found.verdict, found.rule, found.text) == ("newly-refused", "active_children", None)


def test_refused_request_of_refused_run_is_same() -> None:
    counts = following([child(1)], BASE, STRICT)
    request = child(2, requester=below(run_id=run_id(1)), active_children=5)
    assert noted(counts, request, BASE, BASE).verdict == SAME


# The requester's plan.

ASKS = below(run_id=run_id(1))
SLOW = but(BASE, {"agents": {"defaults": {"subagents": {"thinking": "low"}}}})


def test_requester_has_the_plan_of_now() -> None:
    counts = following([child(1)], BASE, SLOW)
    plan = counts.session(CHILD).plan
    assert plan is not None
    assert plan.thinking == "low"
    below_it = child(2, agent_id=None, requester={**ASKS, "thinking": None})
    decided = below_it.again(
        BASE,
        but(SLOW, {"agents": {"defaults": {"subagents": {"thinking": None}}}}),
        requester_now=counts.session(CHILD),
    )
    assert decided.planned is not None
    assert decided.planned.plan.thinking == "low"


def test_requester_has_the_tools_of_now() -> None:
    denied = but(BASE, {"tools": {"subagents": {"tools": {"deny": ["sessions_spawn"]}}}})
    counts = Cascade()
    plan = noted(counts, child(1), BASE, denied).planned
    recorded = child(1).record(BASE).created
    assert plan is not None
    assert recorded is not None
    asks = child(2, agent_id=None, requester=ASKS, own_plan=recorded.plan)
    found = noted(counts, asks, BASE, denied).verdict
    assert (found.verdict, found.rule) == ("newly-refused", "tools")
    alone = asks.again(BASE, denied).verdict
    assert alone.verdict == "different-plan"


def test_request_without_recorded_tools_is_not_judged_by_them() -> None:
    denied = plan(tools_deny=("sessions_spawn",))
    asks = child(2, agent_id=None, requester=ASKS)
    assert asks.again(BASE, BASE, requester_now=HypotheticalSession(plan=denied)).verdict == SAME


def test_leaf_either_way_is_not_remembered() -> None:
    flat = limits("writer", allowAgents=["*"], maxSpawnDepth=1)
    slow = but(flat, {"agents": {"defaults": {"subagents": {"thinking": "low"}}}})
    assert following([child(1)], flat, slow).session(CHILD) == AS_RECORDED


# The session that a message goes to.


SAID = '{"agent": "writer"}'


def routing(key: str | None) -> Values:
    """Return a file in which a script may propose another agent under this key."""
    script = {**ROUTER, "agentIdOverrideKey": key}
    listed = [{"id": "main", "subagents": {"contextScripts": {"run": [script]}}}, {"id": "writer"}]
    return but(BASE, {"agents": {"list": listed}})


def routed() -> Spawn:
    """Return a spawn whose script proposes the agent `writer`, if its output is read."""
    printed = receipt("router", "empty", output=ref(SAID), exit_code=0, error=None)
    request = child(1, agent_id=None, receipts=(printed,))
    request.texts.keep(SAID)
    return request


def test_message_goes_to_the_overridden_agent() -> None:
    then, now = routing(None), routing("agent")
    counts = Cascade()
    assert noted(counts, routed(), then, now).verdict.verdict == "different-agent"
    assert counts.session(CHILD).agent_id == "writer"
    crowded = Sent(agent_id="main", number=2, active_children=3)
    assert noted(counts, crowded, then, but(now, FEW)).verdict.verdict == "newly-refused"
    for number in (3, 4):
        found = noted(counts, Sent(agent_id="main", number=number), then, now).verdict
        assert found.verdict == "different-agent"
        assert found.difference is not None
        assert (found.difference.recorded, found.difference.decided) == ("main", "writer")
    slower = but(now, {"agents": {"list": [now["agents"]["list"][0]]}})
    gone = noted(counts, Sent(agent_id="main", number=5), then, slower).verdict
    assert (gone.verdict, gone.rule) == ("newly-refused", "agent_unknown")


def test_overridden_requester_may_not_request() -> None:
    counts = following([routed()], routing(None), routing("agent"))
    request = child(2, agent_id=None, requester=ASKS)
    assert noted(counts, request, routing(None), routing("agent")).verdict.missing == (
        'whether agent "writer", instead of its requester, would request it',
    )


def test_undecided_spawn_restores_its_recorded_session() -> None:
    counts = following([child(1)], BASE, SLOW)
    assert counts.session(CHILD).plan is not None
    counts.note(child(1).record(BASE), UNDECIDED)
    assert counts.session(CHILD) == AS_RECORDED


# The folder that is inherited.


def test_child_works_in_its_requesters_folder_of_now() -> None:
    def working(folder: str) -> Values:
        listed = [{"id": "main"}, {"id": "writer", "workspace": folder}]
        return but(BASE, {"agents": {"list": listed}})

    then, now = working("/srv/here"), working("/srv/there")
    counts = Cascade()
    first = noted(counts, child(1), then, now).verdict
    assert first.difference is not None
    assert first.difference.field == "/workspaceDir"
    asks = {**ASKS, "agent_id": "writer", "workspace_dir": "/srv/here"}
    own = child(2, agent_id=None, requester=asks)
    assert own.again(then, now).verdict == SAME
    found = noted(counts, own, then, now).verdict
    assert found.difference is not None
    assert (found.verdict, found.difference.field) == ("different-plan", "/workspaceDir")
    assert (found.difference.recorded, found.difference.decided) == ("/srv/here", "/srv/there")
    sent = noted(counts, Sent(agent_id="writer", number=3), then, now).verdict
    assert (sent.verdict, sent.difference) == ("different-plan", found.difference)
    named = child(5, agent_id=None, requester=asks, folder=True)
    assert noted(counts, named, then, now).verdict.missing == (
        "the workspace: whether the requested folder is below its requester's is not recorded",
    )
    fourth = child(4, agent_id="main", requester=asks)
    assert noted(counts, fourth, then, now).verdict == SAME


# The runs that others name.


def naming(number: int, via: str, name: str = "a", **values: Any) -> Spawn:
    """Return a spawn that depends on run 1 by its label."""
    run = fact_of(Dependency, {"run_id": run_id(1), "name": name, "via": via})
    return child(number, agent_id=None, changes={"dependencies": (run,)}, **values)


LABELLED = child(1, changes={"label": "a"})


@pytest.mark.parametrize(
    ("via", "rule"), [("dependsOn", "dependency_unknown"), ("reference", "reference_unknown")]
)
def test_name_of_refused_run_is_unknown(via: str, rule: str) -> None:
    counts = following([LABELLED], BASE, STRICT)
    found = noted(counts, naming(2, via), BASE, STRICT).verdict
    assert (found.verdict, found.rule) == ("newly-refused", rule)
    assert str(run_id(1)) in str(found.text)


def test_id_of_refused_run_is_a_failed_dependency() -> None:
    counts = following([LABELLED], BASE, STRICT)
    found = noted(counts, naming(2, "dependsOn", str(run_id(1))), BASE, STRICT).verdict
    assert (found.verdict, found.rule) == ("newly-refused", "dependency_failed")


def test_id_of_unrequested_run_names_nothing() -> None:
    counts = following([child(1)], BASE, STRICT)
    noted(counts, child(2, requester=below(run_id=run_id(1))), BASE, STRICT)
    run = Dependency(run_id=run_id(2), name=str(run_id(2)), via="dependsOn")
    last = child(3, agent_id=None, changes={"dependencies": (run,)})
    assert noted(counts, last, BASE, STRICT).verdict.rule == "dependency_unknown"


def test_spawn_in_preparation_is_refused_with_its_run() -> None:
    counts = following([LABELLED], BASE, STRICT)
    request = naming(2, "dependsOn", is_ready=False)
    found = request.again(BASE, BASE, decide=counts.decide, is_unaffected=True).verdict
    assert (found.verdict, found.rule) == ("newly-refused", "dependency_unknown")
    assert request.again(BASE, BASE, decide=Cascade().decide, is_unaffected=True).verdict == SAME


def test_name_may_mean_another_run_instead() -> None:
    counts = following([LABELLED], BASE, STRICT)
    record = naming(2, "dependsOn").record(BASE)
    second_names = counts.names(record, {"a": [run_id(1), run_id(7)]})
    assert second_names.unknown == (
        f"which run dependsOn names instead of run {run_id(1)}, which would not exist",
    )
    assert counts.names(record, {"a": [run_id(1)]}).unknown == ()
    assert naming(2, "dependsOn").again(BASE, STRICT, names=second_names).verdict == not_replayable(
        *second_names.unknown
    )


def test_name_may_mean_a_newly_allowed_run() -> None:
    counts = following([child(9, changes={"label": "abc"})], STRICT, BASE)
    for via, name, is_meant in [
        ("dependsOn", "abc", True),
        ("dependsOn", "ab", False),
        ("reference", "ab", True),
        ("reference", "x", False),
    ]:
        found = counts.names(naming(2, via, name).record(BASE), {}).unknown
        assert (found != ()) == is_meant, (via, name)
    refused = child(3, refused_by="dependency_unknown", step="admission")
    unknown = noted(counts, refused, BASE, BASE).verdict
    assert unknown.missing == (f"whether it names run {run_id(9)}, which may exist now",)


def test_reference_may_mean_any_of_too_many_new_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cascade, "LABELS_COMPARED_MAX", 1)
    counts = following([child(9, changes={"label": "abc"})], STRICT, BASE)
    record = naming(2, "reference", "x").record(BASE)
    assert counts.names(record, {}).unknown == ()
    noted(counts, child(10, changes={"label": "abd"}), STRICT, BASE)
    assert counts.names(record, {}).unknown == (
        f"which run sharedContext.$x names: run {run_id(9)} may exist now",
    )


@pytest.mark.parametrize("rule", ["dependency_ambiguous", "reference_ambiguous", "shared_context"])
def test_ambiguity_may_end_without_a_refused_run(rule: str) -> None:
    counts = following([LABELLED], BASE, STRICT)
    refused = child(3, agent_id=None, refused_by=rule, step="admission")
    assert noted(counts, refused, BASE, STRICT).verdict.missing == (
        f"whether it is refused without run {run_id(1)}, which may not exist now",
    )
    assert noted(Cascade(), refused, BASE, STRICT).verdict == SAME


def test_name_of_refused_run_is_unknown_once_allowed() -> None:
    full = but(BASE, FEW)
    counts = following([child(1, active_children=1)], full, BASE)
    waits = {"refused_by": "dependency_failed", "step": "admission"}
    found = noted(counts, naming(2, "dependsOn", str(run_id(1)), **waits), full, BASE).verdict
    assert found.missing == (newly_allowed(1),)


@pytest.mark.parametrize(
    ("changes", "is_unknown"), [({"scripts": "recorded"}, True), ({"transcript_up_to": 2}, True)]
)
def test_respawn_of_refused_run_is_unknown(changes: dict[str, Any], is_unknown: bool) -> None:
    counts = following([LABELLED], BASE, STRICT)
    respawn = fact_of(RespawnFacts, {"run_id": run_id(1), **changes})
    again = child(2, agent_id=None, changes={"respawn": respawn}).record(BASE)
    assert (counts.names(again, {}).unknown != ()) == is_unknown


# Shared context.


def test_keys_shared_by_refused_run_are_named() -> None:
    counts = following([LABELLED], BASE, STRICT)
    record = child(2, agent_id=None).record(BASE)
    keys = (
        SharedKey(key="goal", session_key=ROOT, value=ref('"g"'), run_id=run_id(1)),
        SharedKey(key="other", session_key=ROOT, value=ref('"o"'), run_id=run_id(8)),
    )
    found = counts.unshared(record.changed({"started": past.started(shared_context=keys)}))
    (missing,) = found
    assert "'goal'" in missing
    assert str(run_id(1)) in missing
    assert counts.unshared(record.changed({"started": past.started(shared_context=keys[1:])})) == ()
    counts.note(child(8).record(BASE), UNDECIDED)
    assert len(counts.unshared(record.changed({"started": past.started(shared_context=keys)}))) == 2


def test_newly_allowed_run_shares_with_its_family() -> None:
    shares = SharedContextRequest(keys=(SharedChange(key="goal", value=ref('"g"')),))
    counts = following([child(1, changes={"shared": shares})], STRICT, BASE)
    record = child(2, agent_id=None).record(BASE)
    (missing,) = counts.unshared(record.changed({"started": past.started()}))
    assert missing == (
        f"the shared context: the context shared by run {run_id(1)}, which may exist now"
    )
    child_alone = shares.changed({"scope": "child"})
    none = following([child(1, changes={"shared": child_alone})], STRICT, BASE)
    assert none.unshared(record.changed({"started": past.started()})) == ()


def test_more_than_can_be_remembered_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cascade, "REMOVED_MAX", 2)
    counts = following([child(1), child(2)], BASE, STRICT)
    with pytest.raises(CascadeTooLargeError, match="more than 2 runs or sessions would differ"):
        noted(counts, child(3), BASE, STRICT)
    planned = following([child(1)], BASE, SLOW)
    assert planned.active_children(ROOT, 1) == CountRange(1, 1)


@given(
    steps=st.lists(
        st.tuples(st.integers(1, 12), st.sampled_from(["refuse", "allow", "same", "release"])),
        max_size=30,
        unique_by=lambda step: (step[0], step[1] == "release"),
    )
)
def test_active_children_lie_between_known_and_possible(
    steps: list[tuple[int, str]],
) -> None:
    """Compares with a plain ledger: runs that hold a place, and those that would for sure."""
    counts, recorded, sure, perhaps = Cascade(), set[int](), set[int](), list[int]()
    for number, step in steps:
        if step == "release":
            counts.release(ROOT, run_id(number))
            recorded.discard(number)
            sure.discard(number)
            continue
        then, now = {"refuse": (BASE, STRICT), "allow": (STRICT, BASE), "same": (BASE, BASE)}[step]
        counts.note(child(number).record(then), child(number).again(then, now))
        if step == "allow":
            perhaps.append(number)
        else:
            recorded.add(number)
            sure |= {number} if step == "same" else set()
        found = counts.active_children(ROOT, len(recorded))
        missing = (newly_allowed(perhaps[0]),) if perhaps else ()
        assert found == CountRange(len(sure), len(sure) + len(perhaps), missing)
