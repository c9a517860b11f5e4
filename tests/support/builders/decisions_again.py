"""Spawns and messages as a server records them under a configuration, and their what-ifs.

Only `domain` is used: nothing is looked up, so folders and credentials are as the test says.
"""

import copy
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from domain.configuration.configuration import Configuration
from domain.context.attachments import check_unread_attachments
from domain.context.preamble import truncated_preamble
from domain.context.thread_binding import is_routable, read_origin
from domain.delivery.webhook import receivers
from domain.plan.child import PlannedChild, RefusedChild, plan_with_hours
from domain.plan.credentials import NOTHING_FOUND, FoundCredentials
from domain.plan.eligibility import CONTINUED_ELIGIBILITY, ELIGIBILITY, EligibilityTable
from domain.plan.model import storable_model_name
from domain.plan.request import ChosenWorkspace, PlanRequest, shape_of
from domain.plan.tools import SPAWN_TOOL, permits_tool
from domain.run.events import ContinuationFacts, RunEvent, SpawnRequested
from domain.run.facts import (
    HOOK_ORDER,
    HOOKS_OF_ENDS,
    AttachmentsRequest,
    BatchFacts,
    Candidate,
    Ingredient,
    Plan,
    ScriptReceipt,
    SpawnOptions,
)
from domain.run.plan_facts import WorkspaceFacts
from domain.run.state import Run
from domain.session.state import ProvidedTranscript, Session
from domain.spawn.admission import ADMISSION, CONTINUATION, admit, policy_of
from domain.states import StreamEvent
from domain.values.agent_id import is_valid_agent_id, normalise_agent_id
from domain.values.record import ContentRef, Stamp
from domain.values.refusals import Refusal
from domain.values.session_key import agent_id_of
from domain.values.thinking_level import normalise_thinking
from domain.what_if.change import Change, WholeConfiguration
from domain.what_if.decide_again import (
    DecidedAgain,
    ReplayCase,
    decide_again,
    is_session_needed,
    texts_needed,
)
from domain.what_if.record import RecordedDecision, recorded_decision
from domain.what_if.verdict import SAME, Verdict
from tests.support.builders import continued_runs as continued
from tests.support.builders import run_histories as past
from tests.support.builders.facts import fact_of
from tests.support.builders.spawn_plans import plan_child
from tests.support.builders.storytelling import (
    CHILD,
    ROOT,
    at,
    facts,
    observed,
    ref,
    requested,
    requester,
    run_id,
    run_of,
    session_of,
)

Values = dict[str, Any]
_BY_OTHERS = ("stopped", "erased", "batch")
FIRST_POSITION = 10
SCRIPTED = {"type": "scripted"}
BINDING: Values = {
    "spawnlog": {"hooks": {"subagentSpawning": {"url": "http://hooks.example/binds"}}}
}
"""Configuration with a hook that binds threads."""
ISOLATING = {"type": "scripted", "providesSandbox": True}


def setup(*agents: str | Values, default: Values | None = None, **sections: Any) -> Values:
    """Return a file with these agents besides `main`, all with a runtime that plays back nothing.

    `default` are further values of `agents.defaults`.
    """
    listed = [{"id": agent} if isinstance(agent, str) else agent for agent in agents]
    if not any(item["id"] == "main" for item in listed):
        listed = [{"id": "main"}, *listed]
    return {"agents": {"defaults": {"runtime": SCRIPTED, **(default or {})}, "list": listed}} | (
        sections
    )


def limits(*agents: str | Values, **subagents: Any) -> Values:
    """Return a file like `setup`, with these values in `agents.defaults.subagents`."""
    return setup(*agents, default={"subagents": {"maxSpawnDepth": 3, **subagents}})


def but(values: Values, change: Mapping[str, Any]) -> Values:
    """Return a copy of a file with the sections of the change merged in; lists are replaced."""
    made = copy.deepcopy(values)
    _take_in(made, change)
    return made


def _take_in(section: Values, change: Mapping[str, Any]) -> None:
    for name, value in change.items():
        if isinstance(value, dict) and isinstance(section.get(name), dict):
            _take_in(section[name], value)
        else:
            section[name] = value


def change_of(then: Values, now: Values) -> Change:
    return Change(
        *(WholeConfiguration(Configuration.model_validate(item), item) for item in (then, now))
    )


@dataclass
class _Texts:
    """The texts beside the log."""

    known: dict[UUID, str] = field(default_factory=dict)

    def keep(self, text: str | None) -> ContentRef | None:
        if text is None:
            return None
        found = ref(text)
        self.known[found.id] = text
        return found

    def require_kept(self, text: str) -> ContentRef:
        found = self.keep(text)
        assert found is not None
        return found


@dataclass(frozen=True, kw_only=True)
class Spawn:
    """A spawn with the facts that are found for it, the same under any configuration.

    Attributes:
        requester: Changes of the recorded requester.
        display: Spelling of the requester's key.
        is_boxed: True if the requester is recorded as sandboxed; None if it is not recorded.
        own_plan: Plan of the requester's own run.
        model: Text given as the model.
        thinking: Text given as the thinking level.
        folder: True if a folder is given.
        fork: True if the child begins with its requester's conversation.
        has_transcript: True if a transcript was uploaded for a root session.
        unusable: Why the folder cannot be used.
        refused_by: Rule that refuses the spawn independently of the configuration.
        step: Step at which it refuses.
        is_ready: False if the spawn is still being prepared.
        thread_origin: Thread that the binding hook returned.
        announced: True if the run was announced, to the webhooks configured then.
        told_to: Delivery target that a hook returned.
    """

    number: int = 1
    agent_id: str | None = None
    requester: Mapping[str, Any] = field(default_factory=dict)
    display: str = "main"
    is_boxed: bool | None = False
    own_plan: Plan | None = None
    active_children: int = 0
    batch: BatchFacts | None = None
    task: str = "look around"
    mode: str = "run"
    thread: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    model: str | None = None
    thinking: str | None = None
    folder: bool = False
    attachments: AttachmentsRequest | None = None
    fork: bool = False
    has_transcript: bool = False
    preamble: str | None = None
    origin: str | None = None
    light_context: bool = False
    changes: Mapping[str, Any] = field(default_factory=dict)
    receipts: tuple[ScriptReceipt, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    override_to: str | None = None
    credentials: FoundCredentials = NOTHING_FOUND
    unusable: str | None = None
    is_workspace_forgotten: bool = False
    bootstrap: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    refused_by: str | None = None
    step: str = "preparation"
    is_ready: bool = True
    thread_origin: str | None = None
    announced: bool = False
    told_to: str | None = None
    texts: _Texts = field(default_factory=_Texts, compare=False, repr=False)

    @property
    def run_id(self) -> UUID:
        return run_id(self.number)

    def changed(self, **changes: Any) -> "Spawn":
        """Return the spawn with these changes."""
        return replace(self, **changes)

    # Recorded events.

    def record(self, values: Values) -> RecordedDecision:
        return recorded_decision(_steps(self.events(values)))

    def events(self, values: Values) -> tuple[RunEvent, ...]:
        return tuple(self._events(Configuration.model_validate(values)))

    def _events(self, under: Configuration) -> Iterable[RunEvent]:
        request = self._request(under)
        yield request
        verdict = admit(ADMISSION, request.facts, raw_agent_id=self.agent_id or "")
        if isinstance(verdict, Refusal):
            yield self._refused(verdict, "admission")
            return
        if self.refused_by is not None and self.step == "admission":
            yield past.refused(rule=self.refused_by, step=self.step)
            return
        if not self.is_ready:
            return
        yield past.resolved(receipts=self.receipts, candidates=self.candidates)
        agent_id = self.override_to or request.requested_agent_id
        if agent_id != request.requested_agent_id:
            yield past.overridden(
                from_agent_id=request.requested_agent_id,
                to_agent_id=agent_id,
                candidates=self.candidates,
            )
        assert agent_id is not None
        if self.refused_by in _BY_OTHERS:
            yield past.refused(rule=self.refused_by, step="preparation")
            return
        run = run_of(request).changed({"agent_id": agent_id})
        planned = self._planned(ELIGIBILITY, run, under)
        if isinstance(planned, RefusedChild):
            looked_at = planned.facts
            if self.is_workspace_forgotten:
                looked_at = looked_at.changed({"workspace": None})
            yield self._refused(planned.refusal, "preparation", facts=looked_at)
        elif (rule := self._refused_step(run, under) or self.refused_by) is not None:
            yield past.refused(rule=rule, step=self.step, facts=planned.facts)
        else:
            yield from self._created(run, planned, under)

    def _refused_step(self, run: Run, under: Configuration) -> str | None:
        """Return the step that refuses the spawn, by the configuration or the record."""
        origin = read_origin(self.origin)
        channel, account = (
            str(origin[name]) if origin.get(name) else None for name in ("channel", "accountId")
        )
        binds = under.threads_of(channel, account).binds
        if run.thread and not (binds and under.spawnlog.hooks.subagent_spawning):
            return "thread_binding"
        is_there = run.requester.run_id is not None or self.has_transcript
        if self.fork and not (run.is_of_same_agent and is_there):
            return "context_fork"
        if run.attachments is not None and run.attachments.refusal is not None:
            return "attachments"
        return None

    def _attached(self, under: Configuration) -> AttachmentsRequest | None:
        """Return the attachments, or the reason for their refusal."""
        attached, limits = self.attachments, under.tools.sessions_spawn.attachments
        why = check_unread_attachments(attached.count if attached else 0, limits)
        if attached is None or why is None:
            return attached
        refusal = ref(why.text)
        return AttachmentsRequest(count=attached.count, refusal=refusal, refusal_status=why.status)

    def _request(self, under: Configuration) -> SpawnRequested:
        asks = requester(
            **{
                "display_key": self.display,
                "origin": self.texts.keep(self.origin),
                "sandboxed": self._is_sandboxed(under),
                **self.requester,
            }
        )
        given, own = self.agent_id, asks.agent_id
        is_id = given is None or is_valid_agent_id(given)
        target = (normalise_agent_id(given) if given else own) if is_id else None
        policy = policy_of(under, own)
        spawn_tool = None
        if self.own_plan is not None:
            spawn_tool = "permitted" if permits_tool(self.own_plan, SPAWN_TOOL) else "denied"
        name = (
            storable_model_name(self.model, under.model_aliases())
            if self.model is not None
            else None
        )
        level = normalise_thinking(self.thinking) if self.thinking is not None else None
        options = fact_of(
            SpawnOptions,
            {
                "mode": self.mode,
                "model": name,
                "thinking": level and self.thinking,
                "context": "fork" if self.fork else None,
                "light_context": self.light_context,
                **self.options,
            },
        )
        judged = facts(
            requester_agent_id=own,
            agent_id_argument_given=given is not None,
            target_agent_id=target,
            mode=self.mode,
            thread=self.thread,
            caller_depth=asks.depth,
            max_spawn_depth=policy.max_spawn_depth,
            active_children=self.active_children,
            max_children=policy.max_children,
            require_agent_id=policy.require_agent_id,
            allow_agents=policy.allow_agents,
            places=len(self.batch.run_ids) if self.batch is not None else 1,
            spawn_tool=spawn_tool,
        )
        plain = {
            "run_id": self.run_id,
            "requester": asks,
            "requested_agent_id": target,
            "options": options,
            "facts": judged,
            "task": self.texts.keep(self.task),
            "preamble": self.texts.keep(self.preamble),
            "model_argument": self.texts.keep(self.model) if name is None else None,
            "thinking_argument": self.texts.keep(self.thinking) if level is None else None,
            "workspace_argument": self.texts.keep("/srv/named") if self.folder else None,
            "attachments": self._attached(under),
            "batch": self.batch,
        }
        return requested(**(plain | dict(self.changes)))

    def _is_sandboxed(self, under: Configuration) -> bool:
        """Return True if the record, the configuration or the request says so. Each only
        tightens.
        """
        key = self.requester.get("session_key", ROOT)
        agents = {self.requester.get("agent_id", "main"), agent_id_of(key)}
        return (
            bool(self.is_boxed)
            or any(under.is_sandboxed(agent, key) for agent in agents)
            or bool(self.options.get("requester_sandboxed"))
        )

    def _planned(
        self, table: EligibilityTable, run: Run, under: Configuration
    ) -> PlannedChild | RefusedChild:
        assert run.agent_id is not None
        assert run.requester.sandboxed is not None
        request = PlanRequest(
            shape=shape_of(run),
            agent=under.effective_agent(run.agent_id),
            requester_sandboxed=run.requester.sandboxed,
            thinking_argument=self.thinking if run.thinking_argument is not None else None,
            credentials=self.credentials,
            chosen=self._workspace(run, under),
        )
        planned = plan_child(table, request)
        if isinstance(planned, RefusedChild):
            return planned
        return planned.changed({"plan": plan_with_hours(planned.plan, run, under)})

    def _workspace(self, run: Run, under: Configuration) -> ChosenWorkspace:
        assert run.agent_id is not None
        recorded = run.requester.workspace_dir if run.is_of_same_agent else None
        is_named = self.folder and run.is_of_same_agent
        found = WorkspaceFacts(
            source="requester" if recorded is not None or is_named else "agent", recorded=recorded
        )
        if self.unusable is not None:
            return ChosenWorkspace(found, self.unusable)
        own = under.effective_agent(run.agent_id).workspace or f"/srv/{run.agent_id}"
        chosen = recorded or ("/srv/named" if is_named else own)
        return ChosenWorkspace(found.changed({"chosen": chosen}))

    def _created(self, run: Run, planned: PlannedChild, under: Configuration) -> Iterable[RunEvent]:
        hooks = under.spawnlog.hooks.configured
        origin = self.texts.keep(self.thread_origin)
        yield past.prepared(agent_id=run.agent_id)
        yield past.created(
            agent_id=run.agent_id,
            depth=run.depth,
            max_depth=planned.agent.defaults.max_spawn_depth,
            role=planned.capabilities.role,
            control_scope=planned.capabilities.control_scope,
            plan=planned.plan,
            ingredients=self._ingredients(planned),
            warnings=(*planned.warnings, *self.warnings),
            facts=planned.facts,
            hooks=tuple(hook for hook in HOOK_ORDER if hook in hooks),
            delivery_origin=origin,
            direct_delivery=self._delivers(planned),
        )
        if self.announced:
            yield self._announced(run, under)

    def _delivers(self, planned: PlannedChild) -> bool:
        return (
            self.mode == "session"
            and self.thread_origin is not None
            and planned.agent.delivers_to_origin
            and is_routable(read_origin(self.thread_origin))
        )

    def _ingredients(self, planned: PlannedChild) -> tuple[Ingredient, ...]:
        limit = planned.agent.subagents.context_preamble_max_chars
        found = [self._kept("preamble", truncated_preamble(self.preamble or "", limit))]
        for number, text in enumerate(self.bootstrap):
            found.append(self._kept("bootstrap", text, source=f"bootstrap:{number}.md"))
        for place in ("prepend", "task", "append"):
            if place == "task":
                found.append(self._kept("task", self.task))
            for receipt in self.receipts:
                if receipt.injected is not None and receipt.position == place:
                    source = f"script:{receipt.id}"
                    found.append(
                        Ingredient(source=source, position=place, content=receipt.injected)
                    )
        return tuple(item for item in found if item.content.bytes)

    def _kept(self, position: str, text: str, *, source: str | None = None) -> Ingredient:
        content = self._text(text)
        members = {"source": source or position, "position": position, "content": content}
        return fact_of(Ingredient, members)

    def _text(self, text: str) -> ContentRef:
        return self.texts.require_kept(text)

    def _announced(self, run: Run, under: Configuration) -> RunEvent:
        there = None
        if run.requester.depth == 0:
            there = self.told_to or self.thread_origin or self.origin
        sent = receivers(under.spawnlog.announce, run.requester.agent_id, read_origin(there))
        return past.announced(webhooks=sent, origin=self.texts.keep(self.told_to))

    @staticmethod
    def _refused(refusal: Refusal, step: str, **changes: Any) -> RunEvent:
        values = {"rule": refusal.rule, "status": refusal.status, "text": ref(refusal.text)}
        return past.refused(**values, step=step, **changes)

    # What-if.

    def session(self, values: Values) -> Session:
        """Return the recorded session of the requester right after the request, which may have
        created it.
        """
        under = Configuration.model_validate(values)
        is_first = self.is_boxed is None
        first_seen = FIRST_POSITION - 1 if is_first else 1
        seen = observed(sandboxed=self._is_sandboxed(under) if is_first else self.is_boxed)
        provided_transcript = ProvidedTranscript(
            entries=1, content=ref("said"), by="test", position=1
        )
        transcript = provided_transcript if self.has_transcript else None
        return session_of(seen).changed({"created_position": first_seen, "transcript": transcript})

    def question(self, then: Values, now: Values, **changes: Any) -> ReplayCase:
        """Return the replay case with all recorded facts."""
        change = change_of(then, now)
        question = ReplayCase(
            record=self.record(then), change=change, announced=change if self.announced else None
        )
        if is_session_needed(question):
            question = question.changed({"requester": self.session(then)})
        return question.changed(changes)

    def again(
        self,
        then: Values,
        now: Values,
        *,
        erased: Collection[str] = (),
        decide: Callable[[ReplayCase, Mapping[UUID, str]], DecidedAgain] = decide_again,
        **changes: Any,
    ) -> DecidedAgain:
        """Return the decision that was recorded under the first configuration and is made again
        under the second.

        Only the texts that the decision asks for are available, except for the `erased`.
        """
        question = self.question(then, now, **changes)
        gone = {ref(item).id for item in erased}
        texts = {
            item.id: self.texts.known[item.id]
            for item in texts_needed(question)
            if item.id in self.texts.known and item.id not in gone
        }
        return decide(question, texts)


@dataclass(frozen=True, kw_only=True)
class Sent(Spawn):
    """A message to the session of a child.

    Attributes:
        is_paused: True if the previous run has yielded.
        preamble_kept: Stored part of the session's preamble.
    """

    is_paused: bool = False
    preamble_kept: str | None = None
    before_plan: Mapping[str, Any] = field(default_factory=dict)

    def record(self, values: Values) -> RecordedDecision:
        return recorded_decision(_steps(self.events(values)), before=self._before())

    def _is_sandboxed(self, under: Configuration) -> bool:
        """Return True if the requester was sandboxed when it spawned the child."""
        return bool(self.is_boxed) or bool(self.options.get("requester_sandboxed"))

    def _before(self) -> Run:
        run = run_of(*past.an_announced_run())
        if self.is_paused:
            run = run_of(*past.a_started_run(), past.ended(outcome="success", reason="yielded"))
        assert run.plan is not None
        plan = run.plan.changed({"workspace_source": "agent", **self.before_plan})
        return run.changed({"plan": plan})

    def _events(self, under: Configuration) -> Iterable[RunEvent]:
        most = under.subagent_defaults.max_children_per_agent
        counted = ContinuationFacts(active_children=self.active_children, max_children=most)
        spawned = self._request(under)
        # The name as the spawn recorded it, under the aliases of its revision.
        name = storable_model_name(self.model, {}) if self.model is not None else None
        received = continued.message_received(
            requester=spawned.requester,
            agent_id=spawned.requested_agent_id,
            depth=spawned.requester.depth + 1,
            message=self.texts.keep(self.task),
            model_argument=self.texts.keep(self.model) if name is None else None,
            thinking_argument=spawned.thinking_argument,
            thread=self.thread,
            delivery_origin=self.texts.keep(self.thread_origin),
            options=spawned.options.changed({"model": name}),
            facts=counted,
        )
        yield received
        if not self.is_paused and isinstance(refusal := admit(CONTINUATION, counted), Refusal):
            yield self._refused(refusal, "admission")
            return
        if not self.is_ready:
            return
        run = run_of(received)
        planned = self._planned(CONTINUED_ELIGIBILITY, run, under)
        if isinstance(planned, RefusedChild):
            yield self._refused(planned.refusal, "preparation", facts=planned.facts)
            return
        yield from self._created(run, planned, under)

    def _created(self, run: Run, planned: PlannedChild, under: Configuration) -> Iterable[RunEvent]:
        hooks = under.spawnlog.hooks.configured
        yield continued.planned(
            max_depth=planned.agent.defaults.max_spawn_depth,
            role=planned.capabilities.role,
            control_scope=planned.capabilities.control_scope,
            plan=planned.plan,
            ingredients=self._ingredients(planned),
            warnings=planned.warnings,
            facts=planned.facts,
            hooks=tuple(hook for hook in HOOKS_OF_ENDS if hook in hooks),
            direct_delivery=self._delivers(planned),
        )
        if self.announced:
            yield self._announced(run, under)

    def _ingredients(self, planned: PlannedChild) -> tuple[Ingredient, ...]:
        kept, *others = (
            self._kept("preamble", self.preamble_kept or ""),
            *super()._ingredients(planned),
        )
        return tuple(item for item in (kept, *others) if item.content.bytes)

    def _workspace(self, run: Run, under: Configuration) -> ChosenWorkspace:
        plan = self._before().plan
        assert plan is not None
        folder, source = plan.workspace_dir, plan.workspace_source
        return ChosenWorkspace(WorkspaceFacts(source=source, recorded=folder, chosen=folder))


def below(depth: int = 1, **changes: Any) -> dict[str, Any]:
    plain = {"session_key": CHILD, "display_key": CHILD, "depth": depth, "spawned_by": ROOT}
    return {**plain, "run_id": run_id(900), **changes}


def _steps(events: Iterable[RunEvent]) -> list[StreamEvent]:
    return [
        StreamEvent("", event, Stamp(FIRST_POSITION + number, number + 1, at(number)))
        for number, event in enumerate(events)
    ]


# Table cases: a decision, both configurations, and the expected verdict.


class Outcome(NamedTuple):
    """A verdict as it is written in a table.

    Attributes:
        difference: Field, recorded value and new value; compared if given, as are `missing` and
            `assumed`.
        text: Part of the text that the caller would get.
    """

    verdict: str = "same"
    rule: str | None = None
    difference: tuple[Any, ...] = ()
    missing: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    text: str = ""


AS_BEFORE = Outcome()


def refused(rule: str, text: str = "") -> Outcome:
    return Outcome("newly-refused", rule, ("/rule", None, rule), text=text)


def allowed(rule: str, *assumed: str) -> Outcome:
    return Outcome("newly-allowed", rule, ("/rule", rule, None), assumed=assumed)


def at_hand(agent_id: str) -> tuple[str, str]:
    """Return the assumptions about an agent that depend on this machine and are not recorded."""
    return (
        f'the credentials of agent "{agent_id}" are available',
        f'the workspace of agent "{agent_id}" can be used',
    )


def still_refused(before: str, now: str) -> Outcome:
    return Outcome("same", now, ("/rule", before, now))


def differs(kind: str, field: str, *values: Any) -> Outcome:
    """Return the outcome of an allowed spawn that differs in this field: recorded and new value."""
    return Outcome(f"different-{kind}", None, (field, *values))


def unknown(*missing: str) -> Outcome:
    return Outcome("not-replayable", missing=missing)


def check(found: Verdict, expected: Outcome) -> None:
    assert (found.verdict, found.rule) == (expected.verdict, expected.rule), found
    if expected.missing:
        assert found.missing == expected.missing
    if expected.assumed:
        assert found.assumed == expected.assumed
    assert expected.text in (found.text or "")
    if expected == AS_BEFORE:
        assert found == SAME
    elif expected.difference:
        assert found.difference is not None
        of = found.difference
        result = (of.field, of.recorded, of.decided)
        assert result[: len(expected.difference)] == expected.difference


class Case(NamedTuple):
    """A row: `options` are those of `Spawn.again`."""

    request: Spawn
    then: Values
    now: Values
    expected: Outcome
    options: Mapping[str, Any]

    def check(self) -> None:
        found = self.request.again(self.then, self.now, **self.options).verdict
        check(found, self.expected)


def case(
    spawn: Spawn, then: Values, now: Values, expected: Outcome = AS_BEFORE, **options: Any
) -> Case:
    return Case(spawn, then, now, expected, options)


def rows(cases: Mapping[str, Case]) -> pytest.MarkDecorator:
    """Run a test for each row, as `row`."""
    return pytest.mark.parametrize("row", cases.values(), ids=cases)
