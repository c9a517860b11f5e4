"""The steps behind the plan, decided again: what the record says of each, and what it does not.

The stages ask for each step first whether it has anything to do, and then what came of it. What was
taken under the same settings is taken again, whatever they are. Nothing is asked or made.
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
from domain.what_if.verdict import NotReplayable

ENGINE = "hook prepareSubagentSpawn"
_UNTOLD = "?"
"""For the text of a refusal of which is recorded that it was one: it is the same."""
_RULES = {one.name: one for one in rules.STEPS}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinding:
    """What is so of a step now: it refuses, or `missing` decides and is not on record, or `assumed`
    is taken to be in order. Without any of them it is taken as it was, or there is nothing to
    take."""

    refusal: Refusal | None = None
    missing: str | None = None
    assumed: str | None = None


PASSES = StepFinding()


def is_conversation_needed(record: RecordedDecision) -> bool:
    """Return whether a decision goes by what is on record of the requester's session: it asks for a
    fork of its conversation that nobody looked for then."""
    run = record.run
    return (
        run.continues is None
        and run.options.context == "fork"
        and run.requester.run_id is None
        and record.refused is not None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsAgain:
    """The steps of a decision under two configurations.

    Attributes:
        run: The run with the agent of now.
        requester: The session of its requester as it was behind the request; None where that is
            not needed.
        origin: Reads the addresses of the requester.
        assumed: What was taken to be in order.
    """

    record: RecordedDecision
    run: Run
    change: Change
    requester: Session | None
    origin: Callable[[], Origin]
    assumed: list[str] = field(default_factory=list)

    def places(self) -> Mapping[StepName, bool | Refusal]:
        """Return whether each step has anything to do, up to the first that cannot be taken.

        Raises:
            NotReplayable: That is not on record.
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
                # Which folder is missing is for the file system to say.
                return False
            case "context_engine":
                hooks = self.change.now.configuration.spawnlog.hooks
                return hooks.prepare_subagent_spawn is not None

    def take(self, step: StepName) -> Refusal | None:
        """Return what came of a step.

        Raises:
            NotReplayable: That is not on record.
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
            raise NotReplayable(finding.missing)
        if finding.assumed is not None and finding.assumed not in self.assumed:
            self.assumed.append(finding.assumed)
        return finding.refusal

    # What is on record.

    @property
    def _was_taken(self) -> bool:
        """Return whether all were taken: a child was created, or refused by what comes behind."""
        refused = self.record.refused
        if refused is None:
            return self.record.created is not None
        behind = names_of("dependencies") | {rules.SHARED_CONTEXT.name}
        return refused.step != "admission" and refused.rule in behind

    @property
    def _is_same_agent(self) -> bool:
        """Return whether the agent that was to run then is that of now."""
        return self.run.agent_id == self.record.agent_id

    def _was_refused_by(self, name: StepName) -> bool:
        refused = self.record.refused
        return refused is not None and refused.rule == name and refused.rule in _RULES

    def _again(self) -> StepFinding:
        """Return the refusal of then: what it goes by is the same."""
        refused = self.record.refused
        assert refused is not None
        rule = _RULES[refused.rule]
        return StepFinding(refusal=rule.refusal(_UNTOLD, status=refused.status))

    def _taken_alike(self, name: StepName, *, is_alike: bool, assumed: str) -> StepFinding:
        """Look at a step that somebody outside answers, who is told which agent will run."""
        if self._was_taken:
            return PASSES if is_alike and self._is_same_agent else StepFinding(assumed=assumed)
        if not self._was_refused_by(name):
            return StepFinding(assumed=assumed)
        if not is_alike:
            text = f"{name}: what it goes by changed (hooks or threadBindings)"
            return StepFinding(missing=text)
        if not self._is_same_agent:
            return StepFinding(missing=f"{name}: it was taken for another agent")
        return self._again()

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
            text = "the thread: what binds it changed (hooks or threadBindings)"
            return StepFinding(missing=text)
        return self._taken_alike("thread_binding", is_alike=is_alike, assumed="a thread is bound")

    @property
    def _is_bound_alike(self) -> bool:
        then, now = self.change.both
        hooks = [one.spawnlog.hooks.subagent_spawning for one in (then, now)]
        return hooks[0] == hooks[1] and self._threads(then) == self._threads(now)

    def _binds(self, configuration: Configuration) -> bool:
        """Return whether somebody is asked to bind threads where the requester is."""
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
        """Return whether the request asks for it; another fork is no reason to refuse a spawn."""
        return self.run.options.context == "fork" or self.run.takes_transcript_over

    @property
    def _was_of_another_agent(self) -> bool:
        """Return whether the child was to be of another agent than its requester's."""
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
                return self._again()
        elif self._was_taken:
            return PASSES
        return StepFinding(assumed="the conversation that it begins with can be taken over")

    # Files.

    def _attachments_need(self) -> StepFinding:
        attached = self.run.attachments
        if attached is None:
            return PASSES
        then, now = (one.tools.sessions_spawn.attachments for one in self.change.both)
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
        text = "the attachments: their limits changed, and they are not on record"
        return StepFinding(missing=text)

    def _fit(self, attached: AttachmentsRequest) -> bool:
        """Return whether files that were taken would be, whatever each of them is."""
        then, now = (one.tools.sessions_spawn.attachments for one in self.change.both)
        largest = min(attached.total_bytes, then.max_file_bytes)
        return (
            then.retain_on_session_keep == now.retain_on_session_keep
            and attached.total_bytes <= now.max_total_bytes
            and largest <= now.max_file_bytes
        )

    def _attachments(self) -> StepFinding:
        if self._was_refused_by("attachments"):
            # They were taken, and could not be written.
            if self._is_same_agent:
                return self._again()
            return StepFinding(missing="attachments: it was taken for another agent")
        if self._was_taken and self._is_same_agent:
            return PASSES
        return StepFinding(assumed="what is attached can be written")

    # Who prepares elsewhere.

    def _engine(self) -> StepFinding:
        assumed, is_alike = f"{ENGINE} refuses nothing", self.change.is_prepared_alike
        return self._taken_alike("context_engine", is_alike=is_alike, assumed=assumed)
