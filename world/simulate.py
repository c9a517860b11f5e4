"""Play seeded lives of the whole application, and report violations.

`python -m world.simulate --seed N` plays one seed; `--seeds N` the first N.
"""

import argparse
import asyncio
import gc
import logging
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from application.execution import entry_writer
from application.projections.fold import Fold
from domain.run import decide, preparation_steps, state
from domain.run.lifecycle import SETTLED
from domain.run.state import Run
from domain.values.record import run_id_of
from tests.support.memory.store import Fault
from world.check import check
from world.checker.history import Call, History, event_of_record
from world.model.log_invariants import stored_and_read
from world.simulation.asking import SimulatedAsking
from world.simulation.virtual_time import StuckError, VirtualLoop, virtual_time
from world.simulation.world import CAP, World
from world.society.callers import Caller
from world.society.known import Known

SERVERS = 2
CALLERS = 2
ACTS_MAX = 14
REST_SECONDS_MAX = 120.0
FLUSH_SECONDS = 0.05
OF_ITS_HOLDER = ("ScriptsResolved", "PreparationStarted", "SessionCreated", "RunStarted")
"""Events that only the holder of a run records."""


@contextmanager
def _fence_taken_away(is_away: bool) -> Iterator[None]:
    """Let every earlier holder continue a run until it is over."""

    def accept_any_epoch(run: Run, epoch: int) -> None:
        state.require_holder(run, run.epoch)

    users = (decide, preparation_steps)
    with pytest.MonkeyPatch.context() as patch:
        for module in users if is_away else ():
            patch.setattr(module, "require_holder", accept_any_epoch)
        yield


@contextmanager
def _quick_writes() -> Iterator[None]:
    """Write transcript entries more often, because most simulated runs end before the first
    flush.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entry_writer, "FLUSH_SECONDS", FLUSH_SECONDS)
        yield


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Disable garbage collection during a life, because its timing does not follow from the seed.

    All garbage of a life is young at its end.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.collect(0)
        if was_enabled:
            gc.enable()


@dataclass(frozen=True, slots=True)
class Played:
    """Result of a seed.

    `wrong` are the violations. `killed_after` counts the events of the last append of each killed
    server.
    """

    seed: int
    wrong: tuple[str, ...]
    runs: int
    events: int
    happened: Counter[str]
    killed_after: Counter[str]


def play(seed: int, *, fault: Fault | None = None) -> Played:
    """Play a seed."""
    logging.disable(logging.CRITICAL)
    try:
        with _no_garbage_collection():
            return _life(seed, fault)
    finally:
        logging.disable(logging.NOTSET)


def _life(seed: int, fault: Fault | None) -> Played:
    is_unfenced = fault is Fault.NO_EPOCH_FENCE
    with virtual_time(seed) as loop, _fence_taken_away(is_unfenced), _quick_writes():
        world = World(seed, loop, SERVERS, frozenset({fault} if fault else ()))
        try:
            wrong = tuple(loop.run_until_complete(_play(world, seed)))
        except StuckError as stuck:
            wrong = (str(stuck),)
        finally:
            bury(loop, world)
    runs = len(world.store.runs.current)
    return Played(seed, wrong, runs, len(world.store.events), world.happened, world.killed_after)


async def _play(world: World, seed: int) -> list[str]:
    calls: list[Call] = []
    known = Known()
    for server in world.servers:
        server.start()
    trouble = asyncio.ensure_future(world.trouble())
    await asyncio.gather(*(_call(world, seed, number, known, calls) for number in range(CALLERS)))
    trouble.cancel()
    await world.heal()
    is_at_rest = await rest(world)
    found = [] if is_at_rest else ["some runs never came to their end"]
    return [*found, *world.wrong, *_judged(world, calls)]


async def _call(world: World, seed: int, number: int, known: Known, calls: list[Call]) -> None:
    die = random.Random(f"{seed} caller {number}")
    asking = SimulatedAsking(f"c{number}", world, calls)
    caller = Caller(asking, known, world.up, die)
    for _ in range(die.randint(4, ACTS_MAX)):
        await asyncio.sleep(die.expovariate(5))
        await caller.next()


async def rest(world: World) -> bool:
    """Wait until every run is settled and no session continues. Return False if that takes too
    long.
    """
    ends = world.loop.time() + REST_SECONDS_MAX
    while world.loop.time() < ends:
        if all(
            row.stage in SETTLED and row.due_kind != "continue" for row in world.store.runs.rows()
        ):
            return True
        await asyncio.sleep(0.1)
    return False


def _judged(world: World, calls: list[Call]) -> Iterator[str]:
    """Yield violations of the checker's rules, and of rules about the store and the processes."""
    try:
        broken = check(_history(world, calls))
    except Exception as error:
        # A history can be too broken for the rules to be checked.
        yield f"the history cannot be read: {error!r}"
        return
    for rule, value in broken.items():
        yield from (f"{rule}: {line}" for line in value)
    for run_id, times in world.executed.items():
        if times > 1:
            yield f"run {run_id} was executed {times} times"
    yield from _rows_judged(world)
    yield from _transcripts_judged(world)


def _history(world: World, calls: list[Call]) -> History:
    store = world.store
    inboxes: dict[str, list[tuple[int, str]]] = {}
    for row in store.runs.rows():
        if row.inbox_position is not None:
            inboxes.setdefault(row.requester, []).append((row.inbox_position, str(row.run_id)))
    return History(
        tuple(calls),
        tuple(event_of_record(event) for event in store.events),
        {key: tuple((run, at) for at, run in sorted(found)) for key, found in inboxes.items()},
        CAP,
    )


def _rows_judged(world: World) -> Iterator[str]:
    """Yield rows that are not the fold of the events, and events recorded by a server that did not
    hold the run.
    """
    fold = Fold((), ())
    try:
        for recorded in world.store.events:
            envelope = recorded.envelope
            run = fold.runs.get(run_id_of(envelope.stream) or envelope.event_id)
            by = world.recorded_by.get(envelope.position)
            is_of_holder = envelope.type in OF_ITS_HOLDER and run is not None and by is not None
            if run is not None and is_of_holder and not str(run.holder).startswith(f"{by}."):
                yield f"{by} recorded {envelope.type} of a run that {run.holder} holds"
            fold.apply(envelope.stream, stored_and_read(recorded.event), envelope.stamp)
        for state in (*fold.runs.values(), *fold.sessions.values()):
            stored_and_read(state)
    except Exception as error:
        yield f"the events cannot be folded: {error!r}"
        return
    if fold.runs != {row.run_id: row.state for row in world.store.runs.rows()}:
        yield "the rows of runs are not the fold of their events"
    if fold.sessions != {row.session_key: row.state for row in world.store.sessions.rows()}:
        yield "the rows of sessions are not the fold of their events"


def _transcripts_judged(world: World) -> Iterator[str]:
    """Yield transcripts that have gaps or differ from their seal, and files that differ from it.

    Files that are still to be written do not count.
    """
    for row in world.store.runs.rows():
        entries = world.store.entries.get(row.run_id, {})
        if sorted(entries) != list(range(1, len(entries) + 1)):
            yield f"the transcript of {row.run_id} has a gap: {sorted(entries)}"
        seal = row.state.transcript
        if seal is not None and seal.count != len(entries):
            yield f"run {row.run_id} was sealed at {seal.count} entries and has {len(entries)}"
        is_due = row.run_id in world.store.due_files
        if seal is not None and row.state.transcript_path is not None and not is_due:
            file = world.store.files.get(row.state.transcript_path, ())
            if sum(map(len, file)) != seal.bytes:
                yield f"the file of the transcript of {row.run_id} is not what was sealed"


def bury(loop: VirtualLoop, world: World) -> None:
    """End every task, so that none is garbage-collected in the middle of its work."""
    world.is_over = True
    loop.turns = 0
    for server in [*world.graves, *world.servers]:
        server.process.at_step = None
        loop.thaw(server.process)

    async def ended() -> None:
        own = asyncio.current_task()
        while left := [task for task in loop.unfinished_tasks() if task is not own]:
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=1.0)
            for task in left:
                if task.done() and not task.cancelled():
                    task.exception()

    loop.run_until_complete(ended())
    loop.run_until_complete(loop.shutdown_asyncgens())


def is_found(fault: Fault, seed: int) -> bool:
    """Return True if a life without this guarantee shows a violation."""
    return bool(play(seed, fault=fault).wrong)


def findings(seeds: Iterable[int]) -> dict[int, tuple[str, ...]]:
    """Return the violations of these seeds, by seed."""
    played = ((seed, play(seed).wrong) for seed in seeds)
    return {seed: wrong for seed, wrong in played if wrong}


def _seeds_of_faults(seeds: int) -> int:
    """Print for each fault the first seed that finds it and how many do. Return the exit status."""
    is_missed = False
    for fault in Fault:
        found = [seed for seed in range(1, seeds + 1) if is_found(fault, seed)]
        first = f"first found by seed {found[0]}" if found else "not found"
        print(f"{fault.name}: {first}, by {len(found)} of {seeds}", flush=True)
        is_missed |= not found
    return 1 if is_missed else 0


def main() -> int:
    """Play seeds and print violations. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--fault", choices=[fault.name for fault in Fault])
    parser.add_argument("--faults", action="store_true", help="how many seeds find each fault")
    arguments = parser.parse_args()
    if arguments.faults:
        return _seeds_of_faults(arguments.seeds)
    fault = Fault[arguments.fault] if arguments.fault else None
    base_seed = arguments.seed
    seeds = range(1, arguments.seeds + 1) if base_seed is None else (base_seed,)
    runs = events = failed = 0
    happened: Counter[str] = Counter()
    for seed in seeds:
        played = play(seed, fault=fault)
        runs, events = runs + played.runs, events + played.events
        happened += played.happened
        if played.wrong:
            failed += 1
            print(f"seed {seed} fails; again: make simulate SEED={seed}")
            for wrong in played.wrong[:10]:
                print(f"  {wrong}")
    print(f"{len(seeds)} seeds, {runs} runs, {events} events, {dict(happened)}: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
