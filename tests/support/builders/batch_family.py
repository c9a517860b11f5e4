"""A log of one tree in memory that is asked for several runs at once."""

from collections.abc import Mapping, Sequence

from domain.run.commands import RunCommand
from domain.run.facts import BatchFacts
from domain.spawn.batch import Speculation, decide_for_all
from domain.spawn.cascade import CascadeState
from domain.spawn.decide import SpawnDecision, request_spawns
from tests.support.builders.family_log import FamilyLog, keep, spawn_request
from tests.support.builders.storytelling import run_id


def ask_for_all(log: FamilyLog, names: Sequence[str], by: str = "main") -> SpawnDecision:
    """A session asks for as many runs, by these names; what comes of it is recorded."""
    numbers = [len(log.names) + 1 + index for index in range(len(names))]
    run_ids = tuple(run_id(number) for number in numbers)
    log.names.update(zip(run_ids, names, strict=True))
    key = log.key(by)
    known = log.fold.sessions.get(key)
    own = log.fold.runs.get(known.run_id) if known and known.run_id else None
    agent_id = known.agent_id if known else "main"
    commands = [
        spawn_request(
            run_id=one,
            session_id=run_id(1000 + number),
            requester_key=key,
            requester_agent_id=agent_id,
            target_agent_id=agent_id,
            label=name,
            batch=BatchFacts(batch_id=run_id(5000 + numbers[0]), index=index, run_ids=run_ids),
        )
        for index, (number, one, name) in enumerate(zip(numbers, run_ids, names, strict=True))
    ]
    answered = request_spawns(
        {key: known} if known else {},
        {own.run_id: own} if own else {},
        [(one, keep) for one in commands],
        log.policy,
    )
    log.record(answered.changes)
    return answered


def tell_all(log: FamilyLog, asked: Mapping[str, Sequence[RunCommand]]) -> list[str]:
    """Ask something of several runs; it is decided in their order and recorded as one."""
    around = [log.around(name) for name in asked]
    family = CascadeState(
        {key: run for one in around for key, run in one.runs.items()},
        {key: session for one in around for key, session in one.sessions.items()},
    )
    commands = [(log.run(name).run_id, told) for name, told in asked.items()]
    ahead = Speculation(family, log.run(next(iter(asked))).created_at)
    return log.record(decide_for_all(ahead, commands))
