"""Life of a session from its request to its archive, and of the runs that it spawns."""

from benchmarks.history.lives.delivery import announced, put_away, taken
from benchmarks.history.lives.effects import told
from benchmarks.history.lives.execution import (
    asker_of,
    claimed,
    executed,
    session_streams,
)
from benchmarks.history.lives.messages import new_message, new_preamble
from benchmarks.history.lives.preparation import prepared
from benchmarks.history.lives.requests import Asker, Child, new_spawn
from benchmarks.history.lives.stop import stop_session
from benchmarks.history.lives.waits import awaited, waited, waits_for_children
from benchmarks.history.world.fates import GOES_ON, TALKED_TO, Fate
from benchmarks.history.world.scheduler import Life, Wait, ask
from benchmarks.history.world.society import OPERATOR, Society
from domain.run.lifecycle import OVER
from domain.run.state import Run
from domain.values.record import run_stream
from domain.values.refusals import Rejected

CROWDED_SHARE = 0.12
IMPATIENT_SHARE = 0.3
LEAF_TRIES_SHARE = 0.02
TRIES_SECONDS = 0.4
MESSAGES_MAX = 4
PREAMBLE_SHARE = 0.2
MESSAGE_SECONDS = 15.0
CROWD_SECONDS = 0.3
CROWD_AGENT = "coder"


def spawn(
    society: Society,
    asker: Asker,
    siblings: list[Child] | None = None,
    *,
    fate: Fate | None = None,
    agent_id: str | None = "",
) -> Life[None]:
    """Spawn a child of this session, and live its life. Without a fate, draw one.

    The session's state is held from now on, whenever the life begins.
    """
    society.log.hold(asker.streams)
    return _spawned(society, asker, siblings, fate, agent_id)


def _spawned(
    society: Society,
    asker: Asker,
    siblings: list[Child] | None,
    fate: Fate | None,
    agent_id: str | None,
) -> Life[None]:
    fate = fate or society.deck.draw()
    target = awaited(society, asker) if fate is Fate.WAITS else None
    child, admission = new_spawn(society, asker, fate, agent_id=agent_id, target=target)
    own = [run_stream(run_id) for run_id in (child.run_id, child.target) if run_id is not None]
    streams = [*own, *asker.streams]
    society.log.hold(own)
    society.busy_lives += 1
    try:
        run = (yield from ask(admission)).runs[child.run_id]
        if siblings is not None:
            siblings.append(child)
        if run.stage == "refused":
            society.refused[asker.session_key] = run.run_id
        else:
            yield from _lives(society, child, run)
    except Rejected:
        # The session that asked is over, or the spawn was stopped before it came to be.
        pass
    finally:
        society.busy_lives -= 1
    runs = [child]
    society.resting_lives += 1
    try:
        if child.fate in TALKED_TO:
            yield from _converses(society, runs, siblings, streams)
        yield from put_away(society, runs)
    finally:
        society.resting_lives -= len(runs)
        created = society.log.runs.get(child.run_id)
        society.log.let_go([*streams, *(session_streams(created) if created else ())])


def _lives(society: Society, child: Child, run: Run) -> Life[None]:
    """Live from the admission to the announcement, or to a refusal."""
    if run.continues is None:
        run = yield from prepared(society, child, run)
    if run.waits_for:
        run = yield from waited(society, child, run)
    if run.stage == "queued":
        yield from told(society, child, run)
        run = yield from claimed(society, child, run)
    if run.stage == "queued":
        run = yield from executed(society, child, run, _works(society, child, run))
    child.outcome = run.outcome
    if run.stage == "ended":
        yield from announced(society, child, run)


def _converses(
    society: Society, runs: list[Child], siblings: list[Child] | None, streams: list[str]
) -> Life[None]:
    """Send messages after each announcement.

    Appends their runs to `runs`, and the streams to hold for them to `streams`. A session that was
    bound to a thread is closed at the end.
    """
    first = runs[0]
    count = society.random.randint(1, MESSAGES_MAX)
    for left in reversed(range(count)):
        if not _takes_messages(society, runs[-1]):
            break
        yield from taken(society, runs[-1])
        yield Wait(society.random.expovariate(1 / MESSAGE_SECONDS))
        if society.is_closing or not _takes_messages(society, runs[-1]):
            break
        if first.fate is Fate.TURNED_AWAY and first.asker.run_id is None and len(runs) == 1:
            yield from _crowds(society, first.asker)
        yield from _said(society, runs, siblings, streams, is_last=left == 0)
    last = society.log.runs.get(runs[-1].run_id)
    if first.fate is Fate.BOUND and last is not None and last.stage == "announced":
        yield from stop_session(society, runs[-1], OPERATOR, None)


def _takes_messages(society: Society, last: Child) -> bool:
    run = society.log.runs.get(last.run_id)
    if run is None or run.stage != "announced" or run.put_away_from is not None:
        return False
    return run.archive_at is None or run.archive_at > society.scheduler.now


def _crowds(society: Society, asker: Asker) -> Life[None]:
    """Take every place of the session, so that none is left for a message."""
    for _ in range(society.pinned.configuration.subagent_defaults.max_children_per_agent):
        others = spawn(society, asker, fate=Fate.SUCCESS, agent_id=CROWD_AGENT)
        society.scheduler.begin(others)
    yield Wait(CROWD_SECONDS)


def _said(
    society: Society,
    runs: list[Child],
    siblings: list[Child] | None,
    streams: list[str],
    *,
    is_last: bool,
) -> Life[None]:
    """Send one message, and live its run until it is announced."""
    first, last = runs[0], society.log.runs[runs[-1].run_id]
    fate = society.random.choices(tuple(GOES_ON), tuple(GOES_ON.values()))[0]
    if first.fate is Fate.CLOSED_AT_WORK and is_last:
        fate = first.fate
    if society.random.random() < PREAMBLE_SHARE:
        yield from ask(new_preamble(society, first, last))
        last = society.log.runs[last.run_id]
    child, message = new_message(society, first, last, fate)
    own = run_stream(child.run_id)
    society.log.hold([own])
    streams.append(own)
    society.busy_lives += 1
    try:
        appended = yield from ask(message)
        if appended.result.kind == "continued":
            run = appended.runs[child.run_id]
            runs.append(child)
            society.resting_lives += 1
            above = run.requester.run_id
            if above is not None:
                society.log.hold([run_stream(above)])
                streams.append(run_stream(above))
            if siblings is not None and above == first.asker.run_id:
                siblings.append(child)
            yield from _lives(society, child, run)
    except Rejected:
        # A descendant is active again, or the session was closed meanwhile.
        pass
    finally:
        society.busy_lives -= 1


def _works(society: Society, child: Child, run: Run) -> Life[None] | None:
    """Return the life of a child's own sub-agents. A leaf may try to spawn, and is refused."""
    if run.role == "orchestrator" and run.agent_id == "planner":
        return _orchestrates(society, child, run)
    if run.role == "leaf" and society.random.random() < LEAF_TRIES_SHARE:
        return _tries(society, child, run)
    return None


def _tries(society: Society, child: Child, run: Run) -> Life[None]:
    yield Wait(TRIES_SECONDS)
    if run.run_id in society.log.runs:
        yield from spawn(society, asker_of(run), child.children)


def _orchestrates(society: Society, child: Child, run: Run) -> Life[None]:
    asker = asker_of(run)
    crowded = society.random.random() < CROWDED_SHARE
    for _ in range(society.random.randint(6, 8) if crowded else society.random.randint(1, 4)):
        yield Wait(society.random.expovariate(1 / TRIES_SECONDS))
        own = society.log.runs.get(run.run_id)
        if own is None or own.stage in OVER or society.is_closing:
            return
        society.scheduler.begin(spawn(society, asker, child.children))
    if society.random.random() >= IMPATIENT_SHARE:
        yield Wait(TRIES_SECONDS)
        yield from waits_for_children(society, run)
