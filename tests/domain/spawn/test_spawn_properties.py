"""Whatever is asked of a tree, under configurations that change, while servers crash: what is told
and what is recorded is what a plain model says, to the letter."""

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from domain.plan.child import PlannedChild, RefusedChild
from domain.run.commands import RunCommand
from domain.run.events import SessionCreated, SpawnRefused
from domain.run.facts import Plan
from domain.run.plan_facts import PlanFacts
from domain.values.refusals import LostClaim, SessionIsClosed
from tests.support.builders import run_commands as ask
from tests.support.builders.configured_spawns import Rules
from tests.support.builders.continued_runs import close
from tests.support.builders.decided_spawns import DecidedSpawns, told_of
from tests.support.builders.facts import fact_of
from tests.support.models.family_model import ENDED, PREPARING, Life, next_step
from tests.support.models.life_requests import ERRORS
from tests.support.models.planned_model import PlannedModel
from tests.support.models.planned_places import PlacesOnDisk
from tests.support.models.random_spawns import ASKED, LENIENT, PLAIN, RULES
from tests.support.models.request_verdicts import requested_as_judged
from tests.support.models.spawn_model import LANE_WIDTH, Asked, Told
from tests.support.servers.same_decisions import UNDECIDED
from tests.support.tiers import examples

pytestmark = pytest.mark.long

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
        """What-if with nothing changed, once all is over; messages are not planned here."""
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

    @rule(pick=PICK, asked=ASKED)
    def spawn(self, pick: int, asked: Asked) -> None:
        names = self.model.requesters()
        self._spawn(names[-1 - pick % len(names)], asked)

    def _spawn(self, by: str, asked: Asked) -> None:
        key = self.model.seen[by].key if by in self.model.seen else by
        name = f"r{len(self.model.tree.lives) + 1}"
        closed = self.model.closed(by)
        if closed is not None:
            with pytest.raises(SessionIsClosed) as said:
                self.real.spawn(name, key, asked)
            assert str(said.value) == closed
            return
        children = len(self.model.tree.counted(by))
        answered = self.real.spawn(name, key, asked)
        assert told_of(answered.refusal) == self.model.spawn(name, by, asked)
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
        told = self.model.message(name, session)
        if told in ERRORS:
            with pytest.raises(ERRORS[told]):
                self.real.message(name, before)
        else:
            self.real.message(name, before)

    @precondition(lambda self: self.model.tree.lives)
    @rule()
    def advance_all(self) -> None:
        for pick in range(len(self.model.tree.lives)):
            self.advance(pick, 1)

    @precondition(lambda self: self.model.tree.lives)
    @rule(pick=PICK, what=st.sampled_from(WRONGS))
    def go_wrong(self, pick: int, what: str) -> None:
        life = self._life(pick, *PREPARING, *HELD) or self._life(pick)
        assert life is not None
        if what == "stop":
            self._stop(life)
        elif what == "close" and self.model.tree.permits(life, "close"):
            self._tell(life, "close", close())
        elif what == "crash" and life.stage in (*PREPARING, *HELD):
            self._crash(life)
        elif what == "override" and life.stage == "requested":
            self._override(life, ("main", "worker", "ghost")[pick % 3])
        elif what == "refuse" and life.stage in PREPARING:
            self._refuse(life, Told("workspace", "error", f"there is no room for {life.name}"))

    def _override(self, life: Life, to: str) -> None:
        self._tell(life, "resolve", ask.resolve(self.real.run(life.name).epoch, override_to=to))
        life.stage = life.stage if to == life.agent_id else "overridden"
        life.agent_id = to

    def _stop(self, life: Life) -> None:
        told = Told("stopped", "error", f"{life.name} was stopped")
        if life.stage in PREPARING:
            self.model.refused[life.name] = told
        elif life.stage == "queued" and not life.is_held:
            self.model.outcomes[life.name] = "stopped"
        self._tell(life, "stop", ask.stop(text=self.real.store("refusal", told.text)))

    def _crash(self, life: Life) -> None:
        """Whoever held the run is lost; another goes on, and what the first still says is in
        vain."""
        lost = self.real.run(life.name).epoch
        if life.stage == "started":
            self.model.outcomes[life.name] = "stopped" if life.is_stopping else "unknown"
            self._tell(life, "end", ask.end(lost, outcome="unknown", reason="interrupted"))
            life.is_stopped = life.is_stopping
        elif life.stage in PREPARING or life.is_held:
            self._tell(life, "resume" if life.stage in PREPARING else "take over")
            late = ask.refuse(lost) if life.stage in PREPARING else ask.end(lost)
            with pytest.raises(LostClaim) as said:
                self.real.tell(life.name, late)
            held = self.real.run(life.name).epoch
            assert str(said.value) == f"claim {lost} was replaced by claim {held}"

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

    def _refuse(self, life: Life, told: Told, facts: PlanFacts | None = None) -> None:
        self.model.refuse(life.name, told)
        self.real.refuse(life.name, told.rule, told.status, told.text, facts)

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
            run, told = self.real.run(name), self.model.refused.get(name)
            assert (run.stage, run.depth) == (life.stage, life.depth)
            assert run.outcome == (self.model.outcomes[name] if life.stage in ENDED else None)
            will = self.model.wills.get(name)
            assert run.plan == (will and fact_of(Plan, will.plan))
            assert (run.refusal is not None) == (told is not None) == (life.stage == "refused")
            if told is not None:
                refused = self.real.only(name, SpawnRefused)
                assert (refused.rule, refused.status) == (told.rule, told.status)
                assert refused.text is not None
                assert self.real.text(refused.text) == told.text

    @invariant()
    def sessions_are_as_the_model_says(self) -> None:
        on_record = self.real.log.fold.sessions
        assert set(on_record) == {seen.key for seen in self.model.seen.values()}
        for name, seen in self.model.seen.items():
            one = on_record[seen.key]
            assert (one.agent_id, one.depth) == (seen.agent, seen.depth)
            assert (one.role, one.control_scope) == (seen.role, seen.scope)
            assert (one.root_session_key, one.spawned_by) == (seen.root, seen.parent)
            assert (one.sandboxed, one.workspace_dir) == (seen.is_boxed, seen.folder)
            names = [self.real.log.names[run] for run in one.counted]
            assert names == self.model.tree.counted(name)
            assert one.active_children == len(names)
            assert (one.stage == "closed") == (name in self.model.tree.closed)

    def _life(self, pick: int, *stages: str) -> Life | None:
        """One of the runs at these stages, or of all; None when there is none."""
        lives = [one for one in self.model.tree.lives.values() if not stages or one.stage in stages]
        return lives[-1 - pick % len(lives)] if lives else None


TestSpawns = Spawns.TestCase
TestSpawns.settings = examples(60, stateful_step_count=50)
