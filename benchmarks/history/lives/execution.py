"""Execution of a child, from its claim to its end."""

import hashlib
import hmac
from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

import orjson

from application.log.envelope import Actor
from application.log.texts import TextStore
from benchmarks.history.lives.preparation import LEASE_SECONDS
from benchmarks.history.lives.requests import TIMEOUT_SECONDS, Asker, Child, commanded
from benchmarks.history.lives.sharing import inherited
from benchmarks.history.lives.stop import stop, stop_session
from benchmarks.history.world.configuration import CHANNEL
from benchmarks.history.world.fates import STOPPED, Fate
from benchmarks.history.world.scheduler import Life, Wait, ask
from benchmarks.history.world.simulated_log import Entry
from benchmarks.history.world.society import OPERATOR, Society
from domain.prompt.child_prompt import (
    ChildFacts,
    ComposedPrompt,
    PromptSections,
    compose_continuation,
    compose_prompt,
)
from domain.prompt.pieces import Contribution, PromptPiece, task_pieces
from domain.prompt.run_prompt import attachments_note
from domain.prompt.shared_context import shared_pieces
from domain.prompt.untrusted import freeze_result
from domain.run.commands import ClaimRun, EndRun, QueueMessage, StartRun, YieldRun
from domain.run.facts import PromptPart, RunOutcome, TranscriptSeal, Usage
from domain.run.state import Run
from domain.values.record import run_stream, session_stream
from domain.values.refusals import Rejected

MEDIAN_SECONDS = 12.0
SPREAD = 0.9
SECONDS_MAX = 280.0
YIELD_SHARE = 0.5
WAITING_SHARE = 0.5

Begin = Callable[[Asker, Child], Life[None]]
"""Life of another spawn by a child's session, on behalf of the child."""


def claimed(society: Society, child: Child, run: Run) -> Life[Run]:
    """Wait until the run is claimed from its lane, or over. Return it."""
    stream = run_stream(run.run_id)
    if child.fate is Fate.STOPPED_IN_LANE:
        society.scheduler.begin(stop(society, child, OPERATOR, "not needed any more"))
    while (run := society.log.runs[run.run_id]).stage == "queued" and run.holder is None:
        yield Wait(None, stream)
    if child.fate is Fate.LOST_CLAIM and run.stage == "queued":
        yield Wait(LEASE_SECONDS)
        claim = ClaimRun(holder=society.other_holder(run.holder), lost_epoch=run.epoch)
        run = (yield from ask(commanded(society, run, (claim,)))).runs[run.run_id]
    return run


def executed(society: Society, child: Child, run: Run, works: Life[None] | None) -> Life[Run]:
    """Start the run, work, and end it. `works` is the life of its own children."""
    yield Wait(0.01)
    text_store = child.text_store(society)
    try:
        command = _start(society, child, run, text_store)
        run = (yield from ask(commanded(society, run, (command,), text_store))).runs[run.run_id]
        seconds = _seconds(society, child)
        if child.fate in STOPPED:
            by = child.asker.actor if child.fate is Fate.STOPPED_BY_REQUESTER else OPERATOR
            after = seconds * society.random.random()
            if by is OPERATOR and society.random.random() < WAITING_SHARE:
                yield from _message_waits(society, child, run)
            society.scheduler.begin(stop(society, child, by, None), after_seconds=after)
        is_closed = child.fate is Fate.CLOSED_AT_WORK and run.continues is not None
        if is_closed:
            after = seconds * society.random.random()
            closes = stop_session(society, child, OPERATOR, "the thread is done")
            society.scheduler.begin(closes, after_seconds=after)
        until = society.scheduler.now + timedelta(seconds=seconds)
        if works is not None and child.fate not in STOPPED and not is_closed:
            yield from works
        elif works is not None:
            society.scheduler.begin(works)
        yield from _work(society, run, until)
    except Rejected:
        # Stopped before it started.
        pass
    yield from _yielded(society, child, society.log.runs[run.run_id])
    yield Wait(0.05)
    return (yield from _ended(society, child, society.log.runs[run.run_id]))


def _yielded(society: Society, child: Child, run: Run) -> Life[None]:
    """Yield the turn, as an orchestrator may that is done before its children."""
    own = society.log.sessions.get(run.child_session_key or "")
    waits = run.stage == "started" and run.stop_requested_by is None
    if child.fate is not Fate.SUCCESS or not waits or own is None or not own.unsettled:
        return
    if society.random.random() < YIELD_SHARE:
        yields = YieldRun(by=_child_token(run.run_id), awaits=True)
        yield from ask(commanded(society, run, (yields,)))


def _message_waits(society: Society, child: Child, run: Run) -> Life[None]:
    """Send a message to the active session; the later stop drops it."""
    text_store = child.text_store(society)
    waits = QueueMessage(
        run_id=society.ids.run_id(),
        message=text_store.store("message", society.texts.text(1, 2)),
        by=OPERATOR.name,
        cause="message",
        at=society.scheduler.now,
    )
    yield from ask(commanded(society, run, (waits,), text_store, actor=OPERATOR))


def _seconds(society: Society, child: Child) -> float:
    if child.fate is Fate.TIMEOUT:
        return float(TIMEOUT_SECONDS)
    return min(SECONDS_MAX, MEDIAN_SECONDS * society.random.lognormvariate(0.0, SPREAD))


def _work(society: Society, run: Run, until: datetime) -> Life[None]:
    """Work until this time, or until a stop is requested."""
    stream = run_stream(run.run_id)
    while True:
        left = (until - society.scheduler.now).total_seconds()
        if left <= 0 or society.log.runs[run.run_id].stop_requested_by is not None:
            return
        yield Wait(left, stream)


def _start(society: Society, child: Child, run: Run, text_store: TextStore) -> StartRun:
    keys, values = inherited(society, run, text_store)
    prompt = _prompt(child, run, shared_pieces(values, run.run_id))
    texts = {
        "systemPrompt": prompt.system_prompt.encode(),
        "message": prompt.message.encode(),
    }
    assert run.plan is not None
    return StartRun(
        epoch=run.epoch,
        runtime=run.plan.runtime,
        system_prompt=text_store.store("systemPrompt", prompt.system_prompt),
        message=text_store.store("message", prompt.message),
        parts=tuple(
            PromptPart(
                of=part.of,
                source=part.source,
                start=part.start,
                end=part.end,
                hmac=text_store.hash(texts[part.of][part.start : part.end]),
            )
            for part in prompt.parts
        ),
        shared_context_position=society.log.position if keys else None,
        shared_context=keys,
        inherits=bool(keys),
    )


def _prompt(child: Child, run: Run, shared: tuple[PromptPiece, ...]) -> ComposedPrompt:
    assert run.child_session_key is not None
    facts = ChildFacts(
        depth=run.depth,
        max_spawn_depth=3,
        child_session_key=run.child_session_key,
        label=run.label,
        requester_session_key=run.requester.session_key,
        requester_channel=CHANNEL if run.requester.origin is not None else None,
        is_persistent=run.options.mode == "session",
    )
    attached = attachments_note(run)
    surroundings = PromptSections(
        preamble=child.preamble or "", attachments=attached, shared_context=shared
    )
    if run.continues is not None:
        return compose_continuation(facts, child.task, surroundings)
    before = [Contribution(name, text) for at, name, text in child.pieces if at == "prepend"]
    after = [Contribution(name, text) for at, name, text in child.pieces if at == "append"]
    pieces = task_pieces(child.task, prepend=before, append=after)
    return compose_prompt(facts, pieces, surroundings)


def _ended(society: Society, child: Child, run: Run) -> Life[Run]:
    text_store = child.text_store(society)
    command = _end(society, child, run, text_store)
    child.outcome = command.outcome
    try:
        return (yield from ask(commanded(society, run, (command,), text_store))).runs[run.run_id]
    except Rejected:
        # Its session spawned in between, so its children are counted again.
        return society.log.runs[run.run_id]


def _end(society: Society, child: Child, run: Run, text_store: TextStore) -> EndRun:
    outcome: RunOutcome = "success"
    reason = "yielded" if run.yielded_by is not None else "played"
    exit_code: int | None = 0
    if run.stop_requested_by is not None:
        outcome, reason, exit_code = "stopped", "stopped", None
    elif child.fate is Fate.FAILURE:
        outcome, reason, exit_code = "error", "exit", 1
        child.error = f"exit status 1: {society.texts.text(1, 2)}"
    elif child.fate is Fate.TIMEOUT:
        outcome, reason, exit_code = "timeout", "timeout", None
    elif child.fate is Fate.INTERRUPTED:
        outcome, reason, exit_code = "error", "interrupted", None
        child.error = f"interrupted: the server that held this run is gone ({run.holder})"
    if outcome == "success":
        text = "NO_REPLY" if child.fate is Fate.SILENT else society.texts.text(2, 16)
        child.result = freeze_result(text)
    taken, given = society.random.randint(400, 9_000), society.random.randint(50, 2_000)
    usage = Usage(input_tokens=taken, output_tokens=given, total_tokens=taken + given, models=())
    return EndRun(
        epoch=run.epoch,
        outcome=outcome,
        reason=reason,
        exit_code=exit_code,
        result=text_store.store("result", child.result) if child.result else None,
        error=text_store.store("error", child.error) if child.error else None,
        usage=usage if run.started_at is not None and reason != "interrupted" else None,
        transcript=_sealed(society, child, run) if run.started_at is not None else None,
    )


def _sealed(society: Society, child: Child, run: Run) -> TranscriptSeal:
    """Return the seal of a short transcript, whose file is not written."""
    texts = [society.texts.text(1, 3) for _ in range(society.random.randint(0, 3))]
    if child.result is not None:
        texts.append(child.result)
    digest = hmac.new(child.key, digestmod=hashlib.sha256)
    size = 0
    entries: list[Entry] = []
    for sequence, text in enumerate(texts, start=1):
        body = {"role": "assistant", "text": text}
        at = society.scheduler.now
        line = orjson.dumps(
            {"sequence": sequence, "recordedAt": at, "kind": "message", **body},
            option=orjson.OPT_APPEND_NEWLINE,
        )
        digest.update(line)
        size += len(line)
        entries.append(Entry(run.run_id, sequence, at, "message", orjson.dumps(body).decode()))
    society.log.entries(entries)
    return TranscriptSeal(count=len(entries), bytes=size, hmac=digest.hexdigest())


def session_streams(run: Run) -> tuple[str, ...]:
    """Return the stream of the run's own session, if it has one."""
    return (session_stream(run.child_session_key),) if run.child_session_key else ()


def asker_of(run: Run) -> Asker:
    """Return the run's session as a requester."""
    assert run.child_session_key is not None
    assert run.agent_id is not None
    key = run.child_session_key
    return Asker(
        session_key=key,
        agent_id=run.agent_id,
        depth=run.depth,
        actor=Actor(kind="child", token=_child_token(run.run_id), session=key),
        root=run.requester.root_session_key,
        run_id=run.run_id,
        above=run.requester.session_key,
    )


def _child_token(run_id: UUID) -> str:
    return f"child:{run_id}"
