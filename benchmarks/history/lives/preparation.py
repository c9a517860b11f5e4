"""Preparation of a spawn, from its admission to its lane or to a refusal."""

import orjson

from application.context.prompt_inputs import (
    message_ingredients,
    preamble_ingredients,
    refusal_announcement,
)
from application.context.scripts import evaluated_candidates
from application.log.texts import TextStore
from benchmarks.history.lives.effects import hooks_of, not_written, stepped, webhooks_of
from benchmarks.history.lives.requests import Child, commanded
from benchmarks.history.lives.waits import refused_for
from benchmarks.history.world.fates import Fate
from benchmarks.history.world.scheduler import Life, Wait, ask
from benchmarks.history.world.society import Society
from domain.configuration.context_scripts import ContextScript
from domain.context.agent_override import OverrideCandidate, choose_override
from domain.context.fork import accepted_note
from domain.context.script_output import ScriptReading, read_script_output
from domain.plan.child import PlannedChild, RefusedChild
from domain.plan.credentials import NOTHING_FOUND
from domain.plan.request import ChosenWorkspace
from domain.run.commands import (
    CreateSession,
    RefuseSpawn,
    ResolveScripts,
    ResumePreparation,
    RunCommand,
    StartPreparation,
)
from domain.run.facts import STEP_ORDER, SUBAGENT_LANE, ScriptReceipt
from domain.run.plan_facts import WorkspaceFacts
from domain.run.state import Run
from domain.spawn.dependencies import DependencyFailed
from domain.spawn.pipeline import ChildFacts
from domain.spawn.stages import SPAWN_STAGES, decide_child
from domain.values.record import session_stream
from domain.values.session_key import child_key

LEASE_SECONDS = 16.0
FAILED_SCRIPTS_SHARE = 0.04
OVERRIDES_SHARE = 0.12


def prepared(society: Society, child: Child, run: Run) -> Life[Run]:
    """Return the run after its preparation.

    Raises:
        Rejected: The run was stopped.
    """
    if child.fate is Fate.LOST_PREPARATION:
        yield Wait(LEASE_SECONDS)
        resume = ResumePreparation(
            holder=society.other_holder(run.holder),
            lost_epoch=run.epoch,
            reason=f"holder {run.holder} is gone",
        )
        run = (yield from ask(commanded(society, run, (resume,)))).runs[run.run_id]
    if child.fate is Fate.STOPPED_UNPREPARED:
        yield Wait(1.0)
        run = society.log.runs[run.run_id]
    text_store = child.text_store(society)
    resolve, seconds = _scripts(society, child, run, text_store)
    yield Wait(seconds)
    if not resolve.receipts:
        return (yield from _finished(society, child, run, (), (resolve,), text_store))
    run = (yield from ask(commanded(society, run, (resolve,), text_store))).runs[run.run_id]
    yield Wait(0.01)
    text_store = child.text_store(society)
    return (yield from _finished(society, child, run, resolve.receipts, (), text_store))


def _scripts(
    society: Society, child: Child, run: Run, text_store: TextStore
) -> tuple[ResolveScripts, float]:
    requested = run.requested_agent_id
    assert requested is not None
    configuration = society.pinned.configuration
    receipts: list[ScriptReceipt] = []
    candidates: list[OverrideCandidate] = []
    seconds = 0.02
    for script in configuration.effective_agent(requested).context_scripts:
        took = 0.02 + society.random.expovariate(4.0)
        seconds += took
        reading, receipt = _executed(society, script, requested, int(took * 1000), text_store)
        receipts.append(receipt)
        if reading.content:
            child.pieces.append((script.position, script.id, reading.content))
        if reading.override is not None:
            candidates.append(OverrideCandidate(script.id, script.priority, reading.override))
    choice = choose_override(requested, candidates, configuration.agent_ids())
    command = ResolveScripts(
        epoch=run.epoch,
        receipts=tuple(receipts),
        candidates=evaluated_candidates(choice),
        override_to=choice.agent_id if choice.is_override else None,
    )
    return command, seconds


def _executed(
    society: Society, script: ContextScript, requested: str, took_ms: int, text_store: TextStore
) -> tuple[ScriptReading, ScriptReceipt]:
    failed = society.random.random() < FAILED_SCRIPTS_SHARE
    body: dict[str, str] = {"message": society.texts.text(1, 4)}
    if requested == "steward":
        body["agentId"] = "summarizer"
    elif script.id == "sources" and society.random.random() < OVERRIDES_SHARE:
        body["agentId"] = society.random.choice(("coder", "coder", "nobody-at-all"))
    output = "" if failed else orjson.dumps(body).decode()
    reading = ScriptReading(error="exit status 1: no such source")
    if not failed:
        reading = read_script_output(
            script_id=script.id,
            text=output,
            return_key=script.return_key,
            agent_id_override_key=script.agent_id_override_key,
        )
    return reading, ScriptReceipt(
        id=script.id,
        uri=script.uri,
        format=script.format,
        priority=float(script.priority),
        position=script.position,
        outcome="failed" if reading.error else "injected" if reading.content else "empty",
        duration_ms=took_ms,
        exit_code=1 if failed else 0,
        output_bytes=len(output),
        output=text_store.store("scriptOutput", output) if output else None,
        output_encoding="utf-8" if output else None,
        output_hmac=text_store.hash(output.encode()) if output else None,
        injected=text_store.store("injected", reading.content) if reading.content else None,
        error=text_store.store("scriptError", reading.error) if reading.error else None,
        candidate=reading.override,
    )


def _finished(
    society: Society,
    child: Child,
    run: Run,
    receipts: tuple[ScriptReceipt, ...],
    before: tuple[RunCommand, ...],
    text_store: TextStore,
) -> Life[Run]:
    """Refuse the spawn, or create the child and queue it."""
    agent_id = run.agent_id
    assert agent_id is not None
    configuration = society.pinned.configuration
    argument = "extreme" if run.thinking_argument else None
    facts, found = decide_child(
        SPAWN_STAGES,
        ChildFacts(
            run=run,
            configuration=configuration,
            requester_sandboxed=run.requester.sandboxed,
            thinking_argument=argument,
            agent_id=agent_id,
            credentials=NOTHING_FOUND,
            workspace=ChosenWorkspace(_workspace(run, agent_id)),
            places=dict.fromkeys(STEP_ORDER, False),
        ),
    )
    planned = found if isinstance(found, RefusedChild) else facts.plan
    commands: tuple[RunCommand, ...]
    if isinstance(planned, RefusedChild):
        commands = (*before, _refusal(society, child, run, planned, text_store))
    else:
        run, commands = yield from _created(
            society, child, run, planned, receipts, before, text_store
        )
    try:
        return (yield from ask(commanded(society, run, commands, text_store))).runs[run.run_id]
    except DependencyFailed as failed:
        return (yield from refused_for(run, failed, child, society))


def _created(
    society: Society,
    child: Child,
    run: Run,
    planned: PlannedChild,
    receipts: tuple[ScriptReceipt, ...],
    before: tuple[RunCommand, ...],
    text_store: TextStore,
) -> Life[tuple[Run, tuple[RunCommand, ...]]]:
    """Return the run after its steps, and the commands that create the child, or refuse it if its
    files cannot be written.
    """
    agent_id = run.agent_id
    assert agent_id is not None
    key = child_key(agent_id, str(society.ids.run_id()))
    society.log.hold([session_stream(key)])
    start = StartPreparation(epoch=run.epoch, child_session_key=key, agent_id=agent_id)
    run, before = yield from stepped(society, child, run, (*before, start), agent_id, text_store)
    preamble = preamble_ingredients(run.preamble, child.preamble, planned.agent, text_store)
    child.begun = preamble.ingredients
    failed = not_written(child, run, text_store)
    if failed is not None:
        return run, (failed,)
    create = CreateSession(
        epoch=run.epoch,
        depth=run.depth,
        max_depth=planned.agent.defaults.max_spawn_depth,
        role=planned.capabilities.role,
        control_scope=planned.capabilities.control_scope,
        plan=planned.plan,
        ingredients=(*child.begun, *message_ingredients(run, receipts)),
        warnings=(*planned.warnings, *preamble.warnings),
        preamble=preamble.sizes,
        note=accepted_note(run.options, run.requester),
        lane=SUBAGENT_LANE,
        facts=planned.facts,
        hooks=hooks_of(society),
    )
    return run, (*before, create)


def _refusal(
    society: Society, child: Child, run: Run, unfit: RefusedChild, text_store: TextStore
) -> RefuseSpawn:
    """Return the refusal command. A caller that has disconnected finds the refusal in its inbox."""
    refusal = unfit.refusal
    result = society.random.random() < 0.5
    text = None if result else refusal_announcement(run, refusal.text)
    return RefuseSpawn(
        epoch=run.epoch,
        rule=refusal.rule,
        status=refusal.status,
        step="preparation",
        text=text_store.store("refusal", refusal.text),
        inputs={"agentId": run.agent_id, "requestedAgentId": run.requested_agent_id},
        announcement=text_store.store("announcement", text) if text else None,
        webhooks=webhooks_of(society, child, run) if text else (),
        facts=unfit.facts,
    )


def _workspace(run: Run, agent_id: str) -> WorkspaceFacts:
    recorded = run.requester.workspace_dir if run.is_of_same_agent else None
    return WorkspaceFacts(
        source="requester" if recorded else "agent",
        recorded=recorded,
        chosen=recorded or f"/workspaces/{agent_id}",
    )
