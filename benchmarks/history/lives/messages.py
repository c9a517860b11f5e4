"""Messages to sessions of a simulation whose runs are announced."""

from uuid import UUID

from application.context.prompt_inputs import preamble_ingredients
from application.log.envelope import Actor, Provenance
from application.log.event_log import Decision, DecisionContext, StoredAnswer, Submission
from application.session.continue_session import decide_message
from benchmarks.history.lives.effects import hooks_of
from benchmarks.history.lives.requests import Child
from benchmarks.history.world.fates import Fate
from benchmarks.history.world.society import OPERATOR, Society
from domain.plan.child import RefusedChild
from domain.plan.credentials import NOTHING_FOUND
from domain.plan.request import ChosenWorkspace
from domain.plan.tools import CONTROL_TOOL
from domain.run.events import ContinuationPlanned
from domain.run.evolve import initial_run
from domain.run.facts import HOOKS_OF_ENDS, Ingredient
from domain.run.lifecycle import OVER
from domain.run.plan_facts import WorkspaceFacts
from domain.run.state import Run
from domain.session.decide import ChangePreamble
from domain.session.decide import decide as decide_session
from domain.session.events import ToolRefused
from domain.session.state import Session
from domain.spawn.continuation import Message, message_received
from domain.spawn.pipeline import ChildFacts
from domain.spawn.stages import MESSAGE_STAGES, decide_child
from domain.values.record import Stamp, run_stream, session_stream


def new_message(
    society: Society, first: Child, last: Run, fate: Fate
) -> tuple[Child, Submission[StoredAnswer]]:
    """Return the run that a message becomes, with this fate, and its submission.

    The message goes to the session that `first` began and whose last run is `last`.
    """
    child = Child(
        asker=first.asker,
        fate=fate,
        key=first.key,
        run_id=society.ids.run_id(),
        session_id=first.session_id,
        task=society.texts.text(1, 3),
        label=first.label,
        preamble=first.preamble,
        origin=first.origin,
        begun=first.begun,
    )
    return child, _submission(society, first, child, last)


def new_preamble(society: Society, first: Child, last: Run) -> Submission[None]:
    """Return the submission of a new preamble. The session also tries to control others, without
    the tools for it.
    """
    assert last.child_session_key is not None
    key, kept = last.child_session_key, first.text_store(society)
    actor = _sender(society, first)
    assert last.agent_id is not None
    agent = society.pinned.configuration.effective_agent(last.agent_id)

    def decide_preamble(world: DecisionContext) -> Decision[None]:
        words = society.texts.text(1, 2)
        text = kept.store("preamble", words)
        first.preamble = words
        first.begun = preamble_ingredients(text, words, agent, kept).ingredients
        events = decide_session(world.sessions[key], ChangePreamble(text, actor.name))
        refused = ToolRefused(tool=CONTROL_TOOL, by=actor.name, about=str(last.run_id))
        changes = [(session_stream(key), event) for event in (*events, refused)]
        return Decision(None, changes, kept.contents)

    return Submission(
        command_id=society.ids.event_id(),
        streams=(session_stream(key),),
        decide=decide_preamble,
        provenance=Provenance(
            actor=actor,
            correlation=last.requester.root_session_key,
            run_id=last.run_id,
            config_revision=society.pinned.revision,
        ),
    )


def _submission(
    society: Society, first: Child, child: Child, last: Run
) -> Submission[StoredAnswer]:
    assert last.child_session_key is not None
    pinned, actor = society.pinned, _sender(society, first)
    requester = society.log.sessions[last.requester.session_key]
    kept = child.text_store(society)
    message = Message(
        run_id=child.run_id,
        text=kept.store("message", child.task),
        by=actor.name,
        config_revision=pinned.revision,
        max_children=pinned.configuration.subagent_defaults.max_children_per_agent,
    )
    planned = _planned(society, first, message, last, requester)

    return Submission(
        command_id=society.ids.event_id(),
        streams=(
            run_stream(child.run_id),
            run_stream(last.run_id),
            session_stream(last.child_session_key),
            session_stream(last.requester.session_key),
        ),
        decide=lambda world: decide_message(world, message, last, planned, kept),
        provenance=Provenance(
            actor=actor,
            correlation=last.requester.root_session_key,
            causation=last.last_event_id,
            run_id=child.run_id,
            traceparent=society.traceparent(),
            config_revision=pinned.revision,
        ),
    )


def _planned(
    society: Society, first: Child, message: Message, last: Run, requester: Session
) -> ContinuationPlanned | RefusedChild:
    assert last.plan is not None
    received = message_received(message, last, requester)
    run = initial_run(received, Stamp(last.created_position, 1, last.created_at))
    assert run.agent_id is not None
    folder = last.plan.workspace_dir
    worked_in = WorkspaceFacts(source=last.plan.workspace_source, recorded=folder, chosen=folder)
    decided, found = decide_child(
        MESSAGE_STAGES,
        ChildFacts(
            run=run,
            configuration=society.pinned.configuration,
            requester_sandboxed=run.requester.sandboxed,
            agent_id=run.agent_id,
            credentials=NOTHING_FOUND,
            workspace=ChosenWorkspace(worked_in),
        ),
    )
    if isinstance(found, RefusedChild):
        return found
    planned = decided.plan
    defaults = society.pinned.configuration.subagent_defaults
    ingredient = Ingredient(source="message", position="task", content=run.task)
    return ContinuationPlanned(
        max_depth=defaults.max_spawn_depth,
        role=planned.capabilities.role,
        control_scope=planned.capabilities.control_scope,
        plan=planned.plan,
        ingredients=(*first.begun, ingredient),
        warnings=planned.warnings,
        facts=planned.facts,
        hooks=tuple(hook for hook in hooks_of(society) if hook in HOOKS_OF_ENDS),
    )


def _sender(society: Society, first: Child) -> Actor:
    """Return the actor that spawned the child, or another one if it may no longer send."""
    own: UUID | None = first.asker.run_id
    if own is None:
        return first.asker.actor
    run = society.log.runs.get(own)
    return OPERATOR if run is None or run.stage in OVER else first.asker.actor
