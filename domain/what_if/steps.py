"""What-if for preparation steps: their results from the record, or the missing facts.

The stages ask first whether each step has anything to do, then for its result. A step that
succeeded under the same settings succeeds again. No hook is called and nothing is made.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from domain.configuration.configuration import Configuration
from domain.configuration.session import ThreadPolicy
from domain.context.attachments import check_unread_attachments
from domain.context.fork import no_transcript_refusal, other_agent_refusal
from domain.context.thread_binding import Origin, unavailable_thread
from domain.run.facts import STEP_ORDER, AttachmentsRequest, StepName
from domain.run.state import Run
from domain.session.state import Session
from domain.spawn.stages import names_of
from domain.values import rules
from domain.values.refusals import Refusal
from domain.what_if.change import Change
from domain.what_if.record import RecordedDecision
from domain.what_if.verdict import NotReplayableError

ENGINE = "hook prepareSubagentSpawn"
_UNTOLD = "?"
"""Placeholder text for a refusal that is the same as on record, so that its text is not needed."""
_RULES = {rule.name: rule for rule in rules.STEPS}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinding:
    """Finding about a step: at most one of the fields is set.

    If none is set, the step succeeds or has nothing to do.

    Attributes:
        refusal: The step refuses.
        missing: A fact that decides and is not on record.
        assumed: An assumption under which the step succeeds.
    """

    refusal: Refusal | None = None
    missing: str | None = None
    assumed: str | None = None


PASSES = StepFinding()


def is_conversation_needed(record: RecordedDecision) -> bool:
    """Return True if the decision needs the requester's session, to check a fork.

    The request asks for a fork, but was refused before its requester's transcript was checked.
    """
    run = record.run
    return (
        run.continues is None
        and run.options.context == "fork"
        and run.requester.run_id is None
        and record.refused is not None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedSteps:
    """Steps of a decision under the new configuration.

    Attributes:
        record: The recorded decision.
        run: The run with its new agent.
        change: The two configurations.
        requester: The requester's session right after the request; None if it is not needed.
        origin: Reads the requester's addresses.
        assumed: Assumptions made so far.
    """

    record: RecordedDecision
    run: Run
    change: Change
    requester: Session | None
    origin: Callable[[], Origin]
    assumed: list[str] = field(default_factory=list)

    def places(self) -> Mapping[StepName, bool | Refusal]:
        """Return whether each step has anything to do, up to the first that is refused.

        Raises:
            NotReplayableError: The record does not say.
        """
        found: dict[StepName, bool | Refusal] = {}
        for step in STEP_ORDER:
            found[step] = self._place(step)
            if isinstance(found[step], Refusal):
                break
        return found

    def _place(self, step: StepName) -> bool | Refusal:
        match step:
            case "thread_binding":
                return self._found(self._thread_needs()) or self.run.thread
            case "context_fork":
                is_asked = self._is_fork_required or self._was_refused_by(step)
                return self._found(self._fork_needs()) or is_asked
            case "attachments":
                is_asked = self.run.attachments is not None or self._was_refused_by(step)
                return self._found(self._attachments_need()) or is_asked
            case "workspace":
                # Only the file system knows which folders are missing.
                return False
            case "context_engine":
                hooks = self.change.now.configuration.spawnlog.hooks
                return hooks.prepare_subagent_spawn is not None

    def take(self, step: StepName) -> Refusal | None:
        """Return the refusal by a step, or None if it succeeds.

        Raises:
            NotReplayableError: The record does not say.
        """
        match step:
            case "thread_binding":
                return self._found(self._thread())
            case "context_fork":
                return self._found(self._fork())
            case "attachments":
                return self._found(self._attachments())
            case "context_engine":
                return self._found(self._engine())
            case "workspace":
                return None

    def _found(self, finding: StepFinding) -> Refusal | None:
        if finding.missing is not None:
            raise NotReplayableError(finding.missing)
        if finding.assumed is not None and finding.assumed not in self.assumed:
            self.assumed.append(finding.assumed)
        return finding.refusal

    # Recorded results.

    @property
    def _was_taken(self) -> bool:
        """Return True if all steps succeeded: the child was created, or refused after them."""
        refused = self.record.refused
        if refused is None:
            return self.record.created is not None
        later_rules = names_of("dependencies") | {rules.SHARED_CONTEXT.name}
        return refused.step != "admission" and refused.rule in later_rules

    @property
    def _is_same_agent(self) -> bool:
        """Return True if the agent is the recorded one."""
        return self.run.agent_id == self.record.agent_id

    def _was_refused_by(self, name: StepName) -> bool:
        refused = self.record.refused
        return refused is not None and refused.rule == name and refused.rule in _RULES

    def _recorded_refusal(self) -> StepFinding:
        """Return the recorded refusal, because its inputs are the same."""
        refused = self.record.refused
        assert refused is not None
        rule = _RULES[refused.rule]
        return StepFinding(refusal=rule.refusal(_UNTOLD, status=refused.status))

    def _hook_step(self, name: StepName, *, is_alike: bool, assumed: str) -> StepFinding:
        """Return the finding for a step that a hook performs, given the agent that will run."""
        if self._was_taken:
            return PASSES if is_alike and self._is_same_agent else StepFinding(assumed=assumed)
        if not self._was_refused_by(name):
            return StepFinding(assumed=assumed)
        if not is_alike:
            text = f"{name}: its settings changed (hooks or threadBindings)"
            return StepFinding(missing=text)
        if not self._is_same_agent:
            return StepFinding(missing=f"{name}: it was done for another agent")
        return self._recorded_refusal()

    # A thread.

    def _thread_needs(self) -> StepFinding:
        if not self.run.thread or (self._was_taken and self._is_bound_alike):
            return PASSES
        if self._binds(self.change.now.configuration):
            return PASSES
        return StepFinding(refusal=unavailable_thread(self.run.options.mode))

    def _thread(self) -> StepFinding:
        is_alike = self._is_bound_alike
        if self._was_taken and not is_alike:
            text = "the thread: its settings changed (hooks or threadBindings)"
            return StepFinding(missing=text)
        return self._hook_step("thread_binding", is_alike=is_alike, assumed="a thread is bound")

    @property
    def _is_bound_alike(self) -> bool:
        then, now = self.change.both
        hooks = [configuration.spawnlog.hooks.subagent_spawning for configuration in (then, now)]
        return hooks[0] == hooks[1] and self._threads(then) == self._threads(now)

    def _binds(self, configuration: Configuration) -> bool:
        """Return True if a hook binds threads in the requester's channel."""
        if configuration.spawnlog.hooks.subagent_spawning is None:
            return False
        return self._threads(configuration).binds

    def _threads(self, configuration: Configuration) -> ThreadPolicy:
        origin = self.origin()
        channel, account = (
            str(origin[name]) if origin.get(name) else None for name in ("channel", "accountId")
        )
        return configuration.threads_of(channel, account)

    # A conversation to begin with.

    @property
    def _is_fork_required(self) -> bool:
        """Return True if the request asks for a fork; only then can it be refused for one."""
        return self.run.options.context == "fork" or self.run.takes_transcript_over

    @property
    def _was_of_another_agent(self) -> bool:
        """Return True if the child was to have another agent than its requester."""
        return self.record.agent_id != self.run.requester.agent_id

    def _fork_needs(self) -> StepFinding:
        run = self.run
        if not self._is_fork_required or run.takes_transcript_over:
            return PASSES
        if self._was_taken and self._is_same_agent:
            return PASSES
        if not run.is_of_same_agent:
            return StepFinding(refusal=other_agent_refusal())
        is_looked_for = self._was_refused_by("context_fork") and not self._was_of_another_agent
        if is_looked_for or run.requester.run_id is not None:
            return PASSES
        if self.requester is None or self.requester.transcript is None:
            return StepFinding(refusal=no_transcript_refusal())
        return PASSES

    def _fork(self) -> StepFinding:
        if self._was_refused_by("context_fork"):
            is_of_others = self._was_of_another_agent and not self.run.takes_transcript_over
            if not is_of_others:
                return self._recorded_refusal()
        elif self._was_taken:
            return PASSES
        return StepFinding(assumed="its initial conversation can be forked")

    # Files.

    def _attachments_need(self) -> StepFinding:
        attached = self.run.attachments
        if attached is None:
            return PASSES
        then, now = (
            configuration.tools.sessions_spawn.attachments for configuration in self.change.both
        )
        if self._was_taken and then == now:
            return PASSES
        why = check_unread_attachments(attached.count, now)
        if why is not None:
            return StepFinding(refusal=rules.ATTACHMENTS.refusal(why.text, status=why.status))
        if attached.refusal is not None and then == now:
            status = attached.refusal_status or "error"
            return StepFinding(refusal=rules.ATTACHMENTS.refusal(_UNTOLD, status=status))
        if attached.refusal is None and (then == now or self._fit(attached)):
            return PASSES
        text = "the attachments: their limits changed, but the files are not on record"
        return StepFinding(missing=text)

    def _fit(self, attached: AttachmentsRequest) -> bool:
        """Return True if the accepted files fit the new limits, whatever their single sizes."""
        then, now = (
            configuration.tools.sessions_spawn.attachments for configuration in self.change.both
        )
        largest = min(attached.total_bytes, then.max_file_bytes)
        return (
            then.retain_on_session_keep == now.retain_on_session_keep
            and attached.total_bytes <= now.max_total_bytes
            and largest <= now.max_file_bytes
        )

    def _attachments(self) -> StepFinding:
        if self._was_refused_by("attachments"):
            # They were accepted but could not be written.
            if self._is_same_agent:
                return self._recorded_refusal()
            return StepFinding(missing="attachments: they were written for another agent")
        if self._was_taken and self._is_same_agent:
            return PASSES
        return StepFinding(assumed="the attachments can be written")

    # The hook that prepares spawns.

    def _engine(self) -> StepFinding:
        assumed, is_alike = f"{ENGINE} refuses nothing", self.change.has_same_prepare_hook
        return self._hook_step("context_engine", is_alike=is_alike, assumed=assumed)
