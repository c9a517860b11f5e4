"""Events of a spawn decision."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pydantic import ValidationError

from domain.plan.child import PlannedChild, RefusedChild
from domain.plan.credentials import NOTHING_FOUND
from domain.plan.request import ChosenWorkspace
from domain.run.commands import RunCommand
from domain.run.events import SessionCreated, SpawnRefused, SpawnRequested
from domain.run.facts import STEP_ORDER, AdmissionFacts, Plan, Requester, SpawnOptions, StepName
from domain.run.plan_facts import PlanFacts, WorkspaceFacts
from domain.run.state import Run
from domain.session.events import ChildAdmitted, SessionClosed, SessionContinued, SessionObserved
from domain.session.state import Session
from domain.spawn.batch import PartOfBatch, batch_refusal_text, require_prepared
from domain.spawn.cascade import CascadeState
from domain.spawn.decide import SpawnDecision, request_spawns
from domain.spawn.pipeline import ChildFacts, Need
from domain.spawn.request import SpawnRequest
from domain.spawn.stages import SPAWN_STAGES, Stage, decide_child
from domain.values import rules
from domain.values.record import session_stream
from domain.values.refusals import (
    AgentOnRecord,
    LostClaim,
    ReadAgain,
    Refusal,
    Rejected,
    SessionIsClosed,
    WrongStage,
)
from tests.support.builders import run_commands as ask
from tests.support.builders import run_histories as past
from tests.support.builders.configured_spawns import Rules
from tests.support.builders.continued_runs import close
from tests.support.builders.decided_spawns import DecidedSpawns, told_of
from tests.support.builders.facts import fact_of
from tests.support.builders.family_log import (
    FamilyLog,
    ask_for_all,
    child_key,
    keep,
    policy,
    spawn_request,
    tell_all,
)
from tests.support.builders.planned_children import asked, configuration
from tests.support.builders.storytelling import (
    CHILD,
    ROOT,
    observed,
    observed_child,
    plan,
    ref,
    requester,
    run_id,
    run_of,
    session_of,
)
from tests.support.models.planned_model import PlannedModel
from tests.support.models.planned_places import PlacesOnDisk
from tests.support.models.random_spawns import ASKED, LENIENT, PLAIN, RULES
from tests.support.models.request_verdicts import requested_as_judged
from tests.support.models.spawn_model import LANE_WIDTH, Asked, Told
from tests.support.servers.same_decisions import UNDECIDED
from tests.support.tiers import examples
from world.model.lives import ERRORS
from world.model.tree import ENDED, PREPARING, Life, next_step

pytestmark = pytest.mark.long

# Admission of a spawn from the record, and the recorded events either way.

MINE = run_id(1)


def root_with(children: int) -> Session:
    """Return the recorded root session with this number of active children."""
    taken = tuple(
        ChildAdmitted(run_id=run_id(100 + number), active_children=number, max_children=9)
        for number in range(children)
    )
    return session_of(observed(), *taken)


def judge(
    *sessions: Session, runs: tuple[Run, ...] = (), under: Any = None, **request: Any
) -> SpawnDecision:
    """Decide a request of the root session, or of the requester in the request."""
    on_record: dict[UUID, Run] = {run.run_id: run for run in runs}
    known = {session.session_key: session for session in sessions}
    return request_spawns(known, on_record, [(spawn_request(**request), keep)], under or policy())


def names(answered: SpawnDecision) -> list[str]:
    """Return the types of the recorded events, in order."""
    return [type(event).__name__ for _, event in answered.changes]


def requested_in(answered: SpawnDecision) -> SpawnRequested:
    """Return the recorded request."""
    return next(event for _, event in answered.changes if isinstance(event, SpawnRequested))


def refused_in(answered: SpawnDecision) -> SpawnRefused:
    """Return the recorded refusal."""
    return next(event for _, event in answered.changes if isinstance(event, SpawnRefused))


@pytest.mark.parametrize(
    ("taken", "cap", "permitted"),
    [(0, 1, True), (1, 1, False), (4, 5, True), (5, 5, False), (3, 2, False), (0, 0, False)],
)
def test_cap_is_exact(taken: int, cap: int, permitted: bool) -> None:
    answered = judge(root_with(taken), under=policy(max_children=cap))
    assert (answered.refusal is None) == permitted
    if permitted:
        place = ChildAdmitted(run_id=MINE, active_children=taken, max_children=cap)
        assert answered.changes[-1] == (session_stream(ROOT), place)
    else:
        assert names(answered) == ["SpawnRequested", "SpawnRefused"]
        assert refused_in(answered).inputs == {"current": taken, "limit": cap}


def test_unseen_requester_has_the_depth_of_its_key() -> None:
    answered = judge(requester_key=CHILD, under=policy(max_spawn_depth=2))
    seen = answered.changes[0][1]
    assert isinstance(seen, SessionObserved)
    assert (seen.depth, seen.role, seen.spawned_by) == (1, "orchestrator", None)
    refused = judge(requester_key=CHILD, under=policy(max_spawn_depth=1))
    assert refused_in(refused).rule == "depth"


def test_request_carries_its_requester_as_it_is_on_record() -> None:
    session, own = session_of(observed_child()), run_of(*past.a_started_run())
    answered = judge(
        session, runs=(own,), requester_key=CHILD, requester_display_key="me", origin="{}"
    )
    assert requested_in(answered).requester == requester(
        session_key=CHILD,
        display_key="me",
        depth=1,
        run_id=run_id(1),
        may_yield=True,
        spawned_by=ROOT,
        origin=ref("origin: {}"),
        sandboxed=False,
    )


def test_requester_that_continued_is_read_again() -> None:
    went_on = SessionContinued(run_id=run_id(7), role="leaf", control_scope="none")
    session = session_of(observed_child(), went_on)
    for runs in ((), (run_of(*past.an_announced_run()),)):
        with pytest.raises(ReadAgain):
            judge(session, runs=runs, requester_key=CHILD)


def test_recorded_agent_outranks_the_requested_one() -> None:
    with pytest.raises(AgentOnRecord) as refused:
        judge(root_with(0), requester_agent_id="steward", target_agent_id="steward")
    assert refused.value.agent_id == "main"


def test_invalid_agent_id_is_kept_beside_the_log() -> None:
    answered = judge(agent_id_argument="rm -rf", target_agent_id=None)
    requested = requested_in(answered)
    assert requested.requested_agent_id is None
    assert requested.agent_id_argument == ref("agentId: rm -rf")
    assert "rm -rf" not in requested.to_json().decode() + refused_in(answered).to_json().decode()


def test_good_agent_id_stands_in_the_request_alone() -> None:
    under = policy(allow_agents=("*",))
    answered = judge(under=under, agent_id_argument="Steward", target_agent_id="steward")
    requested = requested_in(answered)
    assert (requested.requested_agent_id, requested.agent_id_argument) == ("steward", None)
    assert answered.refusal is None


def test_refusal_records_the_text_of_its_answer() -> None:
    answered = judge(root_with(1), under=policy(max_children=1))
    assert answered.refusal is not None
    refused = refused_in(answered)
    assert refused.text == keep("refusal", answered.refusal.text)
    assert (refused.step, refused.status, refused.announcement) == ("admission", "forbidden", None)


def test_closed_session_is_turned_away_without_a_record() -> None:
    session = session_of(observed(), SessionClosed(reason="archived"))
    with pytest.raises(SessionIsClosed, match="session main is closed"):
        judge(session)


# Several runs of one request: all are permitted, or all are refused.

NAMES = ("hull", "mast", "sail")


def prepared(log: FamilyLog, *names: str) -> None:
    """Prepare these runs up to their keys."""
    for name in names:
        run = log.run(name)
        prepare = ask.prepare(run.epoch, child_session_key=child_key(run.run_id))
        log.tell(name, ask.resolve(run.epoch), prepare)


def asked_for(log: FamilyLog, by: str = "main") -> None:
    """Three are admitted and have their keys."""
    assert ask_for_all(log, NAMES, by).refusal is None
    prepared(log, *NAMES)


@pytest.mark.parametrize("command", [ask.create, ask.refuse])
def test_no_part_of_a_batch_is_decided(command: type) -> None:
    log = FamilyLog()
    asked_for(log)
    before = len(log.recorded)
    with pytest.raises(PartOfBatch):
        tell_all(log, {name: (command(log.run(name).epoch),) for name in NAMES[:2]})
    with pytest.raises(PartOfBatch):
        tell_all(log, {NAMES[0]: (ask.stop(),)})
    assert len(log.recorded) == before


def test_two_children_of_one_key_are_not_created() -> None:
    log = FamilyLog()
    ask_for_all(log, NAMES)
    key = child_key(log.run("hull").run_id)
    for name in NAMES:
        run = log.run(name)
        log.tell(name, ask.resolve(run.epoch), ask.prepare(run.epoch, child_session_key=key))
    with pytest.raises(Rejected):
        tell_all(log, {name: (ask.create(log.run(name).epoch),) for name in NAMES})


def test_batch_refusal_releases_all_places_and_settles() -> None:
    log = FamilyLog()
    log.begin("ship")
    asked_for(log, "ship")
    log.end("ship")
    result = tell_all(
        log, {"mast": (ask.stop(),), "hull": (ask.refuse(None),), "sail": (ask.refuse(None),)}
    )
    assert [answer for answer in result if "Refused" in answer] == [
        "run mast SpawnRefused",
        "run hull SpawnRefused",
        "run sail SpawnRefused",
    ]
    # The last of them settles the family, and this is recorded once.
    assert result[-2:] == ["run ship DescendantsSettled", "session main ChildReleased"]
    assert result.count("run ship DescendantsSettled") == 1
    assert log.counted("ship") == []
    assert log.counted("main") == []


def test_batch_decided_meanwhile_is_read_again() -> None:
    log = FamilyLog()
    asked_for(log)
    ids = [log.run(name).run_id for name in NAMES]
    require_prepared(CascadeState(log.fold.runs, log.fold.sessions), ids)
    tell_all(log, {name: (ask.create(log.run(name).epoch),) for name in NAMES})
    with pytest.raises(ReadAgain):
        require_prepared(CascadeState(log.fold.runs, log.fold.sessions), ids)
    with pytest.raises(WrongStage):
        tell_all(log, {name: (ask.refuse(None),) for name in NAMES})


def test_others_are_told_which_one_it_was() -> None:
    log = FamilyLog()
    asked_for(log)
    culprit = log.run("mast")
    assert batch_refusal_text(culprit, "its model is unknown.") == (
        f'Task 2 of 3 ("mast", run {culprit.run_id}) could not be prepared: its model is unknown.'
        " No task of this batch was started."
    )


# Recorded facts about the requesting session: values that a child inherits, and their source.

IN_A_BOX = SpawnOptions(requester_sandboxed=True)


def judge_spawn_of(*sessions: Session, runs: tuple[Run, ...] = (), **request: Any) -> SpawnDecision:
    """Decide a request of the root session, or of the one in the request, at any depth."""
    known = {session.session_key: session for session in sessions}
    under = policy(max_spawn_depth=5, allow_agents_from="agent", require_agent_id_from="defaults")
    on_record = {run.run_id: run for run in runs}
    return request_spawns(known, on_record, [(spawn_request(**request), keep)], under)


def asked_by(answered: SpawnDecision) -> Requester:
    """Return the requester in the recorded request."""
    return next(event.requester for _, event in answered.changes if hasattr(event, "requester"))


def first_seen(answered: SpawnDecision) -> SessionObserved:
    """Return the first event of an unknown session."""
    event = answered.changes[0][1]
    assert isinstance(event, SessionObserved)
    return event


def a_run_that_executes(**of_its_plan: Any) -> Run:
    """Return the run of `CHILD` with these values in its plan."""
    history = [
        past.created(plan=plan(**of_its_plan)) if isinstance(event, type(past.created())) else event
        for event in past.a_started_run()
    ]
    return run_of(*history)


def test_requesting_child_passes_on_model_and_thinking() -> None:
    run = a_run_that_executes(model_provider="small", model="one", thinking="low")
    answered = judge_spawn_of(session_of(observed_child()), runs=(run,), requester_key=CHILD)
    requester = asked_by(answered)
    assert (requester.model, requester.thinking) == ("small/one", "low")


def test_requesting_child_passes_on_its_folder() -> None:
    session = session_of(observed_child(workspace_dir="/srv/of-the-session"))
    run = a_run_that_executes(workspace_dir="/srv/of-the-plan")
    answered = judge_spawn_of(session, runs=(run,), requester_key=CHILD)
    assert asked_by(answered).workspace_dir == "/srv/of-the-session"


@pytest.mark.parametrize(
    ("recorded", "configured", "explicit", "holds"),
    [
        (True, False, False, True),
        (False, True, False, True),
        (False, False, True, True),
        (False, False, False, False),
    ],
)
def test_requester_sandbox_is_only_tightened(
    recorded: bool | None, configured: bool, explicit: bool, holds: bool
) -> None:
    answered = judge_spawn_of(
        session_of(observed(sandboxed=recorded)),
        requester_in_sandbox=configured,
        options=SpawnOptions(requester_sandboxed=explicit),
    )
    assert asked_by(answered).sandboxed is holds


def test_first_seen_session_is_in_its_agents_sandbox() -> None:
    seen = first_seen(judge_spawn_of(requester_in_sandbox=True))
    assert (seen.sandboxed, seen.assertions) == (True, ())


def test_known_session_keeps_who_asserted_what() -> None:
    seen = first_seen(judge_spawn_of(asserts_agent=True, options=IN_A_BOX))
    known = session_of(seen)
    assert (known.asserted_by, known.assertions) == ("admin", ("agentId", "sandboxed"))
    answered = judge_spawn_of(known)
    assert not any(isinstance(event, SessionObserved) for _, event in answered.changes)


def test_facts_say_where_depth_and_lists_were_found() -> None:
    def places(facts: AdmissionFacts) -> tuple[str | None, ...]:
        return facts.depth_from, facts.require_agent_id_from, facts.allow_agents_from

    assert places(judge_spawn_of().facts) == ("shape", "defaults", "agent")
    assert places(judge_spawn_of(session_of(observed())).facts) == ("record", "defaults", "agent")


def test_requested_folder_is_kept_beside_the_log() -> None:
    answered = judge_spawn_of(workspace_argument="/home/somebody/secret-project")
    recorded = "".join(event.to_json().decode() for _, event in answered.changes)
    assert "secret-project" not in recorded
    assert '"workspaceArgument":{"id":' in recorded


# Facts needed to decide a child: their order, and the refusals that stop it.

FOLDER = ChosenWorkspace(WorkspaceFacts(source="agent", recorded=None, chosen="/w"))
NO_THREAD = rules.THREAD_BINDING.refusal("nobody binds threads here")
NOT_WRITTEN = rules.ATTACHMENTS.refusal("the disk is full", status="error")


def answered(facts: ChildFacts, need: Need, run: Run, refused: str) -> ChildFacts:
    """Return the facts with the answer to a need; `refused` is a place or a step."""
    match need.fact:
        case "agent":
            return facts.changed({"agent_id": run.agent_id})
        case "credentials":
            return facts.changed({"credentials": NOTHING_FOUND})
        case "workspace":
            return facts.changed({"workspace": FOLDER})
        case "places":
            places: dict[StepName, bool | Refusal] = dict.fromkeys(STEP_ORDER, False)
            places |= {"workspace": True, "attachments": True}
            if refused == "thread_binding":
                places["thread_binding"] = NO_THREAD
            return facts.changed({"places": places})
        case "step":
            assert need.step is not None
            return facts.with_step(need.step, NOT_WRITTEN if need.step == refused else None)


def gone_through(
    stages: tuple[Stage, ...], run: Run, refused: str = "nothing", **known: Any
) -> tuple[list[str], RefusedChild | None]:
    """Return the needs, in order, and the final refusal."""
    facts = ChildFacts(
        run=run, configuration=configuration({"id": "main"}), requester_sandboxed=False
    )
    facts = facts.changed(known)
    needed: list[str] = []
    facts, found = decide_child(stages, facts)
    while isinstance(found, Need):
        needed.append(found.step or found.fact)
        facts, found = decide_child(stages, answered(facts, found, run, refused))
    assert found is not None or facts.plan.plan.workspace_dir == "/w"
    return needed, found


def test_spawn_needs_one_thing_after_the_other() -> None:
    needed, refused = gone_through(SPAWN_STAGES, asked())
    assert needed == ["agent", "credentials", "workspace", "places", "workspace", "attachments"]
    assert refused is None


# Random requests to a tree, under changing configurations and with crashing servers: answers and
# events equal those of a simple model.


PICK = st.integers(min_value=0, max_value=99)
HELD = ("queued", "started")
WRONGS = ("stop", "crash", "crash", "override", "refuse", "close")
HOLDERS: dict[str, Callable[[int], RunCommand]] = {
    "resume": ask.resume,
    "resolve": ask.resolve,
    "start": ask.start,
    "end": ask.end,
}


class Spawns(RuleBasedStateMachine):
    """Drives trees through their log, beside a model of them."""

    @initialize(first=RULES, chain=st.integers(0, 2))
    def begin(self, first: Rules, chain: int) -> None:
        self._begin(LENIENT)
        for _ in range(chain):
            self.spawn(0, PLAIN)
            self.advance(0, 4)
        self.reload(first)

    def _begin(self, first: Rules) -> None:
        self.disk = PlacesOnDisk()
        self.model = PlannedModel([], home=str(self.disk.home))
        self.real = DecidedSpawns(self.disk.home)
        self._reload(first)

    def teardown(self) -> None:
        if hasattr(self, "disk"):
            self.disk.remove()
            self.decisions_made_again_are_the_same()

    def decisions_made_again_are_the_same(self) -> None:
        """Replay all decisions unchanged, once all is over; messages are not planned here."""
        for name in self.model.tree.lives:
            if self.real.run(name).continues is not None:
                continue
            verdict = self.real.decided_again(name).verdict
            if verdict.missing != (UNDECIDED,):
                # Some are refused at random, where a rule would have refused them anyway.
                assert verdict.verdict == "same", (name, verdict)

    @rule(rules=RULES)
    def reload(self, rules: Rules) -> None:
        self._reload(rules)

    def _reload(self, rules: Rules) -> None:
        self.model.revisions.append(rules)
        self.real.configure(rules.configuration())

    @rule(pick=PICK, request=ASKED)
    def spawn(self, pick: int, request: Asked) -> None:
        names = self.model.requesters()
        self._spawn(names[-1 - pick % len(names)], request)

    def _spawn(self, by: str, request: Asked) -> None:
        key = self.model.seen[by].key if by in self.model.seen else by
        name = f"r{len(self.model.tree.lives) + 1}"
        closed = self.model.closed(by)
        if closed is not None:
            with pytest.raises(SessionIsClosed) as failure:
                self.real.spawn(name, key, request)
            assert str(failure.value) == closed
            return
        children = len(self.model.tree.counted(by))
        answered = self.real.spawn(name, key, request)
        assert told_of(answered.refusal) == self.model.spawn(name, by, request)
        requested_as_judged(self.real, self.model, name, children)

    @precondition(lambda self: self.model.tree.lives)
    @rule(pick=PICK, steps=st.integers(1, 8))
    def advance(self, pick: int, steps: int) -> None:
        life = self._life(pick)
        assert life is not None
        for _ in range(steps):
            kind = next_step(life)
            if kind == "prepare":
                self._prepare(life)
            elif kind is not None and self.model.tree.permits(life, kind):
                self._tell(life, kind)

    @precondition(lambda self: len(self.model.tree.sessions()) > 1)
    @rule(pick=PICK, waits=st.sampled_from([True, True, False]))
    def message(self, pick: int, waits: bool) -> None:
        """Mostly sent to a session whose last run is announced, as far as that can be."""
        tree = self.model.tree
        session = tree.sessions()[1:][pick % (len(tree.sessions()) - 1)]
        last = tree.last(session)
        assert last is not None
        while waits and (kind := next_step(last)) not in (None, "archive"):
            if not tree.permits(last, kind):
                break
            self._tell(last, kind)
        name, before = f"r{len(tree.lives) + 1}", self.real.log.last(session)
        message = self.model.message(name, session)
        if message in ERRORS:
            with pytest.raises(ERRORS[message]):
                self.real.message(name, before)
        else:
            self.real.message(name, before)

    @precondition(lambda self: self.model.tree.lives)
    @rule()
    def advance_all(self) -> None:
        for pick in range(len(self.model.tree.lives)):
            self.advance(pick, 1)

    @precondition(lambda self: self.model.tree.lives)
    @rule(pick=PICK, fault=st.sampled_from(WRONGS))
    def go_wrong(self, pick: int, fault: str) -> None:
        life = self._life(pick, *PREPARING, *HELD) or self._life(pick)
        assert life is not None
        if fault == "stop":
            self._stop(life)
        elif fault == "close" and self.model.tree.permits(life, "close"):
            self._tell(life, "close", close())
        elif fault == "crash" and life.stage in (*PREPARING, *HELD):
            self._crash(life)
        elif fault == "override" and life.stage == "requested":
            self._override(life, ("main", "worker", "ghost")[pick % 3])
        elif fault == "refuse" and life.stage in PREPARING:
            self._refuse(life, Told("workspace", "error", f"there is no room for {life.name}"))

    def _override(self, life: Life, to: str) -> None:
        self._tell(life, "resolve", ask.resolve(self.real.run(life.name).epoch, override_to=to))
        life.stage = life.stage if to == life.agent_id else "overridden"
        life.agent_id = to

    def _stop(self, life: Life) -> None:
        result = Told("stopped", "error", f"{life.name} was stopped")
        if life.stage in PREPARING:
            self.model.refused[life.name] = result
        elif life.stage == "queued" and not life.is_held:
            self.model.outcomes[life.name] = "stopped"
        self._tell(life, "stop", ask.stop(text=self.real.store("refusal", result.text)))

    def _crash(self, life: Life) -> None:
        """Replace the holder of the run; later commands of the first one are refused."""
        lost = self.real.run(life.name).epoch
        if life.stage == "started":
            self.model.outcomes[life.name] = "stopped" if life.is_stopping else "unknown"
            self._tell(life, "end", ask.end(lost, outcome="unknown", reason="interrupted"))
            life.is_stopped = life.is_stopping
        elif life.stage in PREPARING or life.is_held:
            self._tell(life, "resume" if life.stage in PREPARING else "take over")
            late = ask.refuse(lost) if life.stage in PREPARING else ask.end(lost)
            with pytest.raises(LostClaim) as failure:
                self.real.tell(life.name, late)
            held = self.real.run(life.name).epoch
            assert str(failure.value) == f"claim {lost} was replaced by claim {held}"

    def _prepare(self, life: Life) -> None:
        judged, looked_at = self.model.judged(life.name)
        found = self.real.planned(life.name)
        assert found.facts == fact_of(PlanFacts, looked_at)
        if isinstance(judged, Told):
            assert isinstance(found, RefusedChild), found
            assert told_of(found.refusal) == judged
            self._refuse(life, judged, found.facts)
            return
        assert isinstance(found, PlannedChild), found
        self.model.create(life.name, self.real.create(life.name, found), judged)
        created = self.real.only(life.name, SessionCreated)
        assert (created.warnings, created.note) == (judged.warnings, self.model.note(life.name))

    def _refuse(self, life: Life, refusal: Told, facts: PlanFacts | None = None) -> None:
        self.model.refuse(life.name, refusal)
        self.real.refuse(life.name, refusal.rule, refusal.status, refusal.text, facts)

    def _tell(self, life: Life, kind: str, command: RunCommand | None = None) -> None:
        if kind == "end":
            self.model.outcomes.setdefault(life.name, "success")
        self.real.tell(life.name, command or self._command(life, kind))
        self.model.tree.ask(life, kind)

    def _command(self, life: Life, kind: str) -> RunCommand:
        if kind in ("claim", "take over"):
            epoch = self.real.run(life.name).epoch
            return ask.claim(
                lane_width=LANE_WIDTH,
                lane_running=self.model.tree.running(life.depth),
                lost_epoch=epoch if kind == "take over" else None,
            )
        if kind in ("announce", "archive"):
            return ask.announce() if kind == "announce" else ask.archive()
        return HOLDERS[kind](self.real.run(life.name).epoch)

    @invariant()
    def runs_are_as_the_model_says(self) -> None:
        for name, life in self.model.tree.lives.items():
            run, result = self.real.run(name), self.model.refused.get(name)
            assert (run.stage, run.depth) == (life.stage, life.depth)
            assert run.outcome == (self.model.outcomes[name] if life.stage in ENDED else None)
            will = self.model.wills.get(name)
            assert run.plan == (will and fact_of(Plan, will.plan))
            assert (run.refusal is not None) == (result is not None) == (life.stage == "refused")
            if result is not None:
                refused = self.real.only(name, SpawnRefused)
                assert (refused.rule, refused.status) == (result.rule, result.status)
                assert refused.text is not None
                assert self.real.text(refused.text) == result.text

    @invariant()
    def sessions_are_as_the_model_says(self) -> None:
        on_record = self.real.log.fold.sessions
        assert set(on_record) == {seen.key for seen in self.model.seen.values()}
        for name, seen in self.model.seen.items():
            run = on_record[seen.key]
            assert (run.agent_id, run.depth) == (seen.agent, seen.depth)
            assert (run.role, run.control_scope) == (seen.role, seen.scope)
            assert (run.root_session_key, run.spawned_by) == (seen.root, seen.parent)
            assert (run.sandboxed, run.workspace_dir) == (seen.is_boxed, seen.folder)
            names = [self.real.log.names[run] for run in run.counted]
            assert names == self.model.tree.counted(name)
            assert run.active_children == len(names)
            assert (run.stage == "closed") == (name in self.model.tree.closed)

    def _life(self, pick: int, *stages: str) -> Life | None:
        """Return a run at one of these stages, or any; None if there is none."""
        lives = [run for run in self.model.tree.lives.values() if not stages or run.stage in stages]
        return lives[-1 - pick % len(lives)] if lives else None


TestSpawns = Spawns.TestCase
TestSpawns.settings = examples(60, stateful_step_count=50)


# Valid requests.

BODY = {"task": "look around", "requester": {"sessionKey": ROOT}}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"label": "two\nlines"}, "must be one line without control characters"),
        ({"label": "\u202ehidden"}, "must be one line without control characters"),
        ({"runTimeoutSeconds": float("inf")}, "finite|number of seconds"),
        ({"runTimeoutSeconds": True}, "valid number"),
        ({"requester": {"sessionKey": ROOT, "activeModel": "no model"}}, "name of a model"),
        ({"requester": {"sessionKey": ROOT, "workspaceDir": "work"}}, "absolute path"),
        ({"requester": {"sessionKey": ROOT, "workspaceDir": "/a\nb"}}, "control characters"),
    ],
)
def test_request_that_cannot_be_meant_is_refused(members: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SpawnRequest.model_validate({**BODY, **members})


def test_request_is_trimmed_and_its_numbers_are_numbers() -> None:
    values = {"label": " scout ", "model": " a/b ", "runTimeoutSeconds": 90}
    request = SpawnRequest.model_validate({**BODY, **values})
    assert (request.label, request.model) == ("scout", "a/b")
    assert repr(dict(request)["run_timeout_seconds"]) == "90.0"
    for folder, read in ((" ", None), ("/srv/x", "/srv/x")):
        asks = {"sessionKey": ROOT, "activeModel": "a/b", "workspaceDir": folder}
        requester = SpawnRequest.model_validate({**BODY, "requester": asks}).requester
        assert (requester.workspace_dir, requester.active_model) == (read, "a/b")


def test_children_of_a_batch_are_reported_together() -> None:
    log = FamilyLog()
    log.begin("scout")
    ask_for_all(log, ["one", "two"], "scout")
    names = ("one", "two")
    runs = {
        name: (
            ask.resolve(log.run(name).epoch),
            ask.prepare(log.run(name).epoch, child_session_key=child_key(log.run(name).run_id)),
            ask.create(log.run(name).epoch, depth=2, max_depth=3),
        )
        for name in names
    }
    tell_all(log, runs)
    log.spawn("alone", "scout")
    log.create("alone")
    log.tell("scout", ask.end(log.run("scout").epoch, reason="yielded"))
    result = {}
    for name in ("one", "alone", "two"):
        log.tell(name, ask.claim())
        log.tell(name, ask.start(log.run(name).epoch))
        log.end(name)
        result[name] = "run scout ChildrenReported" in log.announce(name)
    assert result == {"one": False, "alone": True, "two": True}
