"""What-if: decide a recorded decision again under another configuration, from the record alone.

Nothing is run, looked up or written: the rules are functions of the recorded facts and the two
configurations. If a rule needs a fact that is not on record, the verdict names that fact.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from uuid import UUID

import msgspec
from pydantic import JsonValue

from domain.configuration.configuration import Configuration, EffectiveAgent
from domain.configuration.models import is_model_name
from domain.context.bootstrap_files import is_about_limits
from domain.context.preamble import preamble_sizes
from domain.context.thread_binding import Origin, is_routable, read_origin
from domain.delivery.webhook import receivers
from domain.plan.child import PlannedChild, RefusedChild
from domain.plan.credentials import NOTHING_FOUND, FoundCredentials, MissingCredential
from domain.plan.model import storable_model_name
from domain.plan.request import ChosenWorkspace
from domain.plan.tools import SPAWN_TOOL, permits_tool
from domain.run.events import MessageReceived, SessionCreated, SpawnRequested
from domain.run.facts import HOOK_ORDER, HOOKS_OF_ENDS, Plan
from domain.run.plan_facts import WorkspaceFacts
from domain.run.state import Run
from domain.session.shared_context import SHARED_BYTES_MAX, SHARED_KEYS_MAX
from domain.session.state import Session
from domain.spawn.admission import ADMISSION, CONTINUATION, admit
from domain.spawn.dependencies import dependency_verdict, request_field
from domain.spawn.dependency_rules import WAITS, DependencyFacts
from domain.spawn.pipeline import ChildFacts, Need
from domain.spawn.stages import MESSAGE_STAGES, SPAWN_STAGES, decide_child, names_of
from domain.values import rules
from domain.values.record import ContentRef, Fact
from domain.values.refusals import Refusal
from domain.values.rules import first_refusal
from domain.values.session_key import InvalidSessionKeyError, agent_id_of
from domain.what_if.change import Change
from domain.what_if.record import RecordedDecision
from domain.what_if.scripts import (
    CREDENTIALS_MISSING,
    ReplayedScripts,
    ScriptContribution,
    outputs_needed,
    recorded_scripts,
    replay_scripts,
)
from domain.what_if.steps import ENGINE, ReplayedSteps, is_conversation_needed
from domain.what_if.verdict import (
    SAME,
    DecisionDifference,
    NotReplayableError,
    Verdict,
    VerdictName,
    not_replayable,
)

ADMISSION_NAMES = frozenset(row.rule.name for row in ADMISSION)
REQUEST_NAMES = ADMISSION_NAMES | names_of("dependencies")
"""Rules that permit or refuse all runs of one request together."""
_TARGET = "hook subagentDeliveryTarget"
_UNREAD = "?"
"""Placeholder for a text that affects only the message to the caller, not the decision."""


@dataclass(frozen=True, slots=True)
class HypotheticalSession:
    """Hypothetical changes to a child's session; None means unchanged or absent.

    Attributes:
        agent_id: The agent that it would belong to.
        plan: The plan of its newest run.
        named_model: The model that the alias in its spawn would resolve to.
        workspace: The folder configured for the agent that it inherits its folder from, then and
            now.
    """

    agent_id: str | None = None
    plan: Plan | None = None
    named_model: str | None = None
    workspace: tuple[str | None, str | None] | None = None


AS_RECORDED = HypotheticalSession()


@dataclass(frozen=True, slots=True)
class ResolvedNames:
    """Resolution of the run names in a request.

    Attributes:
        refusal: The refusal, if a name matches no run now.
        unknown: Facts about the names that are not on record.
    """

    refusal: Refusal | None = None
    unknown: tuple[str, ...] = ()


AS_NAMED = ResolvedNames()


class ReplayCase(Fact):
    """Recorded decision, with the circumstances under which to decide it again.

    Attributes:
        record: The decision.
        change: The configuration of the decision, and the one that replaces it.
        announced: The same for the time of its announcement; None if it was not announced.
        requester: The requester's session right after the request, if `is_session_needed`.
        active_children: How many places of the requester would be taken; None means as recorded.
        requester_now: Hypothetical changes to the requester's session.
        session_now: For a message: hypothetical changes to the session that receives it.
        names: How the run names in the request would resolve.
        waits_for: The runs from `waits_for_needed`, in their state at that time.
        is_unaffected: For a spawn that is still being prepared: True if it depends on nothing that
            differs.
    """

    record: RecordedDecision
    change: Change
    announced: Change | None = None
    requester: Session | None = None
    active_children: int | None = None
    requester_now: HypotheticalSession = AS_RECORDED
    session_now: HypotheticalSession = AS_RECORDED
    names: ResolvedNames = AS_NAMED
    waits_for: Mapping[UUID, Run] = msgspec.field(default_factory=dict)
    is_unaffected: bool = False


@dataclass(frozen=True, slots=True)
class DecidedAgain:
    """Verdict, with the inputs for the prompt if the child would be created.

    Attributes:
        planned: The plan of the child.
        scripts: The results of its context scripts.
        session: Hypothetical changes to its session.
    """

    verdict: Verdict
    planned: PlannedChild | None = None
    scripts: ReplayedScripts | None = None
    session: HypotheticalSession = AS_RECORDED


def _run_of(question: ReplayCase) -> Run:
    """Return the run as requested, but with the requester's hypothetical plan."""
    run, plan = question.record.run, question.requester_now.plan
    if plan is None:
        return run
    inherited = {"model": plan.model_reference, "thinking": plan.thinking}
    sandboxed = {"sandboxed": plan.sandboxed}
    return run.changed({"requester": run.requester.changed({**inherited, **sandboxed})})


def texts_needed(question: ReplayCase) -> list[ContentRef]:
    """Return references to the texts beside the log that the decision needs."""
    record, run, change = question.record, question.record.run, question.change
    refs: list[ContentRef | None] = []
    is_spawn = run.continues is None
    if is_spawn and run.requested_agent_id is not None:
        refs += outputs_needed(record, change.agent(run.requested_agent_id).scripts)
    if is_spawn and run.model_argument is not None and change.is_alias_changed:
        refs.append(run.model_argument)
    if run.thread or run.options.mode == "session" or _are_receivers_changed(question):
        refs += [run.requester.origin, run.delivery_origin]
        if isinstance(record.created, SessionCreated):
            refs.append(record.created.delivery_origin)
        if record.announced is not None:
            refs.append(record.announced.origin)
    agent_id = record.agent_id
    if run.preamble is not None and agent_id is not None:
        before, limit = change.agent(agent_id).preamble_limits
        if before != limit:
            refs.append(run.preamble)
    return [ref for ref in refs if ref is not None]


def waits_for_needed(request: SpawnRequested) -> tuple[UUID, ...]:
    """Return the ids of runs whose state at that time is needed.

    These are the named dependencies and the ancestors, if admission refused the request before the
    dependencies were checked.
    """
    if not request.dependencies:
        return ()
    is_refused = isinstance(admit(ADMISSION, request.facts, raw_agent_id=_UNREAD), Refusal)
    named = (dependency.run_id for dependency in request.dependencies)
    return (*named, *request.ancestors) if is_refused else ()


def is_session_needed(question: ReplayCase) -> bool:
    """Return True if the requester's session has to be read for this decision.

    It shows whether the requester is sandboxed on record or only was by the old configuration, and
    whether it has a transcript to fork.
    """
    run = question.record.run
    return is_conversation_needed(question.record) or (
        run.continues is None
        and bool(run.requester.sandboxed)
        and not run.options.requester_sandboxed
        and _is_configured_sandboxed(run, question.change.then.configuration)
        and not _is_configured_sandboxed(run, question.change.now.configuration)
    )


def _is_configured_sandboxed(run: Run, configuration: Configuration) -> bool:
    requester = run.requester
    agents = {requester.agent_id, agent_id_of(requester.session_key)}
    return any(configuration.is_sandboxed(agent_id, requester.session_key) for agent_id in agents)


def _are_receivers_changed(question: ReplayCase) -> bool:
    return question.announced is not None and not question.announced.has_same_receivers


def decide_again(question: ReplayCase, texts: Mapping[UUID, str]) -> DecidedAgain:
    """Return the verdict on a decision.

    Args:
        question: The decision and its circumstances.
        texts: The texts from `texts_needed`, by content id; erased ones are absent.
    """
    try:
        return _DecisionAgain(question, texts).decide()
    except NotReplayableError as unknown:
        missing = tuple(dict.fromkeys(unknown.missing))
        return DecidedAgain(Verdict(verdict="not-replayable", missing=missing))


class _DecisionAgain:
    """Replay of one decision. `_assumed` collects the assumptions."""

    def __init__(self, question: ReplayCase, texts: Mapping[UUID, str]) -> None:
        self._record = question.record
        self._run = _run_of(question)
        self._question = question
        self._change = question.change
        self._then = question.change.then.configuration
        self._now = question.change.now.configuration
        self._texts = texts
        self._assumed: list[str] = []
        self._named_model: str | None = None

    def decide(self) -> DecidedAgain:
        record = self._record
        if not record.is_decided and self._question.is_unaffected:
            return DecidedAgain(SAME)
        self._require_same_session()
        refusal, names = self._admission(), self._question.names
        if refusal is None and names.unknown:
            raise NotReplayableError(*names.unknown)
        refusal = refusal or names.refusal
        if not record.is_decided and (refusal is None or self._was_not_admitted()):
            raise NotReplayableError(
                "it is still being prepared, so there is no decision to compare with"
            )
        if refusal is not None:
            return self._refused(refusal)
        is_newly_admitted = self._refused_rule in ADMISSION_NAMES
        if self._is_refused_in(("admission",)) and not is_newly_admitted:
            return DecidedAgain(SAME)
        if self._refused_rule in _OTHER_RULES:
            return DecidedAgain(SAME)
        if is_newly_admitted and self._is_a_name_unbound:
            # It would be refused by a rule about names; which one is not on record.
            return DecidedAgain(SAME)
        refusal = self._request_refusal() if is_newly_admitted else None
        if refusal is not None:
            return self._refused(refusal)
        scripts = None if is_newly_admitted else self._scripts()
        child = self._child(scripts)
        if isinstance(child, RefusedChild):
            return self._refused(child.refusal)
        planned = child.plan
        if record.refused is None:
            assert scripts is not None
            verdict = self._compare(child, scripts)
            return DecidedAgain(verdict, planned, scripts, self._session(verdict, planned))
        if self._refused_rule not in _BEFORE_CREATION:
            # A shared-context or dependency rule refused it after all configured rules.
            return DecidedAgain(SAME)
        return self._allowed(planned, scripts)

    # Admission.

    def _require_same_session(self) -> None:
        requester = self._run.requester
        is_known = self._run.continues is not None or requester.run_id is not None
        if is_known or self._change.has_same_session_keys:
            return
        try:
            means: str | None = self._now.canonical_key(requester.display_key)
        except InvalidSessionKeyError:
            means = None
        if means != requester.session_key:
            raise NotReplayableError(
                "the requester: its key means another session under this configuration"
            )

    def _admission(self) -> Refusal | None:
        request = self._record.request
        if isinstance(request, MessageReceived):
            return self._continuation(request)
        changes = {**self._change.agent(request.facts.requester_agent_id).limits}
        if self._question.active_children is not None:
            changes["active_children"] = self._question.active_children
        plan = self._question.requester_now.plan
        if plan is not None and request.facts.spawn_tool is not None:
            changes["spawn_tool"] = "permitted" if permits_tool(plan, SPAWN_TOOL) else "denied"
        verdict = admit(ADMISSION, request.facts.changed(changes), raw_agent_id=_UNREAD)
        return verdict if isinstance(verdict, Refusal) else None

    def _was_not_admitted(self) -> bool:
        """Return True if admission refused the request; the refusal itself was just not read."""
        request = self._record.request
        if isinstance(request, MessageReceived):
            return isinstance(admit(CONTINUATION, request.facts), Refusal)
        return isinstance(admit(ADMISSION, request.facts, raw_agent_id=_UNREAD), Refusal)

    def _continuation(self, request: MessageReceived) -> Refusal | None:
        before = self._record.before
        if before is not None and before.is_paused:
            return None
        changes: dict[str, object] = {
            "max_children": self._now.subagent_defaults.max_children_per_agent
        }
        if self._question.active_children is not None:
            changes["active_children"] = self._question.active_children
        verdict = admit(CONTINUATION, request.facts.changed(changes))
        return verdict if isinstance(verdict, Refusal) else None

    @property
    def _refused_rule(self) -> str | None:
        return self._record.refused.rule if self._record.refused is not None else None

    def _is_refused_in(self, steps: Iterable[str]) -> bool:
        refused = self._record.refused
        return refused is not None and refused.step in steps

    def _refused(self, refusal: Refusal) -> DecidedAgain:
        recorded = self._refused_rule
        if recorded is None:
            difference = DecisionDifference(field="/rule", recorded=None, decided=refusal.rule)
            verdict = Verdict(
                verdict="newly-refused",
                rule=refusal.rule,
                text=refusal.text,
                difference=difference,
                assumed=tuple(self._assumed),
            )
            return DecidedAgain(verdict)
        if recorded == refusal.rule:
            return DecidedAgain(SAME)
        # Refused either way; the difference shows the rule that refuses now.
        difference = DecisionDifference(field="/rule", recorded=recorded, decided=refusal.rule)
        return DecidedAgain(Verdict(verdict="same", rule=refusal.rule, difference=difference))

    @property
    def _is_a_name_unbound(self) -> bool:
        """Return True if a dependency name matched no run, or several."""
        request = self._record.request
        return isinstance(request, SpawnRequested) and request.dependencies_argument is not None

    def _request_refusal(self) -> Refusal | None:
        """Check the remaining rules of admission, which the recorded refusal had skipped.

        They concern shared context and dependencies. A message has neither, nor context scripts.
        """
        request = self._record.request
        if not isinstance(request, SpawnRequested):
            return None
        agent_id = request.requested_agent_id
        assert agent_id is not None
        scripts = self._now.effective_agent(agent_id).context_scripts
        self._assumed += [
            f'context script "{script.id}" proposes no other agent' for script in scripts
        ]
        return self._shared_refusal(request) or self._waits_refusal(request)

    def _shared_refusal(self, request: SpawnRequested) -> Refusal | None:
        """Check the size of the shared context, which is on record except for references."""
        size, keys = request.facts.shared_bytes, request.facts.shared_keys
        if (size or 0) > SHARED_BYTES_MAX or (keys or 0) > SHARED_KEYS_MAX:
            return rules.SHARED_CONTEXT.refusal(_UNREAD)
        if request.shared is not None and (size is None or request.shared.references):
            self._assumed.append("the shared context fits the limits")
        return None

    def _waits_refusal(self, request: SpawnRequested) -> Refusal | None:
        """Check the dependencies against the state of these runs at that time."""
        runs = self._question.waits_for
        for run_id in request.ancestors:
            if run_id not in runs:
                raise NotReplayableError(f"run {run_id} above the spawn")
        for dependency in request.dependencies:
            if dependency.run_id not in runs:
                raise NotReplayableError(
                    f"run {dependency.run_id}, which {request_field(dependency)} names"
                )
            facts = DependencyFacts(
                dependency=dependency, ancestors=request.ancestors, waiting=(), runs=runs
            )
            refusal = first_refusal(WAITS, facts)
            if refusal is not None:
                return refusal
            if request.ancestors and dependency_verdict(dependency, facts.target) == "waits":
                raise NotReplayableError(
                    f"whether run {dependency.run_id} waits for one above the spawn"
                )
        return None

    def _allowed(self, planned: PlannedChild, scripts: ReplayedScripts | None) -> DecidedAgain:
        difference = DecisionDifference(field="/rule", recorded=self._refused_rule, decided=None)
        verdict = Verdict(
            verdict="newly-allowed",
            rule=self._refused_rule,
            difference=difference,
            assumed=tuple(dict.fromkeys(self._assumed)),
        )
        return DecidedAgain(verdict, planned, scripts)

    # Scripts and plan.

    def _scripts(self) -> ReplayedScripts:
        record, requested = self._record, self._run.requested_agent_id
        if self._run.continues is not None or requested is None:
            return ReplayedScripts()
        change = self._change.agent(requested).scripts
        if record.scripts is None:
            # The spawn was refused before all scripts had run.
            if change.is_nothing:
                return recorded_scripts(record)
            raise NotReplayableError(
                "the context scripts: they had not run when the spawn was refused"
            )
        for candidate in record.scripts.candidates:
            if candidate.verdict == CREDENTIALS_MISSING and candidate.agent_id is not None:
                self._require_same_credentials(candidate.agent_id)
        return replay_scripts(record, change, self._texts)

    def _require_same_credentials(self, agent_id: str) -> None:
        """Raise unless credentials of this agent are looked up as before.

        A script proposed the agent, which was passed over because its credentials were missing.
        """
        agent = self._change.agent(agent_id)
        if agent.now.is_configured and agent.are_credentials_elsewhere:
            raise NotReplayableError(
                f'the credentials of agent "{agent_id}", which a context script proposed: with'
                " its current runtime and folder"
            )

    # The child: the same stages as on a server; needs are answered from the record.

    def _child(self, scripts: ReplayedScripts | None) -> ChildFacts | RefusedChild:
        """Run the stages of a spawn or a message."""
        run, question = self._run, self._question
        agent_id = scripts.override_to if scripts is not None else None
        agent_id = agent_id or question.session_now.agent_id or run.requested_agent_id
        assert agent_id is not None
        facts = ChildFacts(
            run=run.changed({"agent_id": agent_id, **self._model_argument()}),
            configuration=self._now,
            requester_sandboxed=self._requester_sandboxed(),
            thinking_argument=_UNREAD if run.thinking_argument is not None else None,
            agent_id=agent_id,
        )
        steps = ReplayedSteps(
            record=self._record,
            run=facts.run,
            change=self._change,
            requester=question.requester,
            origin=lambda: self._origin(run.requester.origin),
        )
        stages = SPAWN_STAGES if run.continues is None else MESSAGE_STAGES
        facts, found = decide_child(stages, facts)
        while isinstance(found, Need):
            facts, found = decide_child(stages, self._answered(facts, found, steps))
        if found is not None:
            return found
        self._assumed += steps.assumed
        return facts

    def _answered(self, facts: ChildFacts, need: Need, steps: ReplayedSteps) -> ChildFacts:
        """Return the facts with a need answered from the record."""
        if need.fact == "credentials":
            return facts.changed({"credentials": self._credentials(facts.agent)})
        if need.fact == "workspace":
            return facts.changed({"workspace": self._workspace(facts.agent)})
        if need.fact == "places":
            return facts.changed({"places": steps.places()})
        assert need.step is not None
        return facts.with_step(need.step, steps.take(need.step))

    def _model_argument(self) -> dict[str, object]:
        """Return the changes to the run for the model that its request names.

        Text that was not a model name then may be an alias now. An alias is recorded as the model
        that it resolved to, so the alias itself is unknown.
        """
        run = self._run
        if run.continues is not None:
            # A session continues with the model argument of its spawn, recorded or hypothetical.
            return self._named(self._question.session_now.named_model)
        if not self._change.is_alias_changed:
            return {}
        before, aliases = self._change.aliases
        if run.model_argument is None:
            given = [alias for alias, model in before.items() if model == run.options.model]
            if any(
                aliases.get(alias) != before[alias] and not is_model_name(alias) for alias in given
            ):
                raise NotReplayableError(
                    "the requested model: it may be an alias that means another model now"
                )
            return {}
        text = self._texts.get(run.model_argument.id)
        if text is None:
            raise NotReplayableError("the requested model: its text was erased")
        return self._named(storable_model_name(text, aliases))

    def _named(self, model: str | None) -> dict[str, object]:
        """Return the changes to a run whose request names this model."""
        self._named_model = model
        if model is None:
            return {}
        options = self._run.options.changed({"model": model})
        return {"model_argument": None, "options": options}

    def _requester_sandboxed(self) -> bool:
        """Return True if the requester is in a sandbox.

        The record, the new configuration and the request can each only tighten this. A requester
        seen for the first time with this request would be recorded by the new configuration.
        """
        run = self._run
        if run.continues is not None:
            # As recorded when it spawned the child.
            return run.options.requester_sandboxed or run.requester.sandboxed
        if run.options.requester_sandboxed or _is_configured_sandboxed(run, self._now):
            return True
        session = self._question.requester
        if session is None or self._question.requester_now.plan is not None:
            return run.requester.sandboxed
        members = run.batch.index if run.batch is not None else 0
        is_first_seen = session.created_position >= run.created_position - 1 - members
        return session.sandboxed and not is_first_seen

    def _credentials(self, agent: EffectiveAgent) -> FoundCredentials:
        record = self._record
        facts = record.facts.credentials if record.facts is not None else None
        is_same = agent.id == record.agent_id
        if facts is None or not is_same:
            if agent.is_configured:
                self._assumed.append(f'the credentials of agent "{agent.id}" are available')
            return NOTHING_FOUND
        if self._change.agent(agent.id).are_credentials_elsewhere:
            if self._refused_rule == rules.CREDENTIALS.name:
                raise NotReplayableError(
                    f'the credentials of agent "{agent.id}": with its current runtime and folder'
                )
            self._assumed.append(f'the credentials of agent "{agent.id}" are available')
        given = record.created.plan.auth_profiles if record.created is not None else ()
        missing = tuple(MissingCredential(name, name) for name in facts.missing)
        return FoundCredentials(facts.profile_ids, given, missing)

    def _workspace(self, agent: EffectiveAgent) -> ChosenWorkspace:
        """Return the recorded folder; the record does not show where another path leads."""
        record = self._record
        facts = record.facts.workspace if record.facts is not None else None
        is_same = agent.id == record.agent_id
        if facts is None and is_same and self._refused_rule == rules.WORKSPACE.name:
            if not self._are_workspaces_unchanged(agent.id):
                raise NotReplayableError("the workspace: its folder is not recorded")
            return ChosenWorkspace(WorkspaceFacts(source="agent", recorded=None), _UNREAD)
        if (facts is None or not is_same) and self._run.continues is not None:
            # A continued session works in the folder of its previous run.
            before = record.before.plan if record.before is not None else None
            source = before.workspace_source if before is not None else None
            worked_in = WorkspaceFacts(source=source or "agent", recorded=None)
            return ChosenWorkspace(facts or worked_in)
        if facts is None or not is_same:
            self._assumed.append(f'the workspace of agent "{agent.id}" can be used')
            return ChosenWorkspace(facts or WorkspaceFacts(source="agent", recorded=None))
        if self._refused_rule == rules.WORKSPACE.name:
            if self._is_workspace_unchanged(agent, facts):
                return ChosenWorkspace(facts, _UNREAD)
            raise NotReplayableError(
                "the workspace: whether the folder could be used is not recorded"
            )
        return ChosenWorkspace(facts)

    def _are_workspaces_unchanged(self, agent_id: str) -> bool:
        return self._change.agent(agent_id).is_workspace_same and self._change.are_roots_same

    def _is_workspace_unchanged(self, agent: EffectiveAgent, facts: WorkspaceFacts) -> bool:
        if facts.source == "agent":
            return self._change.agent(agent.id).is_workspace_same
        # A requested folder must be below a workspace root or in the agent's own folder.
        return facts.recorded is not None or self._are_workspaces_unchanged(agent.id)

    def _origin(self, ref: ContentRef | None) -> Origin:
        if ref is None:
            return {}
        text = self._texts.get(ref.id)
        if text is None:
            raise NotReplayableError("the requester's addresses: they were erased")
        return read_origin(text)

    # Comparison with the record: the first difference.

    def _compare(self, child: ChildFacts, scripts: ReplayedScripts) -> Verdict:
        created, planned, agent_id = self._record.created, child.plan, child.agent.id
        assert created is not None
        if agent_id == self._record.agent_id:
            # Raise first if it is unknown whether the folder may be used.
            self._workspaces(planned)
        found: tuple[tuple[VerdictName, DecisionDifference | None], ...] = (
            ("different-agent", _differs("/agentId", self._record.agent_id, agent_id)),
            (
                "different-model",
                _differs("/model", created.plan.model_reference, planned.plan.model_reference),
            ),
        )
        for name, difference in found:
            if difference is not None:
                return self._different(name, difference)
        difference = self._plan_difference(created.plan, planned)
        if difference is not None:
            return self._different("different-plan", difference)
        try:
            verdict = self._compare_context(agent_id, planned, scripts)
        except NotReplayableError as unknown:
            if self._has_new_prepare_hook():
                raise
            # The plan is the same, so the child is created in any case.
            return not_replayable(*unknown.missing)
        if verdict is not None:
            return verdict
        if self._has_new_prepare_hook():
            raise NotReplayableError(f"the preparation: its context engine changed ({ENGINE})")
        return SAME.changed({"assumed": tuple(dict.fromkeys(self._assumed))})

    def _compare_context(
        self, agent_id: str, planned: PlannedChild, scripts: ReplayedScripts
    ) -> Verdict | None:
        """Compare the context of the child, and the receivers of its announcement."""
        difference = self._context_difference(agent_id, planned, scripts)
        if difference is not None:
            return self._different("different-context", difference)
        difference = self._announcement_difference(planned.agent)
        if difference is not None:
            return self._different("different-announcement", difference)
        return None

    def _has_new_prepare_hook(self) -> bool:
        """Return True if a hook would prepare the spawn that did not then; it could refuse it."""
        return self._run.continues is None and not self._change.has_same_prepare_hook

    def _different(self, name: VerdictName, difference: DecisionDifference) -> Verdict:
        return Verdict(
            verdict=name, difference=difference, assumed=tuple(dict.fromkeys(self._assumed))
        )

    def _plan_difference(self, recorded: Plan, planned: PlannedChild) -> DecisionDifference | None:
        created = self._record.created
        assert created is not None
        role, scope = planned.capabilities.role, planned.capabilities.control_scope
        hooks = self._now.spawnlog.hooks.configured
        # A continued session is not spawned again, so only the hooks for the end are called.
        called = HOOK_ORDER if self._run.continues is None else HOOKS_OF_ENDS
        # Only configured paths are compared; their real paths are not on record.
        folder, folder_now = self._workspaces(planned)
        return (
            _differs("/role", created.role, role)
            or _differs("/controlScope", created.control_scope, scope)
            or _first_difference(_PLAN_FIELDS, _plan_values(recorded), _plan_values(planned.plan))
            or _differs("/hooks", created.hooks, tuple(hook for hook in called if hook in hooks))
            or _differs("/workspaceDir", folder, folder_now)
        )

    def _workspaces(self, planned: PlannedChild) -> tuple[str | None, str | None]:
        """Return the configured folder, then and now, of the agent in whose folder the child works.

        That is the child's own agent, the agent that its requester inherited its folder from, or
        for a message the agent in whose folder the session began.

        Raises:
            NotReplayableError: Whether a requested folder is allowed now is not on record.
        """
        facts, agent, question = planned.facts.workspace, planned.agent, self._question
        if self._run.continues is not None:
            return question.session_now.workspace or (None, None)
        if facts is None:
            return None, None
        if facts.source == "agent":
            return self._change.agent(agent.id).then.workspace, agent.workspace
        request = self._record.request
        is_named = isinstance(request, SpawnRequested) and request.workspace_argument is not None
        if facts.recorded is None and not self._are_workspaces_unchanged(agent.id):
            raise NotReplayableError(
                "the workspace: whether the requested folder is below workspaceRoots or the"
                " agent's own folder is not recorded"
            )
        inherited = question.requester_now.workspace if facts.recorded is not None else None
        if inherited is not None and is_named:
            raise NotReplayableError(
                "the workspace: whether the requested folder is below its requester's is not"
                " recorded"
            )
        return inherited or (None, None)

    def _session(self, verdict: Verdict, planned: PlannedChild) -> HypotheticalSession:
        """Return the hypothetical changes to the child's session."""
        name, named_model = verdict.verdict, self._named_model
        if name == "different-agent":
            return HypotheticalSession(agent_id=planned.agent.id, named_model=named_model)
        if name not in ("different-model", "different-plan"):
            return HypotheticalSession(named_model=named_model) if named_model else AS_RECORDED
        folders = self._workspaces(planned)
        workspace = folders if folders[0] != folders[1] else None
        return HypotheticalSession(None, planned.plan, named_model, workspace)

    def _context_difference(
        self, agent_id: str, planned: PlannedChild, scripts: ReplayedScripts
    ) -> DecisionDifference | None:
        created = self._record.created
        assert created is not None
        difference = None
        if self._run.continues is None:
            # The first message contains the maximum depth. Later prompts contain only whether this
            # session may have children, which follows from its role.
            now_depth = planned.agent.defaults.max_spawn_depth
            difference = _differs("/maxSpawnDepth", created.max_depth, now_depth)
            recorded = recorded_scripts(self._record).contributions
            if difference is None and scripts.contributions != recorded:
                message, now = (
                    _shown(_in_message(contributions))
                    for contributions in (recorded, scripts.contributions)
                )
                difference = _differs("/contextScripts", message, now)
        return difference or self._preamble_difference(agent_id) or self._bootstrap(agent_id)

    def _preamble_difference(self, agent_id: str) -> DecisionDifference | None:
        run, limits = self._run, self._change.agent(agent_id).preamble_limits
        if limits[0] != limits[1] and run.continues is not None:
            self._require_whole_preamble(min(limits))
        if run.preamble is None or limits[0] == limits[1]:
            return None
        text = self._texts.get(run.preamble.id)
        if text is None:
            raise NotReplayableError("the preamble: its text was erased")
        kept = [preamble_sizes(text, limit).kept_characters for limit in limits]
        return _differs("/contextPreamble/keptCharacters", kept[0], kept[1])

    def _require_whole_preamble(self, characters_max: int) -> None:
        """Raise unless the recorded preamble is within this limit.

        If the session's preamble was longer, only the truncated text is on record.
        """
        created = self._record.created
        assert created is not None
        texts = [
            ingredient.content
            for ingredient in created.ingredients
            if ingredient.position == "preamble"
        ]
        if any(text.bytes > characters_max for text in texts):
            raise NotReplayableError(
                "the preamble of the session: only its truncated text is on record"
            )

    def _bootstrap(self, agent_id: str) -> DecisionDifference | None:
        created, agent = self._record.created, self._change.agent(agent_id)
        assert created is not None
        if agent.is_bootstrap_cut_alike or self._run.options.light_context:
            return None
        limits = agent.now.bootstrap
        sources = [
            ingredient.source
            for ingredient in created.ingredients
            if ingredient.position == "bootstrap"
        ]
        cut = any(map(is_about_limits, created.warnings))
        sizes = {ingredient.source: ingredient.content.bytes for ingredient in created.ingredients}
        shortest = min(limits.chars_max, limits.total_chars_max)
        if not cut and sum(sizes[source] for source in sources) <= shortest:
            return None
        raise NotReplayableError(
            "the bootstrap files: only their text within the earlier limits is on record"
        )

    def _announcement_difference(self, agent: EffectiveAgent) -> DecisionDifference | None:
        record, run = self._record, self._run
        created, announced = record.created, record.announced
        assert created is not None
        origin = created.delivery_origin if isinstance(created, SessionCreated) else None
        origin = origin or run.delivery_origin
        delivers = (
            run.options.mode == "session"
            and origin is not None
            and agent.delivers_to_origin
            and is_routable(self._origin(origin))
        )
        difference = _differs("/directDelivery", created.direct_delivery, delivers)
        if difference is not None or announced is None or announced.disposition != "inbox":
            return difference
        if run.requester.depth == 0 and origin is None:
            targets = [
                configuration.spawnlog.hooks.subagent_delivery_target
                for configuration in (self._then, self._now)
            ]
            had_target = targets[0] is not None and announced.origin is not None
            if had_target and targets[1] is None:
                return _differs("/announcement/origin", _TARGET, None)
            if targets[1] is not None and targets[0] != targets[1]:
                raise NotReplayableError(f"the destination of its result: {_TARGET} changed")
        if not _are_receivers_changed(self._question):
            return None
        there = announced.origin or origin or run.requester.origin
        if run.requester.depth > 0:
            there = None
        assert self._question.announced is not None
        sends = self._question.announced.now.configuration.spawnlog.announce
        sent = receivers(sends, run.requester.agent_id, self._origin(there))
        return _differs("/webhooks", announced.webhooks, sent)


_BEFORE_CREATION = ADMISSION_NAMES | names_of("plan", "steps")
_OTHER_RULES = names_of("other")
_PLAN_FIELDS = {
    "model_applied": "/modelApplied",
    "thinking": "/thinking",
    "run_timeout_seconds": "/runTimeoutSeconds",
    "sandboxed": "/sandboxed",
    "tools_allow": "/tools/allow",
    "tools_deny": "/tools/deny",
    "runtime": "/runtime",
    "auth_profiles": "/authProfiles",
    "archive_after_minutes": "/archiveAfterMinutes",
    "idle_hours": "/idleHours",
    "max_age_hours": "/maxAgeHours",
    "cost_input_usd_per_million": "/prices/input",
    "cost_output_usd_per_million": "/prices/output",
}
"""Compared fields of a plan, with their JSON pointers."""
_plan_values = attrgetter(*_PLAN_FIELDS)


def _in_message(contributions: Sequence[ScriptContribution]) -> list[ScriptContribution]:
    """Return the contributions in message order: those before the task first."""
    return sorted(contributions, key=lambda contribution: contribution.position != "prepend")


def _shown(contributions: Sequence[ScriptContribution]) -> list[JsonValue]:
    """Return script, position and text of each contribution; a recorded text by its hash."""
    return [
        {
            "script": contribution.script_id,
            "position": contribution.position,
            "hmac": contribution.injected.hmac if contribution.injected is not None else None,
            "bytes": contribution.injected.bytes
            if contribution.injected
            else len((contribution.text or "").encode()),
        }
        for contribution in contributions
    ]


def _differs(field: str, recorded: object, decided: object) -> DecisionDifference | None:
    if recorded == decided:
        return None
    return DecisionDifference(field=field, recorded=_json(recorded), decided=_json(decided))


def _first_difference(
    fields: Mapping[str, str], recorded: Sequence[object], decided: Sequence[object]
) -> DecisionDifference | None:
    """Return the first difference of the values, named by these fields."""
    if recorded == decided:
        return None
    found = map(_differs, fields.values(), recorded, decided)
    return next((difference for difference in found if difference is not None), None)


def _json(value: object) -> JsonValue:
    if isinstance(value, tuple | list):
        return [_json(member) for member in value]
    if isinstance(value, dict):
        return {str(name): _json(member) for name, member in value.items()}
    assert value is None or isinstance(value, bool | int | float | str)
    return value
