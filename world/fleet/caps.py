"""Long storms over one session after the other, each under another cap."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

from tests.support.servers.server import SOUND
from world.fleet.cap_storm import SERVERS, CapStorm, storm_configuration
from world.fleet.fleet import Fleet

CAPS = (1, 5, 20)
AWAY_SECONDS_MAX = 0.3


def storms(folder: Path, seconds: float, seed: int) -> Iterator[str]:
    """Share the seconds among the caps; gives what is wrong, and prints how much it was."""
    fleet = Fleet(folder / "data", storm_configuration(CAPS[0]), SERVERS)
    with fleet.standing():
        for cap in CAPS:
            fleet.reload(storm_configuration(cap))
            die = random.Random(f"{seed} cap {cap}")
            storm = CapStorm(fleet, cap, die, away_seconds_max=AWAY_SECONDS_MAX)
            storm.talks = True
            print(asyncio.run(storm.blow(seconds / len(CAPS))), flush=True)
            yield from (f"cap {cap}: {fault}" for fault in storm.ledger.faults)
            if storm.ledger.most < cap:
                yield f"cap {cap}: there were never more than {storm.ledger.most} children"
    yield from fleet.servers[0].log_faults(*SOUND)
