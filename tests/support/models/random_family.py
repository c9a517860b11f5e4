"""Family with random acts, several at once."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import count

from domain.values.refusals import Rejected
from tests.support.builders import run_commands as ask
from tests.support.builders.continued_runs import close
from tests.support.builders.logged_family import LoggedFamily
from tests.support.builders.logged_messages import send
from tests.support.servers.running_log import RunningLog

Act = Callable[[LoggedFamily, str], Awaitable[object]]
ACTS: dict[str, Act] = {
    "resolve": lambda family, name: family.resolve(name),
    "create": lambda family, name: family.create(name),
    "claim": lambda family, name: family.tell(name, ask.claim()),
    "start": lambda family, name: family.start(name),
    "end": lambda family, name: family.end(name),
    "announce": lambda family, name: family.announce(name),
    "archive": lambda family, name: family.tell(name, ask.archive()),
    "stop": lambda family, name: family.tell(name, ask.stop()),
    "refuse": lambda family, name: family.tell(name, ask.refuse(family.run(name).epoch)),
    "close": lambda family, name: family.tell(name, close()),
}
NEXT = {
    "requested": ("create", "create", "create", "refuse", "resolve", "stop"),
    "scripts-resolved": ("create",),
    "queued": ("claim", "start", "start", "start", "stop", "end"),
    "started": ("end",) * 6 + ("stop", "close"),
    "ended": ("announce",),
    "announced": ("archive", *("message",) * 6, "close"),
}


async def live_at_random(running: RunningLog, seed: int, *, rounds: int, at_once: int) -> None:
    """Play rounds of concurrent random acts."""
    die = random.Random(seed)
    family = LoggedFamily(running.log, max_children=8, max_spawn_depth=3)
    names: list[str] = []
    messages = count(1)
    for _ in range(rounds):
        request: list[Awaitable[object]] = []
        coming: list[str] = []
        for _ in range(at_once):
            living = [name for name in names if family.run(name).stage in NEXT]
            if not living or die.random() < 0.3:
                able = [name for name in names if family.run(name).stage == "started"]
                name, by = f"r{len(names)}", die.choice(["main", *able])
                names.append(name)
                await _perhaps(family.spawn(name, by))
                continue
            name = die.choice(living)
            act = die.choice(NEXT[family.run(name).stage])
            if act == "message":
                coming.append(f"m{next(messages)}")
                request.append(_perhaps(send(family, coming[-1], name)))
                continue
            request.append(_perhaps(ACTS[act](family, name)))
        await asyncio.gather(*request)
        names = [name for name in (*names, *coming) if family.id(name) in family.runs]


async def _perhaps(awaitable: Awaitable[object]) -> None:
    try:
        await awaitable
    except Rejected:
        return
